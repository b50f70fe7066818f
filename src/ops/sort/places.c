/* ops/sort/places.c - the places of elements: those that are not 0, without waiting; indices as coordinates; counts in
 * intervals. Compositions. */
#include <koine/autograd.h>
#include <koine/create.h>
#include <koine/index.h>
#include <koine/join.h>
#include <koine/logic.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>

#include "base/error.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

/* --- coordinates -------------------------------------------------------------------------------------------------- */

kn_status kn_unravel_index(kn_tensor *indices, int ndim, const int64_t *shape, kn_tensor **results)
{
    if (!indices)
        return kn_error_status() ? kn_error_status() : kn_fail_argument_null("kn_unravel_index", "indices");
    if (kn_dtype_is_floating(indices->dtype) || indices->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "unravel_index: indices is %s; it must be of integers",
                       kn_dtype_name(indices->dtype));
    for (int d = ndim - 1; d >= 0; d--)
        if (shape[d] < 1)
            return kn_fail(KN_ERR_ARGUMENT, "unravel_index: size %d of shape must be at least 1, not %lld", d,
                           (long long)shape[d]);
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    for (int d = ndim - 1; d >= 0; d--) {
        kn_tensor *rows = kn_floor_divide_scalar(indices, shape[d]);
        results[d] = kn_sub(indices, kn_mul_scalar(rows, shape[d]));
        indices = rows;
    }
    const bool made = ndim == 0 || results[0];
    const kn_status status = kn_scope_return_all(depth, results, made ? ndim : 0, results);
    return made ? status : kn_error_status();
}

