/* ops/pointwise/binary.c - add, sub, mul, div, maximum of two tensors that broadcast. Each op's kernel has the op's
 * name. */
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/arithmetic.h"
#include "ops/pointwise/strided.h"

static kn_status same_dtype_output(kn_call *call) { return kn_broadcast_output(call, call->inputs[0]->dtype); }

static kn_status launch(kn_call *call, const char *source, const char *kernel)
{
    const kn_strided_launch launch = {.source = source,
                                      .kernel = kernel,
                                      .operation = call->op->name,
                                      .dtype = call->inputs[0]->dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0], call->inputs[1]}};
    return kn_launch_strided(call->stream, &launch);
}

static kn_status save_both(kn_call *call)
{
    if (!call->needs_grad)
        return KN_OK;
    KN_TRY(kn_call_save(call, call->inputs[0]));
    return kn_call_save(call, call->inputs[1]);
}

/* A gradient of f(a, b) by one kernel of binary_real.cl: kernel(dL/df, a, b). */
static kn_status give_by_kernel(kn_grad_call *grad, int i, const char *kernel)
{
    kn_tensor *result = kn_empty_like(grad->grad_outputs[0]);
    const kn_strided_launch launch = {.source = "pointwise/binary_real.cl",
                                      .kernel = kernel,
                                      .operation = grad->op->name,
                                      .dtype = grad->input[0].dtype,
                                      .output = result,
                                      .inputs = {grad->grad_outputs[0], grad->saved[0], grad->saved[1]}};
    if (!result)
        return kn_error_status();
    KN_TRY(kn_launch_strided(grad->stream, &launch));
    return kn_give_gradient(grad, i, result);
}

/* --- add, sub ---------------------------------------------------------------------------------------------------- */

static kn_status add_forward(kn_call *call)
{
    /* bool + bool is "or": 1 + 1 must stay 1. */
    return launch(call, "pointwise/binary.cl", call->inputs[0]->dtype == KN_BOOL ? "maximum" : "add");
}

kn_status kn_add_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(kn_give_gradient(grad, 0, grad->grad_outputs[0]));
    if (grad->needs[1])
        KN_TRY(kn_give_gradient(grad, 1, grad->grad_outputs[0]));
    return KN_OK;
}

static double add_number(double a, double b) { return a + b; }
static double or_number(double a, double b) { return a != 0 || b != 0; }
kn_status kn_add_reference(const kn_call *call)
{
    return kn_reference_binary(call, call->spec[0].dtype == KN_BOOL ? or_number : add_number);
}

kn_status kn_sub_check(const char *function, const kn_tensor *a, const kn_tensor *b)
{
    if (!a || !b || (a->dtype != KN_BOOL && b->dtype != KN_BOOL))
        return KN_OK;
    return kn_fail(KN_ERR_DTYPE,
                   "%s: bool tensors cannot be subtracted; compare them with kn_ne, or convert with kn_to_dtype first",
                   function);
}

static kn_status sub_forward(kn_call *call) { return launch(call, "pointwise/binary.cl", "sub"); }

kn_status kn_sub_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(kn_give_gradient(grad, 0, grad->grad_outputs[0]));
    if (grad->needs[1])
        KN_TRY(kn_give_gradient(grad, 1, kn_neg(grad->grad_outputs[0])));
    return KN_OK;
}

static double sub_number(double a, double b) { return a - b; }
kn_status kn_sub_reference(const kn_call *call) { return kn_reference_binary(call, sub_number); }

/* --- mul, div ---------------------------------------------------------------------------------------------------- */

/* Each operand is needed for the other's gradient. */
static kn_status mul_forward(kn_call *call)
{
    if (call->needs_grad) {
        KN_TRY(kn_call_save_for(call, 1, call->inputs[0]));
        KN_TRY(kn_call_save_for(call, 0, call->inputs[1]));
    }
    return launch(call, "pointwise/binary.cl", "mul");
}

static kn_status mul_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(kn_give_gradient(grad, 0, kn_mul(grad->grad_outputs[0], grad->saved[1])));
    if (grad->needs[1])
        KN_TRY(kn_give_gradient(grad, 1, kn_mul(grad->grad_outputs[0], grad->saved[0])));
    return KN_OK;
}

