/* ops/linear.c - torch.nn.functional.linear: y = x weight^T + bias, the bias added where the product is stored. */
#include <koine/functional.h>
#include <koine/ops.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/activation.h"
#include "ops/gemm.h"
#include "ops/matrix.h"
#include "ops/promote.h"
#include "ops/reference.h"

/* --- shape rule --------------------------------------------------------------------------------------------------- */

static kn_status check_shapes(const kn_tensor *x, const kn_tensor *weight, const kn_tensor *bias)
{
    char text_x[KN_DESCRIBE], text_weight[KN_DESCRIBE], text_bias[KN_DESCRIBE];
    kn_format_shape(text_x, sizeof text_x, x->ndim, x->shape);
    kn_format_shape(text_weight, sizeof text_weight, weight->ndim, weight->shape);
    if (weight->ndim != 2)
        return kn_fail(KN_ERR_SHAPE, "the weight must be [out, in], not %s", text_weight);
    if (x->ndim == 0 || x->shape[x->ndim - 1] != weight->shape[1])
        return kn_fail(KN_ERR_SHAPE, "the last dimension of the input %s must be the weight's %s last, %lld", text_x,
                       text_weight, (long long)weight->shape[1]);
    if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return kn_fail(KN_ERR_SHAPE, "the bias must be [%lld] for the weight %s, not %s", (long long)weight->shape[0],
                       text_weight, kn_format_shape(text_bias, sizeof text_bias, bias->ndim, bias->shape));
    return KN_OK;
}

static kn_activation activation_of(const kn_linear_options *options) { return options->activation; }

static kn_status linear_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1];
    int64_t shape[KN_MAX_DIMS];
    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_call_check_same_dtype(call, 0, 2));
    KN_TRY(kn_activation_check(activation_of(call->params)));
    KN_TRY(check_shapes(x, weight, call->num_inputs > 2 ? call->inputs[2] : NULL));
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d < x->ndim - 1 ? x->shape[d] : weight->shape[0];
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* A multiplication and an addition per weight and row, the bias' addition; each gradient is a product of the same size.
 */
static kn_work linear_work(const kn_call *call)
{
    bool bias = call->num_inputs > 2 && call->inputs[2], activation = activation_of(call->params);
    return kn_work_of_outputs(call, 2 * (double)call->inputs[1]->shape[1] + bias + activation);
}

static kn_work linear_backward_work(const kn_grad_call *grad)
{
    double outputs = (double)kn_numel(grad->grad_outputs[0]), in = (double)grad->input[1].shape[1];
    bool bias = grad->num_inputs > 2 && grad->needs[2], activation = activation_of(grad->params);
    return kn_grad_work(grad, outputs * (2 * in * (grad->needs[0] + grad->needs[1]) + bias + activation));
}

/* --- products of matrices that are tensors ------------------------------------------------------------------------ */

/* A tensor [..., columns] as one matrix of all its rows; a copy where its strides do not allow that. */
static kn_status rows_operand(kn_matrix_operand *result, kn_tensor *t)
{
    int64_t columns = t->shape[t->ndim - 1], rows = kn_shape_numel(t->ndim - 1, t->shape);
    if (t->ndim == 2)
        return kn_matrix_operand_of(result, t);
    kn_tensor *whole = NULL;
    KN_TRY(kn_tensor_contiguous(&whole, t));
    *result = (kn_matrix_operand){
        .operand = {whole->storage->buffer, whole->offset, columns > 0 ? columns : 1, rows * columns, false},
        .copy = whole};
    return KN_OK;
}

static kn_gemm_operand transposed(kn_gemm_operand x)
{
    x.transposed = !x.transposed;
    return x;
}

