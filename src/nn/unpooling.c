/* nn/unpooling.c - max unpooling, power-average pooling and fractional max pooling. */
#include "base/directions.h"
#include "base/error.h"
#include "nn/module.h"
#include "ops/pool/pool.h"

/* As Python prints it: (2,), (2, 3). */
static void append_tuple(kn_text *text, const char *name, int dims, const int64_t sizes[3])
{
    kn_text_format(text, "%s=(", name);
    for (int d = 3 - dims; d < 3; d++)
        kn_text_format(text, "%lld%s", (long long)sizes[d], d < 2 ? ", " : dims == 1 ? ",)" : ")");
}

/* --- MaxUnpool ---------------------------------------------------------------------------------------------------- */

typedef struct unpooling {
    int dims;
    kn_max_unpool_params params;
} unpooling;

static kn_status unpool_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    static kn_tensor *(*const functions[])(kn_tensor *, kn_tensor *, const kn_max_unpool_params *) = {
        kn_max_unpool1d_with, kn_max_unpool2d_with, kn_max_unpool3d_with};
    const unpooling *self = module->self;
    outputs[0] = functions[self->dims - 1](inputs[0], inputs[1], &self->params);
    return outputs[0] ? KN_OK : kn_error_status();
}

static void unpool_sizes(const unpooling *self, int64_t kernel[3], int64_t stride[3], int64_t padding[3])
{
    const kn_max_unpool_params *p = &self->params;
    kn_directions(kernel, self->dims, p->kernel_size, p->kernel_sizes, 1);
    kn_directions(stride, self->dims, p->stride, p->strides, 1);
    kn_directions(padding, self->dims, p->padding, p->paddings, 0);
    for (int d = 0; d < 3; d++)
        stride[d] = stride[d] ? stride[d] : kernel[d];
}

static void describe_unpool(kn_module *module, kn_text *text)
{
    const unpooling *self = module->self;
    int64_t kernel[3], stride[3], padding[3];
    unpool_sizes(self, kernel, stride, padding);
    append_tuple(text, "kernel_size", self->dims, kernel);
    append_tuple(text, ", stride", self->dims, stride);
    append_tuple(text, ", padding", self->dims, padding);
}

static kn_module *make_unpool(const char *name, int dims, const kn_max_unpool_params *params)
{
    const unpooling self = {dims, params ? *params : (kn_max_unpool_params){KN_MAX_UNPOOL_DEFAULTS}};
    int64_t kernel[3], stride[3], padding[3];
    unpool_sizes(&self, kernel, stride, padding);
    for (int d = 3 - dims; d < 3; d++)
        if (kernel[d] < 1 || stride[d] < 1 || padding[d] < 0)
            return kn_fail_null(
                KN_ERR_ARGUMENT, "%s: kernel_size %lld and stride %lld (%s) must be 1 or more, padding %lld 0 or more",
                name, (long long)kernel[d], (long long)stride[d], kn_direction_name(dims, d), (long long)padding[d]);
    return kn_layer_new_kind(name,
                             &(kn_module_kind){.forward_many = unpool_forward,
                                               .signature = {.inputs = 2, .outputs = 1},
                                               .describe = describe_unpool,
                                               .is_layer = true},
                             &self, sizeof self);
}

/* --- LPPool ------------------------------------------------------------------------------------------------------- */

typedef struct lp_pooling {
    int dims;
    double norm_type;
    kn_pool_params params;
} lp_pooling;

static kn_tensor *lp_forward(kn_module *module, kn_tensor *x)
{
    static kn_tensor *(*const functions[])(kn_tensor *, double, const kn_pool_params *) = {
        kn_lp_pool1d_with, kn_lp_pool2d_with, kn_lp_pool3d_with};
    const lp_pooling *self = module->self;
    return functions[self->dims - 1](x, self->norm_type, &self->params);
}

/* One number if it was given so. */
static void append_size(kn_text *text, const char *name, int dims, int64_t all, const int64_t each[3])
{
    int64_t sizes[3];
    kn_directions(sizes, dims, all, each, 0);
    if (each[0] != 0 || each[1] != 0 || each[2] != 0)
        append_tuple(text, name, dims, sizes);
    else if (all != 0)
        kn_text_format(text, "%s=%lld", name, (long long)all);
    else
        kn_text_format(text, "%s=None", name);
}