static double mul_number(double a, double b) { return a * b; }
kn_status kn_mul_reference(const kn_call *call) { return kn_reference_binary(call, mul_number); }

static kn_status div_shape(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    return same_dtype_output(call);
}

static kn_status div_forward(kn_call *call)
{
    if (call->needs_grad) {
        KN_TRY(kn_call_save_for(call, 1, call->inputs[0]));
        KN_TRY(kn_call_save(call, call->inputs[1]));
    }
    return launch(call, "pointwise/binary_real.cl", "quotient");
}

static kn_status div_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(kn_give_gradient(grad, 0, kn_div(grad->grad_outputs[0], grad->saved[1])));
    if (grad->needs[1])
        KN_TRY(give_by_kernel(grad, 1, "quotient_backward_divisor"));
    return KN_OK;
}

static double div_number(double a, double b) { return a / b; }
static kn_status div_reference(const kn_call *call) { return kn_reference_binary(call, div_number); }

/* --- maximum ----------------------------------------------------------------------------------------------------- */

static kn_status maximum_forward(kn_call *call)
{
    KN_TRY(save_both(call));
    return launch(call, "pointwise/binary.cl", "maximum");
}

static kn_status maximum_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(give_by_kernel(grad, 0, "maximum_backward_first"));
    if (grad->needs[1])
        KN_TRY(give_by_kernel(grad, 1, "maximum_backward_second"));
    return KN_OK;
}

static double maximum_number(double a, double b) { return a > b || isnan(a) ? a : b; }
static kn_status maximum_reference(const kn_call *call) { return kn_reference_binary(call, maximum_number); }

/* --- the ops ----------------------------------------------------------------------------------------------------- */

static const kn_op add_op = {.name = "add",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .shape = same_dtype_output,
                             .forward = add_forward,
                             .backward = kn_add_backward,
                             .reference = kn_add_reference};
static const kn_op sub_op = {.name = "sub",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .shape = same_dtype_output,
                             .forward = sub_forward,
                             .backward = kn_sub_backward,
                             .reference = kn_sub_reference};
static const kn_op mul_op = {.name = "mul",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .shape = same_dtype_output,
                             .forward = mul_forward,
                             .backward = mul_backward,
                             .reference = kn_mul_reference};
static const kn_op div_op = {.name = "div",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .shape = div_shape,
                             .forward = div_forward,
                             .backward = div_backward,
                             .reference = div_reference};
static const kn_op maximum_op = {.name = "maximum",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .shape = same_dtype_output,
                                 .forward = maximum_forward,
                                 .backward = maximum_backward,
                                 .reference = maximum_reference};

static kn_tensor *binary(const kn_op *op, kn_tensor *a, kn_tensor *b, bool real)
{
    kn_dtype result;

    if (!kn_argument_given(op->name, "a", a) || !kn_argument_given(op->name, "b", b))
        return NULL;
    result = kn_result_type(a, b);
    if (real)
        result = kn_real_type(result);
    return kn_apply_jointly(op, (kn_tensor *[]){a, b}, 2, NULL, result, result);
}

/* As in PyTorch, a factor or divisor without dimensions is not rounded to float16 first. */
static kn_tensor *scale(const kn_op *op, kn_tensor *a, kn_tensor *b, bool real)
{
    if (!a || !b || b->ndim > 0 || b->dtype == KN_F16 || kn_result_type(a, b) != KN_F16)
        return binary(op, a, b, real);
    return kn_apply_as(op, (kn_tensor *[]){a, b}, 2, NULL, KN_F32, KN_F16);
}

kn_tensor *kn_add(kn_tensor *a, kn_tensor *b) { return binary(&add_op, a, b, false); }
kn_tensor *kn_sub(kn_tensor *a, kn_tensor *b)
{
    return kn_sub_check("sub", a, b) == KN_OK ? binary(&sub_op, a, b, false) : kn_stick();
}
kn_tensor *kn_mul(kn_tensor *a, kn_tensor *b) { return scale(&mul_op, a, b, false); }
kn_tensor *kn_div(kn_tensor *a, kn_tensor *b) { return scale(&div_op, a, b, true); }
kn_tensor *kn_maximum(kn_tensor *a, kn_tensor *b) { return binary(&maximum_op, a, b, false); }
