/* ops/pointwise/activation.c - the activations that operations apply to their own results, where a pass of its own is
 * needed. */
#include "ops/pointwise/activation.h"

#include <koine/tensor.h>
#include <string.h>

#include "ops/pointwise/strided.h"

kn_status kn_activation_check(kn_activation activation)
{
    if ((unsigned)activation <= KN_ACTIVATION_RELU6)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%d is no kn_activation", (int)activation);
}

kn_arg kn_activation_argument(char packed[16], kn_dtype dtype, kn_activation activation)
{
    const kn_cut cut = kn_cut_of(activation);
    const size_t size = kn_dtype_size(dtype);
    const kn_arg low = kn_arg_element(dtype, cut.low), high = kn_arg_element(dtype, cut.high);

    memcpy(packed, &low.value, size);
    memcpy(packed + size, &high.value, size);
    return kn_arg_struct(packed, 2 * size);
}

static kn_tensor *gradient_of(const kn_grad_call *grad, kn_activation activation, kn_tensor *gradient, kn_tensor *y)
{
    char packed[16];
    const kn_arg parameter = kn_activation_argument(packed, y->dtype, activation);
    const kn_strided_launch launch = {.source = "pointwise/clamp.cl",
                                      .kernel = "hardtanh_backward",
                                      .operation = grad->op->name,
                                      .dtype = y->dtype,
                                      .output = kn_empty_like(gradient),
                                      .inputs = {gradient, y},
                                      .parameter = &parameter};
    if (!launch.output || kn_launch_strided(grad->stream, &launch) != KN_OK)
        return NULL;
    return launch.output;
}

kn_tensor *kn_activation_gradient(const kn_grad_call *grad, kn_activation activation, kn_tensor *y)
{
    kn_tensor *gradient = grad->grad_outputs[0];
    if (activation == KN_ACTIVATION_NONE)
        return gradient;
    if (y->dtype != KN_F16)
        return gradient_of(grad, activation, gradient, y);
    gradient = kn_to_dtype(gradient, KN_F32);
    y = gradient ? kn_to_dtype(y, KN_F32) : NULL;
    gradient = y ? gradient_of(grad, activation, gradient, y) : NULL;
    return gradient ? kn_to_dtype(gradient, KN_F16) : NULL;
}
