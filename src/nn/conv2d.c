/* nn/conv2d.c - two-dimensional convolution with its weight and bias. */
#include "base/error.h"
#include "nn/affine.h"

typedef struct conv2d {
    kn_affine affine;
    kn_nn_conv2d_params params;
    kn_conv2d_params call; /* the same as the function takes it */
} conv2d;

static kn_tensor *forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    conv2d *self = module->self;
    kn_conv2d_params call = self->call;
    call.activation = activation;
    return kn_conv2d_with(x, self->affine.weight, self->affine.bias, &call);
}

static void append_pair(kn_text *text, const char *name, kn_pair pair)
{
    kn_text_format(text, ", %s=(%lld, %lld)", name, (long long)pair.height, (long long)pair.width);
}

/* As print(nn.Conv2d(...)): what is at its default is left out, but for kernel size and stride. */
static void describe(kn_module *module, kn_text *text)
{
    const kn_nn_conv2d_params *p = &((conv2d *)module->self)->params;
    kn_pair padding = kn_pair_of(p->padding, p->padding_2d), dilation = kn_pair_of(p->dilation, p->dilation_2d);
    kn_text_format(text, "%lld, %lld", (long long)p->in_channels, (long long)p->out_channels);
    append_pair(text, "kernel_size", kn_pair_of(p->kernel_size, p->kernel_size_2d));
    append_pair(text, "stride", kn_pair_of(p->stride, p->stride_2d));
    if (padding.height == KN_PADDING_SAME)
        kn_text_append(text, ", padding=same");
    else if (padding.height != 0 || padding.width != 0)
        append_pair(text, "padding", padding);
    if (dilation.height != 1 || dilation.width != 1)
        append_pair(text, "dilation", dilation);
    if (p->groups != 1)
        kn_text_format(text, ", groups=%lld", (long long)p->groups);
    if (!p->bias)
        kn_text_append(text, ", bias=False");
}

static kn_status check(const kn_nn_conv2d_params *p)
{
    kn_pair kernel = kn_pair_of(p->kernel_size, p->kernel_size_2d);
    kn_pair stride = kn_pair_of(p->stride, p->stride_2d);
    kn_pair padding = kn_pair_of(p->padding, p->padding_2d);
    kn_pair dilation = kn_pair_of(p->dilation, p->dilation_2d);
    if (p->in_channels < 1 || p->out_channels < 1 || p->groups < 1)
        return kn_fail(KN_ERR_ARGUMENT,
                       "Conv2d: in_channels (%lld), out_channels (%lld) and groups (%lld) must be at least 1",
                       (long long)p->in_channels, (long long)p->out_channels, (long long)p->groups);
    if (p->in_channels % p->groups != 0 || p->out_channels % p->groups != 0)
        return kn_fail(KN_ERR_ARGUMENT, "Conv2d: groups (%lld) must divide in_channels (%lld) and out_channels (%lld)",
                       (long long)p->groups, (long long)p->in_channels, (long long)p->out_channels);
    if (kernel.height < 1 || kernel.width < 1)
        return kn_fail(KN_ERR_ARGUMENT, "Conv2d: kernel_size (%lld, %lld) must be at least 1", (long long)kernel.height,
                       (long long)kernel.width);
    if (stride.height < 1 || stride.width < 1 || dilation.height < 1 || dilation.width < 1)
        return kn_fail(KN_ERR_ARGUMENT, "Conv2d: stride (%lld, %lld) and dilation (%lld, %lld) must be at least 1",
                       (long long)stride.height, (long long)stride.width, (long long)dilation.height,
                       (long long)dilation.width);
    if (padding.height < KN_PADDING_SAME || padding.width < KN_PADDING_SAME)
        return kn_fail(KN_ERR_ARGUMENT, "Conv2d: padding (%lld, %lld) must be 0, more, or KN_PADDING_SAME",
                       (long long)padding.height, (long long)padding.width);
    return KN_OK;
}

static kn_conv2d_params call_params(const kn_nn_conv2d_params *p)
{
    return (kn_conv2d_params){
        .stride = p->stride,
        .padding = p->padding,
        .dilation = p->dilation,
        .stride_2d = {p->stride_2d[0], p->stride_2d[1]},
        .padding_2d = {p->padding_2d[0], p->padding_2d[1]},
        .dilation_2d = {p->dilation_2d[0], p->dilation_2d[1]},
        .groups = p->groups,
    };
}

kn_nn_conv2d_params kn_nn_conv2d_params_init(void) { return (kn_nn_conv2d_params){KN_NN_CONV2D_DEFAULTS}; }

kn_module *kn_nn_conv2d_with(const kn_nn_conv2d_params *params)
{
    params = params ? params : &(kn_nn_conv2d_params){KN_NN_CONV2D_DEFAULTS};
    if (check(params) != KN_OK)
        return kn_stick();
    conv2d self = {.params = *params, .call = call_params(params)};
    kn_module *module = kn_layer_new_activated("Conv2d", forward, describe, &self, sizeof self);
    if (module == NULL)
        return NULL;
    conv2d *made = module->self;
    kn_pair kernel = kn_pair_of(params->kernel_size, params->kernel_size_2d);
    const int64_t shape[] = {params->out_channels, params->in_channels / params->groups, kernel.height, kernel.width};
    if (kn_affine_make(module, &made->affine, 4, shape, params->bias) != KN_OK)
        return kn_layer_failed(module);
    return module;
}
