/* ops/index/embedding_bag.c - sums, means and maxima of the rows of bags of indices. */
#include <koine/embedding.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>
#include <stdio.h>

#include "autograd/work.h"
#include "loops/work_size.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/index/embedding.h"

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

/* --- bags of one size --------------------------------------------------------------------------------------------- */

/* On the tape: the map of the rows, and what their sums are divided by. */
typedef struct bag_sum {
    kn_index_map map;
    int64_t by;
} bag_sum;

static kn_status sum_shape(kn_call *call)
{
    const kn_tensor *weight = call->inputs[0];
    return kn_call_output(call, weight->dtype, 2, (const int64_t[]){call->inputs[1]->shape[0], weight->shape[1]});
}

static kn_status run_sum(kn_call *call, const kn_tensor *weight, const kn_tensor *indices)
{
    const kn_tensor *y = call->outputs[0];
    const kn_limits *limits = kn_tensor_limits(weight);
    const kn_work_size work = kn_work_for(limits, limits->is_cpu ? kn_numel(indices) * y->shape[1] : kn_numel(y));
    char options[80];

    snprintf(options, sizeof options, "%s -DINDEX=%s", kn_dtype_options(weight->dtype), kn_dtype_cl(indices->dtype));
    return kn_run(call->stream, .source = "index/bag.cl", .options = options, .kernel = "bag_sum",
                  .operation = call->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(weight), kn_arg_tensor(indices), kn_arg_tensor(y), kn_arg_i64(y->shape[0]),
                          kn_arg_i64(indices->shape[1]), kn_arg_i64(weight->shape[0]), kn_arg_i64(y->shape[1]),
                          kn_arg_f64_or_f32(weight->dtype == KN_F64, (double)((const bag_sum *)call->params)->by),
                          kn_arg_fault()));
}

static kn_status sum_forward(kn_call *call)
{
    kn_tensor *weight = NULL, *indices = NULL;

    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[1]));
    if (kn_numel(call->outputs[0]) == 0)
        return KN_OK;
    kn_status status = kn_tensor_contiguous(&weight, call->inputs[0]);
    if (status == KN_OK)
        status = kn_tensor_contiguous(&indices, call->inputs[1]);
    if (status == KN_OK)
        status = run_sum(call, weight, indices);
    kn_release(indices);
    kn_release(weight);
    return status;
}

/* Each row of a bag gets the bag's gradient. */
static kn_status sum_backward(kn_grad_call *grad)
{
    const bag_sum *own = grad->params;
    kn_tensor *g = grad->grad_outputs[0];

    if (own->by != 1)
        g = kn_mul_scalar(g, 1 / (double)own->by);
    g = kn_expand(kn_unsqueeze(g, 1), 3, own->map.shape);
    grad->grad_inputs[0] = kn_index_spread(&own->map, &grad->input[0], grad->saved[0], g);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status sum_reference(const kn_call *call)
{
    const kn_tensor *weight = call->inputs[0], *indices = call->inputs[1];
    const int64_t n = indices->shape[1], width = weight->shape[1];

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const int64_t row = (int64_t)kn_reference_get(indices, i / width * n + j);
            sum += row >= 0 && row < weight->shape[0] ? kn_reference_get(weight, row * width + i % width) : 0;
        }
        kn_reference_set(call->outputs[0], i, sum / (double)((const bag_sum *)call->params)->by);
    }
    return KN_OK;
}

static const kn_op sum_op = {.name = "embedding_bag",
                             .inputs = {"weight", "indices"},
                             .record_size = sizeof(bag_sum),
                             .shape = sum_shape,
                             .forward = sum_forward,
                             .backward = sum_backward,
                             .backward_recorded = sum_backward,
                             .reference = sum_reference,
                             .saved = {"indices"},
                             .work = kn_work_memory_bound,
                             .backward_work = kn_grad_work_memory_bound};

/* Without copies of the rows. */
static bool can_sum(kn_tensor *input, kn_tensor *weight, const kn_embedding_bag_params *params, int64_t padding_idx)
{
    return !params->offsets && padding_idx < 0 && !params->per_sample_weights && !params->scale_grad_by_freq &&
           params->mode != KN_BAG_MAX && input->ndim == 2 && kn_numel(input) > 0 &&
           (weight->dtype == KN_F32 || weight->dtype == KN_F64);
}

