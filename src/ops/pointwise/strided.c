/* ops/pointwise/strided.c - plans for elementwise kernels: broadcasting as strides of 0, and as few dimensions as can
 * be. */
#include "ops/pointwise/strided.h"

#include <koine/ops.h>
#include <string.h>

#include "base/text.h"
#include "tensor/quads.h"

/* The layout that cl/pointwise/strided.clh declares for CPU devices. Row 0 of `strides` is the output's. */
typedef struct kn_strided_plan {
    int64_t count, ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[4][KN_MAX_DIMS];
} kn_strided_plan;

kn_status kn_broadcast_shapes(int *ndim, int64_t shape[KN_MAX_DIMS], const kn_tensor *a, const kn_tensor *b)
{
    const int n = a->ndim > b->ndim ? a->ndim : b->ndim;

    for (int i = 0; i < n; i++) {
        const int64_t p = i < n - a->ndim ? 1 : a->shape[i - (n - a->ndim)];
        const int64_t q = i < n - b->ndim ? 1 : b->shape[i - (n - b->ndim)];
        if (p != q && p != 1 && q != 1) {
            char text_a[KN_DESCRIBE], text_b[KN_DESCRIBE];
            return kn_fail(KN_ERR_SHAPE,
                           "shapes %s and %s do not broadcast: sizes %lld and %lld of dimension %d differ",
                           kn_format_shape(text_a, sizeof text_a, a->ndim, a->shape),
                           kn_format_shape(text_b, sizeof text_b, b->ndim, b->shape), (long long)p, (long long)q, i);
        }
        shape[i] = p == 1 ? q : p;
    }
    *ndim = n;
    return KN_OK;
}

kn_status kn_broadcast_output(kn_call *call, kn_dtype dtype)
{
    int ndim = call->inputs[0]->ndim;
    int64_t shape[KN_MAX_DIMS];

    KN_TRY(kn_call_check_same_dtype(call, 0, call->num_inputs - 1));
    if (call->num_inputs > 1)
        KN_TRY(kn_broadcast_shapes(&ndim, shape, call->inputs[0], call->inputs[1]));
    else
        memcpy(shape, call->inputs[0]->shape, sizeof shape);
    return kn_call_output(call, dtype, ndim, shape);
}

/* Drops dimensions of size 1 and joins neighbours that every operand walks as one. */
static void collapse(kn_strided_plan *plan, int operands)
{
    int kept = 0;

    for (int d = 0; d < (int)plan->ndim; d++) {
        bool join = kept > 0;
        if (plan->shape[d] == 1)
            continue;
        for (int i = 0; i < operands && join; i++)
            join = plan->strides[i][kept - 1] == plan->strides[i][d] * plan->shape[d];
        if (join)
            plan->shape[kept - 1] *= plan->shape[d];
        else
            plan->shape[kept++] = plan->shape[d];
        for (int i = 0; i < operands; i++)
            plan->strides[i][kept - 1] = plan->strides[i][d];
    }
    if (kept == 0) { /* one element */
        plan->shape[kept++] = 1;
        for (int i = 0; i < operands; i++)
            plan->strides[i][0] = 1;
    }
    plan->ndim = kept;
}

static void make_plan(kn_strided_plan *plan, const kn_strided_launch *launch, int inputs)
{
    const kn_tensor *y = launch->output;

    memset(plan, 0, sizeof *plan);
    plan->count = kn_numel(y);
    plan->ndim = y->ndim;
    for (int d = 0; d < y->ndim; d++) {
        plan->shape[d] = y->shape[d];
        plan->strides[0][d] = y->strides[d];
        for (int i = 0; i < inputs; i++) {
            const kn_tensor *x = launch->inputs[i];
            const int own = d - (y->ndim - x->ndim);
            plan->strides[1 + i][d] = own < 0 || x->shape[own] == 1 ? 0 : x->strides[own];
        }
    }
    collapse(plan, 1 + inputs);
}

