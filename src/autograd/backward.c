/* autograd/backward.c - kn_backward and kn_autograd_grad: the roots of a pass, and what happens to its results. */
#include <string.h>

#include "autograd/engine.h"
#include "autograd/whole.h"
#include "base/memory.h"
#include "tensor/batched.h"
#include "tensor/liveness.h"

/* --- roots of a pass ---------------------------------------------------------------------------------------------- */

/* The gradient that a pass starts with at `tensor`: the given one, or 1 for a single element. */
static kn_status first_gradient(kn_tensor **first, const char *function, kn_tensor *tensor, kn_tensor *gradient)
{
    if (gradient) {
        if (!kn_same_shape(tensor, gradient) || tensor->dtype != gradient->dtype ||
            kn_device_of(tensor) != kn_device_of(gradient)) {
            char a[KN_DESCRIBE], b[KN_DESCRIBE];
            return kn_fail(KN_ERR_SHAPE, "%s: the tensor is %s, but the given gradient is %s", function,
                           kn_tensor_describe(a, sizeof a, tensor), kn_tensor_describe(b, sizeof b, gradient));
        }
        *first = kn_retain(gradient);
        return KN_OK;
    }
    if (kn_numel(tensor) != 1) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "%s: without a given gradient the tensor must have one element; it is %s",
                       function, kn_tensor_describe(text, sizeof text, tensor));
    }
    KN_TRY(kn_tensor_new(first, tensor->dtype, tensor->ndim, tensor->shape, tensor->storage->device));
    kn_status status = kn_tensor_fill(*first, 1);
    if (status != KN_OK)
        kn_release(*first);
    return status;
}

static kn_status start_at(kn_pass_endpoint *start, const char *function, kn_tensor *tensor, kn_tensor *gradient)
{
    if (!kn_autograd_wants(tensor))
        return kn_fail(KN_ERR_STATE,
                       "%s: the tensor does not require gradients: no input of it does, or it was made "
                       "inside KN_NO_GRAD",
                       function);
    kn_node *node = kn_autograd_node(tensor);
    if (!node)
        return kn_error_status();
    *start = (kn_pass_endpoint){.node = node, .output = tensor->autograd->output};
    return first_gradient(&start->gradient, function, tensor, gradient);
}

/* --- to all leaves ------------------------------------------------------------------------------------------------ */

static kn_status backward_from(kn_tensor *tensor, kn_tensor *gradient, bool retain_graph)
{
    kn_pass pass = {.retain_graph = retain_graph};
    kn_pass_endpoint start;
    KN_TRY(start_at(&start, gradient ? "kn_backward_with" : "kn_backward", tensor, gradient));
    return kn_pass_run(&pass, &start, 1);
}

kn_status kn_backward_with(kn_tensor *tensor, kn_tensor *gradient, bool retain_graph)
{
    KN_TRY(kn_check_tensor("kn_backward", "tensor", tensor));
    kn_span span = kn_phase_span("backward");
    const kn_status status = backward_from(tensor, gradient, retain_graph);
    kn_span_end(span, NULL);
    return status;
}

kn_status kn_backward(kn_tensor *tensor) { return kn_backward_with(tensor, NULL, false); }

/* --- to certain tensors ------------------------------------------------------------------------------------------- */

static const char *const name = "kn_autograd_grad";

static kn_status check_lists(kn_tensor *const *outputs, int num_outputs, kn_tensor *const *inputs, int num_inputs,
                             kn_tensor **gradients)
{
    if (num_outputs < 1 || num_inputs < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d outputs and %d inputs: at least one of each is needed", name,
                       num_outputs, num_inputs);
    if (!outputs || !inputs || !gradients)
        return kn_fail_argument_null(name, !outputs ? "outputs" : !inputs ? "inputs" : "gradients");
    for (int i = 0; i < num_outputs; i++)
        KN_TRY(kn_check_tensor(name, "outputs", outputs[i]));
    for (int i = 0; i < num_inputs; i++)
        KN_TRY(kn_check_tensor(name, "inputs", inputs[i]));
    return KN_OK;
}

static kn_status want(kn_pass_endpoint *wanted, kn_tensor *const *inputs, int num_inputs)
{
    for (int i = 0; i < num_inputs; i++) {
        if (!kn_autograd_wants(inputs[i]))
            return kn_fail(KN_ERR_STATE, "%s: input %d does not require gradients", name, i);
        wanted[i].node = kn_autograd_node(inputs[i]);
        if (!wanted[i].node)
            return kn_error_status();
        wanted[i].output = inputs[i]->autograd->output;
    }
    return KN_OK;
}

static kn_status check_found(const kn_pass *pass, bool allow_unused)
{
    for (int i = 0; i < pass->num_wanted && !allow_unused; i++)
        if (!pass->wanted[i].gradient)
            return kn_fail(KN_ERR_STATE,
                           "%s: input %d was not used for the outputs; .allow_unused = true gives NULL for "
                           "it",
                           name, i);
    return KN_OK;
}

