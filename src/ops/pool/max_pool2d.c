/* ops/pool/max_pool2d.c - max pooling: one launch forward, which keeps where each maximum lies, and one backward. A
 * maximum that the activation cut off has no place, so that backward need not know of the activation. */
#include <koine/functional.h>
#include <stdio.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/gemm/epilogue.h"
#include "ops/pool/pool2d.h"

/* The dtype of a place within a window, or of none. */
static kn_dtype index_dtype(const kn_pool2d_geometry *g)
{
    return (int64_t)g->kernel_size[0] * g->kernel_size[1] <= 255 ? KN_U8 : KN_I32;
}

static const char *options(char *buffer, size_t size, kn_dtype dtype, const kn_pool2d_geometry *g)
{
    snprintf(buffer, size, "%s -DINDEX=%s", kn_dtype_options(dtype), kn_dtype_cl(index_dtype(g)));
    return buffer;
}

/* Where no gradient is wanted the indices are not written, and `index` is any buffer. */
static kn_status launch_forward(kn_call *call, const kn_tensor *x, const kn_tensor *index)
{
    const kn_pool2d_geometry *g = call->params;
    kn_tensor *y = call->outputs[0];
    const kn_cut cut = kn_cut_of((kn_activation)g->activation);
    char text[64];

    return kn_pool2d_launch(
        call->stream,
        &(kn_launch_params){.source = "pool/max.cl",
                            .options = options(text, sizeof text, x->dtype, g),
                            .kernel = "max_pool2d_forward",
                            .operation = "max_pool2d",
                            KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_tensor(index ? index : y),
                                    kn_arg_pool2d(g), {0}, kn_arg_i32(index != NULL), kn_arg_real(x->dtype, cut.low),
                                    kn_arg_real(x->dtype, cut.high))},
        4, g, y, false, kn_numel(y));
}

static kn_status max_pool2d_forward(kn_call *call)
{
    const kn_pool2d_geometry *g = call->params;
    kn_tensor *x, *index = NULL;
    kn_status status = KN_OK;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (call->needs_grad) {
        status = kn_tensor_new(&index, index_dtype(g), call->spec[0].ndim, call->spec[0].shape, x->storage->device);
        if (status == KN_OK)
            status = kn_call_save(call, index);
    }
    if (status == KN_OK)
        status = launch_forward(call, x, index);
    kn_release(index);
    kn_release(x);
    return status;
}

static kn_status max_pool2d_backward(kn_grad_call *grad)
{
    const kn_pool2d_geometry *g = grad->params;
    kn_tensor *out =
        kn_empty_with(grad->input[0].ndim, grad->input[0].shape,
                      &(kn_tensor_options){.dtype = grad->input[0].dtype, .device = kn_device_of(grad->saved[0])});
    char text[64];

    if (!out)
        return kn_error_status();
    grad->grad_inputs[0] = out;
    return kn_pool2d_launch(
        grad->stream,
        &(kn_launch_params){.source = "pool/max.cl",
                            .options = options(text, sizeof text, out->dtype, g),
                            .kernel = "max_pool2d_backward",
                            .operation = "max_pool2d",
                            KN_ARGS(kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(grad->saved[0]),
                                    kn_arg_tensor(out), kn_arg_pool2d(g), {0})},
        4, g, out, true, kn_numel(out));
}

/* The maximum of one window; padding is not looked at, as it stands for minus infinity. */
static double reference_window(const kn_tensor *x, const kn_pool2d_geometry *g, int64_t plane, int64_t row,
                               int64_t column)
{
    double best = -INFINITY;

    for (int64_t r = 0; r < g->kernel_size[0]; r++)
        for (int64_t s = 0; s < g->kernel_size[1]; s++) {
            const int64_t h = row * g->stride[0] - g->padding[0] + r * g->dilation[0];
            const int64_t w = column * g->stride[1] - g->padding[1] + s * g->dilation[1];
            if (h < 0 || h >= g->height || w < 0 || w >= g->width)
                continue;
            const double v = kn_reference_get(x, (plane * g->height + h) * g->width + w);
            best = v > best || isnan(v) ? v : best;
        }
    return best;
}

static kn_status max_pool2d_reference(const kn_call *call)
{
    const kn_pool2d_geometry *g = call->params;
    const kn_cut cut = kn_cut_of((kn_activation)g->activation);

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i,
                         kn_cut_off(cut, reference_window(call->inputs[0], g, i / g->out_width / g->out_height,
                                                          i / g->out_width % g->out_height, i % g->out_width)));
    return KN_OK;
}

const kn_op kn_max_pool2d_op = {.name = "max_pool2d",
                                .inputs = {"x"},
                                .record_size = sizeof(kn_pool2d_geometry),
                                .shape = kn_pool2d_shape,
                                .forward = max_pool2d_forward,
                                .backward = max_pool2d_backward,
                                .reference = max_pool2d_reference,
                                .work = kn_pool2d_work,
                                .backward_work = kn_pool2d_max_backward_work};

kn_tensor *kn_max_pool2d_with(kn_tensor *x, const kn_pool2d_params *params)
{
    kn_pool2d_geometry g;

    params = params ? params : &(kn_pool2d_params){KN_POOL2D_DEFAULTS};
    if (!kn_pool2d_of(&g, "max_pool2d", x, params))
        return NULL;
    return kn_apply_as(&kn_max_pool2d_op, &x, 1, &g, kn_compute_type(x->dtype), x->dtype);
}
