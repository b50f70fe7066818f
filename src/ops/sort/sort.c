/* ops/sort/sort.c - sort, argsort, topk: along a dimension, values and indices. */
#include <koine/sort.h>

#include "autograd/work.h"
#include "ops/dispatch/reference.h"
#include "ops/sort/along.h"

/* What all of them do: the first k of each row in the order. */
typedef struct order_params {
    int dim;
    bool descending;
    int64_t k;
} order_params;

/* --- entering ----------------------------------------------------------------------------------------------------- */

static kn_status order_enter(kn_entry *entry, int dim, bool descending, int64_t k)
{
    const kn_tensor *x = entry->inputs[0];
    order_params *record = kn_entry_record(entry, sizeof *record);
    record->descending = descending;
    KN_TRY(kn_dim_from_front(&record->dim, dim, x->ndim));
    const int64_t n = x->ndim ? x->shape[record->dim] : 1;
    record->k = k < 0 || x->ndim == 0 ? n : k; /* a 0-dimensional result has an element */
    return k <= n ? KN_OK
                  : kn_fail(KN_ERR_ARGUMENT, "k is %lld, but dimension %d has %lld elements", (long long)k, record->dim,
                            (long long)n);
}

static kn_status sort_enter(kn_entry *entry)
{
    const kn_sort_params *params = entry->params;
    return order_enter(entry, params->dim, params->descending, -1);
}

static kn_status topk_enter(kn_entry *entry)
{
    const kn_topk_args *args = entry->params;
    return order_enter(entry, args->dim, args->largest, args->k);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status order_output(kn_call *call, kn_dtype dtype)
{
    const kn_tensor *x = call->inputs[0];
    const order_params *params = call->params;
    int64_t shape[KN_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == params->dim ? params->k : x->shape[d];
    return kn_call_output(call, dtype, x->ndim, shape);
}

static kn_status sort_shape(kn_call *call)
{
    KN_TRY(order_output(call, call->inputs[0]->dtype));
    return order_output(call, KN_I64);
}

static kn_status argsort_shape(kn_call *call) { return order_output(call, KN_I64); }

static kn_status order(kn_call *call, kn_tensor *values, kn_tensor *indices)
{
    const order_params *params = call->params;
    return kn_sort_along(call->stream, call->op->name, call->inputs[0], params->dim, params->k, params->descending,
                         values, indices);
}

static kn_status sort_forward(kn_call *call)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[1]));
    return order(call, call->outputs[0], call->outputs[1]);
}

static kn_status argsort_forward(kn_call *call) { return order(call, NULL, call->outputs[0]); }

static kn_status sort_backward(kn_grad_call *grad)
{
    return kn_taken_backward(grad, grad->grad_outputs[0], grad->saved[0], ((const order_params *)grad->params)->dim);
}

static kn_status sort_backward_recorded(kn_grad_call *grad)
{
    return kn_taken_backward_recorded(grad, grad->grad_outputs[0], grad->saved[0],
                                      ((const order_params *)grad->params)->dim);
}

static kn_status order_reference(const kn_call *call)
{
    const order_params *params = call->params;
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, params->dim);
    const bool has_values = call->num_outputs > 1;

    for (int64_t row = 0; row < l.outer * l.inner; row++) {
        const int64_t o = row / l.inner, i = row % l.inner;
        int64_t *places = kn_sort_reference_order(x, o * l.n * l.inner + i, l.inner, l.n, params->descending);
        if (!places)
            return KN_ERR_MEMORY;
        for (int64_t j = 0; j < params->k; j++) {
            const int64_t to = (o * params->k + j) * l.inner + i;
            if (has_values)
                kn_reference_set(call->outputs[0], to, kn_reference_get(x, (o * l.n + places[j]) * l.inner + i));
            kn_reference_set(call->outputs[has_values], to, (double)places[j]);
        }
        kn_free(places);
    }
    return KN_OK;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

static const kn_op_param sort_rows[] = {KN_PARAM(kn_sort_params, dim), KN_PARAM(kn_sort_params, descending),
                                        KN_PARAM(kn_sort_params, stable)};
static const kn_op_param topk_rows[] = {KN_PARAM(kn_topk_args, k, .min = 0, .max = INFINITY),
                                        KN_PARAM(kn_topk_args, dim), KN_PARAM(kn_topk_args, largest),
                                        KN_PARAM(kn_topk_args, sorted)};

#define ORDER_OP(id, params_, enter_)                                                                                  \
    {                                                                                                                  \
        .name = #id, .inputs = {"x"}, .outputs = {"values", "indices"}, .params = params_, .enter = enter_,            \
        .record_size = sizeof(order_params), .shape = sort_shape, .forward = sort_forward, .backward = sort_backward,  \
        .backward_recorded = sort_backward_recorded, .saved = {"indices"}, .reference = order_reference,               \
        .work = kn_work_reducing, .backward_work = kn_grad_work_memory_bound                                           \
    }
const kn_op kn_sort_op = ORDER_OP(sort, KN_PARAMS(kn_sort_params, sort_rows, KN_SORT_DEFAULTS), sort_enter);
const kn_op kn_topk_op =
    ORDER_OP(topk, KN_PARAMS(kn_topk_args, topk_rows, .k = 1, .dim = -1, .largest = true, .sorted = true), topk_enter);
const kn_op kn_argsort_op = {.name = "argsort",
                             .inputs = {"x"},
                             .outputs = {"indices"},
                             .params = KN_PARAMS(kn_sort_params, sort_rows, KN_SORT_DEFAULTS),
                             .enter = sort_enter,
                             .record_size = sizeof(order_params),
                             .shape = argsort_shape,
                             .forward = argsort_forward,
                             .reference = order_reference,
                             .work = kn_work_reducing};
const kn_op kn_sort_backward_op = KN_TAKEN_BACKWARD_OP(sort), kn_topk_backward_op = KN_TAKEN_BACKWARD_OP(topk);

kn_sort_params kn_sort_params_init(void) { return (kn_sort_params){KN_SORT_DEFAULTS}; }
kn_topk_params kn_topk_params_init(void) { return (kn_topk_params){KN_TOPK_DEFAULTS}; }

kn_tensor *kn_sort_with(kn_tensor *x, kn_tensor **indices, const kn_sort_params *params)
{
    return kn_invoke_with_indices(&kn_sort_op, x, params, indices);
}

kn_tensor *kn_argsort_with(kn_tensor *x, const kn_sort_params *params) { return kn_invoke(&kn_argsort_op, params, x); }

kn_tensor *kn_msort(kn_tensor *x) { return kn_sort(x, NULL, .dim = 0); }

kn_tensor *kn_topk_with(kn_tensor *x, int64_t k, kn_tensor **indices, const kn_topk_params *params)
{
    const kn_topk_params p = params ? *params : kn_topk_params_init();
    const kn_topk_args args = {.k = k, .dim = p.dim, .largest = p.largest, .sorted = p.sorted};
    return kn_invoke_with_indices(&kn_topk_op, x, &args, indices);
}
