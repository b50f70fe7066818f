/* rows_alignment.c - contiguous matrices at any offset in a buffer, with sizes around those of vectors and work-groups:
 * kernels load four elements at a time if alignment permits. */
#include "ops/rows.h"

typedef struct cut {
    kn_tensor *(*run)(kn_tensor *a, kn_tensor *b);
    int64_t rows, columns; /* of each matrix */
    int64_t skip[2];       /* elements before it */
} cut;

static kn_tensor *matrix_of(kn_tensor *x, const cut *c, int64_t skip)
{
    return x ? kn_reshape(kn_narrow(x, 0, skip, c->rows * c->columns), 2, (const int64_t[]){c->rows, c->columns})
             : NULL;
}

static kn_tensor *build(kn_tensor *const *x, const void *params)
{
    const cut *c = params;
    return c->run(matrix_of(x[0], c, c->skip[0]), matrix_of(x[1], c, c->skip[1]));
}

/* The second matrix's first row. */
static kn_tensor *row_of(kn_tensor *b) { return kn_select(b, 0, 0); }

static kn_tensor *run_neg(kn_tensor *a, kn_tensor *b)
{
    (void)b;
    return kn_neg(a);
}

static kn_tensor *run_add(kn_tensor *a, kn_tensor *b) { return kn_add(a, b); }
static kn_tensor *run_add_row(kn_tensor *a, kn_tensor *b) { return kn_add(a, row_of(b)); }
static kn_tensor *run_mul_column(kn_tensor *a, kn_tensor *b) { return kn_mul(a, kn_narrow(b, 1, 0, 1)); }
static kn_tensor *run_in_place(kn_tensor *a, kn_tensor *b) { return kn_add_(kn_clone(a), b); }
static kn_tensor *run_less(kn_tensor *a, kn_tensor *b) { return kn_lt(a, b); }

/* A transposed matrix, and a view of every other column. */
static kn_tensor *run_turned(kn_tensor *a, kn_tensor *b)
{
    return kn_mul(kn_transpose(a, 0, 1), kn_transpose(b, 0, 1));
}

static kn_tensor *run_sum(kn_tensor *a, kn_tensor *b) { return b ? NULL : kn_sum(a); }
static kn_tensor *run_sum_rows(kn_tensor *a, kn_tensor *b) { return b ? NULL : kn_sum_dims(a, (int[]){1}, 1, false); }
static kn_tensor *run_mean_columns(kn_tensor *a, kn_tensor *b)
{
    return b ? NULL : kn_mean_dims(a, (int[]){0}, 1, false);
}
static kn_tensor *run_max_rows(kn_tensor *a, kn_tensor *b) { return b ? NULL : kn_max_dim(a, 1, false, NULL); }
static kn_tensor *run_argmax_columns(kn_tensor *a, kn_tensor *b) { return b ? NULL : kn_argmax(a, 0, false); }

static kn_tensor *run_mse(kn_tensor *a, kn_tensor *b) { return kn_mse_loss(a, b, KN_REDUCTION_MEAN); }
static kn_tensor *run_bce(kn_tensor *a, kn_tensor *b)
{
    return kn_binary_cross_entropy_with_logits(a, b, NULL, NULL, KN_REDUCTION_NONE);
}
static kn_tensor *run_dropout(kn_tensor *a, kn_tensor *b)
{
    return b ? NULL : kn_dropout_with(a, &(const kn_dropout_params){.p = 0.5, .training = true});
}
static kn_tensor *run_dropout2d(kn_tensor *a, kn_tensor *b)
{
    const int64_t shape[] = {kn_shape(a)[0], 1, 1, kn_shape(a)[1]};
    return b ? NULL
             : kn_dropout2d_with(kn_reshape(a, 4, shape), &(const kn_dropout_params){.p = 0.5, .training = true});
}
/* Its gradient is the sum over both uses. */
static kn_tensor *run_twice(kn_tensor *a, kn_tensor *b) { return b ? NULL : kn_mul(kn_neg(a), kn_add_scalar(a, 1)); }

