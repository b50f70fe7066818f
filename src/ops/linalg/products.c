/* ops/linalg/products.c - traces, products of vectors, products of reflections, tensors as matrices. Compositions. */
#include <koine/join.h>
#include <koine/matmul.h>
#include <koine/pad.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "base/error.h"
#include "ops/linalg/linalg.h"

/* --- of vectors and matrices -------------------------------------------------------------------------------------- */

kn_tensor *kn_trace(kn_tensor *a)
{
    if (!kn_has_matrices("trace", a))
        return NULL;
    if (a->ndim != 2)
        return kn_fail_null(KN_ERR_SHAPE, "trace: a must be one matrix, not have %d dimensions", a->ndim);
    return kn_sum(kn_diagonal(a));
}

/* x with its elements along dim moved up by `by`. */
static kn_tensor *rolled(kn_tensor *x, int dim, int64_t by)
{
    return kn_cat((kn_tensor *[]){kn_narrow(x, dim, by, 3 - by), kn_narrow(x, dim, 0, by)}, 2, dim);
}

kn_tensor *kn_linalg_cross(kn_tensor *a, kn_tensor *b, int dim)
{
    char text[KN_DESCRIBE];
    kn_tensor *const both[] = {a, b};

    for (int i = 0; i < 2; i++) {
        if (!both[i])
            return NULL;
        const int ndim = kn_ndim(both[i]), at = dim < 0 ? dim + ndim : dim;
        if (at < 0 || at >= ndim || both[i]->shape[at] != 3)
            return kn_fail_null(KN_ERR_SHAPE, "linalg_cross: dimension %d of %s must have 3 elements, not be %s", dim,
                                i == 0 ? "a" : "b", kn_tensor_describe(text, sizeof text, both[i]));
    }
    return kn_sub(kn_mul(rolled(a, dim, 1), rolled(b, dim, 2)), kn_mul(rolled(a, dim, 2), rolled(b, dim, 1)));
}

kn_tensor *kn_linalg_vecdot(kn_tensor *a, kn_tensor *b, int dim)
{
    return kn_sum_dims(kn_mul(a, b), (int[]){dim}, 1, false);
}

/* --- reflections -------------------------------------------------------------------------------------------------- */

/* So many reflections are applied as one, 1 - v t v^T with a triangular t = (1 + d u)^-1 d, where d is tau on the
 * diagonal and u the part of v^T v above it. */
enum { BLOCK = 64 };

/* The product of the reflections from one on, less 1, without the rows and columns before it, where it is 0: from v
 * [..., m, k] and tau [..., k] of the next k, and the same of those after these, `rest`, or NULL. */
static kn_tensor *product_from(kn_tensor *v, kn_tensor *tau, kn_tensor *rest, int64_t columns)
{
    const int64_t m = kn_rows(v), k = kn_columns(v);
    kn_tensor *vt = kn_matrix_transpose(v), *d = kn_unsqueeze(tau, -1), *du = kn_mul(d, kn_matmul(vt, v));
    kn_tensor *turned = kn_narrow(vt, -1, 0, columns);
    if (rest) {
        kn_tensor *inner = kn_matmul(kn_narrow(vt, -1, k, m - k), rest);
        rest = kn_pad(rest, KN_SHAPE(k, 0, k, 0));
        turned = kn_add(turned, kn_pad(inner, KN_SHAPE(k, 0)));
    }
    kn_tensor *moved = kn_matmul(v, kn_linalg_solve_triangular(du, kn_mul(d, turned), true, true, true));
    return rest ? kn_sub(rest, moved) : kn_neg(moved);
}

