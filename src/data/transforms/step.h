/* data/transforms/step.h - for the files that define steps. */
#pragma once

#include <math.h>

#include "base/error.h"
#include "data/transforms/pipeline.h"

/* Adds a step of `kind` with `params`, a struct. */
#define KN_ADD_STEP(transforms, kind, params)                                                                          \
    kn_transforms_add(transforms, &(kind), &(params),                                                                  \
                      sizeof(params) + 0 * sizeof(char[sizeof(params) <= KN_STEP_PARAMS ? 1 : -1]))

#define KN_CHECK_TRANSFORMS(transforms)                                                                                \
    do {                                                                                                               \
        if (!(transforms))                                                                                             \
            return kn_fail_argument_null(__func__, "transforms");                                                      \
    } while (0)

static inline bool kn_happens(kn_draws *draws, double p) { return kn_draw(draws) < p; }
