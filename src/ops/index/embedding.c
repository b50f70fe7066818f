/* ops/index/embedding.c - rows of a table by index. */
#include <koine/autograd.h>
#include <koine/embedding.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "autograd/work.h"
#include "ops/dispatch/promote.h"
#include "ops/index/embedding.h"

/* On the tape: a map, as of every gather, and what concerns the gradient. */
typedef struct embedding {
    kn_index_map map;
    int64_t padding_idx; /* -1: none */
    bool scale_grad_by_freq;
} embedding;

/* --- parameters --------------------------------------------------------------------------------------------------- */

kn_status kn_embedding_padding(int64_t *padding_idx, int64_t given, const kn_tensor *weight)
{
    const int64_t rows = weight->shape[0];

    *padding_idx = given == KN_NO_PADDING_IDX ? -1 : given < 0 ? given + rows : given;
    if (given != KN_NO_PADDING_IDX && (*padding_idx < 0 || *padding_idx >= rows))
        return kn_fail(KN_ERR_ARGUMENT, "padding_idx must be from %lld to %lld, not %lld", (long long)-rows,
                       (long long)rows - 1, (long long)given);
    return KN_OK;
}

kn_status kn_embedding_check(const kn_tensor *weight, const kn_tensor *indices)
{
    char text[KN_DESCRIBE];

    KN_TRY(kn_index_check_dtype(indices));
    if (weight->ndim != 2)
        return kn_fail(KN_ERR_SHAPE, "the weight must be [rows, columns], not %s",
                       kn_tensor_describe(text, sizeof text, weight));
    return KN_OK;
}

/* As PyTorch: a row with a larger norm is scaled, with 1e-7 against division by zero. */
kn_status kn_embedding_renorm(kn_tensor *weight, kn_tensor *indices, double max_norm, double norm_type)
{
    KN_NO_GRAD;
    if (!(max_norm > 0))
        return KN_OK;
    kn_tensor *flat = kn_reshape(indices, 1, (const int64_t[]){-1});
    kn_tensor *rows = kn_index_select(weight, 0, flat);
    kn_tensor *norms = kn_norm_dims(rows, norm_type, (const int[]){1}, 1, true);
    kn_tensor *factor = kn_mul_scalar(kn_reciprocal(kn_add_scalar(norms, 1e-7)), max_norm);
    kn_tensor *one = kn_ones_like(norms), *limit = kn_full_like(norms, max_norm);
    rows = kn_mul(rows, kn_where(kn_gt(norms, limit), factor, one));
    return kn_index_copy_(weight, 0, flat, rows) ? KN_OK : kn_error_status();
}

kn_status kn_embedding_map(kn_index_map *map, const kn_tensor *weight, const kn_tensor *indices)
{
    if (indices->ndim == KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the indices already have %d dimensions, the maximum", KN_MAX_DIMS);
    KN_TRY(kn_index_map_flat(map, weight, indices));
    map->wraps = false;
    map->dim = 0;
    map->size = weight->shape[0];
    map->shape[indices->ndim] = weight->shape[1];
    map->own[indices->ndim] = 1;
    map->along[indices->ndim] = -1;
    map->ndim++;
    return KN_OK;
}

/* --- the operator ------------------------------------------------------------------------------------------------- */

static kn_status embedding_enter(kn_entry *entry)
{
    const kn_embedding_params *params = entry->params;
    kn_tensor *weight = entry->inputs[0], *indices = entry->inputs[1];
    embedding *own = kn_entry_record(entry, sizeof *own);

    KN_TRY(kn_embedding_check(weight, indices));
    KN_TRY(kn_embedding_padding(&own->padding_idx, params->padding_idx, weight));
    KN_TRY(kn_embedding_renorm(weight, indices, params->max_norm, params->norm_type));
    own->scale_grad_by_freq = params->scale_grad_by_freq;
    return kn_embedding_map(&own->map, weight, indices);
}

/* The gradient divided by how often the row's index occurs. */
static kn_tensor *divide_by_frequency(kn_tensor *gradient, kn_tensor *indices, int64_t rows)
{
    const kn_tensor_options options = {.dtype = kn_compute_type(kn_dtype_of(gradient)),
                                       .device = kn_device_of(gradient)};
    kn_tensor *flat = kn_reshape(indices, 1, (const int64_t[]){-1});
    kn_tensor *counts = kn_index_add_(kn_zeros_with(1, &rows, &options), 0, flat,
                                      kn_ones_with(1, (const int64_t[]){kn_numel(indices)}, &options));
    kn_tensor *each = kn_reshape(kn_index_select(counts, 0, flat), indices->ndim, indices->shape);
    return kn_mul(gradient, kn_to_dtype(kn_unsqueeze(kn_reciprocal(each), -1), kn_dtype_of(gradient)));
}

static kn_status embedding_backward(kn_grad_call *grad)
{
    const embedding *own = grad->params;
    kn_tensor *indices = grad->saved[0], *g = grad->grad_outputs[0];

    if (own->scale_grad_by_freq && kn_numel(indices) > 0)
        g = divide_by_frequency(g, indices, grad->input[0].shape[0]);
    kn_tensor *sum = kn_index_spread(&own->map, &grad->input[0], indices, g);
    if (sum && own->padding_idx >= 0 && !kn_zero_(kn_select(sum, 0, own->padding_idx)))
        return kn_error_status();
    grad->grad_inputs[0] = sum;
    return sum ? KN_OK : kn_error_status();
}

static const kn_op_param rows[] = {
    KN_PARAM(kn_embedding_params, padding_idx), KN_PARAM(kn_embedding_params, max_norm, .max = (double)INFINITY),
    KN_PARAM(kn_embedding_params, norm_type), KN_PARAM(kn_embedding_params, scale_grad_by_freq)};
const kn_op kn_embedding_op = {.name = "embedding",
                               .inputs = {"weight", "indices"},
                               .dtypes = {KN_DTYPES_ALL, KN_DTYPES_INDICES},
                               .params = KN_PARAMS(kn_embedding_params, rows, KN_EMBEDDING_DEFAULTS),
                               .composes = true,
                               .enter = embedding_enter,
                               .record_size = sizeof(embedding),
                               .shape = kn_index_gather_shape,
                               .forward = kn_index_gather_forward,
                               .backward = embedding_backward,
                               .backward_recorded = embedding_backward,
                               .reference = kn_index_gather_reference,
                               .saved = {"indices"},
                               .work = kn_work_memory_bound,
                               .backward_work = kn_grad_work_memory_bound};

kn_embedding_params kn_embedding_params_init(void) { return (kn_embedding_params){KN_EMBEDDING_DEFAULTS}; }

kn_tensor *kn_embedding_with(kn_tensor *input, kn_tensor *weight, const kn_embedding_params *params)
{
    if (!kn_check_argument("embedding", "input", input))
        return NULL;
    return kn_invoke(&kn_embedding_op, params, weight, input);
}
