/* ops/reduce/max.c - maxima: over all elements, and along a dimension with their places; argmax. */
#include <koine/ops.h>

#include "autograd/work.h"
#include "base/divisor.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/views.h"

/* --- shared: maxima over the middle of [outer, n, inner] --------------------------------------------------------- */

typedef struct kn_max_problem {
    kn_stream *stream;
    const char *operation;
    int64_t outer, n, inner;
    bool wants_places;
} kn_max_problem;

/* On devices that are no CPUs; `places`: where each element of x was found, or NULL. */
static kn_status launch_groups(const kn_max_problem *p, kn_chunks chunks, const kn_tensor *x, const kn_tensor *places,
                               kn_tensor *values, kn_tensor *indices)
{
    const kn_limits *limits = kn_tensor_limits(x);
    const bool rows = p->inner == 1;
    const int64_t tasks = p->outer * chunks.count * p->inner;
    kn_work_size work = kn_work_for_groups(limits, tasks);
    const int64_t lanes = kn_team_for(chunks.length, 16, work.local), local = (int64_t)work.local;
    kn_arg args[10];
    int count = 0;

    work = rows ? kn_work_for_groups(limits, (tasks * lanes + local - 1) / local) : kn_work_for(limits, tasks);
    args[count++] = kn_arg_tensor(x);
    args[count++] = kn_arg_tensor(places ? places : indices);
    args[count++] = kn_arg_tensor(values);
    args[count++] = kn_arg_tensor(indices);
    args[count++] = kn_arg_i64(p->outer);
    args[count++] = kn_arg_i64(p->n);
    if (!rows)
        args[count++] = kn_arg_i64(p->inner);
    args[count++] = kn_arg_i64(chunks.length);
    args[count++] = kn_arg_i64(chunks.count);
    args[count++] = kn_arg_i32(places != NULL);
    if (rows)
        args[count++] = kn_arg_i32(lanes);
    return kn_run(p->stream, .source = "reduce/max_gpu.cl", .options = kn_dtype_options(x->dtype),
                  .kernel = rows ? "max_rows" : "max_columns", .operation = p->operation, .dims = 1,
                  .global = {work.global}, .local = {work.local}, .args = args, .num_args = count);
}

static kn_status launch_middle(const kn_max_problem *p, kn_chunks chunks, const kn_tensor *x, kn_tensor *values,
                               kn_tensor *indices)
{
    const kn_limits *limits = kn_tensor_limits(x);

    if (!limits->is_cpu)
        return launch_groups(p, chunks, x, NULL, values, indices);
    const kn_work_size work = kn_work_for(limits, p->outer * p->n * p->inner);
    return kn_run(p->stream, .source = "reduce/max.cl", .options = kn_dtype_options(x->dtype), .kernel = "max_middle",
                  .operation = p->operation, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(values), kn_arg_tensor(indices), kn_arg_i64(p->outer),
                          kn_arg_i64(p->n), kn_arg_i64(p->inner), kn_arg_i64(chunks.length), kn_arg_i64(chunks.count),
                          kn_arg_i32(p->wants_places)));
}

static kn_status launch_combine(const kn_max_problem *p, kn_chunks chunks, kn_tensor *const part[2], kn_tensor *values,
                                kn_tensor *indices)
{
    const kn_work_size work = kn_work_for(kn_tensor_limits(values), p->outer * p->inner);

    if (!kn_tensor_limits(values)->is_cpu) {
        kn_max_problem all = *p;
        all.n = chunks.count;
        return launch_groups(&all, (kn_chunks){.length = chunks.count, .count = 1}, part[0], part[1], values, indices);
    }
    return kn_run(p->stream, .source = "reduce/max.cl", .options = kn_dtype_options(values->dtype),
                  .kernel = "max_combine", .operation = p->operation, .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(part[0]), kn_arg_tensor(part[1]), kn_arg_tensor(values), kn_arg_tensor(indices),
                          kn_arg_i64(p->outer), kn_arg_i64(chunks.count), kn_arg_i64(p->inner)));
}

