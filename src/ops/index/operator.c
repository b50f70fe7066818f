/* ops/index/operator.c - what all gathers and scatters have in common as operators: see index.h. */
#include <koine/autograd.h>
#include <koine/reduce.h>
#include <string.h>

#include "base/text.h"
#include "ops/dispatch/reference.h"
#include "ops/index/index.h"
#include "ops/shape/views.h"
#include "tensor/strides.h"

/* --- maps --------------------------------------------------------------------------------------------------------- */

kn_status kn_index_check_dtype(const kn_tensor *index)
{
    return index->dtype == KN_I64 || index->dtype == KN_I32
               ? KN_OK
               : kn_fail(KN_ERR_DTYPE, "the index must be int64 or int32, not %s", kn_dtype_name(index->dtype));
}

kn_status kn_index_map_gather(kn_index_map *map, const kn_tensor *x, int dim, const kn_tensor *index)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    KN_TRY(kn_index_check_dtype(index));
    KN_TRY(kn_dim_from_front(&map->dim, dim, x->ndim));
    if (index->ndim != x->ndim && kn_numel(index) > 0)
        return kn_fail(KN_ERR_SHAPE, "the index must have as many dimensions as x: it is %s, and x %s",
                       kn_tensor_describe(a, sizeof a, index), kn_tensor_describe(b, sizeof b, x));
    map->ndim = index->ndim;
    map->size = x->ndim > 0 ? x->shape[map->dim] : 1;
    map->unit = 1;
    for (int d = 0; d < index->ndim; d++) {
        map->shape[d] = index->shape[d];
        map->own[d] = d == map->dim ? -1 : d;
        map->along[d] = d;
        if (kn_numel(index) > 0 && d != map->dim && index->shape[d] > x->shape[d])
            return kn_fail(KN_ERR_SHAPE,
                           "the index may not be larger than x except along dimension %d: it is %s, "
                           "and x %s",
                           map->dim, kn_tensor_describe(a, sizeof a, index), kn_tensor_describe(b, sizeof b, x));
    }
    return KN_OK;
}

kn_status kn_index_map_select(kn_index_map *map, const kn_tensor *x, int dim, const kn_tensor *index)
{
    char text[KN_DESCRIBE];

    KN_TRY(kn_index_check_dtype(index));
    KN_TRY(kn_dim_from_front(&map->dim, dim, x->ndim));
    if (index->ndim > 1)
        return kn_fail(KN_ERR_SHAPE, "the index must have one dimension, not %s",
                       kn_tensor_describe(text, sizeof text, index));
    map->ndim = x->ndim;
    map->size = x->ndim > 0 ? x->shape[map->dim] : 1;
    map->unit = 1;
    for (int d = 0; d < x->ndim; d++) {
        const bool is_indexed = d == map->dim;
        map->shape[d] = is_indexed ? kn_numel(index) : x->shape[d];
        map->own[d] = is_indexed ? -1 : d;
        map->along[d] = is_indexed && index->ndim > 0 ? 0 : -1;
    }
    return KN_OK;
}

kn_status kn_index_map_flat(kn_index_map *map, const kn_tensor *x, const kn_tensor *index)
{
    KN_TRY(kn_index_check_dtype(index));
    map->ndim = index->ndim;
    map->dim = -1;
    map->unit = 1;
    map->size = kn_numel(x);
    map->wraps = true;
    for (int d = 0; d < index->ndim; d++) {
        map->shape[d] = index->shape[d];
        map->own[d] = -1;
        map->along[d] = d;
    }
    return KN_OK;
}

kn_status kn_index_check_source(const kn_tensor *x, const kn_tensor *source)
{
    return x->dtype == source->dtype ? KN_OK
                                     : kn_fail(KN_ERR_DTYPE, "x is %s, but the source %s: convert one with kn_to_dtype",
                                               kn_dtype_name(x->dtype), kn_dtype_name(source->dtype));
}

/* --- the same by map: what gradients are made of ------------------------------------------------------------------ */

static const kn_op taken_op = {.name = "gather", .inputs = {"x", "index"}, KN_INDEX_GATHER_FIELDS};
static const kn_op set_op = {.name = "scatter", .inputs = {"x", "index", "source"}, KN_INDEX_SCATTER_FIELDS(false)};
static const kn_op spread_op = {
    .name = "scatter_add_", .inputs = {"x", "index", "source"}, KN_INDEX_SCATTER_FIELDS(true)};

kn_tensor *kn_index_taken(const kn_index_map *map, kn_tensor *table, kn_tensor *index)
{
    return kn_invoke(&taken_op, map, table, index);
}