static kn_status householder_enter(kn_entry *entry)
{
    kn_tensor *a = entry->inputs[0], *tau = entry->inputs[1];
    char of[KN_DESCRIBE], has[KN_DESCRIBE];
    bool fits = a->ndim >= 2 && tau->ndim == a->ndim - 1 && kn_rows(a) >= kn_columns(a) && a->dtype == tau->dtype;

    for (int d = 0; fits && d < a->ndim - 2; d++)
        fits = a->shape[d] == tau->shape[d];
    if (!fits || tau->shape[tau->ndim - 1] > kn_columns(a))
        return kn_fail(KN_ERR_SHAPE, "a must be [..., m, n] with m >= n and tau [..., k] with k <= n, not %s and %s",
                       kn_tensor_describe(of, sizeof of, a), kn_tensor_describe(has, sizeof has, tau));
    const int64_t m = kn_rows(a), n = kn_columns(a), count = tau->shape[tau->ndim - 1];
    kn_tensor *one = kn_narrow(kn_identity(m, a->dtype, kn_device_of(a)), 1, 0, n), *rest = NULL;
    kn_tensor *reflectors = kn_add(kn_lower_part(a, true), one); /* 0 above the diagonal, 1 on it, a below */
    for (int64_t end = count; end > 0 && (rest || end == count);) {
        const int64_t from = (end - 1) / BLOCK * BLOCK, k = end - from;
        kn_tensor *v = kn_narrow(kn_narrow(reflectors, -1, from, k), -2, from, m - from);
        rest = product_from(v, kn_narrow(tau, -1, from, k), rest, n - from);
        end = from;
    }
    return kn_status_of(entry->result = kn_add(one, count > 0 ? rest : kn_mul_scalar(a, 0))); /* a's gradient is 0 */
}

const kn_op kn_linalg_householder_product_op = {.name = "linalg_householder_product",
                                                .inputs = {"a", "tau"},
                                                .dtypes = {KN_DTYPES_REAL, KN_DTYPES_REAL},
                                                .composes = true,
                                                .enter = householder_enter};
kn_tensor *kn_linalg_householder_product(kn_tensor *a, kn_tensor *tau)
{
    return kn_invoke(&kn_linalg_householder_product_op, NULL, a, tau);
}

/* --- tensors as matrices ------------------------------------------------------------------------------------------ */

static int64_t product_of(const kn_tensor *a, int from, int to) { return kn_shape_numel(to - from, a->shape + from); }

kn_tensor *kn_linalg_tensorinv(kn_tensor *a, int ind)
{
    int64_t shape[KN_MAX_DIMS];
    char text[KN_DESCRIBE];

    if (!a)
        return NULL;
    if (ind < 1 || ind >= a->ndim)
        return kn_fail_null(KN_ERR_ARGUMENT, "linalg_tensorinv: ind must be from 1 to %d, not %d, for %s", a->ndim - 1,
                            ind, kn_tensor_describe(text, sizeof text, a));
    const int64_t rows = product_of(a, 0, ind), columns = product_of(a, ind, a->ndim);
    if (rows != columns)
        return kn_fail_null(
            KN_ERR_SHAPE,
            "linalg_tensorinv: the sizes before and after dimension %d of %s multiply to %lld and %lld: "
            "they must be equal",
            ind, kn_tensor_describe(text, sizeof text, a), (long long)rows, (long long)columns);
    for (int d = 0; d < a->ndim; d++)
        shape[d] = a->shape[(d + ind) % a->ndim];
    return kn_reshape(kn_linalg_inv(kn_reshape(a, 2, (const int64_t[]){rows, rows})), a->ndim, shape);
}

kn_tensor *kn_linalg_tensorsolve(kn_tensor *a, kn_tensor *b)
{
    char of[KN_DESCRIBE], has[KN_DESCRIBE];

    if (!a || !b)
        return NULL;
    const int64_t n = kn_numel(b);
    if (b->ndim > a->ndim || memcmp(a->shape, b->shape, (size_t)b->ndim * sizeof *b->shape) != 0 ||
        product_of(a, b->ndim, a->ndim) != n)
        return kn_fail_null(
            KN_ERR_SHAPE,
            "linalg_tensorsolve: a must have b's shape, %s, and then sizes of the same product, not be %s",
            kn_tensor_describe(has, sizeof has, b), kn_tensor_describe(of, sizeof of, a));
    kn_tensor *x = kn_linalg_solve(kn_reshape(a, 2, (const int64_t[]){n, n}), kn_reshape(b, 1, &n));
    return kn_reshape(x, a->ndim - b->ndim, a->shape + b->ndim);
}
