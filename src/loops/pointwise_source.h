/* loops/pointwise_source.h - the OpenCL C of a pointwise kernel. */
#pragma once

#include "base/text.h"
#include "loops/pointwise.h"

/* How a kernel walks its operands. */
typedef enum kn_walk {
    KN_WALK_FLAT,  /* CPU: each operand contiguous or a scalar (cl/pointwise/flat.clh) */
    KN_WALK_RUNS,  /* CPU: any strides (cl/pointwise/runs.clh) */
    KN_WALK_TILES, /* CPU: short runs, packed (cl/pointwise/tiles.clh) */
    KN_WALK_VEC4   /* GPU: any strides (cl/pointwise/vec4.clh) */
} kn_walk;

/* Everything that the source depends on besides the code; compared bytewise. */
typedef struct kn_pointwise_form {
    uint8_t walk, compute, vector;         /* kn_walk; kn_dtype; explicit vector length, 0: none */
    uint8_t outputs[KN_POINTWISE_OUTPUTS]; /* kn_dtype; 0: unwanted */
    uint8_t inputs[KN_POINTWISE_INPUTS];   /* kn_dtype; 0: not read */
    uint8_t rounded[KN_POINTWISE_INPUTS];
    uint8_t lane[KN_POINTWISE_INPUTS]; /* as in loops/layout.h; 0: strides of the outputs */
    uint8_t lanes;
    uint8_t spread[KN_POINTWISE_INPUTS];  /* of a flat walk: one element for all */
    uint8_t aliased[KN_POINTWISE_INPUTS]; /* 1 + the output that it is; 0: none */
    uint8_t bypass; /* of a flat walk: outputs are stored past the caches (cl/common/bypass.clh) */
} kn_pointwise_form;

/* Has an input or an output the dtype? */
bool kn_pointwise_has(const kn_pointwise_form *form, kn_dtype dtype);

/* Do explicit vectors serve these dtypes? */
bool kn_pointwise_has_vectors(const kn_pointwise_code *code, const kn_pointwise_form *form);

/* Is a code that is computed in elements arithmetic only, so that vectors give the same bits? */
bool kn_pointwise_could_have_vectors(const kn_pointwise_code *code, const kn_pointwise_form *form);

/* Can operands be packed? Not for explicit vectors, and not if an output is an input. */
bool kn_pointwise_could_pack(const kn_pointwise_form *form);

#define KN_POINTWISE_PREFIX "pointwise_"

/* The OpenCL C name of a type as in number_types; 'T' is KN_ELEMENT, which kernels define. */
const char *kn_number_type(char type);

/* The kernel is named KN_POINTWISE_PREFIX plus the code's name. Its parameters: the wanted outputs, the inputs that are
 * read and not aliased, the number of elements (flat), a kn_runs or kn_vec4_plan, the numbers. */
void kn_pointwise_write(kn_text *out, const kn_pointwise_code *code, const kn_pointwise_form *form);
