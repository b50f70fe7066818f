/* ops/attention/attention.c - torch.nn.functional.scaled_dot_product_attention. */
#include <koine/attention.h>
#include <koine/autograd.h>
#include <koine/shape.h>
#include <math.h>
#include <string.h>

#include "autograd/work.h"
#include "base/integer.h"
#include "ops/attention/attention.h"
#include "ops/dispatch/backward.h"
#include "rt/graph/variable.h"

/* LSE, which is output 1, too: the logarithm of the sum of a row's exponentials, infinity where all keys are hidden. */
enum { INPUTS = KN_MASK + 1, RESULT = INPUTS, LSE, SAVED };

/* --- implementations ---------------------------------------------------------------------------------------------- */

#define ROWS(list, pass)                                                                                               \
    static const kn_implementation list[] = {                                                                          \
        {.name = "tiles",                                                                                              \
         .prefers = kn_attention_prefers_tiles,                                                                        \
         .run = kn_attention_tiles##pass,                                                                              \
         .timed_on = KN_TIMED_ON_CPUS},                                                                                \
        {.name = "groups",                                                                                             \
         .supports = kn_attention_supports_groups,                                                                     \
         .prefers = kn_attention_prefers_groups,                                                                       \
         .run = kn_attention_groups##pass,                                                                             \
         .timed_on = KN_TIMED_ON_OTHERS},                                                                              \
        {.name = "reference", .run = kn_attention_reference##pass},                                                    \
    }
ROWS(forward_rows, );
ROWS(backward_rows, _backward);

const kn_implementation_table kn_attention_implementations =
                                  KN_IMPLEMENTATION_TABLE("attention", forward_rows, KN_FAMILY_MATMUL, NULL),
                              kn_attention_backward_implementations =
                                  KN_IMPLEMENTATION_TABLE("attention_backward", backward_rows, KN_FAMILY_MATMUL, NULL);

/* --- arguments ---------------------------------------------------------------------------------------------------- */

/* 0 where the mask is true, else -infinity. */
static kn_tensor *as_terms(kn_tensor *mask, kn_dtype dtype)
{
    const kn_tensor_options options = {.dtype = dtype, .device = mask->storage->device};
    return kn_where(mask, kn_zeros_with(0, NULL, &options),
                    kn_full_with(0, NULL, kn_scalar_real(-(double)INFINITY), &options));
}

static kn_attention_problem problem_of(const kn_attention_record *record, kn_tensor *const *in)
{
    return (kn_attention_problem){.operands = {in[KN_QUERY], in[KN_KEY], in[KN_VALUE]},
                                  .mask = in[KN_MASK],
                                  .scale = record->scale,
                                  .dropout_p = record->dropout_p,
                                  .draw = record->draw,
                                  .is_causal = record->is_causal};
}

/* A mask that needs a gradient: of recorded operators. */
static kn_status compose(kn_entry *entry)
{
    const kn_dtype dtype = entry->inputs[0]->dtype;
    kn_tensor *in[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        in[i] = kn_to_dtype(entry->inputs[i], kn_compute_type(dtype));
    if (!in[KN_MASK])
        return kn_error_status();
    const kn_attention_problem problem = problem_of(entry->record, in);
    entry->result = kn_to_dtype(kn_attention_composed(&problem), dtype);
    return entry->result ? KN_OK : kn_error_status();
}

static kn_status attention_enter(kn_entry *entry)
{
    const kn_attention_args *args = entry->params;
    kn_tensor **in = entry->inputs;
    kn_attention_record *record = kn_entry_record(entry, sizeof *record);
    KN_TRY(kn_attention_broadcast(in, args->enable_gqa));
    const kn_tensor *query = in[KN_QUERY], *key = in[KN_KEY];
    record->is_causal = args->is_causal;
    record->dropout_p = args->dropout_p;
    /* Scores of rows without elements are 0, which an infinite scale would make NaN. */
    const double width = (double)kn_max_i64(1, query->shape[query->ndim - 1]);
    record->scale = args->scale != 0 ? args->scale : 1 / sqrt(width);
    if (args->dropout_p > 0) {
        KN_TRY(kn_generator_check(args->generator, query->storage->device));
        record->draw = kn_generator_reserve(args->generator, query->storage->device,
                                            (uint64_t)kn_attention_draw_blocks(query, key) * 4);
    }
    if (!in[KN_MASK])
        return KN_OK;
    KN_TRY(kn_attention_check_mask(in[KN_MASK], query, key->shape[key->ndim - 2], args->is_causal));
    if (in[KN_MASK]->dtype == KN_BOOL && !(in[KN_MASK] = as_terms(in[KN_MASK], query->dtype)))
        return kn_error_status();
    return kn_grad_enabled() && kn_requires_grad(in[KN_MASK]) ? compose(entry) : KN_OK;
}

static void keep_draw(void *record) { kn_variable_keep(((kn_attention_record *)record)->draw.live); }
static void drop_draw(void *record) { kn_variable_drop(((kn_attention_record *)record)->draw.live); }

/* --- shape and work ----------------------------------------------------------------------------------------------- */

static kn_status attention_shape(kn_call *call)
{
    const kn_tensor *query = call->inputs[KN_QUERY], *value = call->inputs[KN_VALUE];
    int64_t shape[KN_MAX_DIMS];
    if (!kn_dtype_is_floating(query->dtype))
        return kn_fail(KN_ERR_DTYPE, "query is %s; it must be floating", kn_dtype_name(query->dtype));
    KN_TRY(kn_call_check_same_dtype(call, 0, KN_MASK));
    memcpy(shape, query->shape, sizeof shape);
    shape[query->ndim - 1] = value->shape[value->ndim - 1];
    KN_TRY(kn_call_output(call, query->dtype, query->ndim, shape));
    return call->skipped & 1u << 1 ? KN_OK
                                   : kn_call_output(call, kn_compute_type(query->dtype), query->ndim - 1, query->shape);
}

/* In the query's order of heads and rows: if that is a view of [..., rows, heads, width], the caller will want the
 * result so, too, and no copy is needed. */
static void attention_arrange(const kn_call *call, kn_tensor *output)
{
    const kn_tensor *query = call->inputs[KN_QUERY];
    const int row = query->ndim - 2, head = query->ndim - 3;
    if (head < 0 || query->strides[head] >= query->strides[row] || kn_numel(output) == 0)
        return;
    output->strides[head] = output->shape[row + 1];
    output->strides[row] = output->shape[head] * output->strides[head];
}

/* Two products of the same size; five in backward. */
static kn_span_work attention_work(const kn_call *call)
{
    const kn_tensor *query = call->inputs[KN_QUERY], *value = call->inputs[KN_VALUE];
    const double keys = (double)value->shape[value->ndim - 2], width = (double)query->shape[query->ndim - 1],
                 value_width = (double)value->shape[value->ndim - 1];
    return kn_work_of_products(call, value_width > 0 ? keys * (1 + width / value_width) : 0, 0);
}

static kn_span_work attention_backward_work(const kn_grad_call *grad)
{
    const kn_input_spec *query = &grad->input[KN_QUERY], *value = &grad->input[KN_VALUE];
    const double scores = (double)kn_shape_numel(query->ndim - 1, query->shape) * (double)value->shape[value->ndim - 2];
    return kn_grad_work(
        grad, 2 * scores * (3 * (double)query->shape[query->ndim - 1] + 2 * (double)value->shape[value->ndim - 1]));
}

/* --- forward and backward ----------------------------------------------------------------------------------------- */

static kn_status save(kn_call *call, const kn_attention_problem *problem)
{
    for (int i = 0; i < INPUTS; i++)
        KN_TRY(kn_call_save(call, call->inputs[i]));
    KN_TRY(kn_call_save(call, problem->result));
    return kn_call_save(call, problem->lse);
}

/* The result of halves is kept in float32: gradients are computed from it. */
static kn_status make_results(kn_call *call, kn_attention_problem *problem)
{
    const kn_tensor *query = call->inputs[KN_QUERY], *output = call->outputs[0];
    const kn_dtype dtype = kn_compute_type(query->dtype);
    kn_device *device = query->storage->device;
    if (call->num_outputs > 1)
        problem->lse = kn_retain(call->outputs[1]);
    else
        KN_TRY(kn_tensor_new(&problem->lse, dtype, query->ndim - 1, query->shape, device));
    if (output->dtype != dtype)
        return kn_tensor_new(&problem->result, dtype, output->ndim, output->shape, device);
    problem->result = kn_retain(call->outputs[0]);
    return KN_OK;
}

static kn_status attention_forward(kn_call *call)
{
    kn_attention_problem problem = problem_of(call->params, call->inputs);
    kn_status status = make_results(call, &problem);
    if (status == KN_OK && call->needs_grad)
        status = save(call, &problem);
    if (status == KN_OK && kn_numel(problem.lse) > 0)
        status = kn_run_implementation(&kn_attention_implementations, call->stream, &problem);
    if (status == KN_OK && problem.result != call->outputs[0])
        status = kn_tensor_copy(call->outputs[0], problem.result);
    kn_release(problem.result);
    kn_release(problem.lse);
    return status;
}

/* The gradients that are not needed are computed too: they cost less than another kernel would. */
static kn_status make_gradients(kn_grad_call *grad, kn_attention_problem *problem, kn_tensor **own)
{
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++) {
        const kn_input_spec *spec = &grad->input[i];
        kn_tensor *place = grad->needs[i] ? kn_grad_place(grad, i, kn_attention_takes) : NULL;
        if (grad->needs[i] && !place)
            return kn_error_status();
        if (!place || !kn_attention_takes(place)) /* a caller's tensor may have any strides */
            KN_TRY(kn_tensor_new(&own[i], spec->dtype, spec->ndim, spec->shape, spec->device));
        problem->gradients[i] = own[i] ? own[i] : place;
    }
    return KN_OK;
}

static kn_status deliver_gradients(kn_grad_call *grad, kn_tensor *const *own)
{
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        if (grad->needs[i] && own[i])
            KN_TRY(kn_tensor_copy(grad->grad_inputs[i], own[i]));
    return KN_OK;
}

/* What forward has computed. A caller's may have any strides, and be rounded to halves. */
static kn_status take_results(const kn_grad_call *grad, kn_attention_problem *problem)
{
    kn_tensor *result = grad->saved[RESULT];
    problem->result = kn_to_dtype(result, kn_compute_type(result->dtype));
    if (problem->result && !kn_attention_takes(problem->result))
        problem->result = kn_contiguous(problem->result);
    problem->lse = kn_contiguous(grad->saved[LSE]);
    return problem->result && problem->lse ? KN_OK : kn_error_status();
}

static kn_status attention_backward(kn_grad_call *grad)
{
    kn_attention_problem problem = problem_of(grad->params, grad->saved);
    kn_tensor *own[KN_ATTENTION_OPERANDS] = {NULL};
    problem.gradient = grad->grad_outputs[0];
    const kn_tensor *key = problem.operands[KN_KEY]; /* of rows without elements, the values still have gradients */
    kn_status status = take_results(grad, &problem);
    if (status == KN_OK)
        status = make_gradients(grad, &problem, own);
    if (status == KN_OK && kn_numel(problem.lse) > 0 && key->shape[key->ndim - 2] > 0)
        status = kn_run_implementation(&kn_attention_backward_implementations, grad->stream, &problem);
    else
        for (int i = 0; status == KN_OK && i < KN_ATTENTION_OPERANDS; i++)
            status = kn_tensor_fill(problem.gradients[i], 0);
    if (status == KN_OK)
        status = deliver_gradients(grad, own);
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        kn_release(own[i]);
    return status;
}

static kn_status attention_backward_recorded(kn_grad_call *grad)
{
    const kn_dtype dtype = grad->input[KN_QUERY].dtype, wide = kn_compute_type(dtype);
    kn_tensor *in[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        in[i] = grad->saved[i] ? kn_to_dtype(kn_grad_saved_input(grad, i, i), wide) : NULL;
    kn_attention_problem problem = problem_of(grad->params, in);
    problem.gradient = kn_to_dtype(grad->grad_outputs[0], wide);
    KN_TRY(kn_attention_gradients_composed(&problem, grad->needs, grad->grad_inputs));
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        if (grad->needs[i] && !(grad->grad_inputs[i] = kn_to_dtype(grad->grad_inputs[i], dtype)))
            return kn_error_status();
    return KN_OK;
}

/* --- descriptor and public function ------------------------------------------------------------------------------- */

static const kn_op_param rows[] = {KN_PARAM(kn_attention_args, dropout_p, .min = 0, .max = 1),
                                   KN_PARAM(kn_attention_args, is_causal), KN_PARAM(kn_attention_args, scale),
                                   KN_PARAM(kn_attention_args, enable_gqa), KN_PARAM(kn_attention_args, generator)};

const kn_op kn_scaled_dot_product_attention_op = {
    .name = "scaled_dot_product_attention",
    .inputs = {"query", "key", "value", "?attn_mask"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_FLOATING, KN_DTYPES_FLOATING, KN_DTYPES_FLOATING | 1u << KN_BOOL},
    .params = KN_PARAMS(kn_attention_args, rows, .dropout_p = 0),
    .composes = true,
    .enter = attention_enter,
    .record_size = sizeof(kn_attention_record),
    .record_keep = keep_draw,
    .record_drop = drop_draw,
    .strided_gradients = true,
    .arrange = attention_arrange,
    .shape = attention_shape,
    .forward = attention_forward,
    .backward = attention_backward,
    .backward_recorded = attention_backward_recorded,
    .outputs = {"result", "lse"},
    .skips_outputs = true,
    .first_statistic = 1,
    .saved = {"query", "key", "value", "attn_mask", "result", "lse"},
    .reference = kn_attention_reference_on_host,
    .work = attention_work,
    .backward_work = attention_backward_work,
};

const kn_op kn_scaled_dot_product_attention_backward_op = {
    KN_BACKWARD_OP(scaled_dot_product_attention),
    .inputs = {"grad", "query", "key", "value", "?attn_mask", "?result", "?lse"},
    .outputs = {"grad_query", "grad_key", "grad_value"}, .strided_outputs = true, .repeats_forward = true};

kn_scaled_dot_product_attention_params kn_scaled_dot_product_attention_params_init(void)
{
    return (kn_scaled_dot_product_attention_params){KN_SCALED_DOT_PRODUCT_ATTENTION_DEFAULTS};
}

kn_tensor *kn_scaled_dot_product_attention_with(kn_tensor *query, kn_tensor *key, kn_tensor *value,
                                                const kn_scaled_dot_product_attention_params *params)
{
    params = params ? params : &(kn_scaled_dot_product_attention_params){KN_SCALED_DOT_PRODUCT_ATTENTION_DEFAULTS};
    const kn_attention_args args = {params->dropout_p, params->is_causal, params->scale, params->enable_gqa,
                                    params->generator};
    return kn_invoke(&kn_scaled_dot_product_attention_op, &args, query, key, value, params->attn_mask);
}
