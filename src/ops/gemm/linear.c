/* ops/gemm/linear.c - torch.nn.functional.linear: y = x weight^T + bias, with the bias added in the product's
 * epilogue. */
#include <koine/matmul.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/gemm/matmul.h"
#include "ops/pointwise/activation.h"
#include "ops/shape/broadcast.h"

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

static kn_activation activation_of(const kn_linear_params *options) { return options->activation; }

static kn_status linear_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1];
    int64_t shape[KN_MAX_DIMS];
    KN_TRY(kn_call_check_same_dtype(call, 0, 2));
    KN_TRY(kn_call_check_floating_or_half(call, 0));
    KN_TRY(check_shapes(x, weight, call->num_inputs > 2 ? call->inputs[2] : NULL));
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d < x->ndim - 1 ? x->shape[d] : weight->shape[0];
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* A multiply-add per weight and row, and the bias; each gradient is a product of the same size. */
static kn_span_work linear_work(const kn_call *call)
{
    bool bias = call->num_inputs > 2 && call->inputs[2], activation = activation_of(call->params);
    return kn_work_of_products(call, (double)call->inputs[1]->shape[1], bias + activation);
}

static kn_span_work linear_backward_work(const kn_grad_call *grad)
{
    double outputs = (double)kn_numel(grad->grad_outputs[0]), in = (double)grad->input[1].shape[1];
    bool bias = grad->num_inputs > 2 && grad->needs[2], activation = activation_of(grad->params);
    return kn_grad_work(grad, outputs * (2 * in * (grad->needs[0] + grad->needs[1]) + bias + activation));
}

/* --- tensors as matrices, owned ----------------------------------------------------------------------------------- */

/* A tensor [..., columns] as one matrix of all its rows; a copy if its strides require one. */
static kn_status rows_of(kn_tensor **matrix, kn_tensor *t)
{
    const int64_t columns = t->shape[t->ndim - 1], rows = kn_shape_numel(t->ndim - 1, t->shape);
    kn_tensor *whole = NULL;
    if (t->ndim == 2) {
        *matrix = kn_retain(t);
        return KN_OK;
    }
    KN_TRY(kn_tensor_contiguous(&whole, t));
    kn_status status =
        kn_tensor_view(matrix, whole, 2, (int64_t[]){rows, columns}, (int64_t[]){columns, 1}, whole->offset);
    kn_release(whole);
    return status;
}

