/* rows_index.c - gathers and scatters by index, masks, embedding. */
#include "ops/rows.h"

#define INDEX_ROW(function, expression)                                                                                \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return expression;                                                                                             \
    }
/* A change in place of a copy: leaves are not changed. */
#define COPY kn_mul_scalar(x[0], 2)
static kn_tensor *mask(const kn_tensor *x) { return kn_to_dtype((kn_tensor *)(uintptr_t)x, KN_BOOL); }

INDEX_ROW(index_first, kn_index_select(x[0], 0, x[1]))
INDEX_ROW(index_last, kn_index_select(x[0], -1, x[1]))
INDEX_ROW(gather_first, kn_gather(x[0], 0, x[1]))
INDEX_ROW(gather_middle, kn_gather(x[0], 1, x[1]))
INDEX_ROW(gather_last, kn_gather(x[0], -1, x[1]))
INDEX_ROW(take, kn_take(x[0], x[1]))
INDEX_ROW(along, kn_take_along_dim(x[0], x[1], 1))
INDEX_ROW(index_one, kn_index(x[0], KN_TENSORS(NULL, x[1])))
INDEX_ROW(index_two, kn_index(x[0], KN_TENSORS(x[1], x[2])))
INDEX_ROW(index_apart, kn_index(x[0], KN_TENSORS(x[1], NULL, x[2])))
INDEX_ROW(index_mask, kn_index(x[0], KN_TENSORS(mask(x[1]))))
INDEX_ROW(index_mask_and_list, kn_index(x[0], KN_TENSORS(NULL, mask(x[1]), x[2])))
INDEX_ROW(scatter, kn_scatter(x[0], 0, x[1], x[2]))
INDEX_ROW(scatter_in_place, kn_scatter_(COPY, 0, x[1], x[2]))
INDEX_ROW(scatter_value, kn_scatter_value(x[0], 1, x[1], 3))
INDEX_ROW(scatter_add, kn_scatter_add(x[0], 0, x[1], x[2]))
INDEX_ROW(scatter_add_last, kn_scatter_add(x[0], -1, x[1], x[2]))
INDEX_ROW(scatter_add_in_place, kn_scatter_add_(COPY, 1, x[1], x[2]))
INDEX_ROW(index_add, kn_index_add(x[0], 0, x[1], x[2], .alpha = 0.5))
INDEX_ROW(index_add_last, kn_index_add(x[0], -1, x[1], x[2]))
INDEX_ROW(index_add_in_place, kn_index_add_(COPY, 0, x[1], x[2], .alpha = 3))
INDEX_ROW(index_add_part, kn_mul_scalar(kn_index_add_(kn_t(kn_narrow(COPY, 1, 2, 3)), 0, x[1], x[2]), 2))
INDEX_ROW(index_copy, kn_index_copy(x[0], 0, x[1], x[2]))
INDEX_ROW(index_copy_in_place, kn_index_copy_(COPY, 0, x[1], x[2]))
INDEX_ROW(index_fill, kn_index_fill(x[0], 1, x[1], 2))
INDEX_ROW(index_fill_in_place, kn_index_fill_(COPY, 1, x[1], 2))
INDEX_ROW(put, kn_put(x[0], x[1], x[2], .accumulate = true))
INDEX_ROW(put_in_place, kn_put_(kn_t(COPY), x[1], x[2], .accumulate = true))
INDEX_ROW(index_put, kn_index_put(x[0], KN_TENSORS(x[1], NULL, x[2]), x[3], .accumulate = true))
INDEX_ROW(index_put_in_place, kn_index_put_(kn_transpose(COPY, 0, 1), KN_TENSORS(x[1], x[2]), x[3], .accumulate = true))
INDEX_ROW(index_put_mask, kn_index_put(x[0], KN_TENSORS(mask(x[1])), x[2]))
INDEX_ROW(masked_fill, kn_masked_fill(x[0], mask(x[1]), 2))
INDEX_ROW(masked_fill_in_place, kn_masked_fill_(COPY, mask(x[1]), -2))
INDEX_ROW(masked_select, kn_masked_select(x[0], mask(x[1])))
INDEX_ROW(masked_scatter, kn_masked_scatter(x[0], mask(x[1]), x[2]))
INDEX_ROW(embedding, kn_embedding(x[1], x[0]))
INDEX_ROW(embedding_padded, kn_embedding(x[1], x[0], .padding_idx = -2))
INDEX_ROW(embedding_by_frequency, kn_embedding(x[1], x[0], .scale_grad_by_freq = true))
INDEX_ROW(bag_sum, kn_embedding_bag(x[1], x[0], .per_sample_weights = x[2], .mode = KN_BAG_SUM, .padding_idx = 1))
INDEX_ROW(bag_mean, kn_embedding_bag(x[1], x[0]))
INDEX_ROW(bag_max, kn_embedding_bag(x[1], x[0], .mode = KN_BAG_MAX))

