/* ops/pool/average.c - average pooling. */
#include <koine/pool.h>

#include "ops/dispatch/invoke.h"
#include "ops/pool/pool.h"

static kn_status avg_pool_shape(kn_call *call)
{
    const kn_pool_params *params = call->params;
    bool dilated = params->dilation != 1;

    for (int i = 0; i < 3; i++)
        dilated = dilated || params->dilations[i] > 1;
    if (dilated)
        return kn_fail(KN_ERR_ARGUMENT, "average pooling has no dilation");
    if (params->activation != KN_ACTIVATION_NONE)
        return kn_fail(KN_ERR_ARGUMENT, "takes no activation: apply it to the result");
    return kn_pool_shape(call);
}

/* Shorter lines of a window are added faster column by column; the columns of longer ones than the last are too many
 * for backward (cl/pool/average.cl). */
enum { LONG_LINE = 16, LONG_LINE_BACKWARD = 8, MOST_COLUMNS = 128 };

static kn_status launch(kn_stream *stream, const kn_op *op, const kn_pool_geometry *g, const kn_tensor *from,
                        kn_tensor *to, bool backward)
{
    const kn_limits *limits = kn_tensor_limits(to);
    if (kn_pool_has_small_planes(limits, g))
        return kn_pool_average_planes(stream, op, g, from, to, backward);
    const bool is_long = kn_pool_has_long_lines(limits, g, backward ? LONG_LINE_BACKWARD : LONG_LINE) ||
                         (backward && limits->is_cpu && g->kernel_size[2] > MOST_COLUMNS);
    return kn_pool_launch(stream,
                          &(kn_launch_params){.source = "pool/average.cl",
                                              .options = is_long ? " -DLONG" : "",
                                              .kernel = backward ? "avg_pool_backward" : "avg_pool_forward",
                                              .operation = op->name,
                                              KN_ARGS(kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_pool(g))},
                          g, to, backward, is_long && !backward ? kn_numel(from) / 2 : kn_numel(to));
}

static kn_status avg_pool_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call);
    kn_tensor *x;
    kn_status status;

    if (kn_pool_has_inner_channels(call))
        return kn_pool_average_channels(call);
    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = launch(call->stream, call->op, &g, x, call->outputs[0], false);
    kn_release(x);
    return status;
}

static kn_status avg_pool_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad);
    kn_tensor *out = kn_grad_new(grad, 0);

    if (!out)
        return kn_error_status();
    return launch(grad->stream, grad->op, &g, grad->grad_outputs[0], out, true);
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

/* The activation is a separate operation: networks rarely have one after average pooling. */
static kn_tensor *apply(const kn_op *op, kn_tensor *x, const kn_pool_params *given)
{
    kn_pool_params params = given ? *given : (kn_pool_params){KN_POOL_DEFAULTS};
    const kn_activation activation = params.activation;
    kn_tensor *y;

    if (activation == KN_ACTIVATION_RELU || activation == KN_ACTIVATION_RELU6)
        params.activation = KN_ACTIVATION_NONE;
    y = kn_invoke(op, &params, x);
    if (!y || activation == KN_ACTIVATION_NONE)
        return y;
    return activation == KN_ACTIVATION_RELU ? kn_relu(y) : kn_relu6(y);
}

#define AVG_POOL(count)                                                                                                \
    extern const kn_op kn_avg_pool##count##d_backward_op;                                                              \
    const kn_op kn_avg_pool##count##d_op = {KN_POOL_OP(avg_pool##count##d, .dims = count, .average = true),            \
                                            .params = KN_PARAMS(kn_pool_params, kn_pool_rows, KN_POOL_DEFAULTS),       \
                                            .shape = avg_pool_shape,                                                   \
                                            .arrange = kn_pool_arrange,                                                \
                                            .forward = avg_pool_forward,                                               \
                                            .backward = avg_pool_backward,                                             \
                                            KN_RECORDED_AS(avg_pool##count##d_backward),                               \
                                            .backward_work = kn_pool_average_backward_work};                           \
    const kn_op kn_avg_pool##count##d_backward_op = {KN_POOL_AVERAGE_BACKWARD_OP(avg_pool##count##d)};                 \
    kn_tensor *kn_avg_pool##count##d_with(kn_tensor *x, const kn_pool_params *params)                                  \
    {                                                                                                                  \
        return apply(&kn_avg_pool##count##d_op, x, params);                                                            \
    }

AVG_POOL(1)
AVG_POOL(2)
AVG_POOL(3)
