/* rows_shape.c - views and copies: their gradients. Their values are checked in tests/tensor. */
#include "ops/rows.h"
#include "rt/rt.h"

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
SHAPE_ROW(slice, kn_slice(x[0], 1, -6, KN_SLICE_END, 2))
SHAPE_ROW(slice_of_slice, kn_slice(kn_slice(x[0], 1, 1, 100, 2), 1, 0, -1, 2))
SHAPE_ROW(slice_empty, kn_slice(x[0], 0, 4, 1, 3))
SHAPE_ROW(slice_written, kn_mul_scalar(kn_fill_(kn_slice(kn_mul_scalar(x[0], 3), 0, 1, KN_SLICE_END, 2), 2), 5))
SHAPE_ROW(diagonal, kn_diagonal(x[0], .offset = 1))
SHAPE_ROW(diagonal_of_cube, kn_diagonal(x[0], .offset = -1, .dim1 = 2, .dim2 = 0))
SHAPE_ROW(diagonal_beyond, kn_diagonal(x[0], .offset = 9))
SHAPE_ROW(diag_embed, kn_diag_embed(x[0], .offset = -2, .dim1 = 0, .dim2 = 2))
SHAPE_ROW(diag, kn_diag(kn_diag(x[0], 1), 1))
SHAPE_ROW(windows_along, kn_tensor_unfold(x[0], 1, 3, 2))
SHAPE_ROW(flip, kn_flip(x[0], (const int[]){0, -1}, 2))
SHAPE_ROW(fliplr, kn_fliplr(kn_t(x[0])))
SHAPE_ROW(roll, kn_roll(x[0], 2, (const int64_t[]){1, -9}, (const int[]){0, 1}))
SHAPE_ROW(roll_flat, kn_roll(x[0], 1, (const int64_t[]){17}, NULL))
SHAPE_ROW(tril, kn_tril(x[0], -1))
SHAPE_ROW(triu, kn_triu(x[0], 2))
SHAPE_ROW(repeat, kn_repeat(x[0], 3, (const int64_t[]){2, 3, 1}))
SHAPE_ROW(repeat_interleave, kn_repeat_interleave(x[0], 3, 0))
SHAPE_ROW(rot90, kn_rot90(x[0], -1, 0, 1))
SHAPE_ROW(block_diag, kn_block_diag(KN_TENSORS(x[0], x[1])))
SHAPE_ROW(contiguous, kn_contiguous(kn_t(kn_mul_scalar(x[0], 2))))
static kn_dtype other_dtype(void) { return kn_device_limits(kn_device_current())->has_f64 ? KN_F64 : KN_F32; }
SHAPE_ROW(there_and_back, kn_to_dtype(kn_to_dtype(kn_mul_scalar(x[0], 2), other_dtype()), kn_dtype_of(x[0])))
SHAPE_ROW(clone, kn_clone(x[0]))
static kn_tensor *build_narrow_backward(kn_tensor *const *x, const void *params)
{
    kn_tensor *whole = NULL;
    return kn_op_call(kn_op_find("narrow_backward"), x, 1, params, &whole, 1) == KN_OK ? whole : NULL;
}

SHAPE_ROW(cat_first, kn_cat(KN_TENSORS(x[0], x[1], x[2]), 0))
SHAPE_ROW(cat_last, kn_cat(KN_TENSORS(x[0], x[1]), -1))
SHAPE_ROW(cat_one, kn_cat(x, 1, 1))
SHAPE_ROW(cat_twice, kn_cat(KN_TENSORS(x[0], x[0], kn_t(kn_mul_scalar(x[0], 3))), 1))
SHAPE_ROW(stack_first, kn_stack(KN_TENSORS(x[0], x[1], x[0]), 0))
SHAPE_ROW(stack_last, kn_stack(KN_TENSORS(x[0], x[1]), -1))

