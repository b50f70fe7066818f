/* support/op_row.h - one table row per case of an operation.
 *
 * A row builds an expression with public functions from inputs that the harness makes. For each row, each visible
 * device and each dtype the harness
 *
 *   reference     compares every operation, forward and backward, with its plain C reference in double precision
 *   gradient      compares gradients with central differences, in f64: kn_gradcheck or, for many elements, along random
 *                 directions
 *   f32-gradient  compares the gradients of the f32 run with those of the f64 run
 *   repeat        runs the case twice: outputs and gradients have equal bits
 *   zeros         runs the kernel of each launch on zeros in place of its buffers, which it may not leave
 *   guard         detects writes outside buffers (with KOINE_GUARD=1)
 *   leak          checks that device memory is released
 *   captured      captures it in a graph, forward and backward, and replays that: equal bits
 *   forced        runs it again with each implementation of the row's tables (ops/dispatch/choice.h) forced in turn
 *
 * A new operation needs one row:
 *
 *     {"tanh/matrix", build_tanh, {FLOATS(13, 17)}},
 */
#pragma once

#include <koine/koine.h>

#define OP_MAX_INPUTS 5

typedef enum op_fill {
    FILL_END = 0,  /* no input: ends the list */
    FILL_UNIFORM,  /* low .. high, by default -1 .. 1 */
    FILL_DISTINCT, /* low .. high in equal steps, shuffled: no ties, and not near the kink at 0 */
    FILL_WHOLE,    /* integers low .. high - 1 */
    FILL_SHARES    /* positive, with sum 1 along dimension 1 */
} op_fill;

typedef struct op_input {
    op_fill fill;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    double low, high;
    kn_dtype dtype; /* default: the dtype of the run */
    bool constant;  /* no gradient needed */
} op_input;

/* clang-format off */
#define OP_SHAPE(...) .ndim = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .shape = {__VA_ARGS__}
#define FLOATS(...) {.fill = FILL_UNIFORM, OP_SHAPE(__VA_ARGS__)}
#define FLOATS_IN(lo, hi, ...) {.fill = FILL_UNIFORM, .low = lo, .high = hi, OP_SHAPE(__VA_ARGS__)}
#define FLOAT_SCALAR(lo, hi) {.fill = FILL_UNIFORM, .low = lo, .high = hi}
#define DISTINCT(...) {.fill = FILL_DISTINCT, .low = -2, .high = 2.037, OP_SHAPE(__VA_ARGS__)}
#define CONSTANTS_IN(lo, hi, ...) {.fill = FILL_UNIFORM, .low = lo, .high = hi, .constant = true, OP_SHAPE(__VA_ARGS__)}
#define SHARES(...) {.fill = FILL_SHARES, .constant = true, OP_SHAPE(__VA_ARGS__)}
#define WHOLE(type, lo, hi, ...) {.fill = FILL_WHOLE, .dtype = type, .low = lo, .high = hi, .constant = true, OP_SHAPE(__VA_ARGS__)}
#define INDICES(count, ...) WHOLE(KN_I64, 0, count, __VA_ARGS__)
/* clang-format on */

/* x holds the row's inputs, NULL beyond them. */
typedef kn_tensor *(*op_build)(kn_tensor *const *x, const void *params);

typedef struct op_row {
    const char *name; /* "family/case" */
    op_build build;
    op_input inputs[OP_MAX_INPUTS];
    const void *params;
    int64_t reduction;  /* terms of an element's longest sum; default: estimated from the sizes */
    bool layouts;       /* run also with strided, transposed, offset and expanded inputs */
    bool no_gradient;   /* not differentiable, or only checked forward */
    bool on_cpu;        /* by default not with --as-gpu, where other rows run the same kernels */
    bool full;          /* only with KOINE_TEST_FULL=1: other rows cover the same code */
    bool reads;         /* reads values or makes tensors from host memory, which cannot be part of a graph */
    bool draws;         /* random numbers, others in each dtype: gradients in f32 are not those in f64 */
    bool wide;          /* computes in float64 whatever its inputs are: not on devices without */
    const char *tables; /* implementation tables to force, blank-separated: "gemm conv2d" */
} op_row;

typedef struct op_table {
    const op_row *rows;
    int count;
    /* tests/golden has every operator of the table in f32, and other tables test the engine that writes its kernels: by
     * default its rows run in f64 alone, and of those with another dtype or for simulated GPUs the first */
    bool has_golden;
    const char *engine; /* of such a table the families, blank-separated, that test an engine and run in full */
} op_table;

/* Around a table: rows omit fields and override defaults by name, which compilers warn about. */
#define OP_ROWS_BEGIN                                                                                                  \
    KN_OVERRIDE_BEGIN                                                                                                  \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")
#define OP_ROWS_END _Pragma("GCC diagnostic pop") KN_OVERRIDE_END

#define OP_TABLE(name, table, ...)                                                                                     \
    const op_table name = {.rows = table, .count = (int)(sizeof(table) / sizeof((table)[0])), __VA_ARGS__}

/* The program: --list, --times (CPU seconds of each case), --only PREFIX (may be repeated), --first (the first row of
 * each family, of a table with golden values the first row and its engine's, plain, unless KOINE_TEST_FULL=1),
 * --shard 2/4 (the second quarter of the tables), --device NAME, --dtype f32|f64, --no-gradient, --forced
 * IMPLEMENTATION, and those of support/as_gpu.h. With --all-operators it fails unless the rows applied exactly the
 * operators in the list. Returns the exit status. */
int op_test_main(int argc, char **argv, const op_table *const *tables);