/* params: a kn_scatter_reduce_args */
static kn_tensor *build_reduce(kn_tensor *const *x, const void *params)
{
    const kn_scatter_reduce_args *p = params;
    return kn_scatter_reduce(x[0], p->dim, x[1], x[2], p->reduce, .include_self = p->include_self);
}
static kn_tensor *build_index_reduce(kn_tensor *const *x, const void *params)
{
    const kn_scatter_reduce_args *p = params;
    return kn_index_reduce(x[0], p->dim, x[1], x[2], p->reduce, .include_self = p->include_self);
}
#define REDUCE(...)                                                                                                    \
    &(kn_scatter_reduce_args) { __VA_ARGS__ }

/* clang-format off */
OP_ROWS_BEGIN
static const op_row rows[] = {
    {"index_select/rows", build_index_first, {FLOATS(5, 7), INDICES(5, 11)}, .layouts = true},
    {"index_select/columns", build_index_last, {FLOATS(5, 7), INDICES(7, 4)}},
    {"index_select/int32", build_index_first, {FLOATS(5, 7), WHOLE(KN_I32, 0, 5, 11)}},
    {"index_select/one_row_often", build_index_first, {FLOATS(1, 3), INDICES(1, 1031)}, .reduction = 1031},
    {"index_select/many_rows", build_index_first, {FLOATS(2053, 5), INDICES(2053, 4099)}, .on_cpu = true},
    {"index_select/wide_rows", build_index_first, {FLOATS(9, 516), INDICES(9, 37)}, .layouts = true},
    {"index_select/many_indices", build_index_first, {FLOATS(7, 2), INDICES(7, 2500)}, .reduction = 400},
    {"index_select/few_columns_of_many", build_index_last, {FLOATS(600, 3), INDICES(3, 5)}},
    {"index_select/nothing", build_index_first, {FLOATS(5, 7), INDICES(5, 0)}},
    {"index_select/whole", build_index_first, {WHOLE(KN_I64, -9, 9, 5, 7), INDICES(5, 3)}, .no_gradient = true},
    {"index_select/bf16", build_index_first, {WHOLE(KN_BF16, -9, 9, 5, 7), INDICES(5, 3)}, .no_gradient = true},
    {"index_select/f16", build_index_first, {WHOLE(KN_F16, -9, 9, 5, 7), INDICES(5, 3)}, .no_gradient = true},
    {"index_select/bool", build_index_last, {WHOLE(KN_BOOL, 0, 2, 5, 7), INDICES(7, 3)}, .no_gradient = true},
    {"gather/rows", build_gather_first, {FLOATS(5, 7), INDICES(5, 11, 6)}, .layouts = true},
    {"gather/middle", build_gather_middle, {FLOATS(3, 5, 4), INDICES(5, 3, 7, 4)}, .layouts = true},
    {"gather/columns", build_gather_last, {FLOATS(11, 7), INDICES(7, 9, 13)}},
    {"gather/many", build_gather_first, {FLOATS(3, 40000), INDICES(3, 4, 40000)}},
    {"gather/few_lines", build_gather_last, {FLOATS(2, 900), INDICES(900, 2, 2100)}, .reduction = 40},
    {"gather/nothing", build_gather_last, {FLOATS(3, 0), INDICES(1, 3, 0)}},
    {"gather/scalar", build_gather_last, {FLOAT_SCALAR(-1, 1), {.fill = FILL_WHOLE, .dtype = KN_I64, .low = 0, .high = 1, .constant = true}}, .full = true},
    {"take/matrix", build_take, {FLOATS(5, 7), WHOLE(KN_I64, -35, 35, 4, 11)}, .layouts = true},
    {"take/along_dim", build_along, {FLOATS(3, 5, 1), INDICES(5, 1, 2, 4)}},
    {"index/one", build_index_one, {FLOATS(3, 5, 4), WHOLE(KN_I64, -5, 5, 2, 3)}, .layouts = true},
    {"index/two", build_index_two, {FLOATS(5, 7, 2), WHOLE(KN_I64, -5, 5, 4, 1), WHOLE(KN_I32, 0, 7, 3)}, .layouts = true},
    {"index/apart", build_index_apart, {FLOATS(5, 3, 7), INDICES(5, 11), INDICES(7, 11)}},
    {"index/mask", build_index_mask, {FLOATS(5, 7, 2), WHOLE(KN_I64, 0, 2, 5, 7)}, .reads = true},
    {"index/mask_and_list", build_index_mask_and_list, {FLOATS(3, 5, 4), WHOLE(KN_I64, 1, 2, 5), INDICES(4, 5)}, .reads = true},
    {"index/nothing", build_index_two, {FLOATS(5, 7), INDICES(5, 0), INDICES(5, 0)}},
    {"scatter/rows", build_scatter, {FLOATS(5, 7), INDICES(5, 1, 6), FLOATS(2, 7)}, .layouts = true},
    {"scatter/repeated", build_scatter, {FLOATS(5, 7), INDICES(5, 11, 6), FLOATS(12, 7)}, .no_gradient = true},
    {"scatter_/in_place", build_scatter_in_place, {FLOATS(5, 7), INDICES(5, 1, 7), FLOATS(1, 7)}},
    {"scatter/value", build_scatter_value, {FLOATS(5, 7), INDICES(7, 5, 3)}},
    {"scatter/whole", build_scatter, {WHOLE(KN_U8, 0, 9, 5, 7), INDICES(5, 3, 7), WHOLE(KN_U8, 0, 9, 3, 7)}, .no_gradient = true},
    {"scatter_add/rows", build_scatter_add, {FLOATS(5, 7), INDICES(5, 11, 6), FLOATS(12, 7)}, .layouts = true},
    {"scatter_add/few_lines", build_scatter_add_last, {FLOATS(2, 700), INDICES(700, 2, 2100), FLOATS(2, 2100)}, .reduction = 40},
    {"scatter_add/nine_elements", build_scatter_add, {FLOATS(9), INDICES(9, 40), FLOATS(40)}}, /* ranges of 2, on 8 units */
    {"scatter_add/one_place", build_scatter_add, {FLOATS(1), INDICES(1, 3001), FLOATS(3001)}, .reduction = 3001},
    {"scatter_add/long_line", build_scatter_add, {FLOATS(2200001), INDICES(2200001, 3001), FLOATS(3001)}, .no_gradient = true, .on_cpu = true},
    {"scatter_add/in_place", build_scatter_add_in_place, {FLOATS(3, 5, 2), INDICES(5, 3, 7, 2), FLOATS(3, 7, 2)}},
    {"scatter_add/i32", build_scatter_add, {WHOLE(KN_I32, -9, 9, 5, 7), INDICES(5, 3, 7), WHOLE(KN_I32, -9, 9, 3, 7)}, .no_gradient = true},
    {"scatter_add/bf16", build_scatter_add, {WHOLE(KN_BF16, -9, 9, 5, 7), INDICES(5, 3, 7), WHOLE(KN_BF16, -9, 9, 3, 7)}, .no_gradient = true},
    {"scatter_add/bool", build_scatter_add, {WHOLE(KN_BOOL, 0, 2, 5, 7), INDICES(5, 3, 7), WHOLE(KN_BOOL, 0, 2, 3, 7)}, .no_gradient = true, .full = true},
    {"scatter_reduce/prod", build_reduce, {FLOATS(5, 7), INDICES(5, 4, 6), FLOATS(5, 6)}, REDUCE(0, KN_SCATTER_PROD, true)},
    {"scatter_reduce/prod_without", build_reduce, {FLOATS(5, 7), INDICES(7, 4, 9), FLOATS(4, 9)}, REDUCE(1, KN_SCATTER_PROD, false), .full = true},
    {"scatter_reduce/amax", build_reduce, {DISTINCT(5, 7), INDICES(5, 4, 6), DISTINCT(5, 6)}, REDUCE(0, KN_SCATTER_AMAX, true)},
    {"scatter_reduce/amin_without", build_reduce, {DISTINCT(5, 7), INDICES(7, 4, 9), DISTINCT(4, 9)}, REDUCE(1, KN_SCATTER_AMIN, false), .no_gradient = true},
    {"scatter_reduce/sum_without", build_reduce, {FLOATS(5, 7), INDICES(7, 4, 9), FLOATS(4, 9)}, REDUCE(1, KN_SCATTER_SUM, false)},
    {"scatter_reduce/mean", build_reduce, {FLOATS(5, 7), INDICES(7, 4, 9), FLOATS(4, 9)}, REDUCE(1, KN_SCATTER_MEAN, true)},
    {"index_reduce/amax", build_index_reduce, {DISTINCT(5, 7), INDICES(5, 4), DISTINCT(4, 7)}, REDUCE(0, KN_SCATTER_AMAX, true)},
    {"index_reduce/whole_mean", build_index_reduce, {WHOLE(KN_I64, -9, 9, 5, 7), INDICES(7, 4), WHOLE(KN_I64, -9, 9, 5, 4)}, REDUCE(1, KN_SCATTER_MEAN, false), .no_gradient = true, .full = true},
    {"index_add/rows", build_index_add, {FLOATS(5, 7), INDICES(5, 11), FLOATS(11, 7)}, .layouts = true},
    {"index_add/columns", build_index_add_last, {FLOATS(600, 3), INDICES(3, 5), FLOATS(600, 5)}},
    {"index_add_/in_place", build_index_add_in_place, {FLOATS(5, 7), INDICES(5, 11), FLOATS(11, 7)}},
    {"index_add/to_a_part", build_index_add_part, {FLOATS(4, 7), INDICES(3, 2), FLOATS(2, 4)}},
    {"index_copy/rows", build_index_copy, {FLOATS(5, 7), INDICES(5, 1), FLOATS(1, 7)}},
    {"index_copy_/in_place", build_index_copy_in_place, {FLOATS(5, 7), INDICES(5, 1), FLOATS(1, 7)}},
    {"index_fill/columns", build_index_fill, {FLOATS(5, 7), WHOLE(KN_I64, -7, 7, 3)}},
    {"index_fill_/in_place", build_index_fill_in_place, {FLOATS(5, 7), WHOLE(KN_I64, -7, 7, 3)}},
    {"put/matrix", build_put, {FLOATS(5, 7), WHOLE(KN_I64, -35, 35, 4, 11), FLOATS(44)}},
    {"put_/in_place", build_put_in_place, {FLOATS(5, 7), WHOLE(KN_I64, -35, 35, 4, 11), FLOATS(4, 11)}},
    {"index_put/apart", build_index_put, {FLOATS(5, 3, 7), INDICES(5, 11), INDICES(7, 11), FLOATS(3)}},
    {"index_put_/in_place", build_index_put_in_place, {FLOATS(5, 7, 2), WHOLE(KN_I64, -5, 5, 4, 1), WHOLE(KN_I64, -5, 5, 3), FLOATS(4, 3, 1)}},
    {"index_put/mask", build_index_put_mask, {FLOATS(5, 7, 2), WHOLE(KN_I64, 0, 2, 5, 7), FLOATS(2)}, .reads = true},
    {"masked_fill/matrix", build_masked_fill, {FLOATS(5, 7), WHOLE(KN_I64, 0, 2, 5, 7)}, .layouts = true},
    {"masked_fill/broadcast", build_masked_fill, {FLOATS(5, 1), WHOLE(KN_I64, 0, 2, 3, 1, 7)}},
    {"masked_fill/f16", build_masked_fill, {WHOLE(KN_F16, -9, 9, 5, 7), WHOLE(KN_I64, 0, 2, 7)}, .no_gradient = true, .full = true},
    {"masked_fill_/in_place", build_masked_fill_in_place, {FLOATS(5, 7), WHOLE(KN_I64, 0, 2, 7)}},
    {"masked_fill/selected", build_masked_select, {FLOATS(5, 7), WHOLE(KN_I64, 0, 2, 7)}, .reads = true},
    {"masked_fill/scattered", build_masked_scatter, {FLOATS(5, 7), WHOLE(KN_I64, 0, 2, 5, 7), FLOATS(5, 8)}},
    {"embedding/matrix", build_embedding, {FLOATS(5, 7), INDICES(5, 3, 4)}},
    {"embedding/padded", build_embedding_padded, {FLOATS(5, 7), INDICES(5, 3, 4)}, .no_gradient = true},
    {"embedding/by_frequency", build_embedding_by_frequency, {FLOATS(5, 7), INDICES(5, 11)}, .no_gradient = true},
    {"embedding/bag_sum", build_bag_sum, {FLOATS(5, 7), INDICES(5, 3, 4), FLOATS(3, 4)}},
    {"embedding/bag_mean", build_bag_mean, {FLOATS(5, 7), INDICES(5, 3, 4)}},
    {"embedding/bag_wide", build_bag_mean, {FLOATS(5, 70), INDICES(5, 3, 4)}},
    {"embedding/bag_max", build_bag_max, {DISTINCT(5, 7), INDICES(5, 3, 4)}},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(index_rows, rows, .has_golden = true);
