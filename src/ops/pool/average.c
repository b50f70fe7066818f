/* ops/pool/average.c - average pooling. */
#include <koine/pointwise.h>
#include <koine/pool.h>

#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
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

static kn_status launch(kn_stream *stream, const kn_op *op, const kn_pool_geometry *g, const kn_tensor *from,
                        kn_tensor *to, bool backward)
{
    return kn_pool_launch(stream,
                          &(kn_launch_params){.source = "pool/average.cl",
                                              .options = "",
                                              .kernel = backward ? "avg_pool_backward" : "avg_pool_forward",
                                              .operation = op->name,
                                              KN_ARGS(kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_pool(g), {0})},
                          3, g, to, backward, kn_numel(to));
}

static kn_status avg_pool_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call, false);
    kn_tensor *x;
    kn_status status;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = launch(call->stream, call->op, &g, x, call->outputs[0], false);
    kn_release(x);
    return status;
}

static kn_status avg_pool_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad, false);
    kn_tensor *out = kn_grad_new(grad, 0);

    if (!out)
        return kn_error_status();
    return launch(grad->stream, grad->op, &g, grad->grad_outputs[0], out, true);
}

/* --- the plain C reference ---------------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* The part of output `i`'s window inside the plane, low to high; returns the divisor. */
static double reference_box(const kn_pool_geometry *g, int64_t i, int64_t low[3], int64_t high[3])
{
    double inside = 1, all = 1;
    for (int d = 2; d >= 0; d--) {
        const int64_t first = i % g->out_size[d] * g->stride[d] - g->padding[d];
        const int64_t end = smaller(first + g->kernel_size[d], g->end[d]);
        low[d] = larger(first, 0);
        high[d] = smaller(end, g->size[d]);
        inside *= (double)larger(high[d] - low[d], 0);
        all *= (double)(end - first);
        i /= g->out_size[d];
    }
    if (inside == 0)
        return 0;
    return g->divisor ? (double)g->divisor : g->count_include_pad ? all : inside;
}

static double reference_window(const kn_tensor *x, const kn_pool_geometry *g, int64_t plane, int64_t i)
{
    int64_t low[3], high[3];
    const double count = reference_box(g, i, low, high);
    double sum = 0;

    if (count == 0)
        return 0;
    for (int64_t d = low[0]; d < high[0]; d++)
        for (int64_t h = low[1]; h < high[1]; h++)
            for (int64_t w = low[2]; w < high[2]; w++)
                sum += kn_reference_get(x, ((plane * g->size[0] + d) * g->size[1] + h) * g->size[2] + w);
    return sum / count;
}

static kn_status avg_pool_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    kn_pool_geometry g;

    KN_TRY(kn_pool_resolve(&g, ((const kn_pool_kind *)call->op->detail)->dims, call->params, x->ndim, x->shape));
    const int64_t outputs = (int64_t)g.out_size[0] * g.out_size[1] * g.out_size[2];
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, reference_window(x, &g, i / outputs, i % outputs));
    return KN_OK;
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
    const kn_op kn_avg_pool##count##d_op = {.name = "avg_pool" #count "d",                                             \
                                            .inputs = {"x"},                                                           \
                                            .dtypes = {KN_DTYPES_FLOATING},                                            \
                                            .params = KN_PARAMS(kn_pool_params, kn_pool_rows, KN_POOL_DEFAULTS),       \
                                            .widens_halves = true,                                                     \
                                            .shape = avg_pool_shape,                                                   \
                                            .forward = avg_pool_forward,                                               \
                                            .backward = avg_pool_backward,                                             \
                                            KN_RECORDED_AS(avg_pool##count##d_backward),                               \
                                            .reference = avg_pool_reference,                                           \
                                            .work = kn_pool_work,                                                      \
                                            .backward_work = kn_pool_average_backward_work,                            \
                                            .detail = &(kn_pool_kind){.dims = count}};                                 \
    const kn_op kn_avg_pool##count##d_backward_op = {KN_LINEAR_BACKWARD_OP(avg_pool##count##d),                        \
                                                     .inputs = {"grad", "x"}, .outputs = {"grad_x"},                   \
                                                     .widens_halves = true};                                           \
    kn_tensor *kn_avg_pool##count##d_with(kn_tensor *x, const kn_pool_params *params)                                  \
    {                                                                                                                  \
        return apply(&kn_avg_pool##count##d_op, x, params);                                                            \
    }

AVG_POOL(1)
AVG_POOL(2)
AVG_POOL(3)
