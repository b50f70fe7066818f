/* ops/pointwise/fill.c - fill_, zero_: set every element of a tensor, which may be any view, to a number. */
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <koine/storage.h>

#include "autograd/work.h"
#include "base/error.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"

static kn_scalar value_of(const void *params) { return ((const kn_scalar_args *)params)->values[0]; }

static kn_status fill_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    return kn_call_output(call, a->dtype, a->ndim, a->shape);
}

static kn_status fill_forward(kn_call *call) { return kn_tensor_fill_with(call->inputs[0], value_of(call->params)); }

/* The old value does not affect the result: its gradient is zero. */
static kn_status fill_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_zeros_like(grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status fill_reference(const kn_call *call)
{
    const double value = value_of(call->params).real;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, call->spec[0].dtype == KN_BOOL ? value != 0 : value);
    return KN_OK;
}

const kn_op kn_fill__op = {.name = "fill_",
                           .inputs = {"a"},
                           .params = KN_PARAMS(kn_scalar_args, kn_value_rows),
                           .in_place = true,
                           .shape = fill_shape,
                           .forward = fill_forward,
                           .backward = fill_backward,
                           .backward_recorded = fill_backward,
                           .reference = fill_reference,
                           .work = kn_work_memory_bound};

kn_tensor *kn_fill_with_(kn_tensor *a, kn_scalar value)
{
    return kn_invoke(&kn_fill__op, &(kn_scalar_args){{value}}, a);
}

kn_tensor *kn_zero_(kn_tensor *a) { return kn_fill_(a, 0); }

/* --- the diagonal ------------------------------------------------------------------------------------------------- */

static kn_status check_diagonal(const kn_tensor *x)
{
    char text[KN_DESCRIBE];
    bool is_cube = x->ndim >= 2;
    for (int d = 1; d < x->ndim && x->ndim > 2; d++)
        is_cube &= x->shape[d] == x->shape[0];
    return is_cube ? KN_OK
                   : kn_fail(KN_ERR_SHAPE,
                             "fill_diagonal_: x must be a matrix, or have more dimensions of equal size, not be %s",
                             kn_tensor_describe(text, sizeof text, x));
}

kn_tensor *kn_fill_diagonal_with_(kn_tensor *x, kn_scalar value, bool wrap)
{
    if (!x)
        return NULL;
    if (check_diagonal(x) != KN_OK)
        return kn_error_make_sticky();
    if (x->ndim > 2) {
        int64_t stride = 0;
        for (int d = 0; d < x->ndim; d++)
            stride += x->strides[d];
        return kn_fill_with_(kn_as_strided(x, 1, x->shape, &stride, x->offset), value) ? x : NULL;
    }
    const int64_t rows = x->shape[0], columns = x->shape[1];
    for (int64_t start = 0; start < rows; start += columns + 1) {
        const int64_t length = rows - start < columns ? rows - start : columns;
        if (!kn_fill_with_(kn_diagonal(kn_narrow(x, 0, start, length)), value))
            return NULL;
        if (!wrap)
            break;
    }
    return x;
}
