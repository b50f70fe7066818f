/* ops/pointwise/unary.c - neg, exp, log, sqrt, abs, relu, sigmoid, tanh. */
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/strided.h"

/* --- shared ------------------------------------------------------------------------------------------------------ */

static const char any_source[] = "pointwise/unary.cl", real_source[] = "pointwise/unary_math.cl";

static kn_status same_output(kn_call *call) { return kn_broadcast_output(call, call->inputs[0]->dtype); }

static kn_status number_output(kn_call *call)
{
    if (call->inputs[0]->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "not defined for bool tensors; convert with kn_to_dtype first");
    return same_output(call);
}

static kn_status real_output(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    return same_output(call);
}

static kn_status launch(kn_call *call, const char *source, const char *kernel)
{
    const kn_strided_launch launch = {.source = source,
                                      .kernel = kernel,
                                      .operation = call->op->name,
                                      .dtype = call->inputs[0]->dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0]}};
    return kn_launch_strided(call->stream, &launch);
}

static kn_status launch_saving_input(kn_call *call, const char *source, const char *kernel)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[0]));
    return launch(call, source, kernel);
}

static kn_status launch_saving_output(kn_call *call, const char *source, const char *kernel)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[0]));
    return launch(call, source, kernel);
}

/* dL/dx = kernel(dL/dy, what was saved). */
static kn_status backward_by_kernel(kn_grad_call *grad, const char *source, const char *kernel)
{
    const kn_strided_launch launch = {.source = source,
                                      .kernel = kernel,
                                      .operation = grad->op->name,
                                      .dtype = grad->input[0].dtype,
                                      .output = grad->grad_inputs[0] = kn_empty_like(grad->grad_outputs[0]),
                                      .inputs = {grad->grad_outputs[0], grad->saved[0]}};
    return launch.output ? kn_launch_strided(grad->stream, &launch) : kn_error_status();
}

static kn_tensor *unary(const kn_op *op, kn_tensor *x, bool real)
{
    kn_dtype result;

    if (!kn_argument_given(op->name, "x", x))
        return NULL;
    result = real ? kn_real_type(x->dtype) : x->dtype;
    return kn_apply_as(op, &x, 1, NULL, kn_compute_type(result), result);
}

/* --- neg, abs, relu: any dtype but bool -------------------------------------------------------------------------- */

static kn_status neg_forward(kn_call *call) { return launch(call, any_source, "negative"); }
static kn_status neg_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_neg(grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}
static double neg_number(double x) { return -x; }
static kn_status neg_reference(const kn_call *call) { return kn_reference_unary(call, neg_number); }
static const kn_op neg_op = {.name = "neg",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .shape = number_output,
                             .forward = neg_forward,
                             .backward = neg_backward,
                             .reference = neg_reference};
kn_tensor *kn_neg(kn_tensor *x) { return unary(&neg_op, x, false); }

static kn_status abs_forward(kn_call *call) { return launch_saving_input(call, any_source, "absolute"); }
static kn_status abs_backward(kn_grad_call *grad) { return backward_by_kernel(grad, any_source, "absolute_backward"); }
static kn_status abs_reference(const kn_call *call) { return kn_reference_unary(call, fabs); }
static const kn_op abs_op = {.name = "abs",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .shape = number_output,
                             .forward = abs_forward,
                             .backward = abs_backward,
                             .reference = abs_reference};
kn_tensor *kn_abs(kn_tensor *x) { return unary(&abs_op, x, false); }

static kn_status relu_forward(kn_call *call) { return launch_saving_output(call, any_source, "relu"); }
static kn_status relu_backward(kn_grad_call *grad) { return backward_by_kernel(grad, any_source, "relu_backward"); }
static double relu_number(double x) { return x < 0 ? 0 : x; }
static kn_status relu_reference(const kn_call *call) { return kn_reference_unary(call, relu_number); }
static const kn_op relu_op = {.name = "relu",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = number_output,
                              .forward = relu_forward,
                              .backward = relu_backward,
                              .reference = relu_reference};
kn_tensor *kn_relu(kn_tensor *x) { return unary(&relu_op, x, false); }

/* --- functions of real numbers: whole dtypes give float32 -------------------------------------------------------- */

static kn_status exp_forward(kn_call *call) { return launch_saving_output(call, real_source, "exponential"); }
static kn_status exp_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_mul(grad->grad_outputs[0], grad->saved[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}
static kn_status exp_reference(const kn_call *call) { return kn_reference_unary(call, exp); }
static const kn_op exp_op = {.name = "exp",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .shape = real_output,
                             .forward = exp_forward,
                             .backward = exp_backward,
                             .reference = exp_reference};
kn_tensor *kn_exp(kn_tensor *x) { return unary(&exp_op, x, true); }

static kn_status log_forward(kn_call *call) { return launch_saving_input(call, real_source, "logarithm"); }
static kn_status log_backward(kn_grad_call *grad)
{
    return backward_by_kernel(grad, real_source, "logarithm_backward");
}
static kn_status log_reference(const kn_call *call) { return kn_reference_unary(call, log); }
static const kn_op log_op = {.name = "log",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .shape = real_output,
                             .forward = log_forward,
                             .backward = log_backward,
                             .reference = log_reference};
kn_tensor *kn_log(kn_tensor *x) { return unary(&log_op, x, true); }

static kn_status sqrt_forward(kn_call *call) { return launch_saving_output(call, real_source, "square_root"); }
static kn_status sqrt_backward(kn_grad_call *grad)
{
    return backward_by_kernel(grad, real_source, "square_root_backward");
}
static kn_status sqrt_reference(const kn_call *call) { return kn_reference_unary(call, sqrt); }
static const kn_op sqrt_op = {.name = "sqrt",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = real_output,
                              .forward = sqrt_forward,
                              .backward = sqrt_backward,
                              .reference = sqrt_reference};
kn_tensor *kn_sqrt(kn_tensor *x) { return unary(&sqrt_op, x, true); }

static kn_status sigmoid_forward(kn_call *call) { return launch_saving_output(call, real_source, "sigmoid"); }
static kn_status sigmoid_backward(kn_grad_call *grad)
{
    return backward_by_kernel(grad, real_source, "sigmoid_backward");
}
static double sigmoid_number(double x) { return 1 / (1 + exp(-x)); }
static kn_status sigmoid_reference(const kn_call *call) { return kn_reference_unary(call, sigmoid_number); }
static const kn_op sigmoid_op = {.name = "sigmoid",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .shape = real_output,
                                 .forward = sigmoid_forward,
                                 .backward = sigmoid_backward,
                                 .reference = sigmoid_reference};
kn_tensor *kn_sigmoid(kn_tensor *x) { return unary(&sigmoid_op, x, true); }

static kn_status tanh_forward(kn_call *call) { return launch_saving_output(call, real_source, "hyperbolic_tangent"); }
static kn_status tanh_backward(kn_grad_call *grad)
{
    return backward_by_kernel(grad, real_source, "hyperbolic_tangent_backward");
}
static kn_status tanh_reference(const kn_call *call) { return kn_reference_unary(call, tanh); }
static const kn_op tanh_op = {.name = "tanh",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = real_output,
                              .forward = tanh_forward,
                              .backward = tanh_backward,
                              .reference = tanh_reference};
kn_tensor *kn_tanh(kn_tensor *x) { return unary(&tanh_op, x, true); }
