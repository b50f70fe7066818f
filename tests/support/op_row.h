/* support/op_row.h - one table row per case of an operation.
 *
 * A row builds an expression over the public interface from inputs that the harness makes. For each row, each visible
 * device and each dtype the harness
 *
 *   reference    holds every operation applied, forward and backward, against its plain C reference in double precision
 *   gradient     holds the gradients against central differences, in f64: kn_gradcheck, or, for many elements, along
 * random directions f32-gradient holds the gradients of the f32 run against those of the f64 run repeat       runs the
 * case twice: outputs and gradients have equal bits guard        looks for writes outside buffers (with KOINE_GUARD=1)
 *   leak         looks whether device memory returns to where it was
 *   forced       runs it again with each implementation of the row's tables (ops/dispatch/choice.h) forced in turn
 *
 * A new operation needs one row:
 *
 *     {"tanh/matrix", build_tanh, {FLOATS(13, 17)}},
 */
#ifndef SUPPORT_OP_ROW_H
#define SUPPORT_OP_ROW_H

#include <koine/koine.h>

#define OP_MAX_INPUTS 5

typedef enum op_fill {
    FILL_END = 0,  /* no such input: ends the list */
    FILL_UNIFORM,  /* low .. high, by default -1 .. 1 */
    FILL_DISTINCT, /* low .. high in equal steps, shuffled: no ties, and kinks (0 is none of them) out of reach of a
                      difference */
    FILL_WHOLE,    /* whole numbers low .. high - 1 */
    FILL_SHARES    /* positive, adding up to 1 along dimension 1 */
} op_fill;

typedef struct op_input {
    op_fill fill;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    double low, high;
    kn_dtype dtype; /* default: the dtype of the run */
    bool constant;  /* no gradient wanted */
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
    int64_t reduction;  /* terms of the longest sum in one element; default: guessed from the sizes */
    bool layouts;       /* run also with strided, transposed, offset and expanded inputs */
    bool no_gradient;   /* not differentiable, or only checked forward */
    bool large;         /* takes kernels seconds that are not optimised: by default not with --as-gpu or --plain */
    bool full;          /* only with KOINE_TEST_FULL=1: other rows cover its code, on other sizes or operators */
    const char *tables; /* implementation tables to force, blank-separated: "gemm conv2d" */
} op_row;

typedef struct op_table {
    const op_row *rows;
    int count;
} op_table;

/* Around a table: rows leave out what they do not need, and override defaults by name; the compilers warn about both.
 */
#define OP_ROWS_BEGIN                                                                                                  \
    KN_OVERRIDE_BEGIN                                                                                                  \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")
#define OP_ROWS_END _Pragma("GCC diagnostic pop") KN_OVERRIDE_END

#define OP_TABLE(name, rows) const op_table name = {rows, (int)(sizeof(rows) / sizeof((rows)[0]))}

/* The program: --list, --times (CPU seconds of each case), --only PREFIX, --first (of each family the first row) and
 * --plain (no other layouts, no implementation forced), both unless KOINE_TEST_FULL=1, --shard 2/4 (the second quarter of the tables), --device NAME, --dtype f32|f64, --no-gradient, --forced IMPLEMENTATION, and those of support/as_gpu.h. With
 * --all-operators it fails where the rows that were run do not apply every operator in the list, and none besides.
 * Returns its exit status. */
int op_test_main(int argc, char **argv, const op_table *const *tables);

#endif
