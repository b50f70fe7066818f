/* ops/vmap/vmap.c - koine/vmap.h: tensors going in and coming out. */
#include <koine/vmap.h>

#include <inttypes.h>
#include <koine/autograd.h>
#include <koine/shape.h>

#include "base/error.h"
#include "ops/vmap/rules.h"
#include "tensor/scope.h"

/* --- one level ---------------------------------------------------------------------------------------------------- */

/* Another tensor than `tensor`, so that requiring gradients of it does not affect that. */
static kn_tensor *alias(kn_tensor *moved, const kn_tensor *tensor)
{
    return moved == tensor && !kn_requires_grad(tensor) ? kn_detach(moved) : moved;
}

static kn_status check(const char *function, const kn_tensor *tensor)
{
    if (!tensor)
        return kn_fail_argument_null(function, "tensor");
    return kn_vmap_level() > 0 ? KN_OK : kn_fail(KN_ERR_STATE, "%s: kn_vmap_begin comes first", function);
}

static kn_tensor *in(kn_tensor *tensor, int dim)
{
    char text[KN_DESCRIBE];
    if (kn_size(tensor, dim) != kn_vmap_size(kn_vmap_level()))
        return kn_fail_null(KN_ERR_SHAPE,
                            "kn_vmap_in: dimension %d of the tensor %s must have the batch's size, %" PRId64, dim,
                            kn_tensor_describe(text, sizeof text, tensor), kn_vmap_size(kn_vmap_level()));
    return kn_batched(alias(kn_movedim(tensor, dim, 0), tensor), kn_vmap_level());
}

/* The same for each sample of that level. */
static kn_tensor *repeated(kn_tensor *tensor, int level) { return kn_vmap_repeat(tensor, kn_vmap_size(level)); }

static kn_tensor *out(kn_tensor *tensor, int dim)
{
    kn_tensor *whole = kn_batch_level(tensor) == kn_vmap_level() ? tensor->whole : repeated(tensor, kn_vmap_level());
    return whole ? kn_movedim(whole, 0, dim) : NULL;
}

/* In all levels up to that one. */
static kn_tensor *expand(kn_tensor *tensor, int level)
{
    if (level == 0)
        return tensor;
    const bool stands = kn_batch_level(tensor) == level;
    kn_tensor *lower = expand(stands ? tensor->whole : tensor, level - 1);
    if (stands && lower == tensor->whole)
        return tensor;
    return lower ? kn_batched(stands ? lower : repeated(lower, level), level) : NULL;
}

/* --- public functions --------------------------------------------------------------------------------------------- */

static kn_tensor *leave(int depth, kn_tensor *made)
{
    kn_tensor *result = kn_scope_return(depth, made);
    return result ? result : kn_error_make_sticky();
}

kn_tensor *kn_vmap_in(kn_tensor *tensor, int dim)
{
    const int depth = check("kn_vmap_in", tensor) == KN_OK ? kn_scope_begin() : 0;
    return depth ? leave(depth, in(tensor, dim)) : kn_error_make_sticky();
}

kn_tensor *kn_vmap_out(kn_tensor *tensor, int dim)
{
    const int depth = check("kn_vmap_out", tensor) == KN_OK ? kn_scope_begin() : 0;
    return depth ? leave(depth, out(tensor, dim)) : kn_error_make_sticky();
}

kn_tensor *kn_vmap_expand(kn_tensor *tensor)
{
    if (!tensor)
        return kn_fail_argument_null("kn_vmap_expand", "tensor"), kn_error_make_sticky();
    const int depth = kn_scope_begin();
    return depth ? leave(depth, expand(tensor, kn_vmap_level())) : kn_error_make_sticky();
}
