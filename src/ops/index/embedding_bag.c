/* ops/index/embedding_bag.c - sums, means and maxima of the rows of bags of indices. */
#include <koine/autograd.h>
#include <koine/embedding.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/dispatch/promote.h"
#include "ops/index/embedding.h"
#include "ops/index/index.h"

/* A call: the indices as a vector, and the bag of each, counted from 0; NULL if all bags have the same number of
 * indices, at least one. */
typedef struct bags {
    int64_t count;
    kn_tensor *indices, *bag;
} bags;

static kn_tensor_options whole_on(const kn_tensor *like)
{
    return (kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(like)};
}

/* Each row is a bag. */
static kn_status bags_of_rows(bags *b, kn_tensor *input)
{
    const kn_tensor_options options = whole_on(input);
    kn_tensor *rows = kn_arange_with(0, (double)input->shape[0], 1, &options);

    b->count = input->shape[0];
    b->bag = kn_reshape(kn_expand(kn_unsqueeze(rows, 1), 2, input->shape), 1, (const int64_t[]){-1});
    return b->bag ? KN_OK : kn_error_status();
}

/* An index is in the bag whose offset is the last one up to its place: how many offsets there are up to it, less 1. */
static kn_status bags_of_offsets(bags *b, kn_tensor *input, kn_tensor *offsets, bool include_last_offset)
{
    const kn_tensor_options options = whole_on(input);
    const int64_t n = kn_numel(input) + 1;
    char text[KN_DESCRIBE];

    if (offsets->ndim != 1 || kn_numel(offsets) < 1)
        return kn_fail(KN_ERR_SHAPE, "the offsets must be a vector, of at least one, not %s",
                       kn_tensor_describe(text, sizeof text, offsets));
    KN_TRY(kn_index_check_dtype(offsets));
    b->count = kn_numel(offsets) - include_last_offset;
    offsets = kn_narrow(offsets, 0, 0, b->count);
    kn_tensor *starts = kn_index_add_(kn_zeros_with(1, &n, &options), 0, offsets, kn_ones_with(1, &b->count, &options));
    b->bag = kn_add_scalar(kn_narrow(kn_cumsum(starts, 0), 0, 0, n - 1), -1);
    return b->bag ? KN_OK : kn_error_status();
}

static kn_status find_bags(bags *b, kn_tensor *input, const kn_embedding_bag_params *params, int64_t padding_idx)
{
    char text[KN_DESCRIBE];

    if (input->ndim != (params->offsets ? 1 : 2))
        return kn_fail(KN_ERR_SHAPE, "the indices must be %s, not %s",
                       params->offsets ? "a vector, as there are offsets" : "[bags, indices], as there are no offsets",
                       kn_tensor_describe(text, sizeof text, input));
    b->indices = kn_reshape(input, 1, (const int64_t[]){-1});
    b->count = input->shape[0];
    if (!params->offsets && padding_idx < 0 && kn_numel(input) > 0)
        return b->indices ? KN_OK : kn_error_status();
    KN_TRY(params->offsets ? bags_of_offsets(b, input, params->offsets, params->include_last_offset)
                           : bags_of_rows(b, input));
    if (padding_idx >= 0) { /* in a bag of their own, behind the others */
        kn_tensor *padding = kn_full(KN_SCALAR, padding_idx, .dtype = b->indices->dtype, .device = kn_device_of(input));
        b->bag = kn_masked_fill(b->bag, kn_eq(b->indices, padding), b->count);
    }
    return b->bag ? KN_OK : kn_error_status();
}

/* The rows, of each index, brought together: bags of one size are neighbours. */
static kn_tensor *join_equal(const bags *b, kn_tensor *rows, kn_embedding_bag_mode mode)
{
    kn_tensor *all = kn_reshape(rows, 3, (const int64_t[]){b->count, -1, rows->shape[1]});
    const int dim[] = {1};

    return mode == KN_BAG_SUM    ? kn_sum_dims(all, dim, 1, false)
           : mode == KN_BAG_MEAN ? kn_mean_dims(all, dim, 1, false)
                                 : kn_amax(all, dim, 1, false);
}

/* The rows, of each index, brought together by bag. */
static kn_tensor *join_bags(const bags *b, kn_tensor *rows, kn_embedding_bag_mode mode)
{
    const int64_t shape[] = {b->count + 1, rows->shape[1]};
    const kn_tensor_options options = {.dtype = rows->dtype, .device = kn_device_of(rows)};
    kn_tensor *none = kn_zeros_with(2, shape, &options), *joined;

    if (mode == KN_BAG_SUM)
        joined = kn_index_add(none, 0, b->bag, rows);
    else
        joined = kn_index_reduce(none, 0, b->bag, rows, mode == KN_BAG_MAX ? KN_SCATTER_AMAX : KN_SCATTER_MEAN,
                                 .include_self = false);
    return kn_narrow(joined, 0, 0, b->count);
}

static kn_tensor *weigh(kn_tensor *rows, kn_tensor *factors, const kn_embedding_bag_params *params, const kn_tensor *x)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (params->mode != KN_BAG_SUM)
        return kn_fail_null(KN_ERR_ARGUMENT, "per_sample_weights are only for the mode sum");
    if (!kn_same_shape(factors, x))
        return kn_fail_null(KN_ERR_SHAPE, "per_sample_weights are %s, but the indices %s",
                            kn_tensor_describe(a, sizeof a, factors), kn_tensor_describe(b, sizeof b, x));
    return kn_mul(rows, kn_reshape(factors, 2, (const int64_t[]){-1, 1}));
}

static kn_tensor *embedding_bag(kn_tensor *input, kn_tensor *weight, const kn_embedding_bag_params *params)
{
    int64_t padding_idx;
    bags b = {0};

    if (kn_embedding_check(weight, input) != KN_OK ||
        kn_embedding_padding(&padding_idx, params->padding_idx, weight) != KN_OK ||
        find_bags(&b, input, params, padding_idx) != KN_OK)
        return NULL;
    kn_tensor *rows = kn_embedding(b.indices, weight, .padding_idx = params->padding_idx, .max_norm = params->max_norm,
                                   .norm_type = params->norm_type, .scale_grad_by_freq = params->scale_grad_by_freq);
    if (rows && params->per_sample_weights)
        rows = weigh(rows, params->per_sample_weights, params, input);
    return !rows ? NULL : b.bag ? join_bags(&b, rows, params->mode) : join_equal(&b, rows, params->mode);
}

kn_embedding_bag_params kn_embedding_bag_params_init(void)
{
    return (kn_embedding_bag_params){KN_EMBEDDING_BAG_DEFAULTS};
}

kn_tensor *kn_embedding_bag_with(kn_tensor *input, kn_tensor *weight, const kn_embedding_bag_params *params)
{
    const kn_embedding_bag_params defaults = {KN_EMBEDDING_BAG_DEFAULTS};

    if (!kn_check_argument("embedding_bag", "input", input) || !kn_check_argument("embedding_bag", "weight", weight))
        return NULL;
    const int depth = kn_scope_begin();
    kn_tensor *result = depth > 0 ? embedding_bag(input, weight, params ? params : &defaults) : NULL;
    if (!result)
        kn_error_prefix("embedding_bag"), kn_error_make_sticky();
    return kn_scope_return(depth, result);
}
