/* ops/reduce/composed.c - functions that others make up: pairs of reductions, distances, renorm, differences and
 * integrals. */
#include <koine/join.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/tensor.h>

#include "base/error.h"
#include "ops/dispatch/invoke.h"
#include "ops/pointwise/elementwise.h"
#include "tensor/liveness.h"

static kn_tensor_options like(const kn_tensor *t)
{
    return (kn_tensor_options){.dtype = t->dtype, .device = kn_device_of(t)};
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

/* The first result; the second goes to `second`, NULL on failure. */
static kn_tensor *pair(kn_tensor *first, kn_tensor **second, kn_tensor *result)
{
    if (second)
        *second = first ? result : NULL;
    return first && (result || !second) ? first : NULL;
}

kn_tensor *kn_aminmax(kn_tensor *x, kn_tensor **max) { return kn_aminmax_dims(x, NULL, 0, false, max); }

kn_tensor *kn_aminmax_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim, kn_tensor **max)
{
    return pair(kn_amin(x, dims, num_dims, keepdim), max, max ? kn_amax(x, dims, num_dims, keepdim) : NULL);
}

kn_tensor *kn_var_mean(kn_tensor *x, kn_tensor **mean) { return kn_var_mean_dims(x, NULL, 0, 1, false, mean); }
kn_tensor *kn_std_mean(kn_tensor *x, kn_tensor **mean) { return kn_std_mean_dims(x, NULL, 0, 1, false, mean); }

kn_tensor *kn_var_mean_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim,
                            kn_tensor **mean)
{
    return pair(kn_var_dims(x, dims, num_dims, correction, keepdim), mean,
                mean ? kn_mean_dims(x, dims, num_dims, keepdim) : NULL);
}

kn_tensor *kn_std_mean_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim,
                            kn_tensor **mean)
{
    return pair(kn_std_dims(x, dims, num_dims, correction, keepdim), mean,
                mean ? kn_mean_dims(x, dims, num_dims, keepdim) : NULL);
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

kn_tensor *kn_dist(kn_tensor *a, kn_tensor *b, double p)
{
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, kn_norm(kn_sub(a, b), p));
}

static kn_tensor *renorm(kn_tensor *x, double p, int dim, double maxnorm)
{
    int others[KN_MAX_DIMS], at, count = 0;
    if (!x)
        return kn_norm(x, p);
    if (x->ndim < 2)
        return kn_fail_null(KN_ERR_SHAPE, "renorm: x has %d dimensions; it must have at least 2", x->ndim);
    if (!(p > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "renorm: p must be greater than 0, not %g", p);
    if (!(maxnorm >= 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "renorm: maxnorm must be at least 0, not %g", maxnorm);
    if (kn_dim_from_front(&at, dim, x->ndim) != KN_OK) {
        kn_error_prefix("renorm");
        return kn_error_make_sticky();
    }
    for (int d = 0; d < x->ndim; d++)
        if (d != at)
            others[count++] = d;
    kn_tensor *norm = kn_norm_dims(x, p, others, count, true);
    if (!norm)
        return NULL;
    const kn_tensor_options options = like(norm);
    kn_tensor *limit = kn_full_with(0, NULL, kn_scalar_real(maxnorm), &options), *one = kn_ones_with(0, NULL, &options);
    kn_tensor *factor = kn_div(limit, kn_add_scalar(norm, 1e-7));
    return kn_mul(x, kn_where(kn_gt(norm, limit), factor, one));
}

kn_tensor *kn_renorm(kn_tensor *x, double p, int dim, double maxnorm)
{
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, renorm(x, p, dim, maxnorm));
}

/* --- differences -------------------------------------------------------------------------------------------------- */

/* x with `before` and `after`, which may be NULL, along `dim`. */
static kn_tensor *with_ends(kn_tensor *x, int dim, kn_tensor *before, kn_tensor *after)
{
    kn_tensor *parts[3];
    int count = 0;
    if (before)
        parts[count++] = before;
    parts[count++] = x;
    if (after)
        parts[count++] = after;
    return count > 1 ? kn_cat(parts, count, dim) : x;
}

static kn_tensor *difference(kn_tensor *x, int dim)
{
    const int64_t n = x->shape[dim], left = n > 1 ? n - 1 : 0, start = n > 1 ? 1 : 0;
    kn_tensor *later = kn_narrow(x, dim, start, left), *earlier = kn_narrow(x, dim, 0, left);
    return x->dtype == KN_BOOL ? kn_ne(later, earlier) : kn_sub(later, earlier);
}

kn_diff_params kn_diff_params_init(void) { return (kn_diff_params){KN_DIFF_DEFAULTS}; }

static kn_tensor *diff(kn_tensor *x, const kn_diff_params *params)
{
    const kn_diff_params p = params ? *params : kn_diff_params_init();
    int dim;
    if (kn_check_tensor("diff", "x", x) != KN_OK)
        return kn_error_make_sticky();
    if (x->ndim == 0)
        return kn_fail_null(KN_ERR_SHAPE, "diff: x has no dimensions; it must have at least 1");
    if (p.n < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "diff: n must be at least 0, not %lld", (long long)p.n);
    if (kn_dim_from_front(&dim, p.dim, x->ndim) != KN_OK) {
        kn_error_prefix("diff");
        return kn_error_make_sticky();
    }
    kn_tensor *result = with_ends(x, dim, p.prepend, p.append);
    for (int64_t i = 0; i < p.n && result && (i == 0 || result->shape[dim] > 0); i++)
        result = difference(result, dim);
    return result == x ? kn_scope_adopt(kn_retain(x)) : result;
}

kn_tensor *kn_diff_with(kn_tensor *x, const kn_diff_params *params)
{
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, diff(x, params));
}

