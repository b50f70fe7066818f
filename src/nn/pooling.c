/* nn/pooling.c - max, average and adaptive pooling in one to three dimensions. */
#include "base/directions.h"
#include "base/error.h"
#include "nn/module.h"
#include "ops/pool/pool.h"

/* A layer type: MaxPool1d, AvgPool2d, ... */
typedef struct pool_layer {
    const char *name;
    int dims;
    kn_tensor *(*apply)(kn_tensor *x, const kn_pool_params *params);
    kn_tensor *(*with_indices)(kn_tensor *x, kn_tensor **indices, const kn_pool_params *params);
} pool_layer;

typedef struct pooling {
    const pool_layer *layer;
    kn_pool_params params;
} pooling;

static kn_tensor *max_forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    const pooling *self = module->self;
    kn_pool_params call = self->params;
    if (call.activation < activation) /* ReLU and ReLU6 in either order are ReLU6 */
        call.activation = activation;
    return self->layer->apply(x, &call);
}

static kn_tensor *avg_forward(kn_module *module, kn_tensor *x)
{
    const pooling *self = module->self;
    return self->layer->apply(x, &self->params);
}

/* Like PyTorch: one number if all dimensions agree, else a tuple; with `tuple` always a tuple. */
static void append_size(kn_text *text, const char *name, int dims, const int64_t sizes[3], bool tuple)
{
    for (int d = 3 - dims; d < 3; d++)
        tuple = tuple || sizes[d] != sizes[2];
    kn_text_format(text, "%s=%s", name, tuple ? "(" : "");
    for (int d = tuple ? 3 - dims : 2; d < 3; d++)
        kn_text_format(text, "%lld%s", (long long)sizes[d], d < 2 ? ", " : "");
    kn_text_append(text, !tuple ? "" : dims == 1 ? ",)" : ")");
}

static void append_window(kn_text *text, const pooling *self, bool tuple)
{
    const kn_pool_params *p = &self->params;
    const int dims = self->layer->dims;
    int64_t kernel[3], stride[3], padding[3];
    kn_directions(kernel, dims, p->kernel_size, p->kernel_sizes, 1);
    kn_directions(stride, dims, p->stride, p->strides, 1);
    kn_directions(padding, dims, p->padding, p->paddings, 0);
    for (int d = 0; d < 3; d++)
        stride[d] = stride[d] == 0 ? kernel[d] : stride[d];
    append_size(text, "kernel_size", dims, kernel, tuple);
    append_size(text, ", stride", dims, stride, tuple);
    append_size(text, ", padding", dims, padding, tuple);
}

static void describe_max(kn_module *module, kn_text *text)
{
    const pooling *self = module->self;
    int64_t dilation[3];
    kn_directions(dilation, self->layer->dims, self->params.dilation, self->params.dilations, 1);
    append_window(text, self, false);
    append_size(text, ", dilation", self->layer->dims, dilation, false);
    kn_text_format(text, ", ceil_mode=%s", self->params.ceil_mode ? "True" : "False");
}

/* PyTorch prints AvgPool1d's sizes as tuples. */
static void describe_avg(kn_module *module, kn_text *text)
{
    const pooling *self = module->self;
    append_window(text, self, self->layer->dims == 1);
}

/* Calls the operation's shape rule with a large enough input. */
static kn_status check(const pool_layer *layer, const kn_pool_params *params)
{
    static const int64_t sizes[3][5] = {{1, 1, 1 << 28}, {1, 1, 1 << 15, 1 << 15}, {1, 1, 1 << 10, 1 << 10, 1 << 10}};
    kn_pool_geometry g;
    kn_status status =
        kn_pool_resolve(&g, &(kn_pool_kind){.dims = layer->dims}, params, layer->dims + 2, sizes[layer->dims - 1]);
    if (status == KN_ERR_SHAPE) { /* the window is larger; a real input may still hold it */
        kn_error_clear();
        return KN_OK;
    }
    if (status != KN_OK)
        kn_error_prefix("%s", layer->name);
    return status;
}

/* Does every window cover at least one input element, so that no maximum is over padding alone? Always true without
 * dilation, because padding is at most half the window. */
static bool meets_input(const pooling *self)
{
    int64_t dilation[3];
    kn_directions(dilation, self->layer->dims, self->params.dilation, self->params.dilations, 1);
    return dilation[0] == 1 && dilation[1] == 1 && dilation[2] == 1;
}

static kn_module *make_max(const pool_layer *layer, const kn_pool_params *params)
{
    const pooling self = {layer, params ? *params : (kn_pool_params){KN_POOL_DEFAULTS}};
    if (check(layer, &self.params) != KN_OK)
        return kn_error_make_sticky();
    kn_module *module = kn_layer_new_activated(layer->name, max_forward, describe_max, &self, sizeof self);
    if (module != NULL)
        module->kind.keeps_order = meets_input(&self);
    return module;
}

static kn_status indices_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const pooling *self = module->self;
    outputs[0] = self->layer->with_indices(inputs[0], &outputs[1], &self->params);
    return outputs[0] != NULL ? KN_OK : kn_error_status();
}

static kn_module *make_with_indices(const pool_layer *layer, const kn_pool_params *params)
{
    const pooling self = {layer, params ? *params : (kn_pool_params){KN_POOL_DEFAULTS}};
    if (check(layer, &self.params) != KN_OK)
        return kn_error_make_sticky();
    return kn_layer_new_kind(layer->name,
                             &(kn_module_kind){.forward_many = indices_forward,
                                               .signature = {.inputs = 1, .outputs = 2},
                                               .describe = describe_max,
                                               .is_layer = true},
                             &self, sizeof self);
}

