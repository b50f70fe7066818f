/* ops/reduce/extremes.c - maxima and minima: over all elements or some dimensions, along a dimension with indices, the
 * indices alone. NaN is both the largest and the smallest; the first among equals wins. */
#include <koine/reduce.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/elementwise.h"
#include "ops/reduce/reducer.h"
#include "ops/reduce/taken.h"

static bool is_above(double v, double best) { return v > best || (isnan(v) && !isnan(best)); }
static bool is_below(double v, double best) { return v < best || (isnan(v) && !isnan(best)); }

/* --- over all elements, or some dimensions ------------------------------------------------------------------------ */

/* The gradient is selected, not multiplied by a mask: infinities and NaN would spread. */
static kn_rows_code counting = KN_COUNT_OF("count_extremes", "a");

/* As in PyTorch: after a NaN the gradients of amax and amin are NaN, while those of max and min go to the elements that
 * are NaN. */
#define OF_DIMS "(a == y ? g / u : y != y ? y : (T)0)"
#define OF_ALL "(a == y || (a != a && y != y) ? g / u : (T)0)"

#define EXTREME_REFERENCE(name_, is_better)                                                                            \
    static double name_##_reference(const double *a, int64_t n, double number)                                         \
    {                                                                                                                  \
        double best = a[0];                                                                                            \
        (void)number;                                                                                                  \
        for (int64_t i = 1; i < n; i++)                                                                                \
            best = is_better(a[i], best) ? a[i] : best;                                                                \
        return best;                                                                                                   \
    }
#define EXTREME_TABLE(name_, noun, relation, first, backward_name, gradient)                                           \
    {                                                                                                                  \
        .rule = KN_REDUCES_SAME, .nests = true, .identity = noun,                                                      \
        .forward = KN_EXTREME_OF(#name_, "a", relation, first), .row_values = &counting,                               \
        .backward = {.name = backward_name, .inputs = "gayu", .values = {gradient}}, .reference = name_##_reference    \
    }

EXTREME_REFERENCE(max, is_above)
EXTREME_REFERENCE(min, is_below)
#define MAX_TABLE(...) EXTREME_TABLE(max, "maximum", ">", "KN_LOWEST", __VA_ARGS__)
#define MIN_TABLE(...) EXTREME_TABLE(min, "minimum", "<", "KN_HIGHEST", __VA_ARGS__)
kn_reducer kn_max_table = MAX_TABLE("max_backward", OF_ALL), kn_min_table = MIN_TABLE("min_backward", OF_ALL);
static kn_reducer amax_table = MAX_TABLE("amax_backward", OF_DIMS), amin_table = MIN_TABLE("amin_backward", OF_DIMS);

static const kn_op_param rows[] = {KN_REDUCE_ROWS(kn_reduce_args)};
const kn_op kn_max_op = KN_REDUCER_OP("max", KN_DTYPES_ALL, KN_NO_PARAMS, &kn_max_table);
const kn_op kn_min_op = KN_REDUCER_OP("min", KN_DTYPES_ALL, KN_NO_PARAMS, &kn_min_table);
const kn_op kn_amax_op = KN_REDUCER_OP("amax", KN_DTYPES_ALL, KN_PARAMS(kn_reduce_args, rows), &amax_table);
const kn_op kn_amin_op = KN_REDUCER_OP("amin", KN_DTYPES_ALL, KN_PARAMS(kn_reduce_args, rows), &amin_table);

const kn_op kn_max_backward_op = KN_REDUCER_BACKWARD_OP(max), kn_min_backward_op = KN_REDUCER_BACKWARD_OP(min),
            kn_amax_backward_op = KN_REDUCER_BACKWARD_OP(amax), kn_amin_backward_op = KN_REDUCER_BACKWARD_OP(amin);

kn_tensor *kn_max(kn_tensor *x) { return kn_invoke(&kn_max_op, NULL, x); }
kn_tensor *kn_min(kn_tensor *x) { return kn_invoke(&kn_min_op, NULL, x); }

static kn_tensor *over(const kn_op *op, kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    kn_reduce_args args = {.keepdim = keepdim};
    return kn_reduce_named(&args.dims, op->name, dims, num_dims) ? kn_invoke(op, &args, x) : NULL;
}

kn_tensor *kn_amax(kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    return over(&kn_amax_op, x, dims, num_dims, keepdim);
}

kn_tensor *kn_amin(kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    return over(&kn_amin_op, x, dims, num_dims, keepdim);
}

/* --- along a dimension, with indices ------------------------------------------------------------------------------ */

typedef struct kn_extreme_params {
    kn_reduce_params reduce;
    int dim;
} kn_extreme_params;

/* The kind of extreme of an op. */
typedef struct kn_extreme {
    const char *noun;
    kn_rows_code code; /* values: the extreme and its index */
    bool (*is_better)(double v, double best);
    bool only_place;
} kn_extreme;

#define EXTREME_CODE(name_, relation, first)                                                                           \
    {                                                                                                                  \
        .name = #name_, .inputs = "a", .state = "m", .place = 'k', .init = "m = " first "; k = 0;",                    \
        .step =                                                                                                        \
            "const C more = (a " relation " m) | (KN_NAN(a) & KN_NOT_NAN(m)); m = more ? a : m; k = more ? i : k;",    \
        .merge = "const C more = (M " relation " m) | (KN_NAN(M) & KN_NOT_NAN(m)), same = (M == m) | (KN_NAN(M) & "    \
                 "KN_NAN(m)); k = (more | (same & (K < k))) ? K : k; m = more ? M : m;",                               \
        .values = {                                                                                                    \
            "m",                                                                                                       \
            "k"                                                                                                        \
        }                                                                                                              \
    }
#define EXTREME(name_, noun_, relation, first, is_better_, only_place_)                                                \
    static kn_extreme name_##_extreme = {.noun = noun_,                                                                \
                                         .code = EXTREME_CODE(name_, relation, first),                                 \
                                         .is_better = is_better_,                                                      \
                                         .only_place = only_place_};

