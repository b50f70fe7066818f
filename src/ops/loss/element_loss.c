/* ops/loss/element_loss.c - see element_loss.h. */
#include "ops/loss/element_loss.h"

#include <koine/reduce.h>
#include <koine/shape.h>
#include <stdio.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/compose.h"

const char *const kn_reduction_names[] = {"mean", "sum", "none", NULL};
const kn_op_param kn_reduction_rows[] = {KN_REDUCTION_ROW(kn_reduction_args)};

/* --- entering ----------------------------------------------------------------------------------------------------- */

void kn_element_loss_enter(kn_entry *entry, kn_reduction reduction, int variant, double p, double q)
{
    const kn_tensor *x = entry->inputs[0];
    kn_element_record *own = kn_entry_record(entry, sizeof *own);
    const double batch = x->ndim > 0 ? (double)x->shape[0] : 1;
    *own = (kn_element_record){.reduction = reduction == KN_REDUCTION_BATCHMEAN ? KN_REDUCTION_SUM : reduction,
                               .variant = variant,
                               .divisor = reduction == KN_REDUCTION_MEAN        ? (double)kn_numel(x)
                                          : reduction == KN_REDUCTION_BATCHMEAN ? batch
                                                                                : 1,
                               .numbers = {p, q}};
}

static bool has_shape(const kn_tensor *t, int ndim, const int64_t *shape)
{
    return t->ndim == ndim && (ndim == 0 || memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0);
}

kn_status kn_element_loss_join(kn_entry *entry, int count)
{
    kn_tensor **in = entry->inputs;
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    for (int last = 1; last < count; last++) { /* those before it have one shape */
        KN_TRY(kn_broadcast_shapes(&ndim, shape, in[0], in[last]));
        for (int i = 0; i <= last; i++)
            if (!has_shape(in[i], ndim, shape) && !(in[i] = kn_expand(in[i], ndim, shape)))
                return kn_error_status();
    }
    const kn_dtype joint = kn_real_type(kn_result_type_of(in, count));
    for (int i = 0; i < count; i++)
        if (!(in[i] = kn_to_dtype(in[i], joint)))
            return kn_error_status();
    return KN_OK;
}

kn_tensor *kn_loss_reduced(kn_tensor *loss, kn_reduction reduction)
{
    return reduction == KN_REDUCTION_NONE ? loss : reduction == KN_REDUCTION_SUM ? kn_sum(loss) : kn_mean(loss);
}

kn_status kn_element_loss_shape(kn_call *call)
{
    const kn_element_record *record = call->params;
    const kn_tensor *x = call->inputs[0];

    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_call_check_same_dtype(call, 0, call->num_inputs - 1));
    if (record->reduction == KN_REDUCTION_NONE)
        return kn_call_output(call, x->dtype, x->ndim, x->shape);
    return kn_call_output(call, x->dtype, 0, NULL);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_element_codes *codes_of(const kn_op *op, const kn_element_record *record)
{
    return &((const kn_element_loss *)op->detail)->codes[record->variant];
}

/* Collects the inputs that are given. */
static int list_given(const kn_tensor **given, const kn_op *op, kn_tensor *const *in)
{
    int count = 0;
    for (int i = 0; i < KN_LOSS_INPUTS && op->inputs[i]; i++)
        if (in[i])
            given[count++] = in[i];
    return count;
}

