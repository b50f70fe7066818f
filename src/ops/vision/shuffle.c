/* ops/vision/shuffle.c - pixel_shuffle, pixel_unshuffle and channel_shuffle: a permutation of the dimensions between
 * two reshapes, whose gradients are theirs. */
#include <koine/shape.h>
#include <koine/vision.h>
#include <string.h>

#include "base/error.h"
#include "tensor/tensor.h"

/* x reshaped to `split`, its last dimensions permuted, reshaped to `shape`; owned by the caller's scope alone. */
static kn_tensor *rearrange(kn_tensor *x, int ndim, const int64_t *split, const int *dims, int out_ndim,
                            const int64_t *shape)
{
    const int scope = kn_scope_begin();
    if (scope == 0)
        return NULL;
    kn_tensor *y = kn_reshape(kn_permute(kn_reshape(x, ndim, split), dims), out_ndim, shape);
    return kn_scope_return(scope, y);
}

static kn_tensor *fail_null(const char *function)
{
    return kn_fail_argument_null(function, "x"), (kn_tensor *)kn_error_make_sticky();
}

/* The leading dimensions, which stay, are one. */
static int64_t leading(const kn_tensor *x) { return kn_shape_numel(x->ndim - 3, x->shape); }

kn_tensor *kn_pixel_shuffle(kn_tensor *x, int64_t r)
{
    char text[KN_DESCRIBE];
    int64_t shape[KN_MAX_DIMS];

    if (!x)
        return fail_null("pixel_shuffle");
    if (r < 1 || r > INT32_MAX)
        return kn_fail_null(KN_ERR_ARGUMENT, "pixel_shuffle: upscale_factor (%lld) must be at least 1", (long long)r);
    if (x->ndim < 3)
        return kn_fail_null(KN_ERR_SHAPE, "pixel_shuffle: expected [*, C, H, W], got %s",
                            kn_tensor_describe(text, sizeof text, x));
    const int64_t *size = x->shape + x->ndim - 3;
    if (size[0] % (r * r) != 0)
        return kn_fail_null(KN_ERR_SHAPE,
                            "pixel_shuffle: the channels (%lld) must be divisible by the square of upscale_factor "
                            "(%lld)",
                            (long long)size[0], (long long)r);
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 3] = size[0] / (r * r);
    shape[x->ndim - 2] *= r;
    shape[x->ndim - 1] *= r;
    const int64_t split[] = {leading(x), size[0] / (r * r), r, r, size[1], size[2]};
    return rearrange(x, 6, split, (const int[]){0, 1, 4, 2, 5, 3}, x->ndim, shape);
}

kn_tensor *kn_pixel_unshuffle(kn_tensor *x, int64_t r)
{
    char text[KN_DESCRIBE];
    int64_t shape[KN_MAX_DIMS];

    if (!x)
        return fail_null("pixel_unshuffle");
    if (r < 1 || r > INT32_MAX)
        return kn_fail_null(KN_ERR_ARGUMENT, "pixel_unshuffle: downscale_factor (%lld) must be at least 1",
                            (long long)r);
    if (x->ndim < 3)
        return kn_fail_null(KN_ERR_SHAPE, "pixel_unshuffle: expected [*, C, H, W], got %s",
                            kn_tensor_describe(text, sizeof text, x));
    const int64_t *size = x->shape + x->ndim - 3;
    if (size[1] % r != 0 || size[2] % r != 0)
        return kn_fail_null(KN_ERR_SHAPE,
                            "pixel_unshuffle: height (%lld) and width (%lld) must be divisible by downscale_factor "
                            "(%lld)",
                            (long long)size[1], (long long)size[2], (long long)r);
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 3] *= r * r;
    shape[x->ndim - 2] /= r;
    shape[x->ndim - 1] /= r;
    const int64_t split[] = {leading(x), size[0], size[1] / r, r, size[2] / r, r};
    return rearrange(x, 6, split, (const int[]){0, 1, 3, 5, 2, 4}, x->ndim, shape);
}

kn_tensor *kn_channel_shuffle(kn_tensor *x, int64_t groups)
{
    char text[KN_DESCRIBE];

    if (!x)
        return fail_null("channel_shuffle");
    if (groups < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "channel_shuffle: groups (%lld) must be at least 1", (long long)groups);
    if (x->ndim < 3)
        return kn_fail_null(KN_ERR_SHAPE, "channel_shuffle: expected [N, C, ...] of at least 3 dimensions, got %s",
                            kn_tensor_describe(text, sizeof text, x));
    if (x->shape[1] % groups != 0)
        return kn_fail_null(KN_ERR_SHAPE, "channel_shuffle: the channels (%lld) must be divisible by groups (%lld)",
                            (long long)x->shape[1], (long long)groups);
    const int64_t split[] = {x->shape[0], groups, x->shape[1] / groups, kn_shape_numel(x->ndim - 2, x->shape + 2)};
    return rearrange(x, 4, split, (const int[]){0, 2, 1, 3}, x->ndim, x->shape);
}
