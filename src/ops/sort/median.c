/* ops/sort/median.c - the median of all elements. Elements equal to it share the gradient evenly. */
#include <koine/autograd.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>

#include "autograd/work.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/sort/engine.h"

static bool ignores_nan(const kn_op *op) { return op->detail != NULL; }

static kn_status median_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    if (kn_numel(x) == 0 && !kn_dtype_is_floating(x->dtype))
        return kn_fail(KN_ERR_SHAPE, "an empty tensor of integers has no median");
    return kn_call_output(call, x->dtype, 0, NULL);
}

static kn_status median_forward(kn_call *call)
{
    kn_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t all[] = {kn_numel(x)};
    if (call->needs_grad) {
        KN_TRY(kn_call_save(call, x));
        KN_TRY(kn_call_save(call, y));
    }
    if (all[0] == 0)
        return kn_tensor_fill(y, NAN);
    KN_NO_GRAD;
    kn_tensor *flat = kn_reshape(x, 1, all);
    kn_tensor *median =
        ignores_nan(call->op) ? kn_nanmedian_dim(flat, 0, false, NULL) : kn_median_dim(flat, 0, false, NULL);
    return median ? kn_tensor_copy(y, median) : kn_error_status();
}

static kn_status median_backward(kn_grad_call *grad)
{
    kn_tensor *x = grad->saved[0], *y = grad->saved[1], *g = grad->grad_outputs[0];
    if (kn_numel(x) == 0) {
        grad->grad_inputs[0] = kn_zeros_like(x);
        return grad->grad_inputs[0] ? KN_OK : kn_error_status();
    }
    kn_tensor *equal = kn_where(kn_ne(y, y), kn_ne(x, x), kn_eq(x, y));
    kn_tensor *count = equal ? kn_to_dtype(kn_sum(equal), kn_compute_type(x->dtype)) : NULL;
    kn_tensor *share = count ? kn_to_dtype(kn_div(g, count), x->dtype) : NULL;
    grad->grad_inputs[0] = share ? kn_where(equal, share, kn_zeros_like(share)) : NULL;
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status median_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const int64_t n = kn_numel(x);
    int64_t numbers = 0;
    int64_t *order = kn_sort_reference_order(x, 0, 1, n, false);
    if (!order)
        return KN_ERR_MEMORY;
    while (numbers < n && !isnan(kn_reference_get(x, order[numbers])))
        numbers++;
    const bool is_nan = numbers == 0 || (numbers < n && !ignores_nan(call->op));
    kn_reference_set(call->outputs[0], 0, is_nan ? NAN : kn_reference_get(x, order[(numbers - 1) / 2]));
    kn_free(order);
    return KN_OK;
}

static bool ignores;

#define MEDIAN_OP(id, detail_)                                                                                         \
    {                                                                                                                  \
        .name = #id, .inputs = {"x"}, .composes = true, .shape = median_shape, .forward = median_forward,              \
        .backward = median_backward, .backward_recorded = median_backward, .saved = {"x", "result"},                   \
        .reference = median_reference, .work = kn_work_reducing, .detail = detail_                                     \
    }
const kn_op kn_median_op = MEDIAN_OP(median, NULL), kn_nanmedian_op = MEDIAN_OP(nanmedian, &ignores);

kn_tensor *kn_median(kn_tensor *x) { return kn_invoke(&kn_median_op, NULL, x); }
kn_tensor *kn_nanmedian(kn_tensor *x) { return kn_invoke(&kn_nanmedian_op, NULL, x); }
