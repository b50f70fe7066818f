/* nn/conv.c - convolution and transposed convolution in one to three dimensions, with weight and bias. */
#include <koine/operators.h>
#include <string.h>

#include "base/directions.h"
#include "base/error.h"
#include "nn/affine.h"
#include "ops/conv/common/conv.h"

/* A layer type: Conv1d, ConvTranspose2d, ... */
typedef struct conv_layer {
    const char *name;
    kn_conv_kind kind;
    kn_tensor *(*apply)(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);
} conv_layer;

typedef struct conv {
    const conv_layer *layer;
    kn_affine affine;
    kn_nn_conv_params params;
    kn_conv_params call; /* the same, as kn_conv takes it */
    kn_ints pad;         /* with a padding mode: as kn_pad takes it; `call` then has no padding */
} conv;

static kn_tensor *forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    conv *self = module->self;
    kn_conv_params call = self->call;
    call.activation = activation;
    if (self->pad.count > 0)
        x = kn_pad_with(x, self->pad.count, self->pad.values, &(kn_pad_params){.mode = self->params.padding_mode});
    return self->layer->apply(x, self->affine.weight, self->affine.bias, &call);
}

/* --- print(net) --------------------------------------------------------------------------------------------------- */

static bool all_are(const int64_t sizes[3], int dims, int64_t value)
{
    bool all = true;
    for (int d = 3 - dims; d < 3; d++)
        all = all && sizes[d] == value;
    return all;
}

/* Like a Python tuple: (3,), (3, 3). */
static void append_sizes(kn_text *text, const char *name, int dims, const int64_t sizes[3])
{
    kn_text_format(text, ", %s=(", name);
    for (int d = 3 - dims; d < 3; d++)
        kn_text_format(text, "%s%lld", d > 3 - dims ? ", " : "", (long long)sizes[d]);
    kn_text_append(text, dims == 1 ? ",)" : ")");
}

static void append_unless(kn_text *text, const char *name, int dims, int64_t all, const int64_t *each, int64_t usual)
{
    int64_t sizes[3];
    kn_directions(sizes, dims, all, each, usual);
    if (!all_are(sizes, dims, usual))
        append_sizes(text, name, dims, sizes);
}

static void append_padding(kn_text *text, int dims, const kn_nn_conv_params *p)
{
    int64_t padding[3], after[3];
    kn_directions(padding, dims, p->padding, p->paddings, 0);
    for (int d = 0; d < 3; d++)
        after[d] = d < 3 - dims ? KN_PADDING_SYMMETRIC : p->paddings_after[d - (3 - dims)];
    if (all_are(padding, dims, KN_PADDING_SAME))
        kn_text_append(text, ", padding=same");
    else if (!all_are(padding, dims, 0))
        append_sizes(text, "padding", dims, padding);
    for (int d = 0; d < 3; d++)
        after[d] = after[d] == KN_PADDING_SYMMETRIC ? padding[d] : after[d];
    if (memcmp(after, padding, sizeof after) != 0)
        append_sizes(text, "padding_after", dims, after);
}

static const char *const padding_modes[] = {"zeros", "reflect", "replicate", "circular"};

/* Like print(nn.Conv2d(...)): omits defaults, except kernel size and stride. */
static void describe(kn_module *module, kn_text *text)
{
    const conv *self = module->self;
    const kn_nn_conv_params *p = &self->params;
    const int dims = self->layer->kind.dims;
    kn_text_format(text, "%lld, %lld", (long long)p->in_channels, (long long)p->out_channels);
    append_unless(text, "kernel_size", dims, p->kernel_size, p->kernel_sizes, 0);
    append_unless(text, "stride", dims, p->stride, p->strides, 0);
    append_padding(text, dims, p);
    append_unless(text, "dilation", dims, p->dilation, p->dilations, 1);
    append_unless(text, "output_padding", dims, p->output_padding, p->output_paddings, 0);
    if (p->groups != 1)
        kn_text_format(text, ", groups=%lld", (long long)p->groups);
    if (!p->bias)
        kn_text_append(text, ", bias=False");
    if (p->padding_mode != KN_PAD_CONSTANT)
        kn_text_format(text, ", padding_mode=%s", padding_modes[p->padding_mode]);
}

/* --- construction ------------------------------------------------------------------------------------------------- */

static kn_conv_params call_params(const kn_nn_conv_params *p)
{
    kn_conv_params call = {.stride = p->stride,
                           .padding = p->padding,
                           .dilation = p->dilation,
                           .output_padding = p->output_padding,
                           .groups = p->groups};
    memcpy(call.strides, p->strides, sizeof call.strides);
    memcpy(call.paddings, p->paddings, sizeof call.paddings);
    memcpy(call.paddings_after, p->paddings_after, sizeof call.paddings_after);
    memcpy(call.dilations, p->dilations, sizeof call.dilations);
    memcpy(call.output_paddings, p->output_paddings, sizeof call.output_paddings);
    return call;
}

/* Moves the padding, where it is not of zeros, from the convolution's parameters to those of kn_pad. */
static void separate_padding(conv *self)
{
    const kn_nn_conv_params *p = &self->params;
    const int dims = self->layer->kind.dims;
    int64_t kernel[3], dilation[3], padding[3];

    if (p->padding_mode == KN_PAD_CONSTANT)
        return;
    kn_directions(kernel, dims, p->kernel_size, p->kernel_sizes, 1);
    kn_directions(dilation, dims, p->dilation, p->dilations, 1);
    kn_directions(padding, dims, p->padding, p->paddings, 0);
    for (int d = 2; d >= 3 - dims; d--) {
        const int64_t same = dilation[d] * (kernel[d] - 1), after = p->paddings_after[d - (3 - dims)];
        const bool is_same = padding[d] == KN_PADDING_SAME;
        self->pad.values[self->pad.count++] = is_same ? same / 2 : padding[d];
        self->pad.values[self->pad.count++] = is_same                         ? same - same / 2
                                              : after == KN_PADDING_SYMMETRIC ? padding[d]
                                                                              : after;
    }
    self->call.padding = 0;
    memset(self->call.paddings, 0, sizeof self->call.paddings);
    for (int d = 0; d < 3; d++)
        self->call.paddings_after[d] = KN_PADDING_SYMMETRIC;
}

