/* nn/pooling.c - max, average and adaptive pooling. */
#include "base/error.h"
#include "nn/module.h"

static kn_tensor *max_forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    kn_pool2d_params call = *(const kn_pool2d_params *)module->self;
    if (call.activation < activation) /* ReLU6 is ReLU's too, in either order */
        call.activation = activation;
    return kn_max_pool2d_with(x, &call);
}

static kn_tensor *avg_forward(kn_module *module, kn_tensor *x) { return kn_avg_pool2d_with(x, module->self); }

/* As PyTorch prints it: one number where height and width agree. */
static void append_size(kn_text *text, const char *name, kn_pair size)
{
    if (size.height == size.width)
        kn_text_format(text, "%s=%lld", name, (long long)size.height);
    else
        kn_text_format(text, "%s=(%lld, %lld)", name, (long long)size.height, (long long)size.width);
}

static void append_window(kn_text *text, const kn_pool2d_params *p)
{
    kn_pair kernel = kn_pair_of(p->kernel_size, p->kernel_size_2d), stride = kn_pair_of(p->stride, p->stride_2d);
    if (stride.height == 0 && stride.width == 0)
        stride = kernel;
    append_size(text, "kernel_size", kernel);
    kn_text_append(text, ", ");
    append_size(text, "stride", stride);
    kn_text_append(text, ", ");
    append_size(text, "padding", kn_pair_of(p->padding, p->padding_2d));
}

static void describe_max(kn_module *module, kn_text *text)
{
    const kn_pool2d_params *p = module->self;
    append_window(text, p);
    kn_text_append(text, ", ");
    append_size(text, "dilation", kn_pair_of(p->dilation, p->dilation_2d));
    kn_text_format(text, ", ceil_mode=%s", p->ceil_mode ? "True" : "False");
}

static void describe_avg(kn_module *module, kn_text *text) { append_window(text, module->self); }

static kn_status check(const char *name, const kn_pool2d_params *p)
{
    kn_pair kernel = kn_pair_of(p->kernel_size, p->kernel_size_2d), stride = kn_pair_of(p->stride, p->stride_2d);
    kn_pair padding = kn_pair_of(p->padding, p->padding_2d), dilation = kn_pair_of(p->dilation, p->dilation_2d);
    if (kernel.height < 1 || kernel.width < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: kernel_size (%lld, %lld) must be at least 1", name,
                       (long long)kernel.height, (long long)kernel.width);
    if (stride.height < 0 || stride.width < 0 || padding.height < 0 || padding.width < 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: stride (%lld, %lld) and padding (%lld, %lld) must not be negative", name,
                       (long long)stride.height, (long long)stride.width, (long long)padding.height,
                       (long long)padding.width);
    if (padding.height > kernel.height / 2 || padding.width > kernel.width / 2)
        return kn_fail(KN_ERR_ARGUMENT, "%s: padding (%lld, %lld) must be at most half of kernel_size (%lld, %lld)",
                       name, (long long)padding.height, (long long)padding.width, (long long)kernel.height,
                       (long long)kernel.width);
    if (dilation.height < 1 || dilation.width < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: dilation (%lld, %lld) must be at least 1", name,
                       (long long)dilation.height, (long long)dilation.width);
    return KN_OK;
}

/* Has every window a place inside the input, so that a maximum is never that of padding alone? Without dilation it has:
 * the padding is at most half of the window. */
static bool meets_input(const kn_pool2d_params *p)
{
    const kn_pair dilation = kn_pair_of(p->dilation, p->dilation_2d);
    return dilation.height == 1 && dilation.width == 1;
}

kn_module *kn_nn_max_pool2d_with(const kn_pool2d_params *params)
{
    params = params ? params : &(kn_pool2d_params){KN_POOL2D_DEFAULTS};
    if (check("MaxPool2d", params) != KN_OK)
        return kn_stick();
    kn_module *module = kn_layer_new_activated("MaxPool2d", max_forward, describe_max, params, sizeof *params);
    if (module != NULL)
        module->kind.keeps_order = meets_input(params);
    return module;
}

kn_module *kn_nn_avg_pool2d_with(const kn_pool2d_params *params)
{
    params = params ? params : &(kn_pool2d_params){KN_POOL2D_DEFAULTS};
    if (check("AvgPool2d", params) != KN_OK)
        return kn_stick();
    return kn_layer_new("AvgPool2d", avg_forward, describe_avg, params, sizeof *params);
}

/* --- adaptive pooling ------------------------------------------------------------------------------------------ */

static kn_tensor *adaptive_max_forward(kn_module *module, kn_tensor *x)
{
    const kn_pair *size = module->self;
    return kn_adaptive_max_pool2d(x, size->height, size->width);
}

static kn_tensor *adaptive_avg_forward(kn_module *module, kn_tensor *x)
{
    const kn_pair *size = module->self;
    return kn_adaptive_avg_pool2d(x, size->height, size->width);
}

static void describe_adaptive(kn_module *module, kn_text *text)
{
    const kn_pair *size = module->self;
    kn_text_format(text, "output_size=(%lld, %lld)", (long long)size->height, (long long)size->width);
}

static kn_module *adaptive(const char *name, kn_forward_function forward, int64_t height, int64_t width)
{
    if (height < 1 || width < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: output_size (%lld, %lld) must be at least 1", name, (long long)height,
                            (long long)width);
    kn_pair size = {height, width};
    return kn_layer_new(name, forward, describe_adaptive, &size, sizeof size);
}

kn_module *kn_nn_adaptive_max_pool2d(int64_t output_height, int64_t output_width)
{
    return adaptive("AdaptiveMaxPool2d", adaptive_max_forward, output_height, output_width);
}

kn_module *kn_nn_adaptive_avg_pool2d(int64_t output_height, int64_t output_width)
{
    return adaptive("AdaptiveAvgPool2d", adaptive_avg_forward, output_height, output_width);
}