static kn_status run_forward(kn_call *call, kn_tensor *const *in)
{
    const kn_element_record *record = call->params;
    const kn_tensor *x = in[0], *given[KN_LOSS_INPUTS];
    const kn_scalar numbers[] = {kn_scalar_real(1), kn_scalar_real(record->numbers[0]),
                                 kn_scalar_real(record->numbers[1])};
    const int count = list_given(given, call->op, in);
    kn_element_codes *codes = codes_of(call->op, record);
    kn_rows_problem p = {.code = &codes->sum,
                         .operation = call->op->name,
                         .compute = x->dtype,
                         .outer = 1,
                         .n = kn_numel(x),
                         .inner = 1,
                         .outputs = {kn_row_operand(call->outputs[0])},
                         .numbers = {record->divisor, record->numbers[0], record->numbers[1]}};

    if (record->reduction == KN_REDUCTION_NONE)
        return kn_elements(call->stream, &codes->each, call->op->name, x->dtype, call->outputs[0], given, count,
                           numbers);
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

/* --- backward ----------------------------------------------------------------------------------------------------- */

kn_status kn_element_loss_backward(kn_grad_call *grad)
{
    const kn_element_record *record = grad->params;
    const kn_tensor *x = grad->saved[0], *operands[KN_LOSS_INPUTS + 1] = {grad->grad_outputs[0]};
    const kn_scalar numbers[] = {kn_scalar_real(1 / record->divisor), kn_scalar_real(record->numbers[0]),
                                 kn_scalar_real(record->numbers[1])};
    const int count = 1 + list_given(operands + 1, grad->op, grad->saved);
    kn_element_codes *codes = codes_of(grad->op, record);

    for (int i = 0; i < KN_LOSS_SLOPES && i < grad->num_inputs; i++) {
        if (!grad->needs[i] || !codes->slopes[i].values[0])
            continue;
        if (!kn_grad_new(grad, i))
            return kn_error_status();
        KN_TRY(kn_elements(grad->stream, &codes->slopes[i], grad->op->name, x->dtype, grad->grad_inputs[i], operands,
                           count, numbers));
    }
    return KN_OK;
}

/* The same texts, composed of recorded operations. */
kn_status kn_element_loss_backward_recorded(kn_grad_call *grad)
{
    const kn_element_record *record = grad->params;
    const kn_element_codes *codes = codes_of(grad->op, record);
    kn_composed operands[1 + KN_LOSS_INPUTS + 1 + KN_LOSS_NUMBERS] = {{.tensor = grad->grad_outputs[0]}};
    char letters[sizeof operands / sizeof operands[0] + 1];
    int count = 1;

    if (kn_numel(grad->saved[0]) == 0)
        return grad->op->backward(grad);
    for (int i = 0; i < KN_LOSS_INPUTS && grad->op->inputs[i]; i++)
        if (grad->saved[i] && !(operands[count++].tensor = kn_grad_saved_input(grad, i, i)))
            return kn_error_status();
    operands[count++].number = 1 / record->divisor;
    operands[count++].number = record->numbers[0];
    operands[count].number = record->numbers[1];
    for (int i = 0; i < KN_LOSS_SLOPES && i < grad->num_inputs; i++) {
        const kn_pointwise_code *slope = &codes->slopes[i];
        if (!grad->needs[i] || !slope->values[0])
            continue;
        snprintf(letters, sizeof letters, "%s%s", slope->inputs, slope->numbers);
        if (!(grad->grad_inputs[i] = kn_compose(slope->values[0], letters, operands)))
            return kn_error_status();
    }
    return KN_OK;
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

kn_status kn_element_loss_reference(const kn_call *call)
{
    const kn_element_record *record = call->params;
    const kn_element_loss *loss = call->op->detail;
    double sum = 0;

    for (int64_t i = 0; i < kn_numel(call->inputs[0]); i++) {
        double in[KN_LOSS_INPUTS];
        for (int k = 0; k < call->num_inputs; k++)
            in[k] = call->inputs[k] ? kn_reference_get(call->inputs[k], i) : 1;
        const double term = loss->term(in, record->variant, record->numbers);
        if (record->reduction == KN_REDUCTION_NONE)
            kn_reference_set(call->outputs[0], i, term);
        sum += term;
    }
    if (record->reduction != KN_REDUCTION_NONE)
        kn_reference_set(call->outputs[0], 0, sum / record->divisor);
    return KN_OK;
}