/* [out, in / groups, kernel...], transposed [in, out / groups, kernel...]. */
static void weight_shape(int64_t shape[5], const kn_conv_kind *kind, const kn_nn_conv_params *p)
{
    int64_t kernel[3];
    kn_directions(kernel, kind->dims, p->kernel_size, p->kernel_sizes, 1);
    shape[0] = kind->transposed ? p->in_channels : p->out_channels;
    shape[1] = (kind->transposed ? p->out_channels : p->in_channels) / p->groups;
    for (int i = 0; i < kind->dims; i++)
        shape[2 + i] = kernel[kn_direction_of(kind->dims, i)];
}

static kn_status check_sizes(const kn_conv_kind *kind, const kn_nn_conv_params *p)
{
    int64_t kernel[3];
    if (p->in_channels < 1 || p->out_channels < 1 || p->groups < 1)
        return kn_fail(KN_ERR_ARGUMENT, "in_channels (%lld), out_channels (%lld) and groups (%lld) must be at least 1",
                       (long long)p->in_channels, (long long)p->out_channels, (long long)p->groups);
    if (p->in_channels % p->groups != 0 || p->out_channels % p->groups != 0)
        return kn_fail(KN_ERR_ARGUMENT, "groups (%lld) must divide in_channels (%lld) and out_channels (%lld)",
                       (long long)p->groups, (long long)p->in_channels, (long long)p->out_channels);
    if ((unsigned)p->padding_mode >= sizeof padding_modes / sizeof *padding_modes)
        return kn_fail(KN_ERR_ARGUMENT, "padding_mode %d is none of zeros, reflect, replicate, circular",
                       (int)p->padding_mode);
    if (kind->transposed && p->padding_mode != KN_PAD_CONSTANT)
        return kn_fail(KN_ERR_ARGUMENT, "padding_mode must be zeros for transposed convolution, not %s",
                       padding_modes[p->padding_mode]);
    kn_directions(kernel, kind->dims, p->kernel_size, p->kernel_sizes, 1);
    for (int d = 3 - kind->dims; d < 3; d++)
        if (kernel[d] < 1)
            return kn_fail(KN_ERR_ARGUMENT, "kernel_size (%lld, %s) must be at least 1", (long long)kernel[d],
                           kn_direction_name(kind->dims, d));
    return KN_OK;
}

/* Checks the rest by calling the operation's shape rule with a large enough input. */
static kn_status check(const conv_layer *layer, const kn_nn_conv_params *p, const kn_conv_params *call)
{
    const kn_conv_kind *kind = &layer->kind;
    int64_t input[5] = {1, p->in_channels, 1 << 28, 1 << 28, 1 << 28}, weight[5];
    kn_conv_shape shape;
    kn_status status = check_sizes(kind, p);
    if (status == KN_OK) {
        weight_shape(weight, kind, p);
        status = kn_conv_resolve(&shape, kind, call, KN_F32, kind->dims + 2, input, kind->dims + 2, weight);
    }
    if (status != KN_OK)
        kn_error_prefix("%s", layer->name);
    return status;
}

kn_nn_conv_params kn_nn_conv_params_init(void) { return (kn_nn_conv_params){KN_NN_CONV_DEFAULTS}; }

static kn_module *make(const conv_layer *layer, const kn_nn_conv_params *params)
{
    params = params ? params : &(kn_nn_conv_params){KN_NN_CONV_DEFAULTS};
    conv self = {.layer = layer, .params = *params, .call = call_params(params)};
    if (check(layer, params, &self.call) != KN_OK)
        return kn_error_make_sticky();
    separate_padding(&self);
    kn_module *module = kn_layer_new_activated(layer->name, forward, describe, &self, sizeof self);
    if (module == NULL)
        return NULL;
    conv *made = module->self;
    int64_t shape[5];
    weight_shape(shape, &layer->kind, params);
    if (kn_affine_make(module, &made->affine, layer->kind.dims + 2, shape, params->bias ? params->out_channels : 0) !=
        KN_OK)
        return kn_layer_failed(module);
    return module;
}

#define LAYER(type, function, count, is_transposed)                                                                    \
    kn_module *kn_nn_##function##_with(const kn_nn_conv_params *params)                                                \
    {                                                                                                                  \
        static const conv_layer layer = {type, {.dims = count, .transposed = is_transposed}, kn_##function##_with};    \
        return make(&layer, params);                                                                                   \
    }

LAYER("Conv1d", conv1d, 1, false)
LAYER("Conv2d", conv2d, 2, false)
LAYER("Conv3d", conv3d, 3, false)
LAYER("ConvTranspose1d", conv_transpose1d, 1, true)
LAYER("ConvTranspose2d", conv_transpose2d, 2, true)
LAYER("ConvTranspose3d", conv_transpose3d, 3, true)

kn_affine_layer kn_conv_affine(kn_module *module)
{
    conv *self = module->kind.activated == forward ? module->self : NULL;
    if (self == NULL)
        return (kn_affine_layer){0};
    return (kn_affine_layer){.affine = &self->affine,
                             .has_bias = &self->params.bias,
                             .is_transposed = self->layer->kind.transposed,
                             .groups = self->params.groups};
}
