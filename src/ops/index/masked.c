/* ops/index/masked.c - masks: masked_fill, masked_select, masked_scatter; one_hot. */
#include <koine/autograd.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/index/index.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/broadcast.h"

static kn_status check_mask(const kn_tensor *mask)
{
    return mask->dtype == KN_BOOL ? KN_OK
                                  : kn_fail(KN_ERR_DTYPE, "the mask is %s, not bool: convert it with kn_ne(mask, zero)",
                                            kn_dtype_name(mask->dtype));
}

/* Sets the sticky error of a function that is composed of others. */
static void *failed(const char *function) { return kn_error_prefix("%s", function), kn_error_make_sticky(); }

/* --- masked_fill -------------------------------------------------------------------------------------------------- */

static kn_pointwise_code masked_fill_code = {
    .name = "masked_fill", .inputs = "ab", .numbers = "p", .raw = "b", .values = {"b ? p : a"}};

static kn_scalar value_of(const void *params) { return ((const kn_masked_fill_args *)params)->value; }

static kn_status masked_fill_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *mask = call->inputs[1];
    const kn_scalar value = value_of(call->params);
    int64_t shape[KN_MAX_DIMS];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    int ndim;

    KN_TRY(check_mask(mask));
    KN_TRY(kn_broadcast_shapes(&ndim, shape, x, mask));
    if (!value.is_whole && !kn_dtype_is_floating(x->dtype))
        return kn_fail(KN_ERR_DTYPE, "x is %s, which does not hold the real number %g", kn_dtype_name(x->dtype),
                       value.real);
    if (call->op->in_place)
        KN_TRY(kn_tensor_check_no_overlap(x));
    if (call->op->in_place && kn_shape_numel(ndim, shape) != kn_numel(x))
        return kn_fail(KN_ERR_SHAPE, "the mask %s does not broadcast to %s", kn_tensor_describe(a, sizeof a, mask),
                       kn_tensor_describe(b, sizeof b, x));
    return kn_call_output(call, x->dtype, ndim, shape);
}

static kn_status masked_fill_forward(kn_call *call)
{
    const kn_tensor *const inputs[] = {call->inputs[0], call->inputs[1]};
    const kn_dtype dtype = call->inputs[0]->dtype;
    const kn_scalar value = value_of(call->params);

    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[1]));
    return kn_elements(call->stream, &masked_fill_code, call->op->name, kn_compute_type(dtype), call->outputs[0],
                       inputs, 2, &value);
}

static kn_status masked_fill_backward(kn_grad_call *grad)
{
    return kn_give_gradient(grad, 0, kn_masked_fill(grad->grad_outputs[0], grad->saved[0], 0));
}

static kn_status masked_fill_reference(const kn_call *call)
{
    kn_tensor *y = call->outputs[0];
    const double value = value_of(call->params).real;

    for (int64_t i = 0; i < kn_numel(y); i++) {
        const double x = kn_reference_get(call->inputs[0], kn_reference_index(call->inputs[0], y, i));
        const bool masked = kn_reference_get(call->inputs[1], kn_reference_index(call->inputs[1], y, i)) != 0;
        kn_reference_set(y, i, !masked ? x : call->spec[0].dtype == KN_BOOL ? value != 0 : value);
    }
    return KN_OK;
}

static const kn_op_param masked_fill_rows[] = {KN_PARAM(kn_masked_fill_args, value)};
#define MASKED_FILL_OP(op_name, in_place_)                                                                             \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x", "mask"}, .dtypes = {KN_DTYPES_ALL, 1u << KN_BOOL},                            \
        .params = KN_PARAMS(kn_masked_fill_args, masked_fill_rows), .in_place = in_place_, .strided_outputs = true,    \
        .shape = masked_fill_shape, .forward = masked_fill_forward, .backward = masked_fill_backward,                  \
        .backward_recorded = masked_fill_backward, .reference = masked_fill_reference, .saved = {                      \
            "mask"                                                                                                     \
        }                                                                                                              \
    }