kn_tensor *kn_index_scattered(const kn_index_map *map, kn_index_mode mode, kn_tensor *x, kn_tensor *index,
                              kn_tensor *source)
{
    kn_index_map own = *map;
    own.mode = mode;
    return kn_invoke(&set_op, &own, x, index, source);
}

kn_tensor *kn_index_spread(const kn_index_map *map, const kn_input_spec *input, kn_tensor *index, kn_tensor *gradient)
{
    const kn_tensor_options options = {.dtype = kn_compute_type(input->dtype), .device = input->device};
    kn_tensor *sum = kn_empty_with(input->ndim, input->shape, &options);
    kn_index_map adding = *map;

    adding.mode = KN_INDEX_ADD;
    adding.clears = true;
    sum = kn_invoke(&spread_op, &adding, sum, index, kn_to_dtype(gradient, options.dtype));
    return kn_to_dtype(sum, input->dtype);
}

/* --- gathers ------------------------------------------------------------------------------------------------------ */

kn_status kn_index_gather_shape(kn_call *call)
{
    const kn_index_map *map = call->params;
    char text[KN_DESCRIBE];

    if (map->size == 0 && kn_shape_numel(map->ndim, map->shape) > 0)
        return kn_fail(KN_ERR_SHAPE, "there is nothing to select from in %s",
                       kn_tensor_describe(text, sizeof text, call->inputs[0]));
    return kn_call_output(call, call->inputs[0]->dtype, map->ndim, map->shape);
}

kn_status kn_index_gather_forward(kn_call *call)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[1]));
    return kn_index_gather(call->stream, call->op->name, call->params, call->inputs[0], call->inputs[1],
                           call->outputs[0]);
}

kn_status kn_index_gather_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_index_spread(grad->params, &grad->input[0], grad->saved[0], grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* --- scatters ----------------------------------------------------------------------------------------------------- */

kn_status kn_index_scatter_shape(kn_call *call)
{
    const kn_index_map *map = call->params;
    const kn_tensor *x = call->inputs[0], *source = call->inputs[2];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    bool fits = source->ndim == map->ndim || source->ndim == 0;

    KN_TRY(kn_index_check_source(x, source));
    for (int d = 0; d < map->ndim && fits && source->ndim > 0; d++)
        fits = source->shape[d] >= map->shape[d];
    if (!fits && kn_shape_numel(map->ndim, map->shape) > 0)
        return kn_fail(KN_ERR_SHAPE, "the source is %s, but the index selects %s",
                       kn_tensor_describe(a, sizeof a, source), kn_format_shape(b, sizeof b, map->ndim, map->shape));
    if (map->size == 0 && kn_shape_numel(map->ndim, map->shape) > 0)
        return kn_fail(KN_ERR_SHAPE, "there is nothing to change in %s", kn_tensor_describe(a, sizeof a, x));
    if (call->op->in_place)
        KN_TRY(kn_tensor_check_no_overlap(x));
    return kn_call_output(call, x->dtype, x->ndim, x->shape);
}

kn_status kn_index_scatter_forward(kn_call *call)
{
    kn_tensor *y = call->outputs[0];

    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[1]));
    return kn_index_scatter(call->stream, call->op->name, call->params, y, call->op->in_place ? NULL : call->inputs[0],
                            call->inputs[1], call->inputs[2]);
}

/* The places' gradient in the shape of a source that is larger, or, if there are no places, any other. */
kn_tensor *kn_index_enlarge(kn_tensor *gradient, const kn_input_spec *source)
{
    if (gradient && kn_numel(gradient) == 0)
        return kn_zeros_with(source->ndim, source->shape,
                             &(kn_tensor_options){.dtype = gradient->dtype, .device = kn_device_of(gradient)});
    for (int d = 0; gradient && d < source->ndim; d++)
        if (gradient->shape[d] != source->shape[d])
            gradient = kn_invoke(&kn_narrow_backward_op,
                                 (&(kn_narrow_backward_args){.dim = d, .size = source->shape[d]}), gradient);
    return gradient;
}

static kn_tensor *gradient_of_source(kn_grad_call *grad)
{
    const kn_input_spec *source = &grad->input[2];
    kn_tensor *places = kn_index_taken(grad->params, grad->grad_outputs[0], grad->saved[0]);

    if (source->ndim == 0 && ((const kn_index_map *)grad->params)->ndim > 0)
        return kn_sum(places);
    return kn_index_enlarge(places, source);
}

