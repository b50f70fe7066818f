/* loops/pointwise.h - the engine for elementwise work: outputs = code(inputs), one pass over memory.
 *
 * What is computed is OpenCL C given as text, of one element; the engine writes the kernel around it, for CPU devices
 * and for GPUs, for any strides and any mix of dtypes. Operands are read in the dtype that they are stored in,
 * converted as they are loaded, computed on in one type, and converted as they are stored. A kernel is built at its
 * first use and kept (rt/program/program.h); how it is written depends on the code, the dtypes and the kind of strides,
 * never on shapes.
 *
 *     static kn_pointwise_code sigmoid = {.name = "sigmoid", .inputs = "a", .values = {"1 / (1 + exp(-a))"}};
 * / */
#ifndef KN_LOOPS_POINTWISE_H
#define KN_LOOPS_POINTWISE_H

#include "loops/layout.h"
#include "loops/operand.h"
#include "loops/written_kernels.h"

#define KN_POINTWISE_OUTPUTS 8
#define KN_POINTWISE_INPUTS 16
#define KN_POINTWISE_NUMBERS 8

#define KN_POINTWISE_USERS "kn_arg_"

/* Does the text hold for vectors of floating T as it stands, and call functions that are faster on them? */
typedef enum kn_vectors { KN_NO_VECTORS, KN_VECTORS, KN_F32_VECTORS } kn_vectors;

/* What to compute. Text in all fields lives as long as the code; the code as long as the process, or until
 * kn_pointwise_code_free. */
typedef struct kn_pointwise_code {
    const char *name;       /* of the kernels */
    const char *functions;  /* OpenCL C that the values call, T being the type that is computed in; NULL: none */
    const char *statements; /* run before the values are taken; NULL: none */
    const char *inputs;     /* a letter for each input, which is its name: "abc" */
    const char *numbers;    /* likewise, numbers that are the same for all elements: "pq"; NULL: none */
    /* of each number 'T', or the letter of a type of its own: "i" int, "l" long, "f" float, "d" double; NULL: all T */
    const char *number_types;
    const char *values[KN_POINTWISE_OUTPUTS]; /* an expression for each output */
    const char *raw;                          /* those that are not converted to T: conditions; NULL: none */
    kn_vectors vectors;
    /* `functions` came from the program that uses the library, and so did its macros: in statements and values operands
     * and numbers have KN_POINTWISE_USERS before their letters. */
    bool is_users;
    kn_written_kernels kernels; /* one for each set of dtypes and kind of strides */
} kn_pointwise_code;

/* Frees the kernels of a code that is made at run time, not the struct. */
void kn_pointwise_code_free(kn_pointwise_code *code);

typedef struct kn_pointwise_problem {
    kn_pointwise_code *code;
    const char *operation; /* for messages and profiles */
    kn_dtype compute;      /* T: any dtype but float16 and bfloat16 */
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    /* Outputs all have the first one's strides. An output may be the very memory of an input, at the same places; else
     * no output overlaps another operand. */
    kn_operand outputs[KN_POINTWISE_OUTPUTS];
    int num_outputs;
    kn_operand inputs[KN_POINTWISE_INPUTS];
    int num_inputs;
    kn_scalar numbers[KN_POINTWISE_NUMBERS];
} kn_pointwise_problem;

kn_status kn_pointwise_run(kn_stream *stream, const kn_pointwise_problem *problem);

/* Does the code build for elements of this type? KN_OK or the compiler's message. */
kn_status kn_pointwise_build(kn_device *device, kn_pointwise_code *code, kn_dtype compute);

#endif