static void describe_lp(kn_module *module, kn_text *text)
{
    const lp_pooling *self = module->self;
    const kn_pool_params *p = &self->params;
    kn_text_format(text, "norm_type=%g", self->norm_type);
    append_size(text, ", kernel_size", self->dims, p->kernel_size, p->kernel_sizes);
    append_size(text, ", stride", self->dims, p->stride, p->strides);
    kn_text_format(text, ", ceil_mode=%s", p->ceil_mode ? "True" : "False");
}

static kn_module *make_lp(const char *name, int dims, double norm_type, const kn_pool_params *params)
{
    const lp_pooling self = {dims, norm_type, params ? *params : (kn_pool_params){KN_POOL_DEFAULTS}};
    int64_t kernel[3];
    kn_directions(kernel, dims, self.params.kernel_size, self.params.kernel_sizes, 1);
    for (int d = 3 - dims; d < 3; d++)
        if (kernel[d] < 1)
            return kn_fail_null(KN_ERR_ARGUMENT, "%s: kernel_size (%lld, %s) must be at least 1", name,
                                (long long)kernel[d], kn_direction_name(dims, d));
    if (norm_type == 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: norm_type must not be 0", name);
    return kn_layer_new(name, lp_forward, describe_lp, &self, sizeof self);
}

/* --- FractionalMaxPool -------------------------------------------------------------------------------------------- */

typedef struct fractional_pooling {
    int dims;
    kn_fractional_max_pool_params params;
} fractional_pooling;

static kn_tensor *fractional_forward(kn_module *module, kn_tensor *x)
{
    const fractional_pooling *self = module->self;
    return self->dims == 2 ? kn_fractional_max_pool2d_with(x, &self->params)
                           : kn_fractional_max_pool3d_with(x, &self->params);
}

static kn_status fractional_indices_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const fractional_pooling *self = module->self;
    outputs[0] = self->dims == 2 ? kn_fractional_max_pool2d_with_indices_with(inputs[0], &outputs[1], &self->params)
                                 : kn_fractional_max_pool3d_with_indices_with(inputs[0], &outputs[1], &self->params);
    return outputs[0] ? KN_OK : kn_error_status();
}

/* PyTorch prints no arguments. */
static kn_module *make_fractional(const char *name, int dims, const kn_fractional_max_pool_params *params, bool indices)
{
    const fractional_pooling self = {dims, params ? *params
                                                  : (kn_fractional_max_pool_params){KN_FRACTIONAL_MAX_POOL_DEFAULTS}};
    static const int64_t large[] = {1 << 20, 1 << 20, 1 << 20};
    kn_fractional_pool_args args;
    if (self.params.samples)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: samples are for the function; the layer draws its own", name);
    if (kn_fractional_args(&args, &self.params, dims, large) != KN_OK)
        return kn_error_prefix("%s", name), kn_error_make_sticky();
    if (!indices)
        return kn_layer_new(name, fractional_forward, NULL, &self, sizeof self);
    return kn_layer_new_kind(name,
                             &(kn_module_kind){.forward_many = fractional_indices_forward,
                                               .signature = {.inputs = 1, .outputs = 2},
                                               .is_layer = true},
                             &self, sizeof self);
}

/* --- constructors ------------------------------------------------------------------------------------------------- */

#define POOLINGS(n)                                                                                                    \
    kn_module *kn_nn_max_unpool##n##d_with(const kn_max_unpool_params *params)                                         \
    {                                                                                                                  \
        return make_unpool("MaxUnpool" #n "d", n, params);                                                             \
    }                                                                                                                  \
    kn_module *kn_nn_lp_pool##n##d_with(double norm_type, const kn_pool_params *params)                                \
    {                                                                                                                  \
        return make_lp("LPPool" #n "d", n, norm_type, params);                                                         \
    }
#define FRACTIONAL_POOLINGS(n)                                                                                         \
    kn_module *kn_nn_fractional_max_pool##n##d_with(const kn_fractional_max_pool_params *params)                       \
    {                                                                                                                  \
        return make_fractional("FractionalMaxPool" #n "d", n, params, false);                                          \
    }                                                                                                                  \
    kn_module *kn_nn_fractional_max_pool##n##d_with_indices_with(const kn_fractional_max_pool_params *params)          \
    {                                                                                                                  \
        return make_fractional("FractionalMaxPool" #n "d", n, params, true);                                           \
    }

POOLINGS(1)
POOLINGS(2)
POOLINGS(3)
FRACTIONAL_POOLINGS(2)
FRACTIONAL_POOLINGS(3)
