/* ops/pool/avg_pool2d.c - average pooling. */
#include <koine/functional.h>
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pool/pool2d.h"

static kn_status launch(kn_stream *stream, const kn_pool2d_geometry *g, const kn_tensor *from, kn_tensor *to,
                        bool backward)
{
    return kn_pool2d_launch(stream,
                            &(kn_launch_params){.source = "pool/average.cl",
                                                .options = kn_dtype_options(to->dtype),
                                                .kernel = backward ? "avg_pool2d_backward" : "avg_pool2d_forward",
                                                .operation = "avg_pool2d",
                                                KN_ARGS(kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_pool2d(g), {0})},
                            3, g, to, backward, kn_numel(to));
}

static kn_status avg_pool2d_forward(kn_call *call)
{
    kn_tensor *x;
    kn_status status;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = launch(call->stream, call->params, x, call->outputs[0], false);
    kn_release(x);
    return status;
}

static kn_status avg_pool2d_backward(kn_grad_call *grad)
{
    kn_tensor *const gradient = grad->grad_outputs[0];
    kn_tensor *out =
        kn_empty_with(grad->input[0].ndim, grad->input[0].shape,
                      &(kn_tensor_options){.dtype = grad->input[0].dtype, .device = kn_device_of(gradient)});
    if (!out)
        return kn_error_status();
    grad->grad_inputs[0] = out;
    return launch(grad->stream, grad->params, gradient, out, true);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static double reference_window(const kn_tensor *x, const kn_pool2d_geometry *g, int64_t plane, int64_t row,
                               int64_t column)
{
    const int64_t h0 = row * g->stride[0] - g->padding[0], w0 = column * g->stride[1] - g->padding[1];
    const int64_t h1 = smaller(h0 + g->kernel_size[0], g->height + g->padding[0]);
    const int64_t w1 = smaller(w0 + g->kernel_size[1], g->width + g->padding[1]);
    double sum = 0, inside = 0;

    for (int64_t h = h0; h < h1; h++)
        for (int64_t w = w0; w < w1; w++)
            if (h >= 0 && h < g->height && w >= 0 && w < g->width) {
                sum += kn_reference_get(x, (plane * g->height + h) * g->width + w);
                inside++;
            }
    if (inside == 0)
        return 0;
    return sum / (g->divisor ? (double)g->divisor : g->count_include_pad ? (double)((h1 - h0) * (w1 - w0)) : inside);
}

static kn_status avg_pool2d_reference(const kn_call *call)
{
    const kn_pool2d_geometry *g = call->params;

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i,
                         reference_window(call->inputs[0], g, i / g->out_width / g->out_height,
                                          i / g->out_width % g->out_height, i % g->out_width));
    return KN_OK;
}

const kn_op kn_avg_pool2d_op = {.name = "avg_pool2d",
                                .inputs = {"x"},
                                .record_size = sizeof(kn_pool2d_geometry),
                                .shape = kn_pool2d_shape,
                                .forward = avg_pool2d_forward,
                                .backward = avg_pool2d_backward,
                                .reference = avg_pool2d_reference,
                                .work = kn_pool2d_work,
                                .backward_work = kn_pool2d_average_backward_work};

/* The activation is an operation of its own: no network has it behind an average. */
kn_tensor *kn_avg_pool2d_with(kn_tensor *x, const kn_pool2d_params *params)
{
    kn_pool2d_geometry g;
    kn_tensor *y;

    params = params ? params : &(kn_pool2d_params){KN_POOL2D_DEFAULTS};
    if (!kn_pool2d_of(&g, "avg_pool2d", x, params))
        return NULL;
    if (g.dilation[0] != 1 || g.dilation[1] != 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "avg_pool2d: there is no dilation in average pooling");
    y = kn_apply_as(&kn_avg_pool2d_op, &x, 1, &g, kn_compute_type(x->dtype), x->dtype);
    switch (params->activation) {
    case KN_ACTIVATION_RELU:
        return kn_relu(y);
    case KN_ACTIVATION_RELU6:
        return kn_relu6(y);
    default:
        return y;
    }
}