const kn_op kn_masked_fill_op = MASKED_FILL_OP("masked_fill", false);
const kn_op kn_masked_fill__op = MASKED_FILL_OP("masked_fill_", true);

kn_tensor *kn_masked_fill_with(kn_tensor *x, kn_tensor *mask, kn_scalar value)
{
    return kn_invoke(&kn_masked_fill_op, &(kn_masked_fill_args){value}, x, mask);
}

kn_tensor *kn_masked_fill_with_(kn_tensor *x, kn_tensor *mask, kn_scalar value)
{
    return kn_invoke(&kn_masked_fill__op, &(kn_masked_fill_args){value}, x, mask);
}

/* --- masked_select, masked_scatter -------------------------------------------------------------------------------- */

static kn_tensor *flat(kn_tensor *x) { return kn_reshape(x, 1, (const int64_t[]){-1}); }

static kn_tensor *masked_select(kn_tensor *x, kn_tensor *mask)
{
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    if (check_mask(mask) != KN_OK || kn_broadcast_shapes(&ndim, shape, x, mask) != KN_OK)
        return failed("masked_select");
    x = kn_expand(x, ndim, shape);
    mask = kn_expand(mask, ndim, shape);
    return ndim > 0 ? kn_index(x, &mask, 1) : kn_take(flat(x), kn_index_places(flat(mask)));
}

kn_tensor *kn_masked_select(kn_tensor *x, kn_tensor *mask)
{
    if (!kn_check_argument("masked_select", "x", x) || !kn_check_argument("masked_select", "mask", mask))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, masked_select(x, mask));
}

/* The place of an element in `source` is the number of true elements before it; where the mask is false any will do. */
static kn_tensor *masked_scatter(kn_tensor *x, kn_tensor *mask, kn_tensor *source)
{
    if (check_mask(mask) != KN_OK || kn_index_check_source(x, source) != KN_OK)
        return failed("masked_scatter");
    mask = kn_expand(mask, x->ndim, x->shape);
    if (!mask)
        return failed("masked_scatter");
    if (kn_numel(source) == 0 || kn_numel(x) == 0)
        return kn_clone(x);
    kn_tensor *before = kn_add_scalar(kn_reshape(kn_cumsum(flat(mask), 0), x->ndim, x->shape), -1);
    return kn_where(mask, kn_take(source, kn_masked_fill(before, kn_eq(mask, kn_zeros_like(mask)), 0)), x);
}

kn_tensor *kn_masked_scatter(kn_tensor *x, kn_tensor *mask, kn_tensor *source)
{
    if (!kn_check_argument("masked_scatter", "x", x) || !kn_check_argument("masked_scatter", "mask", mask) ||
        !kn_check_argument("masked_scatter", "source", source))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, masked_scatter(x, mask, source));
}

/* --- one_hot ------------------------------------------------------------------------------------------------------ */

static kn_tensor *one_hot(kn_tensor *x, int64_t num_classes)
{
    int64_t shape[KN_MAX_DIMS];

    if (kn_index_check_dtype(x) != KN_OK)
        return failed("one_hot");
    if (x->ndim == KN_MAX_DIMS)
        return kn_fail_null(KN_ERR_SHAPE, "one_hot: the tensor already has %d dimensions, the maximum", KN_MAX_DIMS);
    if (num_classes < 1) {
        if (num_classes != -1 || kn_numel(x) == 0)
            return kn_fail_null(KN_ERR_ARGUMENT,
                                "one_hot: num_classes must be at least 1, or -1 with classes to count "
                                "them from, not %lld",
                                (long long)num_classes);
        if (kn_item_i64(kn_max(x), &num_classes) != KN_OK)
            return failed("one_hot");
        num_classes++;
    }
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim] = num_classes;
    const kn_tensor_options options = {.dtype = KN_I64, .device = kn_device_of(x)};
    return kn_scatter_value_(kn_zeros_with(x->ndim + 1, shape, &options), -1, kn_unsqueeze(x, -1), 1);
}

kn_tensor *kn_one_hot(kn_tensor *x, int64_t num_classes)
{
    if (!kn_check_argument("one_hot", "x", x))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, one_hot(x, num_classes));
}
