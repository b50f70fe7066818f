/* loops/rows.h - the engine for rows: a tensor seen as [outer, n, inner] is outer * inner rows of n elements, and each
 * row becomes one value or several: its sum, its maximum and where that is, its norm.
 *
 * What is computed is OpenCL C given as text. A row is taken in parts, each of which has a state; the engine cuts rows
 * into parts, on CPU devices into blocks and the lanes of vectors, on GPUs among work-items, and long ones for two
 * launches, and merges the parts in an order that depends on the sizes alone. All of that is planned in one place
 * (loops/rows_plan.h); how a kernel is written depends on the code, the dtypes and the kind of walk, never on sizes.
 *
 *     static kn_rows_code largest = {.name = "largest",
 *                                    .inputs = "a",
 *                                    .state = "m",
 *                                    .init = "m = KN_LOWEST;",
 *                                    .step = "m = ((a > m) | KN_NAN(a)) ? a : m;",
 *                                    .merge = "m = ((M > m) | KN_NAN(M)) ? M : m;",
 *                                    .values = {"m"}};
 */
#ifndef KN_LOOPS_ROWS_H
#define KN_LOOPS_ROWS_H

#include "loops/operand.h"
#include "loops/rows_plan.h"
#include "loops/written_kernels.h"

#define KN_ROWS_OUTPUTS 3
#define KN_ROWS_INPUTS 6
#define KN_ROWS_STATE 4
#define KN_ROWS_NUMBERS 2

/* One way over a row: a state, and what later passes and the map are to know of it. */
typedef struct kn_rows_pass {
    const char *state, *init, *step, *merge; /* as below */
    const char *row, *finish;
    bool is_sum;
} kn_rows_pass;

/* What to compute. Everything has a letter for its name. In texts T is the type that is computed in, or vectors of it
 * on CPU devices, so texts hold for both: conditions are comparisons joined by & and |, which C can hold, and both
 * sides of `x ? y : z` are of type T. KN_LOWEST and KN_HIGHEST are below and above all values of T; KN_NAN(x) tells
 * NaN; KN_POWER(a, p) stands for pow. Text lives as long as the process. */
typedef struct kn_rows_code {
    const char *name;      /* of the kernels */
    const char *inputs;    /* a letter for each operand: "ab" */
    const char *per_row;   /* those of them that have one element for each row; NULL: none */
    const char *per_place; /* those of them that have one for each place of a row, the same for all rows */
    const char *numbers;   /* numbers that are the same for all rows: "pq"; NULL: none */
    const char *state;     /* the fields, of type T: "uv" */
    char place;            /* a further field, a place in the row counted from 0; 0: none */
    const char *init;      /* sets the fields to those of no element at all */
    const char *step;      /* adds the element, place i of the row, to the fields */
    const char *merge;     /* adds another part's fields, which are named by capital letters */
    const char *values[KN_ROWS_OUTPUTS]; /* an expression for each output; the place by itself is int64 */
    /* Steps and merges are additions: each adds to a field something that it does not depend on. Blocks are then added
     * with compensation, so that the error does not grow with the length. */
    bool is_sum;
    /* Elements may have results of their own, which depend on the state of their whole row. `finish` sets the values
     * with the letters `row` from the fields of that state; `map` is the result of an element, an expression of these,
     * of inputs, of numbers and of i. A pass `before` comes first, whose letters in `row` the step may name.
     * Rows are not cut: what the first pass read is in the cache, or in registers, for the next one. */
    const kn_rows_pass *before;
    const char *row, *finish, *map;
    const char *keep; /* changes the element, of one input, before the last pass's step; the map sees what it became */
    kn_written_kernels kernels;
} kn_rows_code;

typedef struct kn_rows_problem {
    kn_rows_code *code;
    const char *operation; /* for messages and profiles */
    kn_dtype compute;      /* T: any dtype but float16, uint8 and bool */
    int64_t outer, n, inner;
    /* All contiguous; strides are not looked at. Outputs are [outer, inner]; dtype 0: not wanted. */
    kn_operand outputs[KN_ROWS_OUTPUTS];
    kn_operand mapped;                 /* [outer, n, inner], of type T */
    kn_operand inputs[KN_ROWS_INPUTS]; /* [outer, n, inner], [outer, inner] or [n] where there is one for
                                        * each row or place */
    double numbers[KN_ROWS_NUMBERS];
    /* A value for each element instead, of the row up to it, or from it on: the output is [outer, n, inner]. For codes
     * without a place and without inputs that there are one of for each row. */
    bool scans, backwards;
} kn_rows_problem;

/* At most two launches. Rows of no elements give what `init` says. */
kn_status kn_rows_run(kn_stream *stream, const kn_rows_problem *problem);

#endif
