/* ops/loss/element_loss.c - see element_loss.h. */
#include "ops/loss/element_loss.h"

#include "ops/dispatch/reference.h"

const kn_op_param kn_reduction_rows[] = {KN_PARAM(kn_reduction_args, reduction, .values = kn_reduction_names)};

double kn_loss_divisor(const kn_reduction_args *params, int64_t n)
{
    return params->reduction == KN_REDUCTION_MEAN ? (double)n : 1;
}

kn_status kn_element_loss_shape(kn_call *call)
{
    const kn_reduction_args *params = call->params;
    const kn_tensor *x = call->inputs[KN_LOSS_INPUT];

    KN_TRY(kn_call_check_floating(call, KN_LOSS_INPUT));
    KN_TRY(kn_call_check_same_dtype(call, 0, call->num_inputs - 1));
    if (params->reduction == KN_REDUCTION_NONE)
        return kn_call_output(call, x->dtype, x->ndim, x->shape);
    return kn_call_output(call, x->dtype, 0, NULL);
}

/* Collects the inputs that are given; returns the codes for them. */
static kn_element_codes *codes_for(const kn_op *op, kn_tensor *const *in, const kn_tensor **given, int *count)
{
    int variant = 0;
    for (int i = 0; i < KN_LOSS_INPUTS && op->inputs[i]; i++) {
        if (!in[i])
            continue;
        given[(*count)++] = in[i];
        variant |= i == KN_LOSS_WEIGHT ? 2 : i == KN_LOSS_POSITIVE;
    }
    return &((const kn_element_loss *)op->detail)->codes[variant];
}

static kn_status run_forward(kn_call *call, kn_tensor *const *in)
{
    const kn_reduction_args *params = call->params;
    const kn_tensor *x = in[KN_LOSS_INPUT], *given[KN_LOSS_INPUTS];
    const kn_scalar unused = kn_scalar_real(1);
    int count = 0;
    kn_element_codes *codes = codes_for(call->op, in, given, &count);
    kn_rows_problem p = {.code = &codes->sum,
                         .operation = call->op->name,
                         .compute = x->dtype,
                         .outer = 1,
                         .n = kn_numel(x),
                         .inner = 1,
                         .outputs = {kn_row_operand(call->outputs[0])},
                         .numbers = {kn_loss_divisor(params, kn_numel(x))}};

    if (params->reduction == KN_REDUCTION_NONE)
        return kn_elements(call->stream, &codes->each, call->op->name, x->dtype, call->outputs[0], given, count,
                           &unused);
    for (int i = 0; i < count; i++)
        p.inputs[i] = kn_row_operand(given[i]);
    return kn_rows_run(call->stream, &p);
}

/* Saves all inputs. */
kn_status kn_element_loss_forward(kn_call *call)
{
    kn_tensor *in[KN_LOSS_INPUTS] = {NULL};
    kn_status status = KN_OK;

    for (int i = 0; i < call->num_inputs && status == KN_OK; i++) {
        if (call->inputs[i])
            status = kn_tensor_contiguous(&in[i], call->inputs[i]);
        if (status == KN_OK && call->needs_grad)
            status = kn_call_save(call, in[i]);
    }
    if (status == KN_OK)
        status = run_forward(call, in);
    for (int i = 0; i < KN_LOSS_INPUTS; i++)
        kn_release(in[i]);
    return status;
}

kn_status kn_element_loss_backward(kn_grad_call *grad)
{
    const kn_tensor *x = grad->saved[KN_LOSS_INPUT], *operands[KN_LOSS_INPUTS + 1] = {grad->grad_outputs[0]};
    const kn_element_loss *loss = grad->op->detail;
    const kn_scalar scale = kn_scalar_real(loss->factor / kn_loss_divisor(grad->params, kn_numel(x)));
    int count = 0;
    kn_element_codes *codes = codes_for(grad->op, grad->saved, operands + 1, &count);

    for (int i = KN_LOSS_INPUT; i <= KN_LOSS_TARGET; i++) {
        if (!grad->needs[i])
            continue;
        if (!kn_grad_new(grad, i))
            return kn_error_status();
        KN_TRY(kn_elements(grad->stream, &codes->slopes[i], grad->op->name, x->dtype, grad->grad_inputs[i], operands,
                           count + 1, &scale));
    }
    return KN_OK;
}

kn_status kn_element_loss_reference(const kn_call *call)
{
    const kn_reduction_args *params = call->params;
    const kn_element_loss *loss = call->op->detail;
    const int64_t n = kn_numel(call->inputs[KN_LOSS_INPUT]);
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        double in[KN_LOSS_INPUTS];
        for (int k = 0; k < call->num_inputs; k++)
            in[k] = call->inputs[k] ? kn_reference_get(call->inputs[k], i) : 1;
        const double term = loss->term(in);
        if (params->reduction == KN_REDUCTION_NONE)
            kn_reference_set(call->outputs[0], i, term);
        sum += term;
    }
    if (params->reduction != KN_REDUCTION_NONE)
        kn_reference_set(call->outputs[0], 0, sum / kn_loss_divisor(params, n));
    return KN_OK;
}