SHAPE_ROW(as_strided, kn_as_strided(x[0], KN_SHAPE(3, 2, 4), ((const int64_t[]){7, 2, 3}), 1))
SHAPE_ROW(windows, kn_as_strided(x[0], KN_SHAPE(6, 3, 2), ((const int64_t[]){1, 1, 11}), 0))
SHAPE_ROW(windows_of_t, kn_as_strided(kn_t(kn_mul_scalar(x[0], 3)), KN_SHAPE(13, 3), ((const int64_t[]){2, 1}), 2))
SHAPE_ROW(as_strided_expanded, kn_as_strided(x[0], KN_SHAPE(31, 3), ((const int64_t[]){0, 2}), 1))
SHAPE_ROW(as_strided_empty, kn_as_strided(x[0], KN_SHAPE(0, 3), ((const int64_t[]){5, 2}), 1))
SHAPE_ROW(as_strided_scalar, kn_as_strided(x[0], KN_SCALAR, NULL, 4))
SHAPE_ROW(bits, kn_view_dtype(kn_view_dtype(x[0], KN_U8), kn_dtype_of(x[0])))
static kn_tensor *build_scatter(kn_tensor *const *x, const void *params)
{
    kn_tensor *memory = NULL;
    return kn_op_call(kn_op_find("as_strided_backward"), x, 1, params, &memory, 1) == KN_OK ? memory : NULL;
}

