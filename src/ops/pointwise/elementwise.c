/* ops/pointwise/elementwise.c - runs elementwise operators, forward and backward. See elementwise.h; dtypes and shapes:
 * elementwise_shape.c. */
#include "ops/pointwise/elementwise.h"

#include <ctype.h>
#include <koine/tensor.h>
#include <math.h>
#include <string.h>

#include "ops/dispatch/reference.h"
#include "ops/pointwise/compose.h"
#include "ops/shape/broadcast.h"
#include "tensor/element.h"

static kn_elementwise *table_of(const kn_op *op) { return op->detail; }

/* --- letters ------------------------------------------------------------------------------------------------------ */

/* The place of operand i among a, b, c; the operand at that place, or -1. */
static int place_of(const kn_elementwise *e, int i) { return e->forward.inputs[i] - 'a'; }

static int operand_at(const kn_elementwise *e, int place)
{
    const char *at = strchr(e->forward.inputs, 'a' + place);
    return at ? (int)(at - e->forward.inputs) : -1;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* The nearest number that `dtype` can hold; an absent bound is an infinity. */
static kn_scalar clip(kn_scalar number, kn_dtype dtype)
{
    if (kn_dtype_is_floating(dtype))
        return number;
    const int64_t low = kn_dtype_lowest(dtype), high = kn_dtype_highest(dtype);
    if (number.is_whole ? number.whole <= low : number.real <= (double)low)
        return kn_scalar_int(low);
    if (number.is_whole ? number.whole >= high : number.real >= (double)high)
        return kn_scalar_int(high);
    return number;
}

static kn_scalar rounded(kn_scalar number, kn_dtype dtype)
{
    char element[8] = {0};
    kn_element_set(element, dtype, 0, (kn_element){.real = number.real}, KN_F64);
    return kn_scalar_real(kn_element_get(element, dtype, 0).real);
}

static void take_numbers(kn_pointwise_problem *p, const kn_elementwise *e, const kn_scalar_args *params, kn_dtype joint)
{
    const bool rounds = e->rounds_number && kn_dtype_is_reduced(joint);
    for (int i = 0; i < kn_elementwise_count_numbers(e); i++)
        p->numbers[i] = e->bounds ? clip(params->values[i], p->compute)
                        : rounds  ? rounded(params->values[i], joint)
                                  : params->values[i];
}

kn_status kn_elementwise_enter(kn_entry *entry)
{
    const kn_op_params *of = kn_op_params_of(entry->op);
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    for (int i = 0; i < of->count; i++) {
        const void *at = (const char *)entry->params + of->rows[i].offset;
        own->values[i] = kn_scalar_nearest(of->rows[i].kind == KN_PARAM_DOUBLE ? *(const double *)at
                                           : of->rows[i].kind == KN_PARAM_BOOL ? *(const bool *)at
                                                                               : *(const int *)at);
    }
    return KN_OK;
}

kn_scalar kn_scalar_nearest(double value)
{
    return fabs(value) < 0x1p63 && value == floor(value) ? kn_scalar_int((int64_t)value) : kn_scalar_real(value);
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

kn_operand kn_operand_of(const kn_tensor *t, int ndim, const int64_t *shape)
{
    kn_operand operand = {.buffer = t->storage->buffer, .offset = t->offset, .dtype = t->dtype};
    for (int d = ndim - t->ndim; d < ndim; d++) {
        const int own = d - (ndim - t->ndim);
        operand.strides[d] = t->shape[own] == 1 && shape[d] != 1 ? 0 : t->strides[own];
    }
    return operand;
}

/* Operands are rounded to float16 or bfloat16 before the operation, as in PyTorch. */
static kn_dtype rounded_to(const kn_elementwise *e, const kn_tensor *operand, int index, kn_dtype joint)
{
    const bool is_factor = e->keeps_factor && index > 0 && operand->ndim == 0;
    return kn_dtype_is_reduced(joint) && operand->dtype != joint && !is_factor ? joint : KN_DTYPE_DEFAULT;
}

static void set_shape(kn_pointwise_problem *p, const kn_tensor *like)
{
    p->ndim = like->ndim;
    memcpy(p->shape, like->shape, sizeof p->shape);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Does the expression name the operand? Names are single letters. */
static bool mentions(const char *expression, char letter)
{
    for (const char *at = expression; at && (at = strchr(at, letter)); at++) {
        const bool begins = at == expression || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !isalnum((unsigned char)at[1]) && at[1] != '_')
            return true;
    }
    return false;
}

/* Is `letter` a tensor, not a number? */
static bool is_tensor(const kn_elementwise *e, char letter)
{
    return letter == 'g' || letter == 'y' || strchr(e->forward.inputs, letter);
}

/* Which of backward's inputs "gabcy" the gradients of the operands in `wanted` need, as bits. */
static unsigned needed(const kn_elementwise *e, unsigned wanted)
{
    unsigned bits = 0;
    for (int i = 0; i < KN_ELEMENTWISE_OPERANDS; i++)
        for (int k = 0; wanted >> i & 1 && e->backward.inputs[k]; k++)
            if (is_tensor(e, e->backward.inputs[k]))
                bits |= (unsigned)mentions(e->backward.values[i], e->backward.inputs[k]) << k;
    return bits;
}

/* Slots of saved tensors: a, b, c, y. */
enum { SAVED = KN_ELEMENTWISE_OPERANDS + 1 };

/* Saves a copy of `tensor` before it is changed. */
static kn_status save_copy(kn_call *call, kn_tensor *tensor)
{
    kn_tensor *copy;
    KN_TRY(kn_tensor_cast(&copy, tensor, tensor->dtype, tensor->storage->device));
    const kn_status status = kn_call_save(call, copy);
    kn_release(copy);
    return status;
}

static kn_status save(kn_call *call)
{
    const kn_elementwise *e = table_of(call->op);
    unsigned wanted = 0;
    for (int i = 0; i < call->num_inputs; i++)
        wanted |= (unsigned)kn_call_needs(call, i) << i;
    const unsigned bits = needed(e, wanted);
    for (int place = 0; place < KN_ELEMENTWISE_OPERANDS; place++) {
        const int i = operand_at(e, place);
        const bool is_needed = bits >> (1 + place) & 1;
        const bool changes = call->op->in_place && is_needed && call->inputs[i]->storage == call->inputs[0]->storage;
        KN_TRY(changes ? save_copy(call, call->inputs[i]) : kn_call_save(call, is_needed ? call->inputs[i] : NULL));
    }
    return kn_call_save(call, bits >> SAVED & 1 ? call->outputs[0] : NULL);
}

/* An operand that overlaps the changed memory with another layout is read from a copy. */
static kn_status apart(const kn_call *call, int i, kn_tensor **copy)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[i];
    *copy = NULL;
    if (!call->op->in_place || i == 0 || a->storage != b->storage)
        return KN_OK;
    if (kn_tensor_same_place(a, b))
        return KN_OK;
    return kn_tensor_cast(copy, call->inputs[i], b->dtype, b->storage->device);
}

kn_status kn_elementwise_forward(kn_call *call)
{
    kn_elementwise *e = table_of(call->op);
    const kn_dtype joint = kn_elementwise_joint_dtype(e, call->inputs, call->num_inputs, call->params);
    kn_pointwise_problem p = {.code = &e->forward,
                              .operation = call->op->name,
                              .compute = kn_compute_type(joint),
                              .num_outputs = 1,
                              .num_inputs = call->num_inputs};
    kn_tensor *copies[KN_ELEMENTWISE_OPERANDS] = {NULL};
    kn_status status = call->needs_grad ? save(call) : KN_OK;

    set_shape(&p, call->outputs[0]);
    p.outputs[0] = kn_operand_of(call->outputs[0], p.ndim, p.shape);
    for (int i = 0; status == KN_OK && i < call->num_inputs; i++) {
        status = apart(call, i, &copies[i]);
        p.inputs[i] = kn_operand_of(copies[i] ? copies[i] : call->inputs[i], p.ndim, p.shape);
        p.inputs[i].rounded = rounded_to(e, call->inputs[i], i, joint);
    }
    take_numbers(&p, e, call->params, joint);
    if (status == KN_OK)
        status = kn_pointwise_run(call->stream, &p);
    for (int i = 0; i < call->num_inputs; i++)
        kn_release(copies[i]);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static bool is_stretched(const kn_input_spec *input, const kn_tensor *gradient)
{
    return input->ndim != gradient->ndim ||
           memcmp(input->shape, gradient->shape, (size_t)input->ndim * sizeof *input->shape) != 0;
}

/* The compute dtype: the joint dtype, which was the result's unless a tensor was changed in place. */
static kn_dtype gradient_type(const kn_grad_call *grad, const kn_elementwise *e)
{
    kn_dtype dtype = grad->grad_outputs[0]->dtype;
    for (int i = 0; (e->keeps_digits || grad->op->in_place) && i < grad->num_inputs; i++)
        dtype = kn_promote_types(dtype, grad->input[i].dtype);
    return kn_compute_type(dtype);
}

/* Is the gradient passed on unchanged? */
static bool is_identity(const char *expression) { return expression && strcmp(expression, "g") == 0; }

/* Gives new results the order in memory of what they are computed from: of the operands rather than the gradient. */
static void arrange_gradients(kn_tensor *const *results, int count, const kn_grad_call *grad, unsigned bits)
{
    kn_tensor *operands[1 + SAVED];
    for (int k = 0; k < SAVED; k++)
        operands[k] = bits >> (1 + k) & 1 ? grad->saved[k] : NULL;
    operands[SAVED] = grad->grad_outputs[0];
    for (int i = 0; i < count; i++)
        if (results[i])
            kn_tensor_arrange(results[i], operands, 1 + SAVED);
}

kn_status kn_elementwise_backward(kn_grad_call *grad)
{
    kn_elementwise *e = table_of(grad->op);
    kn_tensor *g = grad->grad_outputs[0], *results[KN_ELEMENTWISE_OPERANDS] = {NULL};
    kn_pointwise_problem p = {.code = &e->backward,
                              .operation = grad->op->name,
                              .compute = gradient_type(grad, e),
                              .num_outputs = grad->num_inputs,
                              .num_inputs = 1 + SAVED};
    unsigned wanted = 0;
    bool are_new = true;

    set_shape(&p, g);
    for (int i = 0; i < grad->num_inputs; i++) {
        const char *value = e->backward.values[i];
        if (!grad->needs[i] || !value)
            continue;
        if (is_identity(value)) {
            KN_TRY(kn_give_gradient(grad, i, g));
            continue;
        }
        wanted |= 1u << i;
        are_new = are_new && !grad->grad_inputs[i];
        const kn_tensor_options wide = {.dtype = p.compute, .device = kn_device_of(g)};
        results[i] = is_stretched(&grad->input[i], g) ? kn_empty_with(g->ndim, g->shape, &wide) : kn_grad_new(grad, i);
        if (!results[i])
            return kn_error_status();
    }
    if (!wanted)
        return KN_OK;
    const unsigned bits = needed(e, wanted);
    if (are_new)
        arrange_gradients(results, grad->num_inputs, grad, bits);
    for (int i = 0; i < grad->num_inputs; i++)
        if (results[i])
            p.outputs[i] = kn_operand_of(results[i], p.ndim, p.shape);
    if (bits & 1)
        p.inputs[0] = kn_operand_of(g, p.ndim, p.shape);
    for (int k = 0; k < SAVED; k++)
        if (bits >> (1 + k) & 1)
            p.inputs[1 + k] = kn_operand_of(grad->saved[k], p.ndim, p.shape);
    take_numbers(&p, e, grad->params, grad->grad_outputs[0]->dtype);
    KN_TRY(kn_pointwise_run(grad->stream, &p));
    for (int i = 0; i < grad->num_inputs; i++)
        if (results[i])
            KN_TRY(kn_give_gradient(grad, i, results[i]));
    return KN_OK;
}

/* --- backward, recorded ------------------------------------------------------------------------------------------- */

static const char letters[] = "gabcypqr";

/* The values of the letters. */
static void operands_of(const kn_grad_call *grad, kn_composed operands[sizeof letters])
{
    const kn_elementwise *e = table_of(grad->op);
    const kn_scalar_args *params = grad->params;
    operands[0].tensor = kn_widened(grad->grad_outputs[0]);
    for (int i = 0; i < grad->num_inputs; i++)
        operands[1 + place_of(e, i)].tensor = kn_widened(kn_grad_saved_input(grad, place_of(e, i), i));
    operands[1 + KN_ELEMENTWISE_OPERANDS].tensor = kn_widened(kn_grad_saved_output(grad, KN_ELEMENTWISE_OPERANDS, 0));
    for (int i = 0; i < kn_elementwise_count_numbers(e); i++)
        operands[strchr(letters, e->forward.numbers[i]) - letters].number = params->values[i].real;
}

kn_status kn_elementwise_backward_recorded(kn_grad_call *grad)
{
    const kn_elementwise *e = table_of(grad->op);
    kn_composed operands[sizeof letters] = {{NULL, 0}};

    operands_of(grad, operands);
    for (int i = 0; i < grad->num_inputs; i++) {
        if (!grad->needs[i] || !e->backward.values[i])
            continue;
        const char *text = e->recorded[i] ? e->recorded[i] : e->backward.values[i];
        kn_tensor *gradient = kn_compose(text, letters, operands);
        KN_TRY(gradient ? kn_give_gradient(grad, i, gradient) : kn_error_status());
    }
    return KN_OK;
}

kn_status kn_elements(kn_stream *stream, kn_pointwise_code *code, const char *operation, kn_dtype compute,
                      const kn_tensor *output, const kn_tensor *const *inputs, int num_inputs, const kn_scalar *numbers)
{
    kn_pointwise_problem p = {
        .code = code, .operation = operation, .compute = compute, .num_outputs = 1, .num_inputs = num_inputs};

    set_shape(&p, output);
    p.outputs[0] = kn_operand_of(output, p.ndim, p.shape);
    for (int i = 0; i < num_inputs; i++)
        p.inputs[i] = kn_operand_of(inputs[i], p.ndim, p.shape);
    for (int i = 0; code->numbers && code->numbers[i]; i++)
        p.numbers[i] = numbers[i];
    return kn_pointwise_run(stream, &p);
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

kn_status kn_elementwise_reference(const kn_call *call)
{
    const kn_elementwise *e = table_of(call->op);
    const kn_scalar_args *params = call->params;
    kn_tensor *y = call->outputs[0];
    static const char names[] = "abcpqr";
    double values[sizeof names] = {0};

    for (int i = 0; i < kn_elementwise_count_numbers(e); i++)
        values[strchr(names, e->forward.numbers[i]) - names] = params->values[i].real;
    for (int64_t i = 0; i < kn_numel(y); i++) {
        for (int k = 0; k < call->num_inputs; k++)
            values[place_of(e, k)] = kn_reference_get(call->inputs[k], kn_reference_index(call->inputs[k], y, i));
        const double value = e->reference(values);
        kn_reference_set(y, i, call->spec[0].dtype == KN_BOOL ? value != 0 : value);
    }
    return KN_OK;
}
