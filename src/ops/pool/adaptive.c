/* ops/pool/adaptive.c - adaptive max and average pooling: window i of n covers floor(i size / n) to ceil((i + 1) size /
 * n). */
#include <koine/pool.h>
#include <stdio.h>

#include "ops/dispatch/invoke.h"
#include "ops/pool/pool.h"
#include "ops/shape/reduce.h"

/* Runs a kernel; those of max pooling have indices of a dtype. `count`: work-items on CPU devices. */
#define NO_INDICES KN_DTYPE_DEFAULT
static kn_status launch(kn_stream *stream, const kn_op *op, const char *kernel, kn_dtype index,
                        const kn_pool_geometry *g, const kn_tensor *to, bool backward, int64_t count,
                        const kn_arg *args, int num_args)
{
    const bool has_indices = index != NO_INDICES;
    char options[64] = "";
    if (has_indices)
        snprintf(options, sizeof options, " -DINDEX=%s", index == KN_I64 ? "long" : "int");
    return kn_pool_launch(stream,
                          &(kn_launch_params){.source = has_indices ? "pool/adaptive_max.cl" : "pool/adaptive_avg.cl",
                                              .options = options,
                                              .kernel = kernel,
                                              .operation = op->name,
                                              .args = args,
                                              .num_args = num_args},
                          g, to, backward, count);
}

/* --- max --------------------------------------------------------------------------------------------------------- */

/* The indices of the maxima: the op's second output, or a tensor for backward; NULL if not needed. */
static kn_status make_index(kn_tensor **index, kn_call *call, kn_device *device)
{
    *index = NULL;
    if (kn_pool_kind_of(call->op)->indices)
        *index = kn_retain(call->outputs[1]);
    else if (call->needs_grad)
        KN_TRY(kn_tensor_new(index, KN_I32, call->spec[0].ndim, call->spec[0].shape, device));
    return call->needs_grad ? kn_call_save(call, *index) : KN_OK;
}

static kn_status max_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call);
    kn_tensor *x, *y = call->outputs[0], *index = NULL;
    kn_status status;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = make_index(&index, call, x->storage->device);
    if (status == KN_OK && kn_numel(y) > 0) {
        const kn_arg args[] = {kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_tensor(index ? index : y), kn_arg_pool(&g),
                               kn_arg_i32(index != NULL)};
        status = launch(call->stream, call->op, "adaptive_max_pool_forward", index ? index->dtype : KN_I32, &g, y,
                        false, kn_numel(x), args, 5);
    }
    kn_release(index);
    kn_release(x);
    return status;
}

static kn_status max_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad);
    kn_tensor *out;

    if (!grad->grad_outputs[0])
        return KN_OK;
    out = kn_grad_new(grad, 0);
    if (!out)
        return kn_error_status();
    const kn_arg args[] = {kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(grad->saved[0]), kn_arg_tensor(out),
                           kn_arg_pool(&g)};
    return launch(grad->stream, grad->op, "adaptive_max_pool_backward", grad->saved[0]->dtype, &g, out, true,
                  4 * kn_numel(out), args, 4);
}

static kn_status max_backward_recorded(kn_grad_call *grad)
{
    return grad->grad_outputs[0]
               ? kn_pool_max_backward_recorded(grad, kn_to_dtype(grad->saved[0], KN_I64), grad->params)
               : KN_OK;
}

/* --- average ----------------------------------------------------------------------------------------------------- */

static kn_status avg_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call);
    const int64_t pixels = (int64_t)g.size[1] * g.size[2];
    kn_tensor *x, *y = call->outputs[0];
    kn_status status = KN_OK;

    if (kn_pool_has_inner_channels(call))
        return kn_pool_average_channels(call);
    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (!kn_tensor_limits(x)->is_cpu && kn_numel(y) == g.planes) { /* one work-item per plane would be slow */
        status = kn_sum_middle(call->stream, call->op->name, x, g.planes, pixels, 1, (double)pixels, y);
    } else if (kn_pool_has_small_planes(kn_tensor_limits(x), &g)) {
        status = kn_pool_average_planes(call->stream, call->op, &g, x, y, false);
    } else if (kn_numel(y) > 0) {
        const kn_arg args[] = {kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_pool(&g)};
        status =
            launch(call->stream, call->op, "adaptive_avg_pool_forward", NO_INDICES, &g, y, false, kn_numel(x), args, 3);
    }
    kn_release(x);
    return status;
}