/* 100 columns, cut and joined in another order. */
static kn_tensor *build_cat_many(kn_tensor *const *x, const void *params)
{
    kn_tensor *columns[100];
    (void)params;
    for (int i = 0; i < 100; i++)
        columns[i] = kn_mul_scalar(kn_narrow(x[0], 1, (i * 37) % 100, 1), i);
    return kn_cat(columns, 100, 1);
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
    {"narrow_backward/stepped", build_narrow_backward, {FLOATS(5, 7)}, &(kn_narrow_backward_args){0, 1, 15, 3}, .full = true},
    {"narrow_backward/first", build_narrow_backward, {FLOATS(3, 4, 2)}, &(kn_narrow_backward_args){-3, 0, 4}},
    {"narrow_backward/of_nothing", build_narrow_backward, {FLOATS(5, 0)}, &(kn_narrow_backward_args){1, 0, 3}},
    {"narrow/empty", build_narrow_empty, {FLOATS(5, 7)}},
    {"select/matrix", build_select, {FLOATS(5, 7)}, .layouts = true},
    {"slice/matrix", build_slice, {FLOATS(5, 7)}, .layouts = true},
    {"slice/of_slice", build_slice_of_slice, {FLOATS(2, 13)}},
    {"slice/empty", build_slice_empty, {FLOATS(5, 7)}},
    {"slice/written", build_slice_written, {FLOATS(5, 7)}},
    {"diagonal/matrix", build_diagonal, {FLOATS(5, 7)}, .layouts = true},
    {"diagonal/cube", build_diagonal_of_cube, {FLOATS(3, 4, 5)}},
    {"diagonal/beyond", build_diagonal_beyond, {FLOATS(5, 7)}},
    {"diagonal/embedded", build_diag_embed, {FLOATS(3, 5)}},
    {"diagonal/there_and_back", build_diag, {FLOATS(5)}},
    {"tensor_unfold/matrix", build_windows_along, {FLOATS(3, 8)}, .layouts = true},
    {"flip/matrix", build_flip, {FLOATS(5, 7)}, .layouts = true},
    {"flip/large", build_flip, {FLOATS(67, 131)}, .full = true},
    {"flip/rows", build_fliplr, {FLOATS(5, 8)}},
    {"flip/bf16", build_flip, {WHOLE(KN_BF16, -9, 9, 5, 7)}, .no_gradient = true, .full = true},
    {"flip/rot90", build_rot90, {FLOATS(5, 7)}},
    {"roll/matrix", build_roll, {FLOATS(5, 7)}, .layouts = true},
    {"roll/flat", build_roll_flat, {FLOATS(5, 7)}},
    {"roll/nothing", build_roll, {FLOATS(5, 0)}},
    {"tril/matrix", build_tril, {FLOATS(5, 7)}, .layouts = true},
    {"tril/wide", build_tril, {FLOATS(2, 3, 64)}, .full = true},
    {"triu/batch", build_triu, {FLOATS(2, 5, 7)}},
    {"triu/u8", build_triu, {WHOLE(KN_U8, 0, 9, 5, 7)}, .no_gradient = true},
    {"cat/repeat", build_repeat, {FLOATS(5, 7)}},
    {"cat/repeat_interleave", build_repeat_interleave, {FLOATS(5, 7)}},
    {"cat/block_diag", build_block_diag, {FLOATS(2, 3), FLOATS(4, 1)}},
    {"contiguous/matrix", build_contiguous, {FLOATS(5, 7)}, .layouts = true},
    {"to_dtype/there_and_back", build_there_and_back, {FLOATS(5, 7)}, .layouts = true},
    {"clone/matrix", build_clone, {FLOATS(5, 7)}, .layouts = true},
    {"clone/empty", build_clone, {FLOATS(5, 0)}},
    {"as_strided/cube", build_as_strided, {FLOATS(5, 7)}},
    {"as_strided/windows", build_windows, {FLOATS(4, 9)}},
    {"as_strided/windows_of_a_view", build_windows_of_t, {FLOATS(5, 7)}},
    {"as_strided/expanded", build_as_strided_expanded, {FLOATS(2, 3)}, .reduction = 31},
    {"as_strided/empty", build_as_strided_empty, {FLOATS(2, 3)}},
    {"as_strided/scalar", build_as_strided_scalar, {FLOATS(2, 3)}},
    {"as_strided_backward/apart", build_scatter, {FLOATS(3, 5)},
     &(kn_as_strided_backward_args){.size = 20, .strides = {2, {1, 4}}, .offset = 1}, .layouts = true},
    {"as_strided_backward/windows", build_scatter, {FLOATS(3, 5)},
     &(kn_as_strided_backward_args){.size = 12, .strides = {2, {1, 2}}, .offset = 1}, .layouts = true},
    {"as_strided_backward/one_place", build_scatter, {FLOATS(2, 3)},
     &(kn_as_strided_backward_args){.size = 3, .strides = {2, {0, 0}}, .offset = 2}},
    {"as_strided_backward/nothing", build_scatter, {FLOATS(0, 5)},
     &(kn_as_strided_backward_args){.size = 7, .strides = {2, {1, 1}}, .offset = 7}},
    {"view_dtype/bytes", build_bits, {FLOATS(5, 7)}, .no_gradient = true},
    {"cat/rows", build_cat_first, {FLOATS(5, 7), FLOATS(1, 7), FLOATS(3, 7)}, .layouts = true},
    {"cat/columns", build_cat_last, {FLOATS(3, 2, 5), FLOATS(3, 2, 7)}, .layouts = true},
    {"cat/one", build_cat_one, {FLOATS(3, 2)}},
    {"cat/one_thrice", build_cat_twice, {FLOATS(3, 3)}},
    {"cat/of_nothing", build_cat_first, {FLOATS(0), FLOATS(3, 7), FLOATS(0, 7)}},
    {"cat/nothing", build_cat_last, {FLOATS(2, 0), FLOATS(2, 0)}},
    {"cat/left_out", build_cat_first, {FLOATS(0), FLOATS(0), FLOATS(0)}},
    {"cat/many", build_cat_many, {FLOATS(3, 100)}},
    {"cat/whole_and_real", build_cat_last, {WHOLE(KN_I64, -9, 9, 2, 3), FLOATS(2, 5)}},
    {"cat/f16", build_cat_last, {WHOLE(KN_F16, -9, 9, 2, 3), WHOLE(KN_BOOL, 0, 2, 2, 4)}, .no_gradient = true},
    {"cat/u8", build_cat_last, {WHOLE(KN_U8, 0, 9, 2, 3), WHOLE(KN_I32, -5, 9, 2, 4)}, .no_gradient = true},
    {"stack/matrices", build_stack_first, {FLOATS(5, 7), FLOATS(5, 7)}, .layouts = true},
    {"stack/cubes", build_stack_last, {FLOATS(3, 2, 4), FLOATS(3, 2, 4)}, .layouts = true},
    {"stack/scalars", build_stack_first, {FLOAT_SCALAR(-1, 1), FLOAT_SCALAR(-1, 1)}},
    {"stack/nothing", build_stack_last, {FLOATS(0, 3), FLOATS(0, 3)}},
    {"stack/bool", build_stack_last, {WHOLE(KN_BOOL, 0, 2, 5, 7), WHOLE(KN_BOOL, 0, 2, 5, 7)}, .no_gradient = true},
    {"narrow/overlap", build_overlap, {FLOATS(7, 3)}},
    {"in_place/in_a_chain", build_write_through, {FLOATS(7, 3)}},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(shape_rows, rows);
