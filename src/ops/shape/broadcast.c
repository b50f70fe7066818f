/* ops/shape/broadcast.c - see broadcast.h. */
#include "ops/shape/broadcast.h"

#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "base/text.h"
#include "ops/shape/views.h"
#include "tensor/scope.h"

/* Broadcasts `shape` with `t`; false if dimension `*at` does not fit. */
static bool join(int *ndim, int64_t shape[KN_MAX_DIMS], const kn_tensor *t, int *at)
{
    int64_t joint[KN_MAX_DIMS];
    const int n = *ndim > t->ndim ? *ndim : t->ndim;

    for (int i = 0; i < n; i++) {
        const int64_t p = i < n - *ndim ? 1 : shape[i - (n - *ndim)];
        const int64_t q = i < n - t->ndim ? 1 : t->shape[i - (n - t->ndim)];
        *at = i;
        if (p != q && p != 1 && q != 1)
            return false;
        joint[i] = p == 1 ? q : p;
    }
    memcpy(shape, joint, sizeof joint);
    *ndim = n;
    return true;
}

kn_status kn_broadcast_all(int *ndim, int64_t shape[KN_MAX_DIMS], kn_tensor *const *tensors, int count)
{
    *ndim = 0;
    for (int i = 0; i < count; i++) {
        char text[KN_DESCRIBE], other[KN_DESCRIBE];
        const int before = *ndim;
        int at = 0;
        if (join(ndim, shape, tensors[i], &at))
            continue;
        const int n = before > tensors[i]->ndim ? before : tensors[i]->ndim;
        return kn_fail(KN_ERR_SHAPE, "shapes %s and %s do not broadcast: sizes %lld and %lld of dimension %d differ",
                       kn_format_shape(text, sizeof text, before, shape),
                       kn_format_shape(other, sizeof other, tensors[i]->ndim, tensors[i]->shape),
                       (long long)shape[at - (n - before)], (long long)tensors[i]->shape[at - (n - tensors[i]->ndim)],
                       at);
    }
    return KN_OK;
}

kn_status kn_broadcast_shapes(int *ndim, int64_t shape[KN_MAX_DIMS], const kn_tensor *a, const kn_tensor *b)
{
    kn_tensor *const both[] = {(kn_tensor *)(uintptr_t)a, (kn_tensor *)(uintptr_t)b};
    return kn_broadcast_all(ndim, shape, both, 2);
}

kn_tensor *kn_sum_to_shape(kn_tensor *gradient, int ndim, const int64_t *shape)
{
    int dims[KN_MAX_DIMS], count = 0;

    if (!gradient)
        return NULL;
    for (int d = 0; d < gradient->ndim; d++) {
        const int own = d - (gradient->ndim - ndim);
        if (own < 0 || (shape[own] == 1 && gradient->shape[d] != 1))
            dims[count++] = d;
    }
    if (count > 0)
        gradient = kn_sum_dims(gradient, dims, count, true);
    return gradient && gradient->ndim == ndim ? gradient : kn_reshape(gradient, ndim, shape);
}

kn_status kn_give_gradient(kn_grad_call *grad, int i, kn_tensor *gradient)
{
    gradient = kn_sum_to_shape(gradient, grad->input[i].ndim, grad->input[i].shape);
    grad->grad_inputs[i] = gradient ? kn_to_dtype(gradient, grad->input[i].dtype) : NULL;
    return grad->grad_inputs[i] ? KN_OK : kn_error_status();
}

kn_tensor *kn_widened(kn_tensor *tensor)
{
    return tensor && kn_dtype_is_reduced(tensor->dtype) ? kn_to_dtype(tensor, KN_F32) : tensor;
}

kn_tensor *kn_sum_to_size(kn_tensor *x, int ndim, const int64_t *shape)
{
    char of[KN_DESCRIBE], wanted[KN_DESCRIBE];
    kn_ints sizes;

    if (!x || !kn_ints_of(&sizes, "sum_to_size", "shape", ndim, shape))
        return NULL;
    bool fits = ndim <= x->ndim;
    for (int d = 0; d < ndim && fits; d++)
        fits = shape[d] == 1 || shape[d] == x->shape[x->ndim - ndim + d];
    if (!fits)
        return kn_fail_null(KN_ERR_SHAPE, "sum_to_size: %s does not expand to x, %s",
                            kn_format_shape(wanted, sizeof wanted, ndim, shape), kn_tensor_describe(of, sizeof of, x));
    const int depth = kn_scope_begin();
    if (depth == 0)
        return NULL;
    kn_tensor *sum = kn_sum_to_shape(x, ndim, shape);
    return kn_scope_return(depth, sum == x ? kn_scope_adopt(kn_retain(x)) : sum);
}
