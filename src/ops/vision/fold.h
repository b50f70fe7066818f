/* ops/vision/fold.h - the parameters of unfold and fold, for their layers, and their kernels, for convolutions. */
#pragma once

#include <koine/operators.h>
#include <koine/vision.h>
#include <limits.h>

#include "rt/command/launch.h"
#include "vision/fold.h"

/* The largest size, extent of a window or padding. */
enum { KN_FOLD_LARGEST = INT_MAX / 4 };

extern const kn_op kn_unfold_op, kn_fold_op;

/* The operators' parameters, without a size of images; NULL: the defaults. */
kn_fold_args kn_fold_args_of(const kn_fold_params *params);

/* From the parameters and the images' size; `planes`: their number, N C. */
kn_status kn_fold_resolve(kn_fold_geometry *g, const kn_fold_args *args, int64_t planes, const int64_t *size);

/* Runs the kernel "unfold" (x: planes, y: columns) or "fold" (the other way round); x and y are contiguous buffers.
 * `element`: 4 bytes, float32; 8, float64; or 2, of any type, which are copied, so for fold windows must not overlap.
 * `operation`: for the profiler. */
kn_status kn_fold_run(kn_stream *stream, const char *kernel, const char *operation, const kn_fold_geometry *g,
                      int64_t element, kn_arg x, kn_arg y);
