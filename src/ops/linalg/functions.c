/* ops/linalg/functions.c - functions composed of the factorisations: pseudoinverse, rank, least squares, powers. */
#include <float.h>
#include <koine/autograd.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/gemm/matmul.h"
#include "ops/linalg/linalg.h"
#include "tensor/batched.h"
#include "tensor/scope.h"

/* A number to compare or combine with s. */
static kn_tensor *number(double value, const kn_tensor *s)
{
    return kn_full_with(0, NULL, kn_scalar_real(value),
                        &(kn_tensor_options){.dtype = kn_dtype_of(s), .device = kn_device_of(s)});
}

/* --- singular values ---------------------------------------------------------------------------------------------- */

/* Those of a's singular values count that are above this share of the largest. */
static double least_share(const kn_tensor *a)
{
    const double eps = kn_dtype_of(a) == KN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    return (double)(kn_rows(a) > kn_columns(a) ? kn_rows(a) : kn_columns(a)) * eps;
}

/* Which of a's singular values s count. */
static kn_tensor *that_count(kn_tensor *s, const kn_tensor *a)
{
    kn_tensor *most = kn_amax(kn_detach(s), (int[]){-1}, 1, true);
    return kn_gt(kn_detach(s), kn_mul_scalar(most, least_share(a)));
}

kn_tensor *kn_linalg_pinv(kn_tensor *a)
{
    kn_tensor *s, *vh, *u = kn_has_matrices("linalg_pinv", a) ? kn_linalg_svd(a, false, &s, &vh) : NULL;

    if (!u)
        return NULL;
    if (kn_numel(s) == 0)
        return kn_matrix_transpose(a);
    kn_tensor *counts = that_count(s, a);
    kn_tensor *inverse = kn_where(counts, kn_reciprocal(kn_where(counts, s, number(1, s))), number(0, s));
    return kn_matmul(kn_mul(kn_matrix_transpose(vh), kn_unsqueeze(inverse, -2)), kn_matrix_transpose(u));
}

kn_tensor *kn_linalg_matrix_rank(kn_tensor *a)
{
    if (a && a->whole)
        KN_RETURN_BATCHED(a, kn_linalg_matrix_rank(a->whole));
    kn_tensor *s = kn_has_matrices("linalg_matrix_rank", a) ? kn_linalg_svdvals(kn_detach(a)) : NULL;

    s = s ? kn_contiguous(kn_to_dtype(s, kn_compute_type(s->dtype))) : NULL;
    if (!s)
        return NULL;
    const kn_tensor_options options = {.dtype = KN_I64, .device = kn_device_of(s)};
    kn_tensor *rank = kn_empty_with(s->ndim - 1, s->shape, &options);
    kn_stream *stream = rank ? kn_tensor_stream(rank) : NULL;
    const int64_t matrices = kn_shape_numel(s->ndim - 1, s->shape);
    const kn_linalg_launch launch = {"linalg/rank.cl", "linalg_rank", "linalg_matrix_rank", s->dtype, 0, matrices};
    const kn_arg args[] = {kn_arg_tensor(s),
                           kn_arg_tensor(rank),
                           kn_arg_i64(matrices),
                           kn_arg_i64(kn_size(s, -1)),
                           kn_arg_real(s->dtype, least_share(a)),
                           kn_arg_fault()};
    if (!stream || kn_linalg_run(stream, &launch, args, 6) != KN_OK)
        return kn_error_make_sticky();
    return rank;
}

/* Full rank: a = q r gives x = r^-1 q^T b; a^T = q r gives x = q r^-T b, the shortest. */
kn_tensor *kn_linalg_lstsq(kn_tensor *a, kn_tensor *b)
{
    kn_tensor *r;

    if (!kn_has_matrices("linalg_lstsq", a) || !kn_has_matrices("linalg_lstsq", b))
        return NULL;
    if (kn_rows(a) >= kn_columns(a)) {
        kn_tensor *q = kn_linalg_qr(a, KN_QR_REDUCED, &r);
        return kn_linalg_solve_triangular(r, kn_matmul(kn_matrix_transpose(q), b), true, true, false);
    }
    kn_tensor *q = kn_linalg_qr(kn_matrix_transpose(a), KN_QR_REDUCED, &r);
    return kn_matmul(q, kn_linalg_solve_triangular(kn_matrix_transpose(r), b, false, true, false));
}

/* --- powers ------------------------------------------------------------------------------------------------------- */

static kn_status matrix_power(kn_tensor **result, kn_tensor *x, int64_t n)
{
    char text[KN_DESCRIBE];
    if (x->ndim < 2 || kn_rows(x) != kn_columns(x))
        return kn_fail(KN_ERR_SHAPE, "x must be square matrices, [..., m, m], not %s",
                       kn_tensor_describe(text, sizeof text, x));
    kn_tensor *one = n == 0 ? kn_identity(kn_rows(x), x->dtype, kn_device_of(x)) : NULL;
    *result = one ? kn_clone(kn_expand(one, x->ndim, x->shape)) : NULL;
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
    for (kn_tensor *power = n < 0 ? kn_linalg_inv(x) : x; rest > 0 && power; rest /= 2) {
        if (rest % 2 == 1)
            *result = *result ? kn_matmul(*result, power) : power;
        if (rest > 1)
            power = kn_matmul(power, power);
    }
    if (*result == x)
        *result = kn_clone(x);
    return *result ? KN_OK : kn_error_status();
}

kn_tensor *kn_matrix_power(kn_tensor *x, int64_t n)
{
    kn_composition c = kn_composition_begin("matrix_power", &x, 1);
    if (c.status == KN_OK)
        c.status = matrix_power(&c.result, x, n);
    return kn_composition_end(&c);
}