static kn_module *make_avg(const pool_layer *layer, const kn_pool_params *params)
{
    const pooling self = {layer, params ? *params : (kn_pool_params){KN_POOL_DEFAULTS}};
    if (check(layer, &self.params) != KN_OK)
        return kn_error_make_sticky();
    return kn_layer_new(layer->name, avg_forward, describe_avg, &self, sizeof self);
}

#define POOLINGS(count)                                                                                                \
    kn_module *kn_nn_max_pool##count##d_with(const kn_pool_params *params)                                             \
    {                                                                                                                  \
        static const pool_layer layer = {"MaxPool" #count "d", count, .apply = kn_max_pool##count##d_with};            \
        return make_max(&layer, params);                                                                               \
    }                                                                                                                  \
    kn_module *kn_nn_max_pool##count##d_with_indices_with(const kn_pool_params *params)                                \
    {                                                                                                                  \
        static const pool_layer layer = {"MaxPool" #count "d", count,                                                  \
                                         .with_indices = kn_max_pool##count##d_with_indices_with};                     \
        return make_with_indices(&layer, params);                                                                      \
    }                                                                                                                  \
    kn_module *kn_nn_avg_pool##count##d_with(const kn_pool_params *params)                                             \
    {                                                                                                                  \
        static const pool_layer layer = {"AvgPool" #count "d", count, .apply = kn_avg_pool##count##d_with};            \
        return make_avg(&layer, params);                                                                               \
    }

POOLINGS(1)
POOLINGS(2)
POOLINGS(3)

/* --- adaptive pooling ------------------------------------------------------------------------------------------ */

typedef struct adaptive_pooling {
    int dims;
    bool average, indices; /* indices: a second output */
    int64_t size[3];       /* the last `dims` are used */
} adaptive_pooling;

static kn_tensor *adaptive_forward(kn_module *module, kn_tensor *x)
{
    const adaptive_pooling *self = module->self;
    const int64_t *n = self->size;
    switch (self->dims) {
    case 1:
        return self->average ? kn_adaptive_avg_pool1d(x, n[2]) : kn_adaptive_max_pool1d(x, n[2]);
    case 2:
        return self->average ? kn_adaptive_avg_pool2d(x, n[1], n[2]) : kn_adaptive_max_pool2d(x, n[1], n[2]);
    default:
        return self->average ? kn_adaptive_avg_pool3d(x, n[0], n[1], n[2])
                             : kn_adaptive_max_pool3d(x, n[0], n[1], n[2]);
    }
}

static kn_status adaptive_indices_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const adaptive_pooling *self = module->self;
    const int64_t *n = self->size;
    kn_tensor *x = inputs[0], **indices = &outputs[1];
    outputs[0] = self->dims == 1   ? kn_adaptive_max_pool1d_with_indices(x, n[2], indices)
                 : self->dims == 2 ? kn_adaptive_max_pool2d_with_indices(x, n[1], n[2], indices)
                                   : kn_adaptive_max_pool3d_with_indices(x, n[0], n[1], n[2], indices);
    return outputs[0] != NULL ? KN_OK : kn_error_status();
}

/* -1 is None. */
static void describe_adaptive(kn_module *module, kn_text *text)
{
    const adaptive_pooling *self = module->self;
    kn_text_append(text, self->dims > 1 ? "output_size=(" : "output_size=");
    for (int d = 3 - self->dims; d < 3; d++) {
        if (self->size[d] == -1)
            kn_text_append(text, "None");
        else
            kn_text_format(text, "%lld", (long long)self->size[d]);
        kn_text_append(text, d < 2 ? ", " : self->dims > 1 ? ")" : "");
    }
}

static kn_module *adaptive(const char *name, adaptive_pooling self)
{
    for (int d = 3 - self.dims; d < 3; d++)
        if (self.size[d] < 1 && self.size[d] != -1)
            return kn_fail_null(KN_ERR_ARGUMENT, "%s: output_size (%lld, %s) must be at least 1, or -1 for the input's",
                                name, (long long)self.size[d], kn_direction_name(self.dims, d));
    if (!self.indices)
        return kn_layer_new(name, adaptive_forward, describe_adaptive, &self, sizeof self);
    return kn_layer_new_kind(name,
                             &(kn_module_kind){.forward_many = adaptive_indices_forward,
                                               .signature = {.inputs = 1, .outputs = 2},
                                               .describe = describe_adaptive,
                                               .is_layer = true},
                             &self, sizeof self);
}

#define SIZES_1 int64_t length
#define SIZES_2 int64_t height, int64_t width
#define SIZES_3 int64_t depth, SIZES_2
#define ADAPTIVES(count, ...)                                                                                          \
    kn_module *kn_nn_adaptive_max_pool##count##d(SIZES_##count)                                                        \
    {                                                                                                                  \
        return adaptive("AdaptiveMaxPool" #count "d", (adaptive_pooling){.dims = count, .size = {__VA_ARGS__}});       \
    }                                                                                                                  \
    kn_module *kn_nn_adaptive_max_pool##count##d_with_indices(SIZES_##count)                                           \
    {                                                                                                                  \
        return adaptive("AdaptiveMaxPool" #count "d",                                                                  \
                        (adaptive_pooling){.dims = count, .indices = true, .size = {__VA_ARGS__}});                    \
    }                                                                                                                  \
    kn_module *kn_nn_adaptive_avg_pool##count##d(SIZES_##count)                                                        \
    {                                                                                                                  \
        return adaptive("AdaptiveAvgPool" #count "d",                                                                  \
                        (adaptive_pooling){.dims = count, .average = true, .size = {__VA_ARGS__}});                    \
    }

ADAPTIVES(1, 1, 1, length)
ADAPTIVES(2, 1, height, width)
ADAPTIVES(3, depth, height, width)
