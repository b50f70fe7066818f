/* ops/index/scatter_views.c - copies of a tensor in which what a view shows is replaced: by indices along a dimension,
 * or the same view of the elements' places tells where. Compositions. */
#include <koine/index.h>
#include <koine/operators.h>
#include <koine/shape.h>

#include "base/text.h"
#include "ops/dispatch/invoke.h"

enum { X, SOURCE };

static kn_tensor *places_in(kn_tensor *x)
{
    kn_tensor *places = kn_arange(0, (double)kn_numel(x), 1, .dtype = KN_I64, .device = kn_device_of(x));
    return kn_reshape(places, x->ndim, x->shape);
}

/* `part`: the view that source replaces, or one of its shape. */
static kn_status check_source(const kn_entry *entry, const kn_tensor *part)
{
    const kn_tensor *x = entry->inputs[X], *source = entry->inputs[SOURCE];
    char has[KN_DESCRIBE], wanted[KN_DESCRIBE];

    if (!part)
        return kn_error_status();
    if (!kn_same_shape(part, source) || x->dtype != source->dtype)
        return kn_fail(KN_ERR_SHAPE, "source is %s, but it replaces %s of %s",
                       kn_tensor_describe(has, sizeof has, source), kn_dtype_name(x->dtype),
                       kn_format_shape(wanted, sizeof wanted, part->ndim, part->shape));
    return KN_OK;
}

static kn_tensor *places_along(kn_tensor *x, int dim)
{
    return kn_arange(0, (double)x->shape[dim], 1, .dtype = KN_I64, .device = kn_device_of(x));
}

static kn_status select_enter(kn_entry *entry)
{
    const kn_select_args *args = entry->params;
    kn_tensor *x = entry->inputs[X];
    int dim;

    KN_TRY(check_source(entry, kn_select(x, args->dim, args->index)));
    KN_TRY(kn_dim_from_front(&dim, args->dim, x->ndim));
    kn_tensor *place = kn_unsqueeze(kn_select(places_along(x, dim), 0, args->index), 0);
    kn_tensor *source = kn_unsqueeze(entry->inputs[SOURCE], dim);
    return kn_status_of(entry->result = kn_index_copy(x, dim, place, source));
}

static kn_status slice_enter(kn_entry *entry)
{
    const kn_slice_args *args = entry->params;
    kn_tensor *x = entry->inputs[X];
    int dim;

    KN_TRY(check_source(entry, kn_slice(x, args->dim, args->start, args->stop, args->step)));
    KN_TRY(kn_dim_from_front(&dim, args->dim, x->ndim));
    kn_tensor *places = kn_slice(places_along(x, dim), 0, args->start, args->stop, args->step);
    return kn_status_of(entry->result = kn_index_copy(x, dim, places, entry->inputs[SOURCE]));
}

static kn_status put(kn_entry *entry, kn_tensor *places)
{
    kn_tensor *x = entry->inputs[X], *source = entry->inputs[SOURCE];
    KN_TRY(check_source(entry, places));
    return kn_status_of(entry->result = kn_numel(source) > 0 ? kn_put(x, places, source) : kn_clone(x));
}

static kn_status diagonal_enter(kn_entry *entry)
{
    return put(entry, kn_diagonal_with(places_in(entry->inputs[X]), entry->params));
}

static kn_status as_strided_enter(kn_entry *entry)
{
    const kn_as_strided_args *args = entry->params;
    if (args->strides.count != args->shape.count)
        return kn_fail(KN_ERR_ARGUMENT, "strides has %d values; it takes %d, as shape", args->strides.count,
                       args->shape.count);
    return put(entry, kn_as_strided(places_in(entry->inputs[X]), args->shape.count, args->shape.values,
                                    args->strides.values, args->offset));
}

static const kn_op_param select_rows[] = {KN_PARAM(kn_select_args, dim), KN_PARAM(kn_select_args, index)};
static const kn_op_param slice_rows[] = {KN_PARAM(kn_slice_args, dim), KN_PARAM(kn_slice_args, start),
                                         KN_PARAM(kn_slice_args, stop),
                                         KN_PARAM(kn_slice_args, step, .min = 1, .max = 9e15)};
static const kn_op_param diagonal_rows[] = {KN_PARAM(kn_diagonal_params, offset), KN_PARAM(kn_diagonal_params, dim1),
                                            KN_PARAM(kn_diagonal_params, dim2)};
static const kn_op_param as_strided_rows[] = {
    KN_PARAM(kn_as_strided_args, shape), KN_PARAM(kn_as_strided_args, strides), KN_PARAM(kn_as_strided_args, offset)};

#define SCATTER_OP(view, ...)                                                                                          \
    const kn_op kn_##view##_scatter_op = {.name = #view "_scatter",                                                    \
                                          .inputs = {"x", "source"},                                                   \
                                          .params = KN_PARAMS(__VA_ARGS__),                                            \
                                          .composes = true,                                                            \
                                          .enter = view##_enter};
SCATTER_OP(select, kn_select_args, select_rows)
SCATTER_OP(slice, kn_slice_args, slice_rows, .stop = KN_SLICE_END, .step = 1)
SCATTER_OP(diagonal, kn_diagonal_params, diagonal_rows, KN_DIAGONAL_DEFAULTS)
SCATTER_OP(as_strided, kn_as_strided_args, as_strided_rows)

kn_tensor *kn_select_scatter(kn_tensor *x, kn_tensor *source, int dim, int64_t index)
{
    const kn_select_args args = {dim, index};
    return kn_invoke(&kn_select_scatter_op, &args, x, source);
}

kn_tensor *kn_slice_scatter(kn_tensor *x, kn_tensor *source, int dim, int64_t start, int64_t stop, int64_t step)
{
    const kn_slice_args args = {dim, start, stop, step};
    return kn_invoke(&kn_slice_scatter_op, &args, x, source);
}

kn_tensor *kn_diagonal_scatter_with(kn_tensor *x, kn_tensor *source, const kn_diagonal_params *params)
{
    return kn_invoke(&kn_diagonal_scatter_op, params, x, source);
}

kn_tensor *kn_as_strided_scatter(kn_tensor *x, kn_tensor *source, int ndim, const int64_t *shape,
                                 const int64_t *strides, int64_t offset)
{
    kn_as_strided_args args = {.shape.count = ndim, .strides.count = ndim, .offset = offset};
    if (ndim < 0 || ndim > KN_MAX_DIMS || (ndim > 0 && (!shape || !strides)))
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "as_strided_scatter: shape and strides must have 0 to %d dimensions, not %d", KN_MAX_DIMS,
                            ndim);
    for (int d = 0; d < ndim; d++) {
        args.shape.values[d] = shape[d];
        args.strides.values[d] = strides[d];
    }
    return kn_invoke(&kn_as_strided_scatter_op, &args, x, source);
}