kn_tensor *kn_nonzero_static(kn_tensor *x, int64_t size, int64_t fill_value)
{
    kn_tensor *coordinates[KN_MAX_DIMS];

    if (!x)
        return NULL;
    if (size < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "nonzero_static: size must be at least 0, not %lld", (long long)size);
    const kn_tensor_options options = {.dtype = KN_I64, .device = kn_device_of(x)};
    const int64_t n = kn_numel(x), found = n < size ? n : size;
    if (x->ndim == 0 || found == 0)
        return kn_full_with(2, (int64_t[]){size, x->ndim}, kn_scalar_int(fill_value), &options);
    KN_NO_GRAD;
    kn_tensor *is_zero = kn_to_dtype(kn_eq_scalar(kn_reshape(kn_contiguous(x), 1, &n), 0), KN_U8);
    kn_tensor *first = kn_narrow(kn_argsort(is_zero, .stable = true), 0, 0, found);
    if (!first || kn_unravel_index(first, x->ndim, x->shape, coordinates) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor *place = kn_arange_with(0, (double)found, 1, &options), *count = kn_count_nonzero(x);
    kn_tensor *is_one = kn_unsqueeze(kn_lt(place, count), 1);
    kn_tensor *fill = kn_full_with(2, (int64_t[]){size, x->ndim}, kn_scalar_int(fill_value), &options);
    kn_tensor *rows = kn_where(is_one, kn_stack(coordinates, x->ndim, 1), kn_narrow(fill, 0, 0, found));
    return found == size ? rows : kn_cat((kn_tensor *[]){rows, kn_narrow(fill, 0, found, size - found)}, 2, 0);
}

/* --- counts in intervals ------------------------------------------------------------------------------------------ */

kn_histogram_params kn_histogram_params_init(void) { return (kn_histogram_params){KN_HISTOGRAM_DEFAULTS}; }

static kn_status check_histogram(const kn_tensor *x, const kn_histogram_params *p)
{
    char of[KN_DESCRIBE], has[KN_DESCRIBE];
    if (x->dtype != KN_F32 && x->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "x is %s; it must be float32 or float64", kn_dtype_name(x->dtype));
    if (p->edges && (p->edges->ndim != 1 || kn_numel(p->edges) < 2 || p->edges->dtype != x->dtype))
        return kn_fail(KN_ERR_SHAPE, "edges must be a vector of 2 or more %s, not %s", kn_dtype_name(x->dtype),
                       kn_tensor_describe(has, sizeof has, p->edges));
    if (!p->edges && p->bins < 1)
        return kn_fail(KN_ERR_ARGUMENT, "bins must be at least 1, not %lld", (long long)p->bins);
    if (!(p->max >= p->min) || isinf(p->max) || isinf(p->min))
        return kn_fail(KN_ERR_ARGUMENT, "min and max are %g and %g; they must be finite, and max at least min", p->min,
                       p->max);
    if (p->weight && (!kn_same_shape(p->weight, x) || p->weight->dtype != x->dtype))
        return kn_fail(KN_ERR_SHAPE, "weight must be as x, %s, not %s", kn_tensor_describe(of, sizeof of, x),
                       kn_tensor_describe(has, sizeof has, p->weight));
    return KN_OK;
}

/* Equally spaced edges; of the elements' range, for which the call waits, if both ends are 0. */
static kn_tensor *edges_of(kn_tensor *x, const kn_histogram_params *p)
{
    double low = p->min, high = p->max;
    if (low == 0 && high == 0 && kn_numel(x) == 0)
        high = 1;
    else if (low == 0 && high == 0 && (kn_item(kn_min(x), &low) != KN_OK || kn_item(kn_max(x), &high) != KN_OK))
        return NULL;
    if (!isfinite(low) || !isfinite(high))
        return kn_fail_null(KN_ERR_ARGUMENT, "histogram: x ranges from %g to %g: give min and max", low, high);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    return kn_linspace(low, high, p->bins + 1, .dtype = x->dtype, .device = kn_device_of(x));
}

/* [bins]: how many elements, or the sum of their weights, in each interval; the last includes its end. */
static kn_tensor *sums_in(kn_tensor *x, kn_tensor *edges, kn_tensor *weight)
{
    const int64_t bins = kn_numel(edges) - 1, n = kn_numel(x);
    const kn_tensor_options options = {.dtype = weight ? x->dtype : KN_I64, .device = kn_device_of(x)};
    x = kn_reshape(kn_contiguous(x), 1, &n);
    kn_tensor *bin = kn_sub_scalar(kn_searchsorted(edges, x, .right = true), 1);
    kn_tensor *is_end = kn_eq(x, kn_narrow(edges, 0, bins, 1));
    kn_tensor *is_in = kn_logical_or(kn_logical_and(kn_ge_scalar(bin, 0), kn_lt_scalar(bin, bins)), is_end);
    kn_tensor *one = weight ? kn_reshape(kn_contiguous(weight), 1, &n) : kn_ones_with(1, &n, &options);
    kn_tensor *zero = kn_zeros_with(0, NULL, &options);
    kn_tensor *counted = kn_where(is_in, one, zero);
    kn_tensor *sums =
        kn_scatter_add(kn_zeros_with(1, &bins, &options), 0, kn_clamp(bin, .min = 0, .max = (double)bins - 1), counted);
    return kn_to_dtype(sums, kn_dtype_of(x));
}

static kn_tensor *histogram(kn_tensor *x, kn_tensor **edges, const kn_histogram_params *params)
{
    const kn_histogram_params p = params ? *params : kn_histogram_params_init();

    if (check_histogram(x, &p) != KN_OK) {
        kn_error_prefix("histogram");
        return kn_error_make_sticky();
    }
    KN_NO_GRAD;
    kn_tensor *bounds = p.edges ? p.edges : edges_of(x, &p);
    kn_tensor *result = bounds ? sums_in(x, bounds, p.weight) : NULL;
    if (result && p.density)
        result = kn_div(kn_div(result, kn_sum(result)), kn_diff(bounds));
    *edges = bounds;
    return result;
}

kn_tensor *kn_histogram_with(kn_tensor *x, kn_tensor **edges, const kn_histogram_params *params)
{
    kn_tensor *results[2] = {NULL, NULL};
    const int depth = x ? kn_scope_begin() : 0;

    if (edges)
        *edges = NULL;
    if (depth == 0)
        return NULL;
    results[0] = histogram(x, &results[1], params);
    if (kn_scope_return_all(depth, results, results[0] ? 1 + (edges != NULL) : 0, results) != KN_OK)
        return NULL;
    if (edges && results[0])
        *edges = results[1];
    return results[0];
}
