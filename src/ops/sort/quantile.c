/* ops/sort/quantile.c - quantile and nanquantile: x is sorted before, by the operator for that, which has the gradient.
 */
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>
#include <koine/tensor.h>

#include "autograd/op.h"
#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"

typedef struct quantile_record {
    kn_quantile_interpolation interpolation;
    int ndim; /* of the result, without the dimension of q */
    int64_t shape[KN_MAX_DIMS];
} quantile_record;

enum { SORTED, Q };

static bool ignores_nan(const kn_op *op) { return op->detail != NULL; }

/* --- entering ----------------------------------------------------------------------------------------------------- */

/* The result's shape for dimension `dim`, or, if that is negative, for all elements. */
static void list_shape(quantile_record *record, const kn_tensor *x, int dim, bool keepdim)
{
    for (int d = 0; d < x->ndim; d++)
        if (keepdim || (dim >= 0 && d != dim))
            record->shape[record->ndim++] = dim < 0 || d == dim ? 1 : x->shape[d];
}

/* x with `dim` last, or flat, sorted. */
static kn_tensor *sorted_rows(kn_tensor *x, int dim)
{
    if (dim < 0 || x->ndim == 0)
        return kn_sort(kn_reshape(x, 1, (const int64_t[]){kn_numel(x)}), NULL);
    int dims[KN_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        dims[d] = d == x->ndim - 1 ? dim : d < dim ? d : d + 1;
    return kn_sort(kn_permute(x, dims), NULL);
}

static kn_status quantile_enter(kn_entry *entry)
{
    const kn_quantile_args *args = entry->params;
    kn_tensor *x = entry->inputs[0], *q = entry->inputs[1];
    quantile_record *record = kn_entry_record(entry, sizeof *record);
    int dim = -1;

    record->interpolation = args->interpolation;
    if (args->dim.count > 1)
        return kn_fail(KN_ERR_ARGUMENT, "dim has %d values; it takes one, or none for all elements", args->dim.count);
    if (args->dim.count == 1)
        KN_TRY(kn_dim_from_front(&dim, args->dim.values[0], x->ndim));
    if (x->dtype != KN_F32 && x->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "x is %s; it must be float32 or float64", kn_dtype_name(x->dtype));
    if (q->ndim > 1 || q->dtype != x->dtype) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "q must have x's dtype, %s, and at most one dimension, not %s",
                       kn_dtype_name(x->dtype), kn_tensor_describe(text, sizeof text, q));
    }
    if (kn_numel(x) == 0)
        return kn_fail(KN_ERR_SHAPE, "x has no elements");
    list_shape(record, x, dim, args->keepdim);
    if (record->ndim + q->ndim > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the result would have more than %d dimensions", KN_MAX_DIMS);
    entry->inputs[SORTED] = sorted_rows(x, dim);
    return kn_status_of(entry->inputs[SORTED]);
}

/* --- forward and backward ----------------------------------------------------------------------------------------- */

static kn_status quantile_shape(kn_call *call)
{
    const quantile_record *record = call->params;
    const kn_tensor *q = call->inputs[Q];
    int64_t shape[KN_MAX_DIMS];
    int ndim = 0;
    if (q->ndim == 1)
        shape[ndim++] = q->shape[0];
    for (int d = 0; d < record->ndim; d++)
        shape[ndim++] = record->shape[d];
    return kn_call_output(call, q->dtype, ndim, shape);
}

static kn_status quantile_forward(kn_call *call)
{
    const kn_tensor *sorted = call->inputs[SORTED], *y = call->outputs[0];
    const int64_t n = sorted->shape[sorted->ndim - 1], rows = kn_numel(sorted) / n, count = kn_numel(call->inputs[Q]);
    const kn_work_size work = kn_work_for(kn_tensor_limits(sorted), kn_numel(y) * 8);
    kn_tensor *q;

    KN_TRY(kn_tensor_contiguous(&q, call->inputs[Q]));
    kn_status status = KN_OK;
    if (call->needs_grad) {
        status = kn_call_save(call, call->inputs[SORTED]);
        status = status == KN_OK ? kn_call_save(call, q) : status;
    }
    if (status == KN_OK && count > 0)
        status =
            kn_run(call->stream, .source = "sort/quantile.cl", .options = kn_dtype_options(y->dtype),
                   .kernel = "take_quantiles", .operation = call->op->name, .dims = 1, .global = {work.global},
                   .local = {work.local},
                   KN_ARGS(kn_arg_tensor(sorted), kn_arg_tensor(q), kn_arg_tensor(y), kn_arg_i64(rows), kn_arg_i64(n),
                           kn_arg_i64(count), kn_arg_i32(((const quantile_record *)call->params)->interpolation),
                           kn_arg_i32(ignores_nan(call->op))));
    kn_release(q);
    return status;
}

/* Runs a kernel of the backward pass. */
static kn_status run_backward(kn_grad_call *grad, const char *kernel, int64_t items, const kn_tensor *out)
{
    const kn_tensor *sorted = grad->saved[SORTED], *q = grad->saved[Q];
    const int64_t n = sorted->shape[sorted->ndim - 1];
    const kn_work_size work = kn_work_for(kn_tensor_limits(sorted), items);
    return kn_run(grad->stream, .source = "sort/quantile.cl", .options = kn_dtype_options(out->dtype), .kernel = kernel,
                  .operation = grad->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(sorted), kn_arg_tensor(q), kn_arg_tensor(grad->grad_outputs[0]),
                          kn_arg_tensor(out), kn_arg_i64(kn_numel(sorted) / n), kn_arg_i64(n), kn_arg_i64(kn_numel(q)),
                          kn_arg_i32(((const quantile_record *)grad->params)->interpolation),
                          kn_arg_i32(ignores_nan(grad->op))));
}

