/* ops/reduce/mean.c - the mean of all elements or over chosen dimensions: the sum (ops/shape/sum.c), divided by the
 * count. */
#include <koine/pointwise.h>
#include <koine/reduce.h>

#include "autograd/work.h"
#include "base/error.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/reduce.h"

static double count_of(const void *params, int ndim, const int64_t *shape)
{
    return (double)kn_reduce_count(params, ndim, shape);
}

static kn_status mean_shape(kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    if (!kn_dtype_is_floating(dtype))
        return kn_fail(KN_ERR_DTYPE, "x is %s; it must be floating", kn_dtype_name(dtype));
    return kn_reduce_output(call, call->params, dtype);
}

static kn_status mean_forward(kn_call *call)
{
    return kn_sum_divided(call, count_of(call->params, call->inputs[0]->ndim, call->inputs[0]->shape));
}

static kn_status mean_backward(kn_grad_call *grad)
{
    const double count = count_of(grad->params, grad->input[0].ndim, grad->input[0].shape);
    /* The gradient of nothing is nothing, and its own is 0: not 0 times infinity. */
    kn_tensor *share = kn_mul_scalar(grad->grad_outputs[0], count > 0 ? 1 / count : 0);

    grad->grad_inputs[0] = kn_reduce_spread(share, grad->params, grad->input[0].ndim, grad->input[0].shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status mean_reference(const kn_call *call)
{
    return kn_sum_reference(call, count_of(call->params, call->inputs[0]->ndim, call->inputs[0]->shape));
}

const kn_op kn_mean_op = {.name = "mean",
                          .inputs = {"x"},
                          .dtypes = {KN_DTYPES_FLOATING},
                          .params = KN_PARAMS(kn_reduce_args, kn_sum_rows),
                          .enter = kn_sum_enter,
                          .record_size = sizeof(kn_reduce_params),
                          .shape = mean_shape,
                          .forward = mean_forward,
                          .backward = mean_backward,
                          .backward_recorded = mean_backward,
                          .reference = mean_reference,
                          .work = kn_work_reducing};

kn_tensor *kn_mean_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    return kn_sum_invoke(&kn_mean_op, x, dims, num_dims, keepdim);
}

kn_tensor *kn_mean(kn_tensor *x) { return kn_mean_dims(x, NULL, 0, false); }