/* --- integrals ---------------------------------------------------------------------------------------------------- */

kn_trapezoid_params kn_trapezoid_params_init(void) { return (kn_trapezoid_params){KN_TRAPEZOID_DEFAULTS}; }

/* Each in one pass: areas between neighbours, their distance or half of it given, and the sum of all of them, of which
 * only the first and last heights count half. */
KN_ELEMENTWISE_TABLE(areas_by_half, KN_REAL, "ab", "p", KN_NO_VECTORS, "(a + b) * p", KN_GRADIENTS("g * p", "g * p"),
                     (a + b) * p);
KN_ELEMENTWISE_TABLE(areas_by_step, KN_REAL, "abc", NULL, KN_NO_VECTORS, "(a + b) * c / 2",
                     KN_GRADIENTS("g * c / 2", "g * c / 2", "g * (a + b) / 2"), (a + b) * c / 2);
KN_ELEMENTWISE_TABLE(integral, KN_REAL, "abc", "p", KN_NO_VECTORS, "(a + (b + c) / 2) * p",
                     KN_GRADIENTS("g * p", "g * p / 2", "g * p / 2"), (a + (b + c) / 2) * p);
static const kn_op_param dx_row[] = {KN_PARAM_NAMED("dx", kn_scalar_args, values[0])};
#define DX KN_PARAMS(kn_scalar_args, dx_row)
static const kn_op areas_by_half_op =
                       KN_ELEMENTWISE_OP("trapezoid", false, true, &areas_by_half_table, KN_DTYPES_ALL, DX, "a", "b"),
                   areas_by_step_op = KN_ELEMENTWISE_OP("trapezoid", false, true, &areas_by_step_table, KN_DTYPES_ALL,
                                                        KN_NO_PARAMS, "a", "b", "c"),
                   integral_op = KN_ELEMENTWISE_OP("trapezoid", false, true, &integral_table, KN_DTYPES_ALL, DX,
                                                   "inner", "a", "b");

/* The number of heights along `*dim`, then counted from the front; -1 with an error. */
static int64_t check_heights(const char *function, const kn_tensor *y, const kn_trapezoid_params *p, int *dim)
{
    const kn_tensor *x = p->x;
    if (kn_check_tensor(function, "y", y) != KN_OK)
        return -1;
    if (y->ndim == 0)
        kn_fail(KN_ERR_SHAPE, "%s: y has no dimensions; it must have at least 1", function);
    else if (kn_dim_from_front(dim, p->dim, y->ndim) != KN_OK)
        kn_error_prefix("%s", function);
    else if (x && x->ndim != 1 && x->ndim != y->ndim)
        kn_fail(KN_ERR_SHAPE, "%s: x has %d dimensions; it must have 1, or %d as y", function, x->ndim, y->ndim);
    else if (x && x->shape[x->ndim == 1 ? 0 : *dim] != y->shape[*dim])
        kn_fail(KN_ERR_SHAPE, "%s: x has %lld places along dimension %d, but y has %lld", function,
                (long long)x->shape[x->ndim == 1 ? 0 : *dim], x->ndim == 1 ? 0 : *dim, (long long)y->shape[*dim]);
    else
        return y->shape[*dim];
    return -1;
}

/* The areas between neighbours of n along `dim`. */
static kn_tensor *areas(kn_tensor *y, const kn_trapezoid_params *p, int64_t n, int dim)
{
    int64_t shape[KN_MAX_DIMS];
    const int64_t left = n > 1 ? n - 1 : 0;
    kn_tensor *earlier = kn_narrow(y, dim, 0, left), *later = kn_narrow(y, dim, n > 1, left);
    if (!p->x)
        return kn_invoke(&areas_by_half_op, &(kn_scalar_args){{kn_scalar_real(p->dx / 2)}}, earlier, later);
    kn_tensor *steps = difference(p->x, p->x->ndim == 1 ? 0 : dim);
    for (int d = 0; d < y->ndim && p->x->ndim == 1; d++)
        shape[d] = d == dim ? left : 1;
    if (p->x->ndim == 1)
        steps = kn_reshape(steps, y->ndim, shape);
    return kn_invoke(&areas_by_step_op, NULL, earlier, later, steps);
}

static kn_tensor *integral(kn_tensor *y, const kn_trapezoid_params *p, int64_t n, int dim)
{
    if (p->x || n < 2)
        return kn_sum_dims(areas(y, p, n, dim), &dim, 1, false);
    return kn_invoke(&integral_op, &(kn_scalar_args){{kn_scalar_real(p->dx)}},
                     kn_sum_dims(kn_narrow(y, dim, 1, n - 2), &dim, 1, false), kn_select(y, dim, 0),
                     kn_select(y, dim, -1));
}

kn_tensor *kn_trapezoid_with(kn_tensor *y, const kn_trapezoid_params *params)
{
    const kn_trapezoid_params p = params ? *params : kn_trapezoid_params_init();
    int dim;
    const int64_t n = check_heights("trapezoid", y, &p, &dim);
    const int depth = n < 0 ? 0 : kn_scope_begin();
    return n < 0 ? kn_error_make_sticky() : depth == 0 ? NULL : kn_scope_return(depth, integral(y, &p, n, dim));
}

kn_tensor *kn_cumulative_trapezoid_with(kn_tensor *y, const kn_trapezoid_params *params)
{
    const kn_trapezoid_params p = params ? *params : kn_trapezoid_params_init();
    int dim;
    const int64_t n = check_heights("cumulative_trapezoid", y, &p, &dim);
    const int depth = n < 0 ? 0 : kn_scope_begin();
    return n < 0        ? kn_error_make_sticky()
           : depth == 0 ? NULL
                        : kn_scope_return(depth, kn_cumsum(areas(y, &p, n, dim), dim));
}
