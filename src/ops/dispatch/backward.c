/* ops/dispatch/backward.c - see backward.h. */
#include "ops/dispatch/backward.h"

#include <koine/autograd.h>
#include <string.h>

#include "autograd/view.h"
#include "autograd/work.h"
#include "base/text.h"
#include "tensor/scope.h"

/* --- names -------------------------------------------------------------------------------------------------------- */

/* The index of `name` in a list, or -1. Optional inputs begin with a question mark. */
static int position(const char *const *names, int count, const char *name)
{
    name += name[0] == '?';
    for (int i = 0; i < count; i++)
        if (names[i] && strcmp(names[i] + (names[i][0] == '?'), name) == 0)
            return i;
    return -1;
}

static int input_of(const kn_op *op, const char *name) { return position(op->inputs, KN_OP_MAX_INPUTS, name); }

static int output_of(const kn_op *op, const char *name)
{
    if (!op->outputs[0])
        return strcmp(name + (name[0] == '?'), "result") == 0 ? 0 : -1;
    return position(op->outputs, KN_OP_MAX_OUTPUTS, name);
}

static int count_names(const char *const *names, int most)
{
    int count = 0;
    while (count < most && names[count])
        count++;
    return count;
}

/* The input of X whose gradient output `index` is. */
static int target_of(const kn_op *op, int index)
{
    return input_of(op->backward_of, op->outputs[index] + strlen("grad_"));
}

/* The output that is the gradient of X's input `index`, or -1. */
static int gradient_of(const kn_op *op, int index)
{
    for (int i = 0; i < KN_OP_MAX_OUTPUTS && op->outputs[i]; i++)
        if (target_of(op, i) == index)
            return i;
    return -1;
}

/* Collects the tensors given as X's inputs; returns the number of slots. */
static int inputs_of(kn_tensor **given, const kn_op *op, kn_tensor *const *inputs, int num_inputs)
{
    const kn_op *of = op->backward_of;
    const int count = count_names(of->inputs, KN_OP_MAX_INPUTS);
    for (int i = 0; i < count; i++) {
        const int at = input_of(op, of->inputs[i]);
        given[i] = at >= 0 && at < num_inputs ? inputs[at] : at < 0 && i == 0 ? inputs[0] : NULL;
    }
    return count;
}

/* --- entering ----------------------------------------------------------------------------------------------------- */

