/* nn/fusion.c - a batch normalisation in evaluation mode becomes part of the layer before it. */
#include <koine/autograd.h>
#include <koine/nn_utils.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/error.h"
#include "nn/affine.h"
#include "nn/hooks.h"
#include "nn/norm.h"
#include "nn/replica.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

/* --- tensors ------------------------------------------------------------------------------------------------------ */

typedef struct estimates {
    kn_tensor *mean, *var, *weight, *bias; /* weight and bias may be NULL */
    double eps;
} estimates;

/* The factor along dimension `dim` of the weight, and what that makes of the bias. */
static kn_status fuse(const char *function, kn_tensor *w, kn_tensor *b, const estimates *bn, int dim,
                      kn_tensor **weight, kn_tensor **bias)
{
    int64_t shape[KN_MAX_DIMS];
    KN_TRY(kn_check_tensor(function, "weight", w));
    KN_TRY(kn_check_tensor(function, "bn_rm", bn->mean));
    KN_TRY(kn_check_tensor(function, "bn_rv", bn->var));
    if (weight == NULL || bias == NULL)
        return kn_fail_argument_null(function, weight == NULL ? "weight" : "bias");
    for (int d = 0; d < w->ndim; d++)
        shape[d] = d == dim ? kn_numel(bn->mean) : 1;
    kn_tensor *scale = kn_rsqrt(kn_add_scalar(bn->var, bn->eps));
    scale = bn->weight != NULL ? kn_mul(bn->weight, scale) : scale;
    *weight = kn_to_dtype(kn_mul(w, kn_reshape(scale, w->ndim, shape)), w->dtype);
    *bias = kn_mul(b != NULL ? kn_sub(b, bn->mean) : kn_neg(bn->mean), scale);
    *bias = kn_to_dtype(bn->bias != NULL ? kn_add(*bias, bn->bias) : *bias, b != NULL ? b->dtype : w->dtype);
    return *weight != NULL && *bias != NULL ? KN_OK : kn_error_status();
}

kn_status kn_fuse_conv_bn_weights(kn_tensor *conv_w, kn_tensor *conv_b, kn_tensor *bn_rm, kn_tensor *bn_rv,
                                  double bn_eps, kn_tensor *bn_w, kn_tensor *bn_b, bool transpose, kn_tensor **weight,
                                  kn_tensor **bias)
{
    const estimates bn = {bn_rm, bn_rv, bn_w, bn_b, bn_eps};
    return fuse("fuse_conv_bn_weights", conv_w, conv_b, &bn, transpose ? 1 : 0, weight, bias);
}

kn_status kn_fuse_linear_bn_weights(kn_tensor *linear_w, kn_tensor *linear_b, kn_tensor *bn_rm, kn_tensor *bn_rv,
                                    double bn_eps, kn_tensor *bn_w, kn_tensor *bn_b, kn_tensor **weight,
                                    kn_tensor **bias)
{
    const estimates bn = {bn_rm, bn_rv, bn_w, bn_b, bn_eps};
    return fuse("fuse_linear_bn_weights", linear_w, linear_b, &bn, 0, weight, bias);
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

static kn_tensor *tensor_of(const kn_module *module, const char *name)
{
    const kn_module_tensor *entry = kn_module_find_tensor((kn_module *)(uintptr_t)module, name);
    return entry != NULL ? entry->tensor : NULL;
}

static kn_status check(const char *function, const kn_module *layer, const kn_module *bn, bool is_layer, estimates *e)
{
    if (layer == NULL || bn == NULL)
        return kn_fail_argument_null(function, layer == NULL ? "layer" : "bn");
    if (!is_layer || !kn_norm_batch_eps(bn, &e->eps))
        return kn_fail(KN_ERR_ARGUMENT, "%s: cannot fuse %s with %s", function, layer->type_name, bn->type_name);
    if (layer->training || bn->training)
        return kn_fail(KN_ERR_STATE, "%s: both modules must be in evaluation mode: kn_module_train(module, false)",
                       function);
    if (layer->computed.count + bn->computed.count > 0)
        return kn_fail(KN_ERR_STATE, "%s: a tensor of %s is computed from others; remove that first", function,
                       layer->computed.count > 0 ? layer->type_name : bn->type_name);
    e->mean = tensor_of(bn, "running_mean");
    e->var = tensor_of(bn, "running_var");
    e->weight = tensor_of(bn, "weight");
    e->bias = tensor_of(bn, "bias");
    return e->mean != NULL ? KN_OK
                           : kn_fail(KN_ERR_STATE, "%s: the batch normalisation has no running estimates", function);
}

/* The layer again with other tensors. */
static kn_status refit(kn_module **made, kn_module *layer, kn_affine_layer (*affine_of)(kn_module *), kn_tensor *weight,
                       kn_tensor *bias)
{
    const kn_affine *affine = affine_of(layer).affine;
    kn_tensor *const originals[] = {affine->weight, affine->bias}, *const copies[] = {weight, bias};
    const kn_replica_map map = {.originals = originals, .copies = copies, .count = affine->bias != NULL ? 2 : 1};
    KN_TRY(kn_module_replica_new(made, layer, &map));
    (*made)->origin = NULL;
    kn_hooks_free(&(*made)->hooks);
    kn_affine_layer own = affine_of(*made);
    if (own.affine->bias == NULL) {
        KN_TRY(kn_module_add_tensor(*made, "bias", bias, false));
        own.affine->bias = bias;
        *own.has_bias = true;
    }
    return KN_OK;
}

static kn_status fuse_modules(kn_module **made, const char *function, kn_module *layer, const kn_module *bn,
                              kn_affine_layer (*affine_of)(kn_module *))
{
    KN_SCOPE;
    KN_NO_GRAD;
    estimates e;
    kn_tensor *weight, *bias;
    const kn_affine_layer own = layer != NULL ? affine_of(layer) : (kn_affine_layer){0};
    KN_TRY(check(function, layer, bn, own.affine != NULL, &e));
    const int dim = own.is_transposed ? 1 : 0;
    if (own.is_transposed && own.groups > 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the transposed convolution has %lld groups; it must have one", function,
                       (long long)own.groups);
    if (kn_numel(e.mean) != own.affine->weight->shape[dim])
        return kn_fail(KN_ERR_SHAPE, "%s: %s has %lld outputs, %s %lld features", function, layer->type_name,
                       (long long)own.affine->weight->shape[dim], bn->type_name, (long long)kn_numel(e.mean));
    KN_TRY(fuse(function, own.affine->weight, own.affine->bias, &e, dim, &weight, &bias));
    const bool wants = kn_requires_grad(own.affine->weight);
    KN_TRY(kn_set_requires_grad(weight, wants));
    KN_TRY(kn_set_requires_grad(bias, wants));
    return refit(made, layer, affine_of, weight, bias);
}

static kn_module *fused(const char *function, const kn_module *layer, const kn_module *bn,
                        kn_affine_layer (*affine_of)(kn_module *))
{
    kn_module *made = NULL;
    if (fuse_modules(&made, function, (kn_module *)(uintptr_t)layer, bn, affine_of) == KN_OK)
        return made;
    kn_module_free(made);
    return kn_error_make_sticky();
}

kn_module *kn_fuse_conv_bn_eval(const kn_module *conv, const kn_module *bn)
{
    return fused("fuse_conv_bn_eval", conv, bn, kn_conv_affine);
}

kn_module *kn_fuse_linear_bn_eval(const kn_module *linear, const kn_module *bn)
{
    return fused("fuse_linear_bn_eval", linear, bn, kn_linear_affine);
}