static kn_status avg_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad);
    kn_tensor *out = kn_grad_new(grad, 0);

    if (!out)
        return kn_error_status();
    if (kn_pool_has_small_planes(kn_tensor_limits(out), &g))
        return kn_pool_average_planes(grad->stream, grad->op, &g, grad->grad_outputs[0], out, true);
    const kn_arg args[] = {kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(out), kn_arg_pool(&g)};
    return launch(grad->stream, grad->op, "adaptive_avg_pool_backward", NO_INDICES, &g, out, true, 4 * kn_numel(out),
                  args, 3);
}

/* --- the ops ----------------------------------------------------------------------------------------------------- */

static const kn_op_param adaptive_row[] = {KN_PARAM(kn_adaptive_pool_args, output_size)};

/* The ops and functions for a number of dimensions; the sizes as parameters, and as arguments. */
#define ADAPTIVE_MAX(op, n, with_indices, ...)                                                                         \
    const kn_op kn_##op##_op = {KN_POOL_OP(op, .dims = n, .adaptive = true, .indices = with_indices),                  \
                                .outputs = {__VA_ARGS__},                                                              \
                                .params = KN_PARAMS(kn_adaptive_pool_args, adaptive_row, {.count = n}),                \
                                .shape = kn_pool_shape,                                                                \
                                .forward = max_forward,                                                                \
                                .backward = max_backward,                                                              \
                                .backward_recorded = max_backward_recorded,                                            \
                                .saved = {"indices"},                                                                  \
                                .backward_operator = &kn_adaptive_max_pool##n##d_with_indices_backward_op,             \
                                .backward_work = kn_pool_max_backward_work};
#define SIZES_1 int64_t length
#define SIZES_2 int64_t height, int64_t width
#define SIZES_3 int64_t depth, SIZES_2
#define ADAPTIVES(n, ...)                                                                                              \
    extern const kn_op kn_adaptive_max_pool##n##d_with_indices_backward_op, kn_adaptive_avg_pool##n##d_backward_op;    \
    ADAPTIVE_MAX(adaptive_max_pool##n##d, n, false, "result")                                                          \
    ADAPTIVE_MAX(adaptive_max_pool##n##d_with_indices, n, true, "result", "indices")                                   \
    const kn_op kn_adaptive_avg_pool##n##d_op = {                                                                      \
        KN_POOL_OP(adaptive_avg_pool##n##d, .dims = n, .adaptive = true, .average = true),                             \
        .params = KN_PARAMS(kn_adaptive_pool_args, adaptive_row, {.count = n}),                                        \
        .shape = kn_pool_shape,                                                                                        \
        .arrange = kn_pool_arrange,                                                                                    \
        .forward = avg_forward,                                                                                        \
        .backward = avg_backward,                                                                                      \
        KN_RECORDED_AS(adaptive_avg_pool##n##d_backward),                                                              \
        .backward_work = kn_pool_average_backward_work};                                                               \
    const kn_op kn_adaptive_max_pool##n##d_with_indices_backward_op = {                                                \
        KN_POOL_MAX_BACKWARD_OP(adaptive_max_pool##n##d_with_indices)};                                                \
    const kn_op kn_adaptive_avg_pool##n##d_backward_op = {KN_POOL_AVERAGE_BACKWARD_OP(adaptive_avg_pool##n##d)};       \
    kn_tensor *kn_adaptive_max_pool##n##d(kn_tensor *x, SIZES_##n)                                                     \
    {                                                                                                                  \
        const kn_adaptive_pool_args args = {{n, {__VA_ARGS__}}};                                                       \
        return kn_invoke(&kn_adaptive_max_pool##n##d_op, &args, x);                                                    \
    }                                                                                                                  \
    kn_tensor *kn_adaptive_max_pool##n##d_with_indices(kn_tensor *x, SIZES_##n, kn_tensor **indices)                   \
    {                                                                                                                  \
        const kn_adaptive_pool_args args = {{n, {__VA_ARGS__}}};                                                       \
        return kn_pool_with_indices(&kn_adaptive_max_pool##n##d_with_indices_op, x, &args, indices);                   \
    }                                                                                                                  \
    kn_tensor *kn_adaptive_avg_pool##n##d(kn_tensor *x, SIZES_##n)                                                     \
    {                                                                                                                  \
        const kn_adaptive_pool_args args = {{n, {__VA_ARGS__}}};                                                       \
        return kn_invoke(&kn_adaptive_avg_pool##n##d_op, &args, x);                                                    \
    }

ADAPTIVES(1, length)
ADAPTIVES(2, height, width)
ADAPTIVES(3, depth, height, width)