/* Rows as channels; the plane of two images is two rows. */
static kn_tensor *run_batch_norm(kn_tensor *a, kn_tensor *b)
{
    (void)b;
    const int64_t shape[] = {2, kn_shape(a)[0] / 2, kn_shape(a)[1]};
    return kn_batch_norm_with(kn_reshape(a, 3, shape), &(kn_batch_norm_params){.training = true, .eps = 1e-5});
}

/* clang-format off */
#define ROOM(rows, columns) ((rows) * (columns) + 8)
#define ONE(name, function, rows, columns, skip)                                                                       \
    {"alignment/" name, build, {FLOATS(ROOM(rows, columns))}, &(const cut){function, rows, columns, {skip}}}
#define TWO(name, function, rows, columns, skip_a, skip_b)                                                             \
    {"alignment/" name, build, {FLOATS(ROOM(rows, columns)), FLOATS(ROOM(rows, columns))},                             \
     &(const cut){function, rows, columns, {skip_a, skip_b}}}
#define APART(name, function, rows, columns, skip)                                                                     \
    {"alignment/" name, build, {DISTINCT(ROOM(rows, columns))}, &(const cut){function, rows, columns, {skip}}}
/* Starting at each element of a vector. */
#define ONE_EACH(name, function, rows, columns)                                                                        \
    ONE(name "+0", function, rows, columns, 0), ONE(name "+1", function, rows, columns, 1),                            \
    ONE(name "+2", function, rows, columns, 2), ONE(name "+3", function, rows, columns, 3),                            \
    ONE(name "+4", function, rows, columns, 4)
#define TWO_EACH(name, function, rows, columns)                                                                        \
    TWO(name "+0+0", function, rows, columns, 0, 0), TWO(name "+0+1", function, rows, columns, 0, 1),                  \
    TWO(name "+2+4", function, rows, columns, 2, 4), TWO(name "+3+3", function, rows, columns, 3, 3),                  \
    TWO(name "+4+8", function, rows, columns, 4, 8)

