/* loops/pointwise.h - the engine for elementwise work: outputs = code(inputs), in one pass over memory.
 *
 * The computation is OpenCL C text for one element; the engine writes the kernel around it, for CPU devices and for
 * GPUs, for any strides and any mix of dtypes. Operands are converted from their storage dtype on load, computed in one
 * type, and converted on store. A kernel is built on first use and cached (rt/program/program.h); its source depends on
 * the code, the dtypes and the kind of strides, never on shapes.
 *
 *     static kn_pointwise_code sigmoid = {.name = "sigmoid", .inputs = "a", .values = {"1 / (1 + exp(-a))"}};
 */
#pragma once

#include "loops/layout.h"
#include "loops/operand.h"
#include "loops/written_kernels.h"

#define KN_POINTWISE_OUTPUTS 8
#define KN_POINTWISE_INPUTS 16
#define KN_POINTWISE_NUMBERS 12

#define KN_POINTWISE_USER_PREFIX "kn_arg_"

/* Is the text also valid for vectors of floating T, and does it call functions that are faster on vectors? */
typedef enum kn_vectors { KN_NO_VECTORS, KN_VECTORS } kn_vectors;

/* What to compute. Strings must live as long as the code, and the code as long as the process or until
 * kn_pointwise_code_free. */
typedef struct kn_pointwise_code {
    const char *name;       /* of the kernels */
    const char *functions;  /* OpenCL C functions for the values, with T the compute type; NULL: none */
    const char *statements; /* run before the values; NULL: none */
    const char *inputs;     /* one letter per input, its name: "abc" */
    const char *numbers;    /* likewise for scalars, the same for all elements: "pq"; NULL: none */
    /* per number 'T' or another type: 'i' int, 'l' long, 'f' float, 'd' double; NULL: all T */
    const char *number_types;
    const char *values[KN_POINTWISE_OUTPUTS]; /* one expression per output */
    const char *raw;                          /* inputs not converted to T: conditions; NULL: none */
    kn_vectors vectors;
    /* For operands that are all float16 or all bfloat16: the same of their bits, as int16; NULL: none. */
    struct kn_pointwise_code *of_bits;
    /* `functions` is user code and may define macros, so operands and numbers in statements and values are prefixed
     * with KN_POINTWISE_USER_PREFIX. */
    bool has_user_code;
    bool backwards; /* its input often has the stride -1: CPU devices have a loop for that, which is vectorised */
    bool is_fused;  /* made of several (loops/fusion.h): the same prefix, because their letters occur in it */
    kn_written_kernels kernels; /* one per set of dtypes and kind of strides */
} kn_pointwise_code;

/* A copy, for any dtypes. */
extern kn_pointwise_code kn_copying;

/* Frees the kernels of a code made at run time, not the struct. */
void kn_pointwise_code_free(kn_pointwise_code *code);

typedef struct kn_pointwise_problem {
    kn_pointwise_code *code;
    const char *operation; /* for messages and profiles */
    kn_dtype compute;      /* T: any dtype except float16 and bfloat16 */
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    /* All outputs have the first one's strides. An output may be identical to an input, with the same strides;
     * otherwise it must not overlap other operands. */
    kn_operand outputs[KN_POINTWISE_OUTPUTS];
    int num_outputs;
    kn_operand inputs[KN_POINTWISE_INPUTS];
    int num_inputs;
    kn_scalar numbers[KN_POINTWISE_NUMBERS];
} kn_pointwise_problem;

/* The first output that is wanted: the others have its strides. */
static inline const kn_operand *kn_pointwise_first_output(const kn_pointwise_problem *p)
{
    int i = 0;
    while (!p->outputs[i].dtype)
        i++;
    return &p->outputs[i];
}

/* Launches the kernel, or defers that until it can be fused with others (loops/fusion.h). */
kn_status kn_pointwise_run(kn_stream *stream, const kn_pointwise_problem *problem);

/* The kernel alone, now. */
kn_status kn_pointwise_enqueue(kn_stream *stream, const kn_pointwise_problem *problem);

/* Does it build? Leaves the thread's last error unchanged. */
bool kn_pointwise_builds(kn_device *device, const kn_pointwise_problem *problem);

/* How a problem's elements are computed, which affects the bits of functions: with explicit vectors, one by one, or in
 * a way that is the same for both. */
typedef enum kn_vector_style { KN_STYLE_ANY, KN_STYLE_VECTORS, KN_STYLE_ELEMENTS } kn_vector_style;
kn_vector_style kn_pointwise_style(const kn_limits *limits, const kn_pointwise_problem *problem);
int kn_pointwise_vector_width(const kn_limits *limits, kn_dtype dtype);

/* A number as a kernel's argument, of a type as in number_types; 'T' is `dtype`. */
kn_arg kn_number_argument(char type, kn_dtype dtype, kn_scalar number);

/* Does the code compile for this element type? KN_OK or the compiler's message. */
kn_status kn_pointwise_build(kn_device *device, kn_pointwise_code *code, kn_dtype compute);