/* target [m, n] = activation(a [m, k] b [k, n] (+ bias)). */
static kn_status multiply(kn_stream *stream, kn_tensor *target, int64_t m, int64_t n, int64_t k, kn_gemm_operand a,
                          kn_gemm_operand b, const kn_tensor *bias, kn_activation activation)
{
    kn_gemm_problem problem = {
        .product = {.f64 = target->dtype == KN_F64,
                    .m = m,
                    .n = n,
                    .k = k,
                    .batch = 1,
                    .alpha = 1,
                    .a = a,
                    .b = b,
                    .c = {target->storage->buffer, target->offset, n, 0, false}},
        .bias = bias ? bias->storage->buffer : NULL,
        .bias_offset = bias ? bias->offset : 0,
        .activation = activation,
    };
    return kn_gemm(stream, &problem);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status linear_forward(kn_call *call)
{
    kn_tensor *y = call->outputs[0], *bias = NULL;
    int64_t out = call->inputs[1]->shape[0], in = call->inputs[1]->shape[1],
            rows = kn_shape_numel(y->ndim - 1, y->shape);
    kn_matrix_operand x = {0}, weight = {0};
    kn_status status = rows_operand(&x, call->inputs[0]);
    if (status == KN_OK)
        status = kn_matrix_operand_of(&weight, call->inputs[1]);
    if (status == KN_OK && call->num_inputs > 2 && call->inputs[2])
        status = kn_tensor_contiguous(&bias, call->inputs[2]);
    if (status == KN_OK)
        status = multiply(call->stream, y, rows, out, in, x.operand, transposed(weight.operand), bias,
                          activation_of(call->params));
    kn_release(bias);
    kn_release(x.copy);
    kn_release(weight.copy);
    for (int i = 0; status == KN_OK && call->needs_grad && i < 2; i++)
        status = kn_call_save_for(call, 1 - i, call->inputs[i]); /* each for the other's gradient */
    if (status == KN_OK && call->needs_grad && activation_of(call->params) != KN_ACTIVATION_NONE)
        status = kn_call_save(call, y); /* tells where the activation cut off */
    return status;
}

/* --- backward: dx = dy weight, dweight = dy^T x, dbias = the sum of dy over its rows ------------------------------ */

static kn_status new_gradient(kn_grad_call *grad, int index)
{
    kn_tensor *gradient = NULL;
    KN_TRY(kn_tensor_new(&gradient, grad->input[index].dtype, grad->input[index].ndim, grad->input[index].shape,
                         kn_stream_device(grad->stream)));
    grad->grad_inputs[index] = kn_scope_adopt(gradient);
    return grad->grad_inputs[index] ? KN_OK : kn_error_status();
}

static kn_status backward_products(kn_grad_call *grad, kn_gemm_operand dy, kn_gemm_operand x, kn_gemm_operand weight)
{
    int64_t out = grad->input[1].shape[0], in = grad->input[1].shape[1];
    int64_t rows = kn_shape_numel(grad->input[0].ndim - 1, grad->input[0].shape);
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            KN_TRY(new_gradient(grad, i));
    if (grad->needs[0])
        KN_TRY(multiply(grad->stream, grad->grad_inputs[0], rows, in, out, dy, weight, NULL, KN_ACTIVATION_NONE));
    if (grad->needs[1])
        KN_TRY(
            multiply(grad->stream, grad->grad_inputs[1], out, in, rows, transposed(dy), x, NULL, KN_ACTIVATION_NONE));
    return KN_OK;
}

static kn_status linear_backward(kn_grad_call *grad)
{
    kn_tensor *gradient = kn_activation_gradient(grad, activation_of(grad->params), grad->saved[2]);
    if (!gradient)
        return kn_error_status();
    kn_matrix_operand dy = {0}, x = {0}, weight = {0};
    kn_status status = rows_operand(&dy, gradient);
    if (status == KN_OK && grad->needs[1])
        status = rows_operand(&x, grad->saved[0]);
    if (status == KN_OK && grad->needs[0])
        status = kn_matrix_operand_of(&weight, grad->saved[1]);
    if (status == KN_OK)
        status = backward_products(grad, dy.operand, x.operand, weight.operand);
    kn_release(dy.copy);
    kn_release(x.copy);
    kn_release(weight.copy);
    if (status != KN_OK || grad->num_inputs < 3 || !grad->needs[2])
        return status;
    int dims[KN_MAX_DIMS];
    for (int d = 0; d < gradient->ndim - 1; d++)
        dims[d] = d;
    grad->grad_inputs[2] =
        gradient->ndim > 1 ? kn_sum_dims(gradient, dims, gradient->ndim - 1, false) : kn_clone(gradient);
    return grad->grad_inputs[2] ? KN_OK : kn_error_status();
}

/* --- the plain C reference ---------------------------------------------------------------------------------------- */

static kn_status linear_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1],
                    *bias = call->num_inputs > 2 ? call->inputs[2] : NULL;
    int64_t out = weight->shape[0], in = weight->shape[1];
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        double sum = bias ? kn_reference_get(bias, i % out) : 0;
        for (int64_t k = 0; k < in; k++)
            sum += kn_reference_get(x, i / out * in + k) * kn_reference_get(weight, i % out * in + k);
        kn_reference_set(call->outputs[0], i, kn_cut_off(kn_cut_of(activation_of(call->params)), sum));
    }
    return KN_OK;
}

static const kn_op linear_op = {
    .name = "linear",
    .min_inputs = 2,
    .max_inputs = 3,
    .params_size = sizeof(kn_linear_options),
    .shape = linear_shape,
    .forward = linear_forward,
    .backward = linear_backward,
    .reference = linear_reference,
    .work = linear_work,
    .backward_work = linear_backward_work,
};

kn_tensor *kn_linear_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_linear_options *options)
{
    if (!options) {
        kn_fail_argument_null("linear", "options");
        return kn_stick();
    }
    return kn_apply(&linear_op, options, x, weight, bias);
}

kn_tensor *kn_linear(kn_tensor *x, kn_tensor *weight, kn_tensor *bias)
{
    return kn_linear_with(x, weight, bias, &(kn_linear_options){0});
}