/* X's own `enter` makes the record, and may replace inputs, or X by an operation with a backward operator. */
kn_status kn_backward_enter(kn_entry *entry)
{
    const kn_op *op = entry->op, *of = op->backward_of;
    kn_tensor *given[KN_OP_MAX_INPUTS];
    kn_entry inner = {.op = of, .params = entry->params, .record = entry->params, .inputs = given};
    if (!kn_dtype_is_floating(entry->inputs[0]->dtype))
        return kn_fail(KN_ERR_DTYPE, "the gradient is %s; it must be floating", kn_dtype_name(entry->inputs[0]->dtype));
    inner.num_inputs = inputs_of(given, op, entry->inputs, entry->num_inputs);
    for (int i = 0; i < inner.num_inputs; i++)
        if (of->inputs[i][0] != '?' && !inner.inputs[i])
            return kn_fail_argument_null(op->name, of->inputs[i]);
    if (!of->enter)
        return KN_OK;
    KN_TRY(of->enter(&inner));
    if (inner.op != of && inner.op->backward_operator)
        entry->op = inner.op->backward_operator;
    else if (inner.result || inner.op != of)
        return kn_fail(KN_ERR_ARGUMENT, "with these parameters %s has no separate backward pass", of->name);
    for (int i = 0; i < inner.num_inputs; i++) {
        const int at = input_of(op, of->inputs[i]);
        if (at >= 0 && at < entry->num_inputs)
            entry->inputs[at] = inner.inputs[i];
    }
    if (inner.record == inner.params)
        return KN_OK;
    memcpy(entry->space, inner.space, sizeof inner.space);
    entry->record = entry->space;
    return KN_OK;
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

/* X's backward pass, as requested by a call of X_backward. */
typedef struct pass {
    kn_grad_call grad;
    bool needs[KN_OP_MAX_INPUTS];
    kn_input_spec input[KN_OP_MAX_INPUTS];
    kn_tensor *gradients[KN_OP_MAX_OUTPUTS], *saved[KN_OP_MAX_SAVED], *results[KN_OP_MAX_INPUTS];
} pass;

static kn_input_spec spec_of(const kn_tensor *t)
{
    kn_input_spec spec = {.dtype = t->dtype, .ndim = t->ndim, .device = t->storage->device};
    memcpy(spec.shape, t->shape, sizeof spec.shape);
    return spec;
}

static void describe(pass *p, const kn_call *call)
{
    const kn_op *op = call->op, *of = op->backward_of;
    kn_tensor *given[KN_OP_MAX_INPUTS];
    *p = (pass){.gradients = {call->inputs[0]}};
    p->grad = (kn_grad_call){.op = of,
                             .params = call->params,
                             .stream = call->stream,
                             .num_inputs = inputs_of(given, op, call->inputs, call->num_inputs),
                             .num_outputs = count_names(of->outputs, KN_OP_MAX_OUTPUTS),
                             .needs = p->needs,
                             .input = p->input,
                             .saved = p->saved,
                             .grad_outputs = p->gradients,
                             .grad_inputs = p->results};
    p->grad.num_outputs += p->grad.num_outputs == 0;
    for (int i = 0; i < p->grad.num_inputs; i++) {
        const int output = gradient_of(op, i);
        if (given[i])
            p->input[i] = spec_of(given[i]);
        p->needs[i] = given[i] && output >= 0 && !(call->skipped >> output & 1);
    }
    for (int k = 0; k < KN_OP_MAX_SAVED; k++) {
        const int at = of->saved[k] ? input_of(op, of->saved[k]) : -1;
        p->saved[k] = at >= 0 && at < call->num_inputs ? call->inputs[at] : NULL;
        p->grad.num_saved = p->saved[k] ? k + 1 : p->grad.num_saved;
    }
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static kn_status check_like(const kn_call *x, int output, const char *name, const kn_tensor *t)
{
    char has[KN_DESCRIBE], wants[KN_DESCRIBE];
    if (t->dtype == x->spec[output].dtype && t->ndim == x->spec[output].ndim &&
        memcmp(t->shape, x->spec[output].shape, (size_t)t->ndim * sizeof *t->shape) == 0)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s is %s, but that of %s would be %s%s", name, kn_tensor_describe(has, sizeof has, t),
                   x->op->name, kn_dtype_name(x->spec[output].dtype),
                   kn_format_shape(wants, sizeof wants, x->spec[output].ndim, x->spec[output].shape));
}

/* X's shape rule checks the given tensors and describes X's outputs. */
static kn_status check_inputs(const kn_call *call)
{
    const kn_op *op = call->op, *of = op->backward_of;
    kn_tensor *given[KN_OP_MAX_INPUTS];
    kn_call x = {.op = of, .params = call->params, .stream = call->stream, .inputs = given};
    x.num_inputs = inputs_of(given, op, call->inputs, call->num_inputs);
    KN_TRY(of->shape(&x));
    KN_TRY(check_like(&x, 0, "the gradient", call->inputs[0]));
    for (int i = 1; i < call->num_inputs; i++) {
        const int output = call->inputs[i] && input_of(of, op->inputs[i]) < 0 ? output_of(of, op->inputs[i]) : -1;
        if (output >= 0)
            KN_TRY(check_like(&x, output, op->inputs[i] + (op->inputs[i][0] == '?'), call->inputs[i]));
    }
    return KN_OK;
}

kn_status kn_backward_shape(kn_call *call)
{
    const kn_op *op = call->op;
    pass p;
    KN_TRY(check_inputs(call));
    describe(&p, call);
    for (int i = 0; i < KN_OP_MAX_OUTPUTS && op->outputs[i]; i++) {
        const kn_input_spec *spec = &p.input[target_of(op, i)];
        if (!spec->device)
            call->skipped |= 1u << i;
        KN_TRY(kn_call_output(call, spec->device ? spec->dtype : call->inputs[0]->dtype, spec->ndim, spec->shape));
    }
    return KN_OK;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Makes the tensors that the pass reads contiguous, as the engine does; of the others only shapes matter. Passes that
 * take gradients of any strides read their own saved tensors so, too. */
static kn_status make_contiguous(pass *p)
{
    if (p->grad.op->strided_gradients)
        return KN_OK;
    kn_tensor **read[1 + KN_OP_MAX_SAVED] = {&p->gradients[0]};
    for (int k = 0; k < KN_OP_MAX_SAVED; k++)
        read[1 + k] = &p->saved[k];
    for (int i = 0; i < 1 + KN_OP_MAX_SAVED; i++) {
        kn_tensor *contiguous;
        if (!*read[i])
            continue;
        KN_TRY(kn_tensor_contiguous(&contiguous, *read[i]));
        if (!(*read[i] = kn_scope_adopt(contiguous)))
            return kn_error_status();
    }
    return KN_OK;
}

/* Runs X's forward for what it saves. */
static kn_status repeat_forward(pass *p, const kn_call *call)
{
    kn_tensor *given[KN_OP_MAX_INPUTS];
    kn_call x = {.op = call->op->backward_of,
                 .params = call->params,
                 .stream = call->stream,
                 .inputs = given,
                 .num_inputs = inputs_of(given, call->op, call->inputs, call->num_inputs),
                 .skipped = ~1u,
                 .needs_grad = true,
                 .is_repeated = true};
    kn_status status = x.op->shape(&x);
    for (int i = 0; status == KN_OK && i < x.num_outputs; i++)
        status = kn_tensor_new(&x.outputs[i], x.spec[i].dtype, x.spec[i].ndim, x.spec[i].shape,
                               kn_stream_device(call->stream));
    if (status == KN_OK)
        status = x.op->forward(&x);
    for (int i = 0; i < x.num_outputs; i++)
        kn_release(x.outputs[i]);
    for (int k = 0; k < x.num_saved; k++)
        if (x.saved[k] && !(p->saved[k] = kn_scope_adopt(x.saved[k])))
            status = kn_error_status();
    p->grad.num_saved = x.num_saved;
    return status;
}

/* Are there inputs that are results of X, and all given? */
static bool has_results(const kn_call *call)
{
    const kn_op *op = call->op;
    bool any = false;
    for (int i = 1; i < KN_OP_MAX_INPUTS && op->inputs[i]; i++) {
        if (input_of(op->backward_of, op->inputs[i]) >= 0)
            continue;
        if (i >= call->num_inputs || !call->inputs[i])
            return false;
        any = true;
    }
    return any;
}

static kn_status find_saved(pass *p, const kn_call *call)
{
    if (!call->op->repeats_forward)
        return KN_OK;
    if (!has_results(call))
        return repeat_forward(p, call);
    if (call->op->restore)
        KN_TRY(call->op->restore(call, p->saved));
    for (int k = 0; k < KN_OP_MAX_SAVED; k++)
        p->grad.num_saved = p->saved[k] ? k + 1 : p->grad.num_saved;
    return KN_OK;
}

static kn_status run(kn_call *call)
{
    const kn_op *op = call->op;
    bool any = false;
    pass p;
    describe(&p, call);
    KN_TRY(find_saved(&p, call));
    KN_TRY(make_contiguous(&p));
    for (int i = 0; i < call->num_outputs; i++) {
        p.results[target_of(op, i)] = call->outputs[i];
        any |= call->outputs[i] != NULL;
    }
    if (!any)
        return KN_OK;
    KN_TRY(op->backward_of->backward(&p.grad));
    for (int i = 0; i < call->num_outputs; i++) {
        kn_tensor *result = p.results[target_of(op, i)];
        if (call->outputs[i] && result != call->outputs[i])
            KN_TRY(kn_tensor_copy(call->outputs[i], result));
    }
    return KN_OK;
}

kn_status kn_backward_forward(kn_call *call)
{
    const int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    const bool enabled = kn_set_grad_enabled(false), tracking = kn_view_set_tracking(false);
    kn_status status = run(call);
    kn_view_set_tracking(tracking);
    kn_set_grad_enabled(enabled);
    kn_scope_end(scope);
    for (int i = 0; status == KN_OK && call->needs_grad && i < call->num_inputs; i++)
        status = kn_call_save(call, call->inputs[i]);
    return status;
}

kn_span_work kn_backward_work(const kn_call *call)
{
    pass p;
    describe(&p, call);
    return kn_grad_call_work(&p.grad);
}

/* --- recorded ----------------------------------------------------------------------------------------------------- */

/* A tensor of which only the shape matters: one element, expanded. */
static kn_tensor *placeholder(const kn_input_spec *spec)
{
    const int64_t strides[KN_MAX_DIMS] = {0};
    kn_tensor *one = kn_zeros_with(0, NULL, &(kn_tensor_options){.dtype = spec->dtype, .device = spec->device});
    kn_tensor *all = NULL;
    if (!one || kn_tensor_view(&all, one, spec->ndim, spec->shape, strides, 0) != KN_OK)
        return NULL;
    return kn_scope_adopt(all);
}

/* X_backward's input of that name; NULL if absent, or with an error. */
static kn_tensor *recorded_input(const kn_grad_call *grad, const char *name)
{
    const kn_op *of = grad->op;
    const int slot = position(of->saved, KN_OP_MAX_SAVED, name), input = input_of(of, name),
              output = output_of(of, name);
    if (slot >= 0)
        return input >= 0    ? kn_grad_saved_input(grad, slot, input)
               : output >= 0 ? kn_grad_saved_output(grad, slot, output)
                             : grad->saved[slot];
    return input >= 0 && input < grad->num_inputs && grad->input[input].device ? placeholder(&grad->input[input])
                                                                               : NULL;
}

kn_status kn_backward_recorded_with(kn_grad_call *grad, kn_tensor *gradient, const void *params)
{
    const kn_op *op = grad->op->backward_operator;
    kn_tensor *inputs[KN_OP_MAX_INPUTS] = {gradient}, *outputs[KN_OP_MAX_OUTPUTS];
    const int num_inputs = count_names(op->inputs, KN_OP_MAX_INPUTS),
              num_outputs = count_names(op->outputs, KN_OP_MAX_OUTPUTS);
    if (!gradient)
        return kn_error_status();
    for (int i = 1; i < num_inputs; i++)
        inputs[i] = recorded_input(grad, op->inputs[i]);
    for (int i = 0; i < num_outputs; i++)
        outputs[i] = grad->needs[target_of(op, i)] ? NULL : KN_SKIP_OUTPUT;
    KN_TRY(kn_op_check_given(op, inputs, num_inputs));
    KN_TRY(kn_op_apply_to(op, inputs, num_inputs, params, outputs, num_outputs));
    for (int i = 0; i < num_outputs; i++)
        grad->grad_inputs[target_of(op, i)] = outputs[i];
    return KN_OK;
}

kn_status kn_backward_recorded(kn_grad_call *grad)
{
    return grad->grad_outputs[0] ? kn_backward_recorded_with(grad, grad->grad_outputs[0], grad->params) : KN_OK;
}

kn_status kn_backward_of_linear(kn_grad_call *grad)
{
    const kn_op *op = grad->op, *of = op->backward_of;
    kn_tensor *inputs[KN_OP_MAX_INPUTS];
    if (!grad->needs[0])
        return KN_OK;
    const int count = inputs_of(inputs, op, grad->saved, grad->num_inputs);
    inputs[0] = grad->grad_outputs[0];
    grad->grad_inputs[0] = kn_op_apply(of, inputs, count, grad->params, NULL);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}
