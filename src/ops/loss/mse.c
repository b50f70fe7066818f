/* ops/loss/mse.c - mean (or summed) squared error: one or two launches forward, one per gradient backward. */
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/promote.h"
#include "ops/loss/element_loss.h"

/* Separate statements, so that the product is not contracted to an FMA, which rounds differently. */
static kn_element_codes codes = {
    .sum = {.name = "mse",
            .inputs = "ab",
            .numbers = "p",
            KN_SUM_BY("const T d = a - b; const T e = d * d; s += e;"),
            .values = {"s / p"}},
    .slopes = {{.name = "mse_backward", .inputs = "gab", .numbers = "p", .values = {"p * g * (a - b)"}},
               {.name = "mse_target", .inputs = "gab", .numbers = "p", .values = {"-p * g * (a - b)"}}}};

static double mse_term(const double *in) { return (in[0] - in[1]) * (in[0] - in[1]); }

static const kn_element_loss mse = {.codes = &codes, .factor = 2, .term = mse_term};

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
        kn_mul(kn_mul_scalar(kn_sub(x, target), 2 / kn_loss_divisor(grad->params, (int64_t)n)), grad->grad_outputs[0]);
    for (int i = 0; i < 2; i++)
        if (grad->needs[i] && !(grad->grad_inputs[i] = i == 0 ? slope : kn_neg(slope)))
            return kn_error_status();
    return KN_OK;
}

const kn_op kn_mse_loss_op = {.name = "mse_loss",
                              .inputs = {"input", "target"},
                              KN_ELEMENT_LOSS(&mse),
                              .enter = mse_enter,
                              .backward_recorded = mse_backward_recorded,
                              .saved = {"input", "target"},
                              .work = mse_work,
                              .backward_work = mse_backward_work};

const kn_op kn_mse_loss_backward_op = {KN_BACKWARD_OP(mse_loss), .inputs = {"grad", "input", "target"},
                                       .outputs = {"grad_input", "grad_target"}, .widens_halves = true,
                                       .composes = true};

kn_tensor *kn_mse_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction)
{
    return kn_invoke(&kn_mse_loss_op, &(kn_reduction_args){reduction}, input, target);
}