OP_ROWS_BEGIN
static const op_row rows[] = {
    ONE("neg_1x1", run_neg, 1, 1, 0), ONE("neg_1x2", run_neg, 1, 2, 4), ONE("neg_1x3", run_neg, 1, 3, 0),
    ONE("neg_1x5", run_neg, 1, 5, 4), ONE("neg_1x127", run_neg, 1, 127, 1), ONE("neg_1x128", run_neg, 1, 128, 2),
    ONE("neg_1x129", run_neg, 1, 129, 3),
    ONE_EACH("neg_5x8", run_neg, 5, 8), ONE_EACH("neg_1x1023", run_neg, 1, 1023),
    ONE_EACH("neg_1x1024", run_neg, 1, 1024), ONE_EACH("neg_1x1025", run_neg, 1, 1025),
    TWO_EACH("add_3x4", run_add, 3, 4), TWO_EACH("add_7x9", run_add, 7, 9),
    TWO_EACH("add_row_5x12", run_add_row, 5, 12), TWO_EACH("add_row_5x13", run_add_row, 5, 13),
    TWO_EACH("add_row_1x8", run_add_row, 1, 8), TWO_EACH("add_row_300x4", run_add_row, 300, 4),
    TWO_EACH("mul_column_5x12", run_mul_column, 5, 12), TWO_EACH("mul_column_7x5", run_mul_column, 7, 5),
    TWO_EACH("in_place_3x20", run_in_place, 3, 20), TWO_EACH("in_place_3x7", run_in_place, 3, 7),
    TWO_EACH("turned_8x12", run_turned, 8, 12), TWO_EACH("turned_5x3", run_turned, 5, 3),
    ONE("batch_norm_6x8+0", run_batch_norm, 6, 8, 0), ONE("batch_norm_6x8+1", run_batch_norm, 6, 8, 1),
    ONE("batch_norm_4x1028+2", run_batch_norm, 4, 1028, 2), ONE("batch_norm_2x8200+4", run_batch_norm, 2, 8200, 4),
    ONE("batch_norm_2x8200+3", run_batch_norm, 2, 8200, 3), ONE("batch_norm_2x8201+3", run_batch_norm, 2, 8201, 3),
    ONE_EACH("sum_1x1025", run_sum, 1, 1025), ONE_EACH("sum_1x8196", run_sum, 1, 8196), ONE("sum_1x3", run_sum, 1, 3, 1),
    ONE_EACH("sum_rows_5x4", run_sum_rows, 5, 4), ONE_EACH("sum_rows_70x5", run_sum_rows, 70, 5),
    ONE_EACH("sum_rows_7x49", run_sum_rows, 7, 49), ONE("sum_rows_513x1", run_sum_rows, 513, 1, 1),
    ONE("sum_rows_33x31", run_sum_rows, 33, 31, 0), ONE("sum_rows_9x257", run_sum_rows, 9, 257, 3),
    ONE("sum_rows_3x2051", run_sum_rows, 3, 2051, 2), ONE("sum_rows_2x8200", run_sum_rows, 2, 8200, 1),
    ONE_EACH("mean_columns_9x4", run_mean_columns, 9, 4), ONE_EACH("mean_columns_5x7", run_mean_columns, 5, 7),
    ONE_EACH("mean_columns_33x36", run_mean_columns, 33, 36), ONE("mean_columns_129x33", run_mean_columns, 129, 33, 3),
    ONE("mean_columns_260x32", run_mean_columns, 260, 32, 4), ONE("mean_columns_2200x64", run_mean_columns, 2200, 64, 0),
    ONE("mean_columns_2201x64", run_mean_columns, 2201, 64, 1), ONE("mean_columns_1x12", run_mean_columns, 1, 12, 0),
    APART("max_rows_70x5", run_max_rows, 70, 5, 1), APART("max_rows_3x4", run_max_rows, 3, 4, 0),
    APART("max_rows_9x49", run_max_rows, 9, 49, 3), APART("max_rows_5x1025", run_max_rows, 5, 1025, 2),
    APART("max_rows_2x8195", run_max_rows, 2, 8195, 1),
    {"alignment/argmax_columns_9x7", build, {WHOLE(KN_F32, 0, 4, ROOM(9, 7))}, &(const cut){run_argmax_columns, 9, 7, {1}}, .no_gradient = true},
    {"alignment/argmax_columns_2200x64", build, {WHOLE(KN_F32, 0, 4, ROOM(2200, 64))}, &(const cut){run_argmax_columns, 2200, 64, {3}}, .no_gradient = true},
    TWO_EACH("mse_3x4", run_mse, 3, 4), TWO_EACH("mse_5x7", run_mse, 5, 7),
    TWO_EACH("bce_3x4", run_bce, 3, 4), TWO_EACH("bce_5x7", run_bce, 5, 7),
    ONE_EACH("dropout_3x4", run_dropout, 3, 4), ONE_EACH("dropout_5x7", run_dropout, 5, 7),
    ONE_EACH("dropout2d_9x4", run_dropout2d, 9, 4), ONE_EACH("dropout2d_5x70", run_dropout2d, 5, 70),
    ONE_EACH("twice_3x4", run_twice, 3, 4), ONE_EACH("twice_5x7", run_twice, 5, 7),
    {"alignment/less", build, {FLOATS(ROOM(3, 20)), FLOATS(ROOM(3, 20))}, &(const cut){run_less, 3, 20, {4, 0}}, .no_gradient = true},
    {"alignment/less_apart", build, {FLOATS(ROOM(3, 7)), FLOATS(ROOM(3, 7))}, &(const cut){run_less, 3, 7, {1, 2}}, .no_gradient = true},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(alignment_rows, rows);
