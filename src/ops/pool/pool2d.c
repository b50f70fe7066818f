/* ops/pool/pool2d.c - see pool2d.h. */
#include "ops/pool/pool2d.h"

#include <limits.h>

#include "autograd/work.h"
#include "ops/dispatch/promote.h"
#include "ops/pointwise/activation.h"

static const char *const direction[2] = {"height", "width"};

static bool check_input(const char *function, const kn_tensor *x)
{
    char text[KN_DESCRIBE];

    if (!kn_argument_given(function, "x", x))
        return false;
    if (x->ndim != 3 && x->ndim != 4) {
        kn_fail_null(KN_ERR_SHAPE, "%s: takes [N, C, H, W] or [C, H, W], not %s", function,
                     kn_tensor_describe(text, sizeof text, x));
        return false;
    }
    if (x->shape[x->ndim - 2] > INT_MAX / 2 || x->shape[x->ndim - 1] > INT_MAX / 2 ||
        x->shape[x->ndim - 2] * x->shape[x->ndim - 1] > INT_MAX) {
        kn_fail_null(KN_ERR_SHAPE, "%s: images of more than 2^31 pixels are not supported: %s", function,
                     kn_tensor_describe(text, sizeof text, x));
        return false;
    }
    return true;
}

static void set_input(kn_pool2d_geometry *g, const kn_tensor *x)
{
    *g = (kn_pool2d_geometry){.planes = kn_shape_numel(x->ndim - 2, x->shape),
                              .height = (int32_t)x->shape[x->ndim - 2],
                              .width = (int32_t)x->shape[x->ndim - 1]};
}

/* The pair that a plain size and its _2d companion stand for. */
static void choose(int64_t pair[2], int64_t plain, const int64_t both[2])
{
    const bool given = both[0] != 0 || both[1] != 0;
    pair[0] = given ? both[0] : plain;
    pair[1] = given ? both[1] : plain;
}

/* floor or ceil of (size + 2 padding - extent) / stride, plus 1; with ceil_mode the last window must start inside the
 * input or its left padding. */
static int64_t output_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                           bool ceil_mode)
{
    const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    int64_t count;

    if (room < 0 && !ceil_mode)
        return 0;
    count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (count - 1) * stride >= size + padding)
        count--;
    return room + (ceil_mode ? stride - 1 : 0) < 0 ? 0 : count;
}

static bool set_direction(kn_pool2d_geometry *g, const char *function, int i, const int64_t sizes[4], bool ceil_mode)
{
    const int64_t kernel = sizes[0], stride = sizes[1], padding = sizes[2], dilation = sizes[3];
    const int64_t size = i == 0 ? g->height : g->width;
    int64_t count;

    if (kernel < 1 || stride < 1 || dilation < 1 || kernel > INT_MAX / 4 || stride > INT_MAX / 4 ||
        dilation > INT_MAX / 4 / kernel) {
        kn_fail_null(KN_ERR_ARGUMENT, "%s: kernel_size %lld, stride %lld and dilation %lld (%s) must be 1 or more",
                     function, (long long)kernel, (long long)stride, (long long)dilation, direction[i]);
        return false;
    }
    if (padding < 0 || padding > kernel / 2) {
        kn_fail_null(KN_ERR_ARGUMENT, "%s: padding %lld (%s) must lie in 0 to half the kernel size %lld", function,
                     (long long)padding, direction[i], (long long)kernel);
        return false;
    }
    count = output_size(size, kernel, stride, padding, dilation, ceil_mode);
    if (count < 1) {
        kn_fail_null(KN_ERR_SHAPE,
                     "%s: a window of %s %lld (dilation %lld) does not fit into the input's %s %lld (padding %lld)",
                     function, direction[i], (long long)kernel, (long long)dilation, direction[i], (long long)size,
                     (long long)padding);
        return false;
    }
    g->kernel_size[i] = (int32_t)kernel;
    g->stride[i] = (int32_t)stride;
    g->padding[i] = (int32_t)padding;
    g->dilation[i] = (int32_t)dilation;
    *(i == 0 ? &g->out_height : &g->out_width) = (int32_t)count;
    return true;
}

kn_pool2d_params kn_pool2d_params_init(void) { return (kn_pool2d_params){KN_POOL2D_DEFAULTS}; }

bool kn_pool2d_of(kn_pool2d_geometry *g, const char *function, const kn_tensor *x, const kn_pool2d_params *params)
{
    int64_t kernel[2], stride[2], padding[2], dilation[2];

    if (!check_input(function, x))
        return false;
    if (kn_activation_check(params->activation) != KN_OK) {
        kn_error_prefix("%s", function);
        kn_stick();
        return false;
    }
    set_input(g, x);
    choose(kernel, params->kernel_size, params->kernel_size_2d);
    choose(stride, params->stride, params->stride_2d);
    choose(padding, params->padding, params->padding_2d);
    choose(dilation, params->dilation, params->dilation_2d);
    g->count_include_pad = params->count_include_pad;
    g->divisor = params->divisor_override;
    g->activation = (int32_t)params->activation;
    for (int i = 0; i < 2; i++) {
        const int64_t sizes[4] = {kernel[i], stride[i] == 0 ? kernel[i] : stride[i], padding[i],
                                  dilation[i] == 0 ? 1 : dilation[i]};
        if (!set_direction(g, function, i, sizes, params->ceil_mode))
            return false;
    }
    return true;
}

bool kn_pool2d_adaptive(kn_pool2d_geometry *g, const char *function, const kn_tensor *x, int64_t height, int64_t width)
{
    if (!check_input(function, x))
        return false;
    if (height < 1 || width < 1 || height > INT_MAX / 2 || width > INT_MAX / 2) {
        kn_fail_null(KN_ERR_ARGUMENT, "%s: the output size %lld x %lld must be 1 or more", function, (long long)height,
                     (long long)width);
        return false;
    }
    set_input(g, x);
    if (g->height == 0 || g->width == 0) {
        kn_fail_null(KN_ERR_SHAPE, "%s: the input's images are empty", function);
        return false;
    }
    g->out_height = (int32_t)height;
    g->out_width = (int32_t)width;
    return true;
}

kn_status kn_pool2d_shape(kn_call *call)
{
    const kn_pool2d_geometry *g = call->params;
    const kn_tensor *x = call->inputs[0];
    int64_t shape[KN_MAX_DIMS];

    KN_TRY(kn_call_check_floating(call, 0));
    for (int d = 0; d < x->ndim - 2; d++)
        shape[d] = x->shape[d];
    shape[x->ndim - 2] = g->out_height;
    shape[x->ndim - 1] = g->out_width;
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* Windows of adaptive pooling overlap by less than an element each way: they are taken to cover the input once. */
static double window_elements(const kn_pool2d_geometry *g)
{
    if (g->kernel_size[0] > 0)
        return (double)g->kernel_size[0] * g->kernel_size[1];
    double outputs = (double)g->out_height * g->out_width;
    return outputs > 0 ? (double)g->height * g->width / outputs : 0;
}

kn_work kn_pool2d_work(const kn_call *call) { return kn_work_of_outputs(call, window_elements(call->params)); }

kn_work kn_pool2d_average_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, (double)kn_numel(grad->grad_outputs[0]) * window_elements(grad->params));
}

kn_work kn_pool2d_max_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, (double)kn_numel(grad->grad_outputs[0]));
}