static kn_tensor *cut_off(kn_grad_call *grad)
{
    kn_tensor *g = grad->grad_outputs[0];
    kn_tensor *zero = kn_zeros(KN_SCALAR, .dtype = g->dtype, .device = kn_device_of(g));
    return kn_index_scattered(grad->params, KN_INDEX_SET, g, grad->saved[0], zero);
}

/* Sums pass the gradient on to x; written values cut it off. */
kn_status kn_index_scatter_backward(kn_grad_call *grad)
{
    const kn_index_map *map = grad->params;
    bool done = true;

    if (map->mode > KN_INDEX_ADD)
        return kn_fail(KN_ERR_STATE, "only sums and written values have a gradient");
    if (grad->needs[0])
        done = (grad->grad_inputs[0] = map->mode == KN_INDEX_ADD ? grad->grad_outputs[0] : cut_off(grad)) != NULL;
    if (grad->needs[2])
        done = (grad->grad_inputs[2] = gradient_of_source(grad)) != NULL && done;
    return done ? KN_OK : kn_error_status();
}

/* --- references --------------------------------------------------------------------------------------------------- */

/* The table's element at place `i`; -1 if the index is out of range. */
static int64_t element_at(const kn_index_map *map, const kn_tensor *table, const kn_tensor *index, int64_t i)
{
    int64_t strides[KN_MAX_DIMS], own[KN_MAX_DIMS], element = 0, of = 0;

    kn_strides_contiguous(strides, table->ndim, table->shape);
    kn_strides_contiguous(own, index->ndim, index->shape);
    for (int d = map->ndim - 1; d >= 0; d--) {
        const int64_t at = i % map->shape[d];
        element += map->own[d] >= 0 ? at * strides[map->own[d]] : 0;
        of += map->along[d] >= 0 ? at * own[map->along[d]] : 0;
        i /= map->shape[d];
    }
    int64_t at = (int64_t)kn_reference_get(index, of);
    at += map->wraps && at < 0 ? map->size : 0;
    return at < 0 || at >= map->size
               ? -1
               : element + at * (map->dim >= 0 && table->ndim > 0 ? strides[map->dim] : map->unit);
}

kn_status kn_index_gather_reference(const kn_call *call)
{
    const kn_index_map *map = call->params;

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const int64_t element = element_at(map, call->inputs[0], call->inputs[1], i);
        if (element >= 0)
            kn_reference_set(call->outputs[0], i, kn_reference_get(call->inputs[0], element));
    }
    return KN_OK;
}

static double combine(kn_index_mode mode, double a, double b)
{
    switch (mode) {
    case KN_INDEX_ADD:
        return a + b;
    case KN_INDEX_MULTIPLY:
        return a * b;
    case KN_INDEX_MAX:
        return b > a || isnan(b) ? b : a;
    case KN_INDEX_MIN:
        return b < a || isnan(b) ? b : a;
    default:
        return b;
    }
}

/* The element of the source at place `i`: it may be larger than the space, or one number. */
static double source_at(const kn_index_map *map, const kn_tensor *source, int64_t i)
{
    int64_t at = 0, step = 1;

    for (int d = map->ndim - 1; d >= 0 && source->ndim > 0; d--) {
        at += i % map->shape[d] * step;
        step *= source->shape[d];
        i /= map->shape[d];
    }
    return kn_reference_get(source, at);
}

void kn_index_reference_copy(const kn_call *call)
{
    for (int64_t i = 0; i < kn_numel(call->inputs[0]); i++)
        kn_reference_set(call->outputs[0], i, kn_reference_get(call->inputs[0], i));
}

void kn_index_reference_scatter(const kn_call *call, const kn_index_map *map, const double *number)
{
    kn_tensor *y = call->outputs[0];

    for (int64_t i = 0; i < kn_shape_numel(map->ndim, map->shape); i++) {
        const int64_t element = element_at(map, call->inputs[0], call->inputs[1], i);
        if (element < 0)
            continue;
        const double source = number ? *number : source_at(map, call->inputs[2], i);
        const double value = combine(map->mode, kn_reference_get(y, element), source);
        kn_reference_set(y, element, call->spec[0].dtype == KN_BOOL ? value != 0 : value);
    }
}

kn_status kn_index_scatter_reference(const kn_call *call)
{
    const kn_index_map *map = call->params;

    kn_index_reference_copy(call);
    for (int64_t i = 0; map->clears && i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, 0);
    kn_index_reference_scatter(call, map, NULL);
    return KN_OK;
}
