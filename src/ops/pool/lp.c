/* ops/pool/lp.c - power-average pooling: the norm of each window, (sum x^p)^(1/p), as PyTorch composes it: the average
 * of the powers times the window's size. */
#include <koine/autograd.h>
#include <koine/pointwise.h>
#include <koine/pool.h>

#include "base/directions.h"
#include "base/error.h"

static kn_status check(int dims, const kn_pool_params *p)
{
    bool others = p->padding != 0 || p->dilation != 1 || p->activation != KN_ACTIVATION_NONE ||
                  p->divisor_override != 0 || !p->count_include_pad;
    for (int i = 0; i < dims; i++)
        others = others || p->paddings[i] != 0 || p->dilations[i] > 1 || p->paddings_after[i] > 0;
    return others ? kn_fail(KN_ERR_ARGUMENT, "takes only kernel_size, stride and ceil_mode") : KN_OK;
}

static kn_tensor *lp_pool(kn_tensor *x, double norm_type, int dims, const kn_pool_params *given,
                          kn_tensor *(*average)(kn_tensor *, const kn_pool_params *))
{
    const kn_pool_params params = given ? *given : (kn_pool_params){KN_POOL_DEFAULTS};
    int64_t kernel[3];

    if (!x)
        return kn_fail_argument_null("lp_pool", "x"), kn_error_make_sticky();
    if (norm_type == 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "lp_pool%dd: norm_type must not be 0", dims);
    if (check(dims, &params) != KN_OK)
        return kn_error_prefix("lp_pool%dd", dims), kn_error_make_sticky();
    kn_directions(kernel, dims, params.kernel_size, params.kernel_sizes, 1);
    const int scope = kn_scope_begin();
    if (scope == 0)
        return NULL;
    kn_tensor *mean = average(kn_pow_scalar(x, norm_type), &params);
    /* The same, but with a gradient of 0 where it is 0, as in PyTorch: that of the root is infinite. */
    mean = kn_mul(kn_sign(kn_detach(mean)), kn_relu(kn_abs(mean)));
    kn_tensor *sum = kn_mul_scalar(mean, (double)(kernel[0] * kernel[1] * kernel[2]));
    return kn_scope_return(scope, kn_pow_scalar(sum, 1 / norm_type));
}

kn_tensor *kn_lp_pool1d_with(kn_tensor *x, double norm_type, const kn_pool_params *params)
{
    return lp_pool(x, norm_type, 1, params, kn_avg_pool1d_with);
}

kn_tensor *kn_lp_pool2d_with(kn_tensor *x, double norm_type, const kn_pool_params *params)
{
    return lp_pool(x, norm_type, 2, params, kn_avg_pool2d_with);
}

kn_tensor *kn_lp_pool3d_with(kn_tensor *x, double norm_type, const kn_pool_params *params)
{
    return lp_pool(x, norm_type, 3, params, kn_avg_pool3d_with);
}