/* values and indices [outer, inner] of contiguous x; at most two launches. */
static kn_status max_middle(const kn_max_problem *p, const kn_tensor *x, kn_tensor *values, kn_tensor *indices)
{
    const kn_chunks chunks = kn_cut_middle(p->outer, p->n, p->inner);
    const int64_t size = p->outer * chunks.count * p->inner;
    kn_tensor *part[2] = {NULL, NULL};
    kn_status status;

    if (chunks.count == 1)
        return launch_middle(p, chunks, x, values, indices);
    status = kn_tensor_new(&part[0], x->dtype, 1, &size, x->storage->device);
    if (status == KN_OK)
        status = kn_tensor_new(&part[1], KN_I64, 1, &size, x->storage->device);
    if (status == KN_OK)
        status = launch_middle(p, chunks, x, part[0], part[1]);
    if (status == KN_OK)
        status = launch_combine(p, chunks, part, values, indices);
    kn_release(part[0]);
    kn_release(part[1]);
    return status;
}

/* The same for any input of `call`, along `dim` or over everything (-1). Either result may be NULL: not wanted. */
static kn_status max_of_input(kn_call *call, int dim, kn_tensor *values, kn_tensor *indices)
{
    const kn_tensor *input = call->inputs[0];
    const int64_t numel = kn_numel(input);
    kn_max_problem p = {.stream = call->stream,
                        .operation = call->op->name,
                        .outer = 1,
                        .n = numel,
                        .inner = 1,
                        .wants_places = indices != NULL};
    kn_tensor *x = NULL, *spare = NULL;
    kn_status status;

    if (numel == 0)
        return KN_OK;
    if (dim >= 0 && input->ndim > 0) {
        p.outer = kn_shape_numel(dim, input->shape);
        p.n = input->shape[dim];
        p.inner = kn_shape_numel(input->ndim - dim - 1, input->shape + dim + 1);
    }
    status = kn_tensor_contiguous(&x, call->inputs[0]);
    if (status == KN_OK && (!values || !indices))
        status = kn_tensor_new(&spare, values ? KN_I64 : input->dtype, 1, (const int64_t[]){p.outer * p.inner},
                               input->storage->device);
    if (status == KN_OK)
        status = max_middle(&p, x, values ? values : spare, indices ? indices : spare);
    kn_release(spare);
    kn_release(x);
    return status;
}

/* --- max over all elements --------------------------------------------------------------------------------------- */

static kn_status max_shape(kn_call *call)
{
    if (kn_numel(call->inputs[0]) == 0)
        return kn_fail(KN_ERR_SHAPE, "there is no maximum of no elements");
    return kn_call_output(call, call->inputs[0]->dtype, 0, NULL);
}

static kn_status max_forward(kn_call *call)
{
    if (call->needs_grad) {
        KN_TRY(kn_call_save(call, call->inputs[0]));
        KN_TRY(kn_call_save(call, call->outputs[0]));
    }
    return max_of_input(call, -1, call->outputs[0], NULL);
}

/* 1 where x is the maximum y, both NaN included; and g where a mask b is not 0: no product, which infinities and NaN
 * would make NaN elsewhere. */
static kn_pointwise_code is_maximum = {
    .name = "is_maximum", .inputs = "ay", .values = {"(a == y || (a != a && y != y)) ? 1 : 0"}};
static kn_pointwise_code where_marked = {.name = "where_marked", .inputs = "gb", .values = {"b != 0 ? g : (T)0"}};

/* A new tensor of the input's shape, made of two operands. */
static kn_status make_elements(kn_grad_call *grad, kn_pointwise_code *code, const kn_tensor *a, const kn_tensor *b,
                               kn_tensor **result)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_tensor_options options = {.dtype = input->dtype, .device = input->device};
    *result = kn_empty_with(input->ndim, input->shape, &options);
    return *result ? kn_elements(grad->stream, code, "max", input->dtype, *result, (const kn_tensor *[]){a, b}, 2, NULL)
                   : kn_error_status();
}

/* Equal maxima share the gradient evenly. */
static kn_status max_backward(kn_grad_call *grad)
{
    kn_tensor *mask = NULL, *share;

    KN_TRY(make_elements(grad, &is_maximum, grad->saved[0], grad->saved[1], &mask));
    share = kn_div(grad->grad_outputs[0], kn_sum(mask));
    return share ? make_elements(grad, &where_marked, share, mask, &grad->grad_inputs[0]) : kn_error_status();
}

static bool beats(double v, double best) { return v > best || (isnan(v) && !isnan(best)); }