static kn_status backward_of_sorted(kn_grad_call *grad, int64_t rows)
{
    kn_tensor *out = kn_grad_new(grad, SORTED);
    if (!out)
        return kn_error_status();
    KN_TRY(kn_tensor_fill(out, 0));
    return kn_numel(grad->saved[Q]) > 0 ? run_backward(grad, "spread_quantiles", rows * 64, out) : KN_OK;
}

static kn_status backward_of_q(kn_grad_call *grad, int64_t rows)
{
    const kn_tensor *q = grad->saved[Q];
    const int64_t shape[] = {kn_numel(q), rows};
    kn_tensor *slopes = kn_empty_with(2, shape, &(kn_tensor_options){.dtype = q->dtype, .device = kn_device_of(q)});
    if (!slopes)
        return kn_error_status();
    if (kn_numel(q) > 0)
        KN_TRY(run_backward(grad, "slope_quantiles", rows * shape[0], slopes));
    kn_tensor *sums = kn_sum_dims(slopes, (const int[]){1}, 1, false);
    grad->grad_inputs[Q] = sums ? kn_reshape(sums, q->ndim, q->shape) : NULL;
    return grad->grad_inputs[Q] ? KN_OK : kn_error_status();
}

static kn_status quantile_backward(kn_grad_call *grad)
{
    const kn_tensor *sorted = grad->saved[SORTED];
    const int64_t rows = kn_numel(sorted) / sorted->shape[sorted->ndim - 1];
    if (grad->needs[SORTED])
        KN_TRY(backward_of_sorted(grad, rows));
    return grad->needs[Q] ? backward_of_q(grad, rows) : KN_OK;
}

static double reference_between(const double *row, int64_t numbers, double q, kn_quantile_interpolation how)
{
    const double rank = q * (double)(numbers - 1), low = row[(int64_t)floor(rank)], high = row[(int64_t)ceil(rank)];
    switch (how) {
    case KN_QUANTILE_LOWER:
        return low;
    case KN_QUANTILE_HIGHER:
        return high;
    case KN_QUANTILE_MIDPOINT:
        return (low + high) / 2;
    case KN_QUANTILE_NEAREST:
        return row[(int64_t)rint(rank)];
    default:
        return low == high ? low : low + (rank - floor(rank)) * (high - low);
    }
}

static kn_status quantile_reference(const kn_call *call)
{
    const kn_tensor *sorted = call->inputs[SORTED], *q = call->inputs[Q];
    const int64_t n = sorted->shape[sorted->ndim - 1], rows = kn_numel(sorted) / n;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const double *row = kn_reference_values(sorted) + i % rows * n, p = kn_reference_get(q, i / rows);
        int64_t numbers = n;
        while (numbers > 0 && isnan(row[numbers - 1]))
            numbers--;
        const bool is_nan = numbers == 0 || !(p >= 0 && p <= 1) || (numbers < n && !ignores_nan(call->op));
        kn_reference_set(
            call->outputs[0], i,
            is_nan ? NAN : reference_between(row, numbers, p, ((const quantile_record *)call->params)->interpolation));
    }
    return KN_OK;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

static const char *const interpolations[] = {"linear", "lower", "higher", "midpoint", "nearest", NULL};
static const kn_op_param quantile_rows[] = {KN_PARAM(kn_quantile_args, dim), KN_PARAM(kn_quantile_args, keepdim),
                                            KN_PARAM(kn_quantile_args, interpolation, .values = interpolations)};
static bool ignores;

#define QUANTILE_OP(id, detail_)                                                                                       \
    {                                                                                                                  \
        .name = #id, .inputs = {"x", "q"}, .dtypes = {KN_DTYPES_REAL, KN_DTYPES_REAL},                                 \
        .params = KN_PARAMS(kn_quantile_args, quantile_rows, .keepdim = false), .composes = true,                      \
        .enter = quantile_enter, .record_size = sizeof(quantile_record), .shape = quantile_shape,                      \
        .forward = quantile_forward, .backward = quantile_backward, .reference = quantile_reference, .detail = detail_ \
    }
const kn_op kn_quantile_op = QUANTILE_OP(quantile, NULL), kn_nanquantile_op = QUANTILE_OP(nanquantile, &ignores);

kn_quantile_params kn_quantile_params_init(void) { return (kn_quantile_params){KN_QUANTILE_DEFAULTS}; }

static kn_tensor *quantile(const kn_op *op, kn_tensor *x, kn_tensor *q, const kn_quantile_params *params)
{
    const kn_quantile_params p = params ? *params : kn_quantile_params_init();
    const kn_quantile_args args = {.dim = {.count = p.dim != KN_ALL_DIMS, .values = {p.dim}},
                                   .keepdim = p.keepdim,
                                   .interpolation = p.interpolation};
    return kn_invoke(op, &args, x, q);
}

kn_tensor *kn_quantile_with(kn_tensor *x, kn_tensor *q, const kn_quantile_params *params)
{
    return quantile(&kn_quantile_op, x, q, params);
}

kn_tensor *kn_nanquantile_with(kn_tensor *x, kn_tensor *q, const kn_quantile_params *params)
{
    return quantile(&kn_nanquantile_op, x, q, params);
}
