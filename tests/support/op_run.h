/* support/op_run.h - shared by the files of the harness: one run of a row. */
#pragma once

#include <stdio.h>

#include "support/op_row.h"
#include "support/values.h"

typedef enum op_layout {
    LAYOUT_PLAIN = 0,
    LAYOUT_STRIDED,
    LAYOUT_TRANSPOSED,
    LAYOUT_OFFSET,
    LAYOUT_EXPANDED,
    LAYOUT_COUNT
} op_layout;

typedef struct op_run {
    const op_row *row;
    op_layout layout;
    kn_device *device;
    kn_dtype dtype;
    const char *table, *implementation; /* forced; NULL: the library's choice */
    const char *only_forced;            /* the one name to force; NULL: all of the row's tables */
    const char *program;                /* argv[0], for the line that reproduces a failure */
    int failures;
} op_run;

/* Prints the failure and the command that reproduces it. */
void op_fail(op_run *run, const char *check, const char *format, ...) KN_PRINTF(3, 4);
const char *op_layout_name(op_layout layout);
const char *op_short_dtype(kn_dtype dtype);

/* --- inputs (op_inputs.c) -------------------------------------------------------------------------------- */

int op_num_inputs(const op_row *row);
bool op_input_differentiable(const op_row *row, int index);
int64_t op_differentiable_elements(const op_row *row, op_layout layout);

/* The leaves: contiguous tensors from which op_view makes the inputs. False on failure. */
bool op_make_leaves(const op_run *run, kn_tensor *leaves[OP_MAX_INPUTS]);

/* The row's expression on the leaves, in the run's layout. */
kn_tensor *op_build_from(const op_run *run, kn_tensor *const *leaves);

/* The gradient of an output: fixed weights that reduce it to one number. NULL on failure. */
kn_tensor *op_output_gradient(const op_run *run, int ndim, const int64_t *shape, kn_dtype dtype);

/* --- one execution (op_execute.c) ------------------------------------------------------------------------ */

typedef struct op_bytes {
    void *data;
    size_t size;
    int64_t count;
    kn_dtype dtype;
    double *values;
} op_bytes;

typedef struct op_result {
    op_bytes output;
    op_bytes gradients[OP_MAX_INPUTS]; /* of the leaves */
} op_result;

/* Forward, and backward if the row has a gradient; everything read to the host. With `observe`, each operation is
 * compared with its reference. False on failure (reported). op_result_free in either case. */
bool op_execute(op_run *run, op_result *result, bool observe);
void op_result_free(op_result *result);

/* --- as a graph (op_captured.c) -------------------------------------------------------------------------- */

void op_check_captured(op_run *run, const op_result *result);

/* --- references (op_reference.c) ------------------------------------------------------------------------- */

void op_observe_begin(op_run *run);
void op_observe_end(void);
void op_print_coverage(FILE *file);
bool op_all_seen(FILE *file); /* were exactly the operators in the list applied? prints the differences */

/* --- gradients (op_gradient.c) --------------------------------------------------------------------------- */

void op_check_gradient(op_run *run); /* in f64 */

/* --- implementations (op_forced.c) ----------------------------------------------------------------------- */

/* Compares this run's gradients with those of `right`, from a wider dtype or another implementation. */
void op_compare_gradients(op_run *run, const op_result *result, const op_result *right, const char *check);
void op_check_implementations(op_run *run, const op_result *chosen);
void op_print_forced(FILE *file);
bool op_forced_any(void); /* did any forced implementation compute anything? */