EXTREME(max_dim, "maximum", ">", "KN_LOWEST", is_above, false)
EXTREME(min_dim, "minimum", "<", "KN_HIGHEST", is_below, false)
EXTREME(argmax, "maximum", ">", "KN_LOWEST", is_above, true)
EXTREME(argmin, "minimum", "<", "KN_HIGHEST", is_below, true)

static kn_status extreme_shape(kn_call *call)
{
    const kn_extreme *e = call->op->detail;
    const kn_extreme_params *params = call->params;
    const kn_tensor *x = call->inputs[0];

    if (e->only_place && x->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "not defined for bool tensors; convert with kn_to_dtype first");
    if (x->ndim > 0 && x->shape[params->dim] == 0)
        return kn_fail(KN_ERR_SHAPE, "there is no %s along dimension %d, whose size is 0", e->noun, params->dim);
    if (!e->only_place)
        KN_TRY(kn_reduce_output(call, &params->reduce, x->dtype));
    return kn_reduce_output(call, &params->reduce, KN_I64);
}

static kn_status extreme_forward(kn_call *call)
{
    kn_extreme *e = call->op->detail;
    const kn_tensor *x = call->inputs[0];
    const bool is_real = kn_dtype_is_floating(x->dtype);
    const kn_dtype compute = is_real ? kn_compute_type(x->dtype) : x->dtype == KN_I64 ? KN_I64 : KN_I32;
    const bool *over = ((const kn_extreme_params *)call->params)->reduce.over;
    kn_reduce_rows found;

    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[1]));
    if (kn_numel(x) == 0)
        return KN_OK;
    if (!kn_reduce_in_place(&found, call->inputs[0], over))
        KN_TRY(kn_reduce_copy(&found, call->inputs[0], over));
    kn_rows_problem p = kn_reduce_problem(&e->code, call->op->name, compute, &found);
    p.inputs[0] = kn_row_operand(found.x);
    if (!e->only_place)
        p.outputs[0] = kn_row_operand(call->outputs[0]);
    p.outputs[1] = kn_row_operand(call->outputs[e->only_place ? 0 : 1]);
    const kn_status status = kn_rows_run(call->stream, &p);
    kn_release(found.x);
    return status;
}

/* 0, 1, ... along dimension `dim`, broadcast along the others. */
static kn_tensor *places_along(const kn_grad_call *grad, int dim)
{
    const kn_input_spec *input = &grad->input[0];
    const int64_t n = input->ndim ? input->shape[dim] : 1;
    int64_t shape[KN_MAX_DIMS];
    for (int d = 0; d < input->ndim; d++)
        shape[d] = d == dim ? n : 1;
    kn_tensor *places = kn_arange_with(0, (double)n, 1, &(kn_tensor_options){.dtype = KN_I64, .device = input->device});
    return kn_reshape(places, input->ndim, shape);
}

static kn_status extreme_backward(kn_grad_call *grad)
{
    const kn_extreme_params *params = grad->params;
    return kn_taken_backward(grad, grad->grad_outputs[0], grad->saved[0], params->dim);
}