static kn_status transposed(kn_tensor **matrix, kn_tensor *t)
{
    return kn_tensor_view(matrix, t, 2, (int64_t[]){t->shape[1], t->shape[0]},
                          (int64_t[]){t->strides[1], t->strides[0]}, t->offset);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status linear_forward(kn_call *call)
{
    kn_matmul_problem product = {.activation = activation_of(call->params)};
    kn_status status = rows_of(&product.y, call->outputs[0]);
    if (status == KN_OK)
        status = rows_of(&product.a, call->inputs[0]);
    if (status == KN_OK)
        status = transposed(&product.b, call->inputs[1]);
    if (status == KN_OK && call->num_inputs > 2 && call->inputs[2])
        status = kn_tensor_contiguous(&product.bias, call->inputs[2]);
    if (status == KN_OK)
        status = kn_matmul_run(call->stream, &product);
    kn_release(product.y);
    kn_release(product.a);
    kn_release(product.b);
    kn_release(product.bias);
    for (int i = 0; status == KN_OK && call->needs_grad && i < 2; i++)
        status = kn_call_save_for(call, 1 - i, call->inputs[i]); /* each is needed for the other's gradient */
    if (status == KN_OK && call->needs_grad && product.activation != KN_ACTIVATION_NONE)
        status = kn_call_save(call, call->outputs[0]); /* shows where the activation clamped */
    return status;
}

/* --- backward: dx = dy weight, dweight = dy^T x, dbias = the sum of dy over its rows ------------------------------ */

static kn_status gradient_of_x(kn_grad_call *grad, kn_tensor *dy)
{
    kn_tensor *gradient = kn_grad_new(grad, 0), *dx = NULL;
    if (!gradient)
        return kn_error_status();
    KN_TRY(rows_of(&dx, gradient));
    kn_status status = kn_matmul_run(grad->stream, &(kn_matmul_problem){.y = dx, .a = dy, .b = grad->saved[1]});
    kn_release(dx);
    return status;
}

/* A weight that is a transposed view has such a gradient. */
static bool is_matrix_or_transposed(const kn_tensor *t)
{
    return kn_is_contiguous(t) || (t->strides[0] == 1 && t->strides[1] == t->shape[0]);
}

static kn_status gradient_of_weight(kn_grad_call *grad, kn_tensor *dy, kn_gemm_sums *sums)
{
    kn_tensor *gradient = kn_grad_place(grad, 1, is_matrix_or_transposed), *x = NULL, *left = NULL, *dw = NULL;
    if (!gradient)
        return kn_error_status();
    const bool flipped = !kn_is_contiguous(gradient);
    kn_status status = rows_of(&x, grad->saved[0]);
    if (status == KN_OK)
        status = transposed(&left, flipped ? x : dy);
    if (status == KN_OK)
        status = flipped ? transposed(&dw, gradient) : rows_of(&dw, gradient);
    if (sums)
        sums->of_b = flipped;
    if (status == KN_OK)
        status =
            kn_matmul_run(grad->stream, &(kn_matmul_problem){.y = dw, .a = left, .b = flipped ? dy : x, .sums = sums});
    kn_release(x);
    kn_release(left);
    kn_release(dw);
    return status;
}

static kn_status sum_over_rows(kn_grad_call *grad, kn_tensor *gradient)
{
    int dims[KN_MAX_DIMS];
    for (int d = 0; d < gradient->ndim - 1; d++)
        dims[d] = d;
    grad->grad_inputs[2] =
        gradient->ndim > 1 ? kn_sum_dims(gradient, dims, gradient->ndim - 1, false) : kn_clone(gradient);
    return grad->grad_inputs[2] ? KN_OK : kn_error_status();
}

/* The bias's gradient may come with the product of the weight's. */
static kn_status linear_backward(kn_grad_call *grad)
{
    const bool has_bias = grad->num_inputs > 2 && grad->needs[2];
    const bool sums_rows = has_bias && kn_gemm_computes_sums(kn_device_limits(kn_stream_device(grad->stream)));
    kn_tensor *gradient = kn_activation_gradient(grad, activation_of(grad->params), grad->saved[2]), *dy = NULL;
    kn_gemm_sums sums = {0};
    if (!gradient)
        return kn_error_status();
    if (sums_rows) {
        const kn_tensor *bias = kn_grad_new(grad, 2);
        if (!bias)
            return kn_error_status();
        sums = (kn_gemm_sums){.buffer = bias->storage->buffer, .offset = bias->offset};
    }
    kn_status status = rows_of(&dy, gradient);
    if (status == KN_OK && grad->needs[0])
        status = gradient_of_x(grad, dy);
    if (status == KN_OK && grad->needs[1])
        status = gradient_of_weight(grad, dy, sums_rows ? &sums : NULL);
    kn_release(dy);
    return status == KN_OK && has_bias && !sums.done ? sum_over_rows(grad, gradient) : status;
}

/* A tensor [..., columns] as one matrix, recorded; NULL in, NULL out. */
static kn_tensor *as_rows(kn_tensor *t)
{
    return t ? kn_reshape(t, 2, (const int64_t[]){kn_shape_numel(t->ndim - 1, t->shape), t->shape[t->ndim - 1]}) : NULL;
}

/* The same of recorded operations. */
static kn_status linear_backward_recorded(kn_grad_call *grad)
{
    kn_tensor *x = kn_grad_saved_input(grad, 0, 0), *weight = kn_grad_saved_input(grad, 1, 1);
    kn_tensor *y = kn_grad_saved_output(grad, 2, 0);
    kn_tensor *dy = kn_activation_gradient_recorded(grad->grad_outputs[0], activation_of(grad->params), y);
    kn_tensor *rows = as_rows(dy);
    kn_tensor *gradients[3] = {NULL};

    if (grad->needs[0])
        gradients[0] = kn_reshape(kn_matmul(rows, weight), grad->input[0].ndim, grad->input[0].shape);
    if (grad->needs[1])
        gradients[1] = kn_matmul(kn_t(rows), as_rows(x));
    if (grad->num_inputs > 2 && grad->needs[2])
        gradients[2] = kn_sum_to_shape(rows, 1, grad->input[2].shape);
    for (int i = 0; i < grad->num_inputs; i++) {
        if (grad->needs[i] && !gradients[i])
            return kn_error_status();
        grad->grad_inputs[i] = gradients[i];
    }
    return KN_OK;
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
        kn_reference_set(call->outputs[0], i, kn_clamp_value(kn_bounds_of(activation_of(call->params)), sum));
    }
    return KN_OK;
}

static const kn_op_param linear_row[] = {KN_PARAM(kn_linear_params, activation, .values = kn_activation_names)};
const kn_op kn_linear_op = {
    .name = "linear",
    .inputs = {"x", "weight", "?bias"},
    .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_linear_params, linear_row, KN_LINEAR_DEFAULTS),
    .shape = linear_shape,
    .forward = linear_forward,
    .backward = linear_backward,
    .backward_recorded = linear_backward_recorded,
    .saved = {"x", "weight", "result"},
    .reference = linear_reference,
    .work = linear_work,
    .backward_work = linear_backward_work,
};

const kn_op kn_linear_backward_op = {KN_BACKWARD_OP(linear), .inputs = {"grad", "x", "weight", "?bias", "?result"},
                                     .outputs = {"grad_x", "grad_weight", "grad_bias"}};

kn_linear_params kn_linear_params_init(void) { return (kn_linear_params){KN_LINEAR_DEFAULTS}; }

kn_tensor *kn_linear_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_linear_params *options)
{
    return kn_invoke(&kn_linear_op, options, x, weight, bias);
}

kn_tensor *kn_linear(kn_tensor *x, kn_tensor *weight, kn_tensor *bias) { return kn_linear_with(x, weight, bias, NULL); }