kn_work_size kn_work_for(const kn_limits *limits, int64_t count)
{
    const size_t items = kn_work_items(limits, count, 4096);
    size_t local = 256;

    if (limits->is_cpu)
        return (kn_work_size){.global = items, .local = 0};
    while (local > limits->max_work_group_size)
        local /= 2;
    return (kn_work_size){.global = (items + local - 1) / local * local, .local = local};
}

kn_arg kn_arg_element(kn_dtype dtype, double value)
{
    kn_arg arg = {.kind = KN_ARG_BYTES, .size = kn_dtype_size(dtype)};
    if (dtype == KN_F64)
        return kn_arg_f64(value);
    if (dtype == KN_F32)
        return kn_arg_f32(value);
    if (dtype == KN_I64)
        return kn_arg_i64((int64_t)value);
    if (dtype == KN_I32)
        return kn_arg_i32((int64_t)value);
    const uint8_t byte = (uint8_t)(int64_t)value; /* of a floating dtype it could be NaN, which no integer is */
    memcpy(&arg.value, &byte, 1);
    return arg;
}

/* Other devices have a plan of their own. */
static kn_status launch_quads(kn_stream *stream, const kn_strided_launch *launch, const kn_launch_params *params,
                              int inputs, const kn_strided_plan *plan)
{
    kn_quad_layout layout = {.ndim = (int)plan->ndim, .operands = 1 + inputs, .lanes = 4};
    memcpy(layout.shape, plan->shape, sizeof plan->shape);
    memcpy(layout.strides, plan->strides, sizeof plan->strides);
    layout.aligned[0] = kn_quad_aligned(launch->output);
    for (int i = 0; i < inputs; i++)
        layout.aligned[1 + i] = kn_quad_aligned(launch->inputs[i]);
    return kn_launch_quads(stream, kn_tensor_limits(launch->output), params, 1 + inputs, &layout);
}

kn_status kn_launch_strided(kn_stream *stream, const kn_strided_launch *launch)
{
    const kn_limits *limits = kn_tensor_limits(launch->output);
    kn_strided_plan plan;
    kn_arg args[6];
    int inputs = 0, count = 0;

    while (inputs < 3 && launch->inputs[inputs])
        inputs++;
    make_plan(&plan, launch, inputs);
    if (plan.count == 0)
        return KN_OK;
    args[count++] = kn_arg_tensor(launch->output);
    for (int i = 0; i < inputs; i++)
        args[count++] = kn_arg_tensor(launch->inputs[i]);
    args[count++] = kn_arg_struct(&plan, sizeof plan);
    if (launch->parameter)
        args[count++] = *launch->parameter;
    kn_launch_params params = {.source = launch->source,
                               .options = kn_dtype_options(launch->dtype),
                               .kernel = launch->kernel,
                               .operation = launch->operation,
                               .dims = 1,
                               .args = args,
                               .num_args = count};
    if (!limits->is_cpu)
        return launch_quads(stream, launch, &params, inputs, &plan);
    params.global[0] = kn_work_for(limits, plan.count).global;
    return kn_launch(stream, &params);
}

kn_tensor *kn_sum_to_shape(kn_tensor *gradient, int ndim, const int64_t *shape)
{
    int dims[KN_MAX_DIMS], count = 0;

    if (!gradient)
        return NULL;
    for (int d = 0; d < gradient->ndim; d++) {
        const int own = d - (gradient->ndim - ndim);
        if (own < 0 || (shape[own] == 1 && gradient->shape[d] != 1))
            dims[count++] = d;
    }
    if (count > 0)
        gradient = kn_sum_dims(gradient, dims, count, true);
    return gradient && gradient->ndim == ndim ? gradient : kn_reshape(gradient, ndim, shape);
}

kn_status kn_give_gradient(kn_grad_call *grad, int i, kn_tensor *gradient)
{
    gradient = kn_sum_to_shape(gradient, grad->input[i].ndim, grad->input[i].shape);
    grad->grad_inputs[i] = gradient ? kn_to_dtype(gradient, grad->input[i].dtype) : NULL;
    return grad->grad_inputs[i] ? KN_OK : kn_error_status();
}
