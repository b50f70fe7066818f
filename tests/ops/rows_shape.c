/* rows_shape.c - views and copies: their gradients. Their values are checked in tests/tensor. */
#include "ops/rows.h"

#define SHAPE_ROW(function, expression)                                                                                \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return expression;                                                                                             \
    }

SHAPE_ROW(reshape, kn_reshape(x[0], KN_SHAPE(5, -1)))
SHAPE_ROW(flatten, kn_flatten(x[0], 1, -1))
SHAPE_ROW(transpose, kn_transpose(x[0], 0, -1))
SHAPE_ROW(t, kn_t(x[0]))
SHAPE_ROW(permute, kn_permute(x[0], (const int[]){2, 0, 1}))
SHAPE_ROW(unsqueeze, kn_unsqueeze(x[0], 1))
SHAPE_ROW(squeeze, kn_squeeze(x[0], 1))
SHAPE_ROW(expand, kn_expand(x[0], KN_SHAPE(3, 5, 7)))
SHAPE_ROW(narrow, kn_narrow(x[0], 1, 2, 3))
SHAPE_ROW(narrow_empty, kn_narrow(x[0], 1, 2, 0))
SHAPE_ROW(select, kn_select(x[0], 1, -2))
SHAPE_ROW(contiguous, kn_contiguous(kn_t(kn_mul_scalar(x[0], 2))))
SHAPE_ROW(there_and_back, kn_to_dtype(kn_to_dtype(kn_mul_scalar(x[0], 2), KN_F64), kn_dtype_of(x[0])))
SHAPE_ROW(clone, kn_clone(x[0]))
SHAPE_ROW(index_first, kn_index_select(x[0], 0, x[1]))
SHAPE_ROW(index_last, kn_index_select(x[0], -1, x[1]))
static kn_tensor *build_narrow_backward(kn_tensor *const *x, const void *params)
{
    kn_tensor *whole = NULL;
    return kn_op_call(kn_op_find("narrow_backward"), x, 1, params, &whole, 1) == KN_OK ? whole : NULL;
}

/* Two views of one tensor: its gradient is the sum of both. */
SHAPE_ROW(overlap, kn_mul(kn_narrow(x[0], 0, 0, 5), kn_narrow(x[0], 0, 2, 5)))
/* A change through a view changes the base and its gradient. */
SHAPE_ROW(write_through, kn_mul_scalar(kn_mul_scalar_(kn_mul_scalar(x[0], 3), 2), 5))

/* clang-format off */
OP_ROWS_BEGIN
static const op_row rows[] = {
    {"reshape/matrix", build_reshape, {FLOATS(7, 5)}, .layouts = true},
    {"flatten/images", build_flatten, {FLOATS(3, 2, 4, 3)}, .layouts = true},
    {"flatten/no_batch", build_flatten, {FLOATS(0, 2, 3)}},
    {"transpose/cube", build_transpose, {FLOATS(3, 4, 5)}, .layouts = true},
    {"t/matrix", build_t, {FLOATS(5, 7)}, .layouts = true},
    {"t/vector", build_t, {FLOATS(5)}},
    {"permute/cube", build_permute, {FLOATS(3, 4, 5)}, .layouts = true},
    {"unsqueeze/matrix", build_unsqueeze, {FLOATS(5, 7)}},
    {"squeeze/one", build_squeeze, {FLOATS(5, 1, 3)}},
    {"squeeze/not_one", build_squeeze, {FLOATS(5, 2)}},
    {"expand/row", build_expand, {FLOATS(5, 1)}, .layouts = true},
    {"expand/scalar", build_expand, {FLOAT_SCALAR(-1, 1)}},
    {"narrow/matrix", build_narrow, {FLOATS(5, 7)}, .layouts = true},
    {"narrow_backward/matrix", build_narrow_backward, {FLOATS(5, 7)}, &(kn_narrow_backward_args){1, 2, 11}, .layouts = true},
    {"narrow_backward/first", build_narrow_backward, {FLOATS(3, 4, 2)}, &(kn_narrow_backward_args){-3, 0, 4}},
    {"narrow_backward/of_nothing", build_narrow_backward, {FLOATS(5, 0)}, &(kn_narrow_backward_args){1, 0, 3}},
    {"narrow/empty", build_narrow_empty, {FLOATS(5, 7)}},
    {"select/matrix", build_select, {FLOATS(5, 7)}, .layouts = true},
    {"contiguous/matrix", build_contiguous, {FLOATS(5, 7)}, .layouts = true},
    {"to_dtype/there_and_back", build_there_and_back, {FLOATS(5, 7)}, .layouts = true},
    {"clone/matrix", build_clone, {FLOATS(5, 7)}, .layouts = true},
    {"clone/empty", build_clone, {FLOATS(5, 0)}},
    {"index_select/rows", build_index_first, {FLOATS(5, 7), INDICES(5, 11)}, .layouts = true},
    {"index_select/columns", build_index_last, {FLOATS(5, 7), INDICES(7, 4)}},
    {"index_select/int32", build_index_first, {FLOATS(5, 7), WHOLE(KN_I32, 0, 5, 11)}},
    {"index_select/one_row_often", build_index_first, {FLOATS(1, 3), INDICES(1, 1031)}, .reduction = 1031},
    {"index_select/many_rows", build_index_first, {FLOATS(2053, 5), INDICES(2053, 4099)}},
    {"index_select/wide_rows", build_index_first, {FLOATS(9, 516), INDICES(9, 37)}, .layouts = true},
    {"index_select/many_indices", build_index_first, {FLOATS(7, 2), INDICES(7, 2500)}, .reduction = 400},
    {"index_select/few_columns_of_many", build_index_last, {FLOATS(600, 3), INDICES(3, 5)}},
    {"index_select/nothing", build_index_first, {FLOATS(5, 7), INDICES(5, 0)}},
    {"index_select/whole", build_index_first, {WHOLE(KN_I64, -9, 9, 5, 7), INDICES(5, 3)}, .no_gradient = true},
    {"index_select/f16", build_index_first, {WHOLE(KN_F16, -9, 9, 5, 7), INDICES(5, 3)}, .no_gradient = true},
    {"index_select/bool", build_index_last, {WHOLE(KN_BOOL, 0, 2, 5, 7), INDICES(7, 3)}, .no_gradient = true},
    {"narrow/overlap", build_overlap, {FLOATS(7, 3)}},
    {"in_place/in_a_chain", build_write_through, {FLOATS(7, 3)}},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(shape_rows, rows);
