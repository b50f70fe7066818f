/* data/transforms/pipeline.h - a list of steps, each a kind with its own parameters. */
#pragma once

#include <koine/transforms.h>

#include "data/transforms/draws.h"
#include "data/transforms/picture.h"

/* What is known of a picture before it is read. */
#define KN_UNKNOWN_SIZE (-1)
typedef struct kn_picture_kind {
    kn_dtype dtype;
    int64_t channels, height, width; /* the last two may be unknown */
} kn_picture_kind;

/* `rule`, NULL: all pictures, unchanged in kind. It checks and changes the kind. Messages of both are prefixed with the
 * step's name; `apply` gets pictures that the rule accepts, of known size. */
typedef struct kn_step_kind {
    const char *name;
    kn_status (*rule)(const void *params, kn_picture_kind *kind);
    kn_status (*apply)(const void *params, kn_picture *picture, kn_draws *draws);
} kn_step_kind;

enum { KN_STEP_PARAMS = 128 };

typedef struct kn_step {
    const kn_step_kind *kind;
    _Alignas(16) unsigned char params[KN_STEP_PARAMS];
} kn_step;

struct kn_transforms {
    kn_step *steps;
    int count, capacity;
    kn_status status; /* of the first step that was refused */
    char message[512];
};

/* Adds a step with a copy of its parameters. */
kn_status kn_transforms_add(kn_transforms *transforms, const kn_step_kind *kind, const void *params, size_t size);
/* Sets the pipeline's error, prefixed with the function's name: `return kn_transforms_refuse(...)`. */
kn_status kn_transforms_refuse(kn_transforms *transforms, const kn_step_kind *kind, const char *format, ...)
    KN_PRINTF(3, 4);
/* Checks a range from [0] to [1] within limits. */
kn_status kn_transforms_check_range(kn_transforms *transforms, const kn_step_kind *kind, const char *name,
                                    const double range[2], double least, double most);
kn_status kn_transforms_check_chance(kn_transforms *transforms, const kn_step_kind *kind, double p);
kn_status kn_transforms_check_interpolation(kn_transforms *transforms, const kn_step_kind *kind, int interpolation,
                                            bool bicubic);

/* A rule: 1 or 3 channels. */
kn_status kn_rule_of_colors(const void *params, kn_picture_kind *kind);

/* --- for datasets ------------------------------------------------------------------------------------------------- */

/* A copy, which belongs to the caller. An error if a step was refused. NULL is the empty pipeline. */
kn_status kn_transforms_copy(kn_transforms **copy, const kn_transforms *transforms);
/* The kind that results / the picture itself, replaced by the result. */
kn_status kn_transforms_rule(const kn_transforms *transforms, kn_picture_kind *kind);
kn_status kn_transforms_run(const kn_transforms *transforms, kn_picture *picture, uint64_t random);
/* The field for pictures of this kind, whose size must be known. */
kn_status kn_transforms_field(const kn_picture_kind *kind, kn_field *field);
