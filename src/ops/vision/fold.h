/* ops/vision/fold.h - the parameters of unfold and fold, for their layers. */
#pragma once

#include <koine/operators.h>
#include <koine/vision.h>

#include "vision/fold.h"

extern const kn_op kn_unfold_op, kn_fold_op;

/* The operators' parameters, without a size of images; NULL: the defaults. */
kn_fold_args kn_fold_args_of(const kn_fold_params *params);

/* From the parameters and the images' size; `planes`: their number, N C. */
kn_status kn_fold_resolve(kn_fold_geometry *g, const kn_fold_args *args, int64_t planes, const int64_t *size);