static kn_status find(kn_pass *pass, kn_pass_endpoint *roots, kn_tensor *const *outputs, int num_outputs,
                      kn_tensor *const *inputs, const kn_autograd_grad_params *params)
{
    kn_status status = want(pass->wanted, inputs, pass->num_wanted);
    int begun = 0;
    for (; status == KN_OK && begun < num_outputs; begun++)
        status =
            start_at(&roots[begun], name, outputs[begun], params->grad_outputs ? params->grad_outputs[begun] : NULL);
    if (status != KN_OK) {
        for (int i = 0; i < begun; i++)
            kn_release(roots[i].gradient);
        return status;
    }
    status = kn_pass_run(pass, roots, num_outputs);
    return status == KN_OK ? check_found(pass, params->allow_unused) : status;
}

kn_batched_grad kn_grad_of_batches;

static int highest_level(kn_tensor *const *outputs, int num_outputs, kn_tensor *const *inputs, int num_inputs)
{
    const int of_outputs = kn_batch_level_of(outputs, num_outputs), of_inputs = kn_batch_level_of(inputs, num_inputs);
    return of_outputs > of_inputs ? of_outputs : of_inputs;
}

kn_autograd_grad_params kn_autograd_grad_params_init(void)
{
    return (kn_autograd_grad_params){KN_AUTOGRAD_GRAD_DEFAULTS};
}

kn_status kn_autograd_grad_with(kn_tensor *const *outputs, int num_outputs, kn_tensor *const *inputs, int num_inputs,
                                kn_tensor **gradients, const kn_autograd_grad_params *params)
{
    params = params ? params : &(kn_autograd_grad_params){KN_AUTOGRAD_GRAD_DEFAULTS};
    KN_TRY(check_lists(outputs, num_outputs, inputs, num_inputs, gradients));
    const int level = highest_level(outputs, num_outputs, inputs, num_inputs);
    if (level > 0)
        return kn_grad_of_batches(level, outputs, num_outputs, inputs, num_inputs, gradients, params);
    kn_pass_endpoint *ends = kn_calloc((size_t)num_outputs + (size_t)num_inputs, sizeof *ends);
    if (!ends)
        return KN_ERR_MEMORY;
    kn_pass pass = {.retain_graph = params->retain_graph,
                    .create_graph = params->create_graph,
                    .wanted = ends + num_outputs,
                    .num_wanted = num_inputs};
    kn_span span = kn_phase_span("backward");
    const kn_status status = find(&pass, ends, outputs, num_outputs, inputs, params);
    kn_span_end(span, NULL);
    for (int i = 0; i < num_inputs; i++) {
        kn_tensor *gradient = pass.wanted[i].gradient;
        if (status == KN_OK)
            gradients[i] = gradient ? kn_scope_adopt(gradient) : NULL;
        else
            kn_release(gradient);
    }
    kn_free(ends);
    return status;
}

/* --- for ops: gradients ------------------------------------------------------------------------------------------- */

kn_tensor *kn_grad_new(kn_grad_call *call, int index)
{
    const kn_input_spec *input = &call->input[index];
    if (!call->grad_inputs[index])
        call->grad_inputs[index] = kn_empty_with(input->ndim, input->shape,
                                                 &(kn_tensor_options){.dtype = input->dtype, .device = input->device});
    return call->grad_inputs[index];
}

kn_tensor *kn_grad_place(kn_grad_call *call, int index, bool (*fits)(const kn_tensor *place))
{
    kn_tensor *place = NULL;
    const kn_edge *edge = call->queue ? &call->edges[index] : NULL;
    if (edge && kn_whole_place(&place, call->queue, edge->node, edge->output) != KN_OK)
        return NULL;
    if (place && fits(place))
        return call->grad_inputs[index] = kn_scope_adopt(place);
    kn_release(place);
    return kn_grad_new(call, index);
}

kn_tensor *kn_grad_take(kn_grad_call *call, int index)
{
    const kn_edge *edge = call->queue ? &call->edges[index] : NULL;
    kn_tensor *arrived = edge ? edge->node->gradients[edge->output] : NULL;
    const kn_input_spec *input = &call->input[index];
    if (!arrived || !kn_is_contiguous(arrived) || arrived->ndim != input->ndim ||
        memcmp(arrived->shape, input->shape, (size_t)input->ndim * sizeof *input->shape) != 0)
        return NULL;
    edge->node->gradients[edge->output] = NULL;
    return kn_scope_adopt(arrived);
}

/* --- saved tensors with their history ----------------------------------------------------------------------------- */

static kn_tensor *with_history(kn_tensor *saved, kn_node *node, int output)
{
    kn_tensor *alias;
    if (!saved || !node || !kn_dtype_is_floating(saved->dtype))
        return saved;
    if (kn_tensor_view(&alias, saved, saved->ndim, saved->shape, saved->strides, saved->offset) != KN_OK)
        return NULL;
    struct kn_autograd *autograd = kn_autograd_of(alias);
    if (!autograd) {
        kn_release(alias);
        return NULL;
    }
    atomic_fetch_add(&node->references, 1);
    *autograd = (struct kn_autograd){.requires_grad = true, .node = node, .output = output};
    return kn_scope_adopt(alias);
}

kn_tensor *kn_grad_saved_input(const kn_grad_call *call, int slot, int input)
{
    const kn_edge *edge = call->node ? &call->node->edges[input] : NULL;
    return with_history(call->saved[slot], edge ? edge->node : NULL, edge ? edge->output : 0);
}

kn_tensor *kn_grad_saved_output(const kn_grad_call *call, int slot, int output)
{
    return with_history(call->saved[slot], (kn_node *)(uintptr_t)call->node, output);
}