static kn_status max_reference(const kn_call *call)
{
    double best = kn_reference_get(call->inputs[0], 0);
    for (int64_t i = 1; i < kn_numel(call->inputs[0]); i++)
        if (beats(kn_reference_get(call->inputs[0], i), best))
            best = kn_reference_get(call->inputs[0], i);
    kn_reference_set(call->outputs[0], 0, best);
    return KN_OK;
}

const kn_op kn_max_op = {.name = "max",
                         .inputs = {"x"},
                         .shape = max_shape,
                         .forward = max_forward,
                         .backward = max_backward,
                         .reference = max_reference,
                         .work = kn_work_reducing,
                         .backward_work = kn_grad_work_moving};

kn_tensor *kn_max(kn_tensor *x)
{
    if (!kn_argument_given("max", "x", x))
        return NULL;
    return kn_apply_as(&kn_max_op, &x, 1, NULL, kn_compute_type(x->dtype), x->dtype);
}

/* --- max along a dimension, argmax ------------------------------------------------------------------------------- */

typedef struct kn_max_dim_params {
    kn_reduce_params reduce;
    int dim;
} kn_max_dim_params;

static kn_status check_dim(const kn_call *call)
{
    const kn_max_dim_params *params = call->params;
    const kn_tensor *x = call->inputs[0];

    if (x->ndim > 0 && x->shape[params->dim] == 0)
        return kn_fail(KN_ERR_SHAPE, "there is no maximum along dimension %d, whose size is 0", params->dim);
    return KN_OK;
}

static kn_status max_dim_shape(kn_call *call)
{
    const kn_max_dim_params *params = call->params;

    KN_TRY(check_dim(call));
    KN_TRY(kn_reduce_output(call, &params->reduce, call->inputs[0]->dtype));
    return kn_reduce_output(call, &params->reduce, KN_I64);
}

static kn_status max_dim_forward(kn_call *call)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[1]));
    return max_of_input(call, ((const kn_max_dim_params *)call->params)->dim, call->outputs[0], call->outputs[1]);
}

static kn_status launch_backward(kn_grad_call *grad, const kn_tensor *result, int64_t outer, int64_t n, int64_t inner)
{
    const kn_limits *limits = kn_tensor_limits(result);
    const kn_work_size work = kn_work_for(limits, kn_numel(result));
    const kn_divisor by_n = kn_divisor_of(n), by_inner = kn_divisor_of(inner);
    kn_arg args[9];
    int count = 0;

    args[count++] = kn_arg_tensor(grad->grad_outputs[0]);
    args[count++] = kn_arg_tensor(grad->saved[0]);
    args[count++] = kn_arg_tensor(result);
    args[count++] = kn_arg_i64(outer);
    args[count++] = kn_arg_i64(n);
    args[count++] = kn_arg_i64(inner);
    if (!limits->is_cpu) {
        args[count++] = kn_arg_struct(&by_n, sizeof by_n);
        args[count++] = kn_arg_struct(&by_inner, sizeof by_inner);
        args[count++] = kn_arg_i32(kn_numel(result) <= INT32_MAX);
    }
    return kn_run(grad->stream, .source = limits->is_cpu ? "reduce/max.cl" : "reduce/max_gpu.cl",
                  .options = kn_dtype_options(result->dtype), .kernel = "max_backward", .operation = "max", .dims = 1,
                  .global = {work.global}, .local = {work.local}, .args = args, .num_args = count);
}

static kn_status max_dim_backward(kn_grad_call *grad)
{
    const kn_max_dim_params *params = grad->params;
    const int ndim = grad->input[0].ndim, dim = params->dim;
    const int64_t *shape = grad->input[0].shape;
    kn_tensor *result = kn_empty_with(
        ndim, shape, &(kn_tensor_options){.dtype = grad->input[0].dtype, .device = kn_device_of(grad->saved[0])});

    if (!result || !grad->grad_outputs[0])
        return result ? KN_OK : kn_error_status();
    grad->grad_inputs[0] = result;
    if (kn_numel(result) == 0)
        return KN_OK;
    return launch_backward(grad, result, ndim ? kn_shape_numel(dim, shape) : 1, ndim ? shape[dim] : 1,
                           ndim ? kn_shape_numel(ndim - dim - 1, shape + dim + 1) : 1);
}