/* The same of recorded operations. */
static kn_status extreme_backward_recorded(kn_grad_call *grad)
{
    const kn_extreme_params *params = grad->params;
    const kn_input_spec *input = &grad->input[0];
    const kn_tensor_options options = {.dtype = input->dtype, .device = input->device};

    if (!grad->grad_outputs[0])
        return KN_OK;
    kn_tensor *found = kn_eq(kn_reduce_spread(grad->saved[0], &params->reduce, input->ndim, input->shape),
                             places_along(grad, params->dim));
    grad->grad_inputs[0] =
        kn_where(found, kn_reduce_spread(grad->grad_outputs[0], &params->reduce, input->ndim, input->shape),
                 kn_zeros_with(0, NULL, &options));
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status extreme_reference(const kn_call *call)
{
    const kn_extreme *e = call->op->detail;
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, ((const kn_extreme_params *)call->params)->dim);

    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        const int64_t from = i / l.inner * l.n * l.inner + i % l.inner;
        int64_t at = 0;
        for (int64_t k = 1; k < l.n; k++)
            if (e->is_better(kn_reference_get(x, from + k * l.inner), kn_reference_get(x, from + at * l.inner)))
                at = k;
        if (!e->only_place)
            kn_reference_set(call->outputs[0], i, kn_reference_get(x, from + at * l.inner));
        kn_reference_set(call->outputs[e->only_place ? 0 : 1], i, (double)at);
    }
    return KN_OK;
}

static kn_status extreme_enter(kn_entry *entry)
{
    const kn_along_args *args = entry->params;
    kn_extreme_params *record = kn_entry_record(entry, sizeof *record);
    const int ndim = entry->inputs[0]->ndim;

    KN_TRY(kn_dim_from_front(&record->dim, args->dim, ndim));
    return kn_reduce_enter(&record->reduce, &(kn_ints){1, {args->dim}}, args->keepdim, ndim);
}

static const kn_op_param along_rows[] = {KN_PARAM(kn_along_args, dim), KN_PARAM(kn_along_args, keepdim)};

#define EXTREME_OP(id, dtypes_, gradient, recorded, ...)                                                               \
    const kn_op kn_##id##_op = {.name = #id,                                                                           \
                                .inputs = {"x"},                                                                       \
                                .dtypes = {dtypes_},                                                                   \
                                .outputs = {__VA_ARGS__},                                                              \
                                .params = KN_PARAMS(kn_along_args, along_rows),                                        \
                                .enter = extreme_enter,                                                                \
                                .record_size = sizeof(kn_extreme_params),                                              \
                                .shape = extreme_shape,                                                                \
                                .forward = extreme_forward,                                                            \
                                .backward = gradient,                                                                  \
                                .backward_recorded = recorded,                                                         \
                                .saved = {"indices"},                                                                  \
                                .reference = extreme_reference,                                                        \
                                .work = kn_work_reducing,                                                              \
                                .backward_work = kn_grad_work_memory_bound,                                            \
                                .detail = &id##_extreme};
EXTREME_OP(max_dim, KN_DTYPES_ALL, extreme_backward, extreme_backward_recorded, "values", "indices")
EXTREME_OP(min_dim, KN_DTYPES_ALL, extreme_backward, extreme_backward_recorded, "values", "indices")
EXTREME_OP(argmax, KN_DTYPES_NUMBERS, NULL, NULL, "indices")
EXTREME_OP(argmin, KN_DTYPES_NUMBERS, NULL, NULL, "indices")

#define EXTREME_BACKWARD_OP(of)                                                                                        \
    {                                                                                                                  \
        KN_BACKWARD_OP(of), .inputs = {"grad", "x", "indices"}, .dtypes[2] = 1u << KN_I64, .outputs = { "grad_x" }     \
    }
const kn_op kn_max_dim_backward_op = EXTREME_BACKWARD_OP(max_dim),
            kn_min_dim_backward_op = EXTREME_BACKWARD_OP(min_dim);

/* The values and, if `indices` is not NULL, their indices. */
static kn_tensor *along(const kn_op *op, kn_tensor *x, int dim, bool keepdim, kn_tensor **indices)
{
    const kn_along_args args = {dim, keepdim};
    kn_tensor *outputs[2] = {NULL, NULL};
    if (kn_op_invoke_to(op, &x, 1, &args, outputs, indices ? 2 : 1) != KN_OK)
        return kn_error_make_sticky();
    if (indices)
        *indices = outputs[1];
    return outputs[0];
}

kn_tensor *kn_max_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices)
{
    return along(&kn_max_dim_op, x, dim, keepdim, indices);
}

kn_tensor *kn_min_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices)
{
    return along(&kn_min_dim_op, x, dim, keepdim, indices);
}

kn_tensor *kn_argmax(kn_tensor *x, int dim, bool keepdim) { return along(&kn_argmax_op, x, dim, keepdim, NULL); }
kn_tensor *kn_argmin(kn_tensor *x, int dim, bool keepdim) { return along(&kn_argmin_op, x, dim, keepdim, NULL); }