static kn_tensor *sum_bags(kn_tensor *input, kn_tensor *weight, const kn_embedding_bag_params *params)
{
    bag_sum own = {.by = params->mode == KN_BAG_MEAN ? input->shape[1] : 1};

    if (kn_embedding_renorm(weight, input, params->max_norm, params->norm_type) != KN_OK ||
        kn_embedding_map(&own.map, weight, input) != KN_OK)
        return NULL;
    return kn_invoke(&sum_op, &own, weight, input);
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
        kn_embedding_padding(&padding_idx, params->padding_idx, weight) != KN_OK)
        return NULL;
    if (can_sum(input, weight, params, padding_idx))
        return sum_bags(input, weight, params);
    if (find_bags(&b, input, params, padding_idx) != KN_OK)
        return NULL;
    kn_tensor *rows = kn_embedding(b.indices, weight, .padding_idx = params->padding_idx, .max_norm = params->max_norm,
                                   .norm_type = params->norm_type, .scale_grad_by_freq = params->scale_grad_by_freq);
    if (rows && params->per_sample_weights)
        rows = weigh(rows, params->per_sample_weights, params, input);
    return !rows ? NULL : b.bag ? join_bags(&b, rows, params->mode) : join_equal(&b, rows, params->mode);
}

/* --- the operator ------------------------------------------------------------------------------------------------- */

static kn_status embedding_bag_enter(kn_entry *entry)
{
    const kn_embedding_bag_args *args = entry->params;
    const kn_embedding_bag_params params = {.offsets = entry->inputs[2],
                                            .per_sample_weights = entry->inputs[3],
                                            .mode = args->mode,
                                            .padding_idx = args->padding_idx,
                                            .max_norm = args->max_norm,
                                            .norm_type = args->norm_type,
                                            .scale_grad_by_freq = args->scale_grad_by_freq,
                                            .include_last_offset = args->include_last_offset};
    entry->result = embedding_bag(entry->inputs[1], entry->inputs[0], &params);
    return kn_status_of(entry->result);
}

static const char *const modes[] = {"sum", "mean", "max", NULL};
static const kn_op_param rows[] = {KN_PARAM(kn_embedding_bag_args, mode, .values = modes),
                                   KN_PARAM(kn_embedding_bag_args, padding_idx),
                                   KN_PARAM(kn_embedding_bag_args, max_norm, .max = (double)INFINITY),
                                   KN_PARAM(kn_embedding_bag_args, norm_type),
                                   KN_PARAM(kn_embedding_bag_args, scale_grad_by_freq),
                                   KN_PARAM(kn_embedding_bag_args, include_last_offset)};
const kn_op kn_embedding_bag_op = {
    .name = "embedding_bag",
    .inputs = {"weight", "indices", "?offsets", "?per_sample_weights"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES, KN_DTYPES_INDICES, KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_embedding_bag_args, rows, KN_EMBEDDING_BAG_DEFAULTS),
    .composes = true,
    .enter = embedding_bag_enter};

kn_embedding_bag_params kn_embedding_bag_params_init(void)
{
    return (kn_embedding_bag_params){KN_EMBEDDING_BAG_DEFAULTS};
}

kn_tensor *kn_embedding_bag_with(kn_tensor *input, kn_tensor *weight, const kn_embedding_bag_params *params)
{
    params = params ? params : &(kn_embedding_bag_params){KN_EMBEDDING_BAG_DEFAULTS};
    const kn_embedding_bag_args args = {.mode = params->mode,
                                        .padding_idx = params->padding_idx,
                                        .max_norm = params->max_norm,
                                        .norm_type = params->norm_type,
                                        .scale_grad_by_freq = params->scale_grad_by_freq,
                                        .include_last_offset = params->include_last_offset};
    if (!kn_check_argument("embedding_bag", "input", input))
        return NULL;
    return kn_invoke(&kn_embedding_bag_op, &args, weight, input, params->offsets, params->per_sample_weights);
}