/* Maxima and places along the dimension; either result may be NULL. */
static void reference_along(const kn_tensor *x, int dim, kn_tensor *values, kn_tensor *indices)
{
    const int64_t n = x->ndim ? x->shape[dim] : 1;
    const int64_t inner = x->ndim ? kn_shape_numel(x->ndim - dim - 1, x->shape + dim + 1) : 1;

    for (int64_t i = 0; i < kn_numel(x) / n; i++) {
        const int64_t from = i / inner * n * inner + i % inner;
        double best = kn_reference_get(x, from);
        int64_t at = 0;
        for (int64_t k = 1; k < n; k++)
            if (beats(kn_reference_get(x, from + k * inner), best)) {
                best = kn_reference_get(x, from + k * inner);
                at = k;
            }
        if (values)
            kn_reference_set(values, i, best);
        if (indices)
            kn_reference_set(indices, i, (double)at);
    }
}

static kn_status max_dim_reference(const kn_call *call)
{
    reference_along(call->inputs[0], ((const kn_max_dim_params *)call->params)->dim, call->outputs[0],
                    call->outputs[1]);
    return KN_OK;
}

static kn_status argmax_shape(kn_call *call)
{
    KN_TRY(check_dim(call));
    return kn_reduce_output(call, &((const kn_max_dim_params *)call->params)->reduce, KN_I64);
}

static kn_status argmax_forward(kn_call *call)
{
    return max_of_input(call, ((const kn_max_dim_params *)call->params)->dim, NULL, call->outputs[0]);
}

static kn_status argmax_reference(const kn_call *call)
{
    reference_along(call->inputs[0], ((const kn_max_dim_params *)call->params)->dim, NULL, call->outputs[0]);
    return KN_OK;
}

const kn_op kn_max_dim_op = {.name = "max_dim",
                             .inputs = {"x"},
                             .record_size = sizeof(kn_max_dim_params),
                             .shape = max_dim_shape,
                             .forward = max_dim_forward,
                             .backward = max_dim_backward,
                             .reference = max_dim_reference,
                             .work = kn_work_reducing,
                             .backward_work = kn_grad_work_moving};
const kn_op kn_argmax_op = {.name = "argmax",
                            .inputs = {"x"},
                            .record_size = sizeof(kn_max_dim_params),
                            .shape = argmax_shape,
                            .forward = argmax_forward,
                            .reference = argmax_reference,
                            .work = kn_work_reducing};

static bool dim_params(kn_max_dim_params *params, const char *function, const kn_tensor *x, int dim, bool keepdim)
{
    if (!kn_argument_given(function, "x", x))
        return false;
    params->dim = kn_wrap_dim(function, dim, x->ndim);
    return params->dim >= 0 && kn_reduce_dims(&params->reduce, function, x->ndim, &params->dim, 1, keepdim);
}

/* f16 as f32 and back; the indices are handed out of the scope by a reference of their own. */
static kn_tensor *max_dim_half(kn_tensor *x, const kn_max_dim_params *params, kn_tensor **indices)
{
    const int depth = kn_scope_begin();
    kn_tensor *more[1] = {NULL}, *values;

    if (depth == 0)
        return kn_stick();
    x = kn_to_dtype(x, KN_F32);
    values = kn_op_apply(&kn_max_dim_op, &x, 1, params, more);
    kn_retain(more[0]);
    values = kn_scope_return(depth, values ? kn_to_dtype(values, KN_F16) : NULL);
    if (values && indices)
        *indices = kn_scope_adopt(more[0]);
    else
        kn_release(more[0]);
    return values;
}

kn_tensor *kn_max_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices)
{
    kn_max_dim_params params;
    kn_tensor *more[1] = {NULL}, *values;

    if (!dim_params(&params, "max_dim", x, dim, keepdim))
        return NULL;
    if (x->dtype == KN_F16)
        return max_dim_half(x, &params, indices);
    values = kn_op_apply(&kn_max_dim_op, &x, 1, &params, indices ? more : NULL);
    if (values && indices)
        *indices = more[0];
    return values;
}

kn_tensor *kn_argmax(kn_tensor *x, int dim, bool keepdim)
{
    kn_max_dim_params params;

    if (!dim_params(&params, "argmax", x, dim, keepdim))
        return NULL;
    return kn_apply_as(&kn_argmax_op, &x, 1, &params, kn_compute_type(x->dtype), KN_I64);
}
