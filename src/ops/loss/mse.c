/* ops/loss/mse.c - mean (or summed) squared error: one or two launches forward, one per gradient backward. */
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/loss/class_loss.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/reduce.h"

static kn_status mse_shape(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_call_check_same_dtype(call, 0, 1));
    return kn_call_output(call, call->inputs[0]->dtype, 0, NULL);
}

static double divisor_of(const kn_reduction_args *params, int64_t n)
{
    return params->reduction == KN_REDUCTION_MEAN ? (double)n : 1;
}

/* Separate statements, so that the product is not contracted to an FMA, which rounds differently. */
static kn_rows_code squared_error = {.name = "mse",
                                     .inputs = "ab",
                                     .numbers = "p",
                                     .state = "s",
                                     .init = "s = 0;",
                                     .step = "const T d = a - b; const T e = d * d; s += e;",
                                     .merge = "s += S;",
                                     .values = {"s / p"},
                                     .is_sum = true};
static kn_pointwise_code squared_error_backward = {
    .name = "mse_backward", .inputs = "gab", .numbers = "p", .values = {"p * g * (a - b)"}};

static kn_status mse_of(kn_call *call, const kn_tensor *a, const kn_tensor *b)
{
    const kn_rows_problem p = {.code = &squared_error,
                               .operation = "mse_loss",
                               .compute = a->dtype,
                               .outer = 1,
                               .n = kn_numel(a),
                               .inner = 1,
                               .outputs = {kn_row_operand(call->outputs[0])},
                               .inputs = {kn_row_operand(a), kn_row_operand(b)},
                               .numbers = {divisor_of(call->params, kn_numel(a))}};
    return kn_rows_run(call->stream, &p);
}

static kn_status mse_forward(kn_call *call)
{
    kn_tensor *a = NULL, *b = NULL;
    kn_status status = kn_tensor_contiguous(&a, call->inputs[0]);

    if (status == KN_OK)
        status = kn_tensor_contiguous(&b, call->inputs[1]);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, a);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, b);
    if (status == KN_OK)
        status = mse_of(call, a, b);
    kn_release(a);
    kn_release(b);
    return status;
}

static kn_status mse_backward(kn_grad_call *grad)
{
    kn_tensor *const *saved = grad->saved;
    const double scale = 2 / divisor_of(grad->params, kn_numel(saved[0]));
    const kn_tensor *operands[] = {grad->grad_outputs[0], saved[0], saved[1]};

    for (int i = 0; i < 2; i++) { /* d/db = -d/da */
        const kn_scalar number = kn_scalar_real(i ? -scale : scale);
        if (!grad->needs[i])
            continue;
        if (!kn_grad_new(grad, i))
            return kn_error_status();
        KN_TRY(kn_elements(grad->stream, &squared_error_backward, "mse_loss", saved[0]->dtype, grad->grad_inputs[i],
                           operands, 3, &number));
    }
    return KN_OK;
}

static kn_status mse_reference(const kn_call *call)
{
    const int64_t n = kn_numel(call->inputs[0]);
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double difference = kn_reference_get(call->inputs[0], i) - kn_reference_get(call->inputs[1], i);
        sum += difference * difference;
    }
    kn_reference_set(call->outputs[0], 0, sum / divisor_of(call->params, n));
    return KN_OK;
}

/* Difference, square, sum; difference and factor for each gradient. */
static kn_work mse_work(const kn_call *call) { return kn_work_of_input(call, 3); }
static kn_work mse_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, 2 * (kn_grad_work_elements(grad, 0) + kn_grad_work_elements(grad, 1)));
}

/* Both inputs become floating tensors of one shape. As in PyTorch, the joint dtype is that of the expanded tensors, so
 * a 0-dimensional operand may widen it. */
static kn_status mse_enter(kn_entry *entry)
{
    kn_tensor **in = entry->inputs;
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    KN_TRY(kn_broadcast_shapes(&ndim, shape, in[0], in[1]));
    for (int i = 0; i < 2 && !kn_same_shape(entry->inputs[0], entry->inputs[1]); i++)
        if (!(in[i] = kn_expand(in[i], ndim, shape)))
            return kn_error_status();
    const kn_dtype result = kn_real_type(kn_result_type(in[0], in[1]));
    for (int i = 0; i < 2; i++)
        if (!(in[i] = kn_to_dtype(in[i], result)))
            return kn_error_status();
    if (((const kn_reduction_args *)entry->params)->reduction != KN_REDUCTION_NONE)
        return KN_OK;
    entry->result = kn_pow_scalar(kn_sub(in[0], in[1]), 2);
    return entry->result ? KN_OK : kn_error_status();
}

/* d/dx = 2 (x - t) g / n, d/dt = -d/dx. */
static kn_status mse_backward_recorded(kn_grad_call *grad)
{
    const double n = (double)kn_shape_numel(grad->input[0].ndim, grad->input[0].shape);
    kn_tensor *x = kn_grad_saved_input(grad, 0, 0), *target = kn_grad_saved_input(grad, 1, 1);
    kn_tensor *slope =
        kn_mul(kn_mul_scalar(kn_sub(x, target), 2 / divisor_of(grad->params, (int64_t)n)), grad->grad_outputs[0]);
    for (int i = 0; i < 2; i++)
        if (grad->needs[i] && !(grad->grad_inputs[i] = i == 0 ? slope : kn_neg(slope)))
            return kn_error_status();
    return KN_OK;
}

static const kn_op_param rows[] = {KN_PARAM(kn_reduction_args, reduction, .values = kn_reduction_names)};
const kn_op kn_mse_loss_op = {.name = "mse_loss",
                              .inputs = {"input", "target"},
                              .params = KN_PARAMS(kn_reduction_args, rows, .reduction = KN_REDUCTION_MEAN),
                              .widens_halves = true,
                              .composes = true,
                              .enter = mse_enter,
                              .shape = mse_shape,
                              .forward = mse_forward,
                              .backward = mse_backward,
                              .backward_recorded = mse_backward_recorded,
                              .saved = {"input", "target"},
                              .reference = mse_reference,
                              .work = mse_work,
                              .backward_work = mse_backward_work};

const kn_op kn_mse_loss_backward_op = {KN_BACKWARD_OP(mse_loss), .inputs = {"grad", "input", "target"},
                                       .outputs = {"grad_input", "grad_target"}, .widens_halves = true,
                                       .composes = true};

kn_tensor *kn_mse_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction)
{
    return kn_invoke(&kn_mse_loss_op, &(kn_reduction_args){reduction}, input, target);
}
