/* nn/affine.c - weight and bias of linear and convolution layers. */
#include "nn/affine.h"

#include <koine/init.h>

#include <math.h>

#include "base/error.h"

static kn_tensor *make(kn_module *module, const char *name, int ndim, const int64_t *shape, double bound)
{
    kn_tensor *tensor = kn_empty_with(ndim, shape, &(kn_tensor_options){.dtype = KN_F32});
    if (tensor == NULL || kn_init_uniform_(tensor, -bound, bound) == NULL)
        return NULL;
    return kn_module_register_parameter(module, name, tensor);
}

kn_status kn_affine_make(kn_module *module, kn_affine *affine, int ndim, const int64_t *shape, int64_t bias_size)
{
    double fan_in = 1;
    for (int i = 1; i < ndim; i++)
        fan_in *= (double)shape[i];
    return kn_affine_make_within(module, affine, ndim, shape, bias_size, 1 / sqrt(fan_in));
}

kn_status kn_affine_make_within(kn_module *module, kn_affine *affine, int ndim, const int64_t *shape, int64_t bias_size,
                                double bound)
{
    /* The scope releases its references, the module keeps its own. */
    int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    affine->weight = make(module, "weight", ndim, shape, bound);
    bool made = affine->weight != NULL;
    if (made && bias_size > 0) {
        affine->bias = make(module, "bias", 1, &bias_size, bound);
        made = affine->bias != NULL;
    }
    kn_scope_end(depth);
    if (made)
        return KN_OK;
    kn_error_make_sticky();
    return kn_error_status();
}
