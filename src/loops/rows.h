/* loops/rows.h - the engine for rows: a tensor seen as [outer, n, inner] is outer * inner rows of n elements, and each
 * row is reduced to one or more values: its sum, its maximum and the index of that, its norm.
 *
 * The computation is OpenCL C text. The engine splits a row into parts, each with a state: blocks and vector lanes on
 * CPU devices, work-items on GPUs, and chunks of long rows over two launches. Parts are merged in an order that depends
 * on the sizes alone. All of that is planned in one place (loops/rows_plan.h); a kernel's source depends on the code,
 * the dtypes and the kind of walk, never on sizes.
 *
 *     static kn_rows_code largest = {.name = "largest",
 *                                    .inputs = "a",
 *                                    .state = "m",
 *                                    .init = "m = KN_LOWEST;",
 *                                    .step = "m = ((a > m) | KN_NAN(a)) ? a : m;",
 *                                    .merge = "m = ((M > m) | KN_NAN(M)) ? M : m;",
 *                                    .values = {"m"}};
 */
#pragma once

#include "base/dtype.h"
#include "loops/rows_plan.h"
#include "loops/written_kernels.h"
#include "rt/rt.h"

#define KN_ROWS_OUTPUTS 3
#define KN_ROWS_INPUTS 9
#define KN_ROWS_STATE 4
#define KN_ROWS_NUMBERS 3

/* One pass over a row: its state, and the constants of the row that are computed from it. */
typedef struct kn_rows_pass {
    const char *state, *init, *step, *merge, *row, *finish; /* as in kn_rows_code */
    bool is_sum;
} kn_rows_pass;

/* What to compute. All names are single letters. In texts T is the compute type or, on CPU devices, a vector of it, so
 * texts must be valid for both: conditions are comparisons joined by & and |, stored in type C, and both sides of `x ?
 * y : z` are of type T. KN_LOWEST and KN_HIGHEST are the least and greatest values of T; KN_NAN(x) tests for NaN;
 * KN_POWER(a, p) is pow, KN_EXP(x) is exp or, for a subnormal result, 0. exp, log, log1p and pow of a CPU device's
 * vectors are the library's (pointwise/vector_math.clh). Strings must live as long as the process. */
typedef struct kn_rows_code kn_rows_code;
struct kn_rows_code {
    const char *name;                    /* of the kernels */
    const char *inputs;                  /* one letter per operand: "ab" */
    const char *per_row;                 /* those with one element per row; NULL: none */
    const char *per_place;               /* those with one element per index, the same for all rows; NULL: none */
    const char *single;                  /* those with one element, the same for all rows; NULL: none */
    const char *per_segment;             /* for maps along rows: those with one element per segment; NULL: none */
    const char *numbers;                 /* scalars, the same for all rows: "pq"; NULL: none */
    const char *state;                   /* the fields, of type T: "uv" */
    char place;                          /* a further field, an index in the row, from 0; 0: none */
    const char *init;                    /* sets the fields for an empty part */
    const char *step;                    /* adds the element, index i of the row, to the fields */
    const char *merge;                   /* adds another part's fields, named by capital letters */
    const char *values[KN_ROWS_OUTPUTS]; /* one expression per output; the place alone is int64 */
    /* Steps and merges only add to fields terms that do not depend on the fields. Blocks are then added with
     * compensated summation, so that the error does not grow with the length. */
    bool is_sum;
    bool takes_long; /* the step calls a function, such as exp */
    /* Elements may have results of their own that depend on the state of the whole row. `finish` then sets the row's
     * constants, named in `row`, from that state, and `map` is an expression of inputs, numbers, these constants and i.
     * A `prepass` runs first; step, finish and map may use its constants. All letters differ. Such rows are not cut:
     * between passes they stay in the cache or in registers. */
    const kn_rows_pass *prepass;
    const char *row, *finish, *map;
    const char *keep; /* changes the single input before the last pass's step; map uses the new value */
    /* For rows with a map, a prepass or a total. `index` is an input of integers, one per row, each of which selects an
     * element of its row: in texts that element's index, or -1 for the problem's `ignored` and for one out of range,
     * which is reported. Of the inputs named in `picked` only that element is read: a constant of the row, for finish
     * and map, 0 if there is none. Codes without a step have no state. */
    char index;
    const char *picked;
    /* Reduces all rows to one, in the same launches: its inputs are constants of this code's rows. */
    kn_rows_code *total;
    /* For a map along rows without a total: reduces the columns of the rows, [1, outer, n], from the same inputs with
     * the same letters. CPU devices do this in the same pass. */
    kn_rows_code *columns;
    kn_written_kernels kernels;
};

/* The texts of a sum s and of two sums u and v, for a kn_rows_code or kn_rows_pass. */
#define KN_SUM_BY(step_) .state = "s", .init = "s = 0;", .step = step_, .merge = "s += S;", .is_sum = true
#define KN_SUM_OF(term) KN_SUM_BY("s += " term ";")
#define KN_TWO_SUMS_BY(step_)                                                                                          \
    .state = "uv", .init = "u = 0; v = 0;", .step = step_, .merge = "u += U; v += V;", .is_sum = true

/* Those of a row's largest element m; NaN does not count. */
#define KN_LARGEST .state = "m", .init = "m = KN_LOWEST;", .step = "m = a > m ? a : m;", .merge = "m = M > m ? M : m;"

/* A contiguous tensor, or part of one. */
typedef struct kn_rows_operand {
    const kn_buffer *buffer;
    int64_t offset; /* elements */
    kn_dtype dtype; /* in memory; 0: see kn_rows_problem */
} kn_rows_operand;

typedef struct kn_rows_problem {
    kn_rows_code *code;
    const char *operation; /* for messages and profiles */
    kn_dtype compute;      /* T: float64, float32, int64 or int32 */
    int64_t outer, n, inner;
    /* For codes without a map and no scan: the elements from one block [n, inner] to the next and from one element of a
     * row to the next, where these are not n * inner and inner; 1 between neighbours of inner. */
    bool has_strides;
    int64_t pitch, step;       /* step: 1 if inner is 1 */
    int64_t segment, segments; /* neighbouring elements that share one of inputs in per_segment; how many those have */
    /* Outputs are [outer, inner]; dtype 0: unwanted. */
    kn_rows_operand outputs[KN_ROWS_OUTPUTS];
    kn_rows_operand mapped; /* [outer, n, inner], of type T; dtype 0: unwanted */
    /* [outer, n, inner]; [outer, inner] if in per_row, [n] if in per_place; if in per_segment, [segments], cyclically:
     * element i of all rows together has number (i / segment) % segments; dtype 0: missing, all of them are 1 */
    kn_rows_operand inputs[KN_ROWS_INPUTS];
    kn_rows_operand totals[KN_ROWS_OUTPUTS];  /* values of the total, of one element; dtype 0: unwanted */
    kn_rows_operand columns[KN_ROWS_OUTPUTS]; /* values of the columns' code, [n]; dtype 0: unwanted */
    int64_t ignored;                          /* an index that selects nothing */
    double numbers[KN_ROWS_NUMBERS];
    /* A scan: one value per element, of the row up to it or, backwards, from it on; the outputs are [outer, n, inner].
     * For codes without per_row inputs. */
    bool scans, backwards;
} kn_rows_problem;

/* At most two launches. Empty rows give the state set by `init`. */
kn_status kn_rows_run(kn_stream *stream, const kn_rows_problem *problem);
