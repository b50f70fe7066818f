/* ops/gemm/bilinear.c - y = x1 A x2 + b, of two products: x2 with all of A's matrices, then each row with its x1. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "base/error.h"
#include "tensor/tensor.h"

static kn_status check(const kn_tensor *x1, const kn_tensor *x2, const kn_tensor *weight, const kn_tensor *bias)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE], c[KN_DESCRIBE];
    bool fits = weight->ndim == 3 && x1->ndim >= 1 && x1->ndim == x2->ndim;
    for (int d = 0; fits && d + 1 < x1->ndim; d++)
        fits = x1->shape[d] == x2->shape[d];
    if (!fits || x1->shape[x1->ndim - 1] != weight->shape[1] || x2->shape[x2->ndim - 1] != weight->shape[2])
        return kn_fail(
            KN_ERR_SHAPE,
            "bilinear: expected inputs [..., in1] and [..., in2] and a weight [out, in1, in2], got %s, %s, %s",
            kn_tensor_describe(a, sizeof a, x1), kn_tensor_describe(b, sizeof b, x2),
            kn_tensor_describe(c, sizeof c, weight));
    if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return kn_fail(KN_ERR_SHAPE, "bilinear: expected a bias [%lld], got %s", (long long)weight->shape[0],
                       kn_tensor_describe(a, sizeof a, bias));
    return KN_OK;
}

static kn_tensor *compose(kn_tensor *x1, kn_tensor *x2, kn_tensor *weight, kn_tensor *bias)
{
    const int64_t rows = kn_shape_numel(x1->ndim - 1, x1->shape), out = weight->shape[0], in1 = weight->shape[1],
                  in2 = weight->shape[2];
    int64_t shape[KN_MAX_DIMS];
    memcpy(shape, x1->shape, sizeof shape);
    shape[x1->ndim - 1] = out;
    kn_tensor *all = kn_linear(kn_reshape(x2, KN_SHAPE(rows, in2)), kn_reshape(weight, KN_SHAPE(out * in1, in2)), NULL);
    kn_tensor *y = kn_matmul(kn_reshape(all, KN_SHAPE(rows, out, in1)), kn_reshape(x1, KN_SHAPE(rows, in1, 1)));
    y = kn_reshape(y, x1->ndim, shape);
    return bias ? kn_add(y, bias) : y;
}

kn_tensor *kn_bilinear(kn_tensor *x1, kn_tensor *x2, kn_tensor *weight, kn_tensor *bias)
{
    if (!x1 || !x2 || !weight)
        return kn_fail_argument_null("bilinear", !x1 ? "x1" : !x2 ? "x2" : "weight"), kn_error_make_sticky();
    if (check(x1, x2, weight, bias) != KN_OK)
        return kn_error_make_sticky();
    const int scope = kn_scope_begin();
    return scope ? kn_scope_return(scope, compose(x1, x2, weight, bias)) : NULL;
}
