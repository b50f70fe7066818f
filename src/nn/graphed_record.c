/* nn/graphed_record.c - captures a module's forward and backward passes, each in a graph. */
#include <koine/autograd.h>
#include <koine/random.h>
#include <koine/shape.h>
#include <koine/stream.h>

#include "autograd/tape.h"
#include "base/error.h"
#include "base/memory.h"
#include "nn/graphed.h"
#include "tensor/tensor.h"

/* The graphs' tensor for input `i` of the recorded call; NULL if it was omitted. */
static kn_tensor *leaf(const kn_graphed *graphed, int i)
{
    return i < graphed->num_inputs ? graphed->samples[i] : graphed->inputs[i];
}

/* --- storage ---------------------------------------------------------------------------------- */

/* Allocates the lists, empty. */
static kn_status make_lists(kn_graphed *made)
{
    made->block = kn_calloc((size_t)kn_graphed_block_length(made), sizeof *made->block);
    if (made->block == NULL) {
        made->num_inputs = made->num_outputs = made->count = 0;
        return KN_ERR_MEMORY;
    }
    made->samples = made->block;
    made->outputs = made->samples + made->num_inputs;
    made->grad_outputs = made->outputs + made->num_outputs;
    made->inputs = made->grad_outputs + made->num_outputs;
    made->recorded = made->inputs + made->count;
    made->gradients = made->recorded + made->count;
    return KN_OK;
}

static kn_status keep_parameters(kn_graphed *made, kn_parameter_list parameters)
{
    KN_SCOPE;
    for (int p = 0; p < parameters.count; p++) {
        const int i = made->num_inputs + p;
        made->inputs[i] = kn_retain(parameters.tensors[p]);
        made->recorded[i] = kn_retain(kn_detach(made->inputs[i]));
        if (made->recorded[i] == NULL)
            return kn_error_status();
    }
    return KN_OK;
}

static kn_status keep_samples(kn_graphed *made, kn_tensor *const *samples, int num_samples)
{
    KN_SCOPE;
    KN_NO_GRAD;
    for (int i = 0; i < num_samples; i++) {
        if (samples[i] == NULL)
            continue;
        made->samples[i] = kn_retain(kn_clone(samples[i]));
        if (made->samples[i] == NULL)
            return kn_error_status();
        if (kn_requires_grad(samples[i]))
            KN_TRY(kn_set_requires_grad(made->samples[i], true));
    }
    return KN_OK;
}

static kn_status fill(kn_graphed *made, kn_parameter_list parameters, kn_tensor *const *samples, int num_samples)
{
    KN_TRY(make_lists(made));
    KN_TRY(keep_parameters(made, parameters));
    KN_TRY(kn_status_of(made->forward = kn_graph_new()));
    return keep_samples(made, samples, num_samples);
}

static kn_graphed *new_graphed(kn_module *module, kn_tensor *const *samples, int num_samples)
{
    kn_parameter_list parameters;
    if (kn_module_find_parameters(&parameters, module) != KN_OK)
        return NULL;
    kn_graphed *made = kn_calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    const kn_signature signature = kn_module_signature(module);
    atomic_init(&made->references, 1);
    kn_mutex_init(&made->lock);
    made->training = module->training;
    made->num_inputs = signature.inputs;
    made->num_outputs = signature.outputs;
    made->count = signature.inputs + parameters.count;
    if (fill(made, parameters, samples, num_samples) == KN_OK)
        return made;
    kn_graphed_release(made);
    return NULL;
}

/* --- the passes ------------------------------------------------------------------------------- */

/* The module's outputs, owned by the enclosing scope. */
static kn_status run_forward(kn_module *module, const kn_graphed *graphed, kn_tensor **outputs)
{
    for (int o = 0; o < graphed->num_outputs; o++)
        outputs[o] = NULL;
    KN_TRY(kn_module_call(module, graphed->samples, outputs));
    for (int o = 0; o < graphed->num_outputs; o++)
        if (outputs[o] == NULL)
            return kn_error_status() != KN_OK
                       ? kn_error_status()
                       : kn_fail(KN_ERR_STATE, "%s: its forward function did not set output %d", module->type_name, o);
    return KN_OK;
}

/* A tensor whose backward pass starts those of all outputs with their given gradients: one walk over the tape, where a
 * walk from each output would repeat what they share. */
typedef struct join_params {
    kn_tensor *const *gradients; /* borrowed: the pass runs immediately */
} join_params;

static kn_status join_backward(kn_grad_call *call)
{
    const join_params *params = call->params;
    for (int i = 0; i < call->num_inputs; i++)
        if (call->needs[i] && (call->grad_inputs[i] = kn_scope_adopt(kn_retain(params->gradients[i]))) == NULL)
            return kn_error_status();
    return KN_OK;
}

static const kn_op join_op = {.name = "join", .record_size = sizeof(join_params), .backward = join_backward};

/* `gradients`: NULL for outputs without one. */
static kn_status run_backward(kn_tensor *const *outputs, kn_tensor *const *gradients, int count)
{
    if (count == 1)
        return kn_backward_with(outputs[0], gradients[0], false);
    const join_params params = {gradients};
    kn_tensor *root =
        kn_zeros_with(KN_SCALAR, &(kn_tensor_options){.dtype = KN_F32, .device = kn_device_of(outputs[0])});
    if (root == NULL)
        return kn_error_status();
    KN_TRY(kn_tape_record_many(&join_op, &params, outputs, count, &root, 1));
    return kn_backward_with(root, root, false);
}

static bool any_requires_grad(kn_tensor *const *tensors, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any = any || kn_requires_grad(tensors[i]);
    return any;
}

/* Gradients of one for the outputs that have a gradient; owned by the enclosing scope. */
static kn_status make_ones(kn_tensor *const *outputs, int count, kn_tensor **ones)
{
    for (int o = 0; o < count; o++)
        if (kn_requires_grad(outputs[o]) && (ones[o] = kn_ones_like(outputs[o])) == NULL)
            return kn_error_status();
    return KN_OK;
}

/* Runs both passes uncaptured, so that all kernels are compiled before the capture. */
static kn_status warm_up(kn_module *module, kn_graphed *graphed)
{
    const int count = graphed->num_outputs;
    kn_tensor **outputs = kn_calloc(2 * (size_t)count, sizeof *outputs);
    if (outputs == NULL)
        return KN_ERR_MEMORY;
    kn_tensor **ones = outputs + count;
    kn_status status = KN_OK;
    for (int i = 0; i < 2 && status == KN_OK; i++) {
        KN_SCOPE;
        status = run_forward(module, graphed, outputs);
        if (status != KN_OK || !any_requires_grad(outputs, count))
            continue;
        status = make_ones(outputs, count, ones);
        if (status == KN_OK)
            status = run_backward(outputs, ones, count);
    }
    kn_free(outputs);
    return status;
}

static kn_status record_forward(kn_module *module, kn_graphed *graphed, kn_stream *stream)
{
    KN_TRY(kn_graph_capture_begin(graphed->forward, stream));
    kn_status status = KN_OK;
    {
        KN_SCOPE;
        status = run_forward(module, graphed, graphed->outputs);
        for (int o = 0; o < graphed->num_outputs; o++)
            graphed->outputs[o] = status == KN_OK ? kn_retain(graphed->outputs[o]) : NULL;
    }
    kn_status ended = kn_graph_capture_end(graphed->forward);
    return status == KN_OK ? ended : status;
}

/* Shares the forward graph's memory: the passes never run concurrently. Gradients stay in the leaves' kn_grad. */
static kn_status record_backward(kn_graphed *graphed, kn_stream *stream)
{
    const int count = graphed->num_outputs;
    KN_TRY(kn_status_of(graphed->backward = kn_graph_new()));
    KN_TRY(kn_graph_set_pool(graphed->backward, kn_graph_pool(graphed->forward)));
    {
        KN_SCOPE;
        kn_status made = make_ones(graphed->outputs, count, graphed->grad_outputs);
        for (int o = 0; o < count; o++)
            kn_retain(graphed->grad_outputs[o]);
        KN_TRY(made);
    }
    KN_TRY(kn_graph_capture_begin(graphed->backward, stream));
    kn_status status = KN_OK;
    {
        KN_SCOPE;
        status = run_backward(graphed->outputs, graphed->grad_outputs, count);
    }
    kn_status ended = kn_graph_capture_end(graphed->backward);
    if (status == KN_OK)
        status = ended;
    for (int i = 0; i < graphed->count && status == KN_OK; i++)
        graphed->gradients[i] = kn_retain(kn_grad(leaf(graphed, i)));
    return status;
}

/* Detaches the graphs' outputs from the tape. */
static kn_status detach_outputs(kn_graphed *graphed)
{
    KN_SCOPE;
    for (int o = 0; o < graphed->num_outputs; o++) {
        kn_tensor *plain = kn_retain(kn_detach(graphed->outputs[o]));
        if (plain == NULL)
            return kn_error_status();
        kn_release(graphed->outputs[o]);
        graphed->outputs[o] = plain;
    }
    return KN_OK;
}

static kn_status record(kn_module *module, kn_graphed *graphed, kn_device *device)
{
    kn_stream *stream = kn_stream_current(device);
    KN_TRY(warm_up(module, graphed));
    for (int i = 0; i < graphed->count; i++)
        if (leaf(graphed, i) != NULL)
            KN_TRY(kn_set_grad(leaf(graphed, i), NULL));
    KN_TRY(record_forward(module, graphed, stream));
    if (any_requires_grad(graphed->outputs, graphed->num_outputs))
        KN_TRY(record_backward(graphed, stream));
    return detach_outputs(graphed);
}

/* Restores the parameters' gradients and the generator, also on failure. */
static kn_status record_quietly(kn_module *module, kn_graphed *graphed, kn_device *device)
{
    uint8_t state[KN_RNG_STATE_SIZE];
    kn_tensor **before = kn_calloc((size_t)graphed->count, sizeof *before);
    if (before == NULL)
        return KN_ERR_MEMORY;
    kn_status status = kn_get_rng_state(device, state);
    for (int i = graphed->num_inputs; i < graphed->count; i++)
        before[i] = kn_retain(kn_grad(graphed->inputs[i]));
    bool grad = kn_set_grad_enabled(true);
    if (status == KN_OK)
        status = record(module, graphed, device);
    kn_set_grad_enabled(grad);
    for (int i = 0; i < graphed->count; i++) {
        if (leaf(graphed, i) != NULL)
            kn_set_grad(leaf(graphed, i), before[i]);
        kn_release(before[i]);
    }
    kn_set_rng_state(device, state);
    kn_free(before);
    return status;
}

/* --- the interface ---------------------------------------------------------------------------- */

static kn_status check_samples(const kn_module *module, kn_tensor *const *samples, int num_samples, kn_device **device)
{
    const kn_signature signature = kn_module_signature(module);
    if (num_samples > signature.inputs || num_samples < signature.inputs - signature.optional)
        return kn_fail(KN_ERR_ARGUMENT, "make_graphed_callable: %d samples were given for the %d inputs of this %s",
                       num_samples, signature.inputs, module->type_name);
    *device = NULL;
    for (int i = 0; i < num_samples; i++) {
        if (samples[i] == NULL && i < signature.inputs - signature.optional)
            return kn_fail_argument_null("make_graphed_callable", "sample");
        if (samples[i] == NULL)
            continue;
        if (kn_device_is_host(kn_device_of(samples[i])))
            return kn_fail(KN_ERR_DEVICE, "make_graphed_callable: the sample is on the host, which runs no operations: "
                                          "move it to a device with kn_to(tensor, device)");
        *device = *device != NULL ? *device : kn_device_of(samples[i]);
    }
    if (*device == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "make_graphed_callable: at least one sample must be given");
    return KN_OK;
}

static const kn_module *find_hooked(const kn_module *module)
{
    if (module->hooks.count > 0)
        return module;
    const kn_module *found = NULL;
    for (int i = 0; i < module->num_children && found == NULL; i++)
        found = find_hooked(module->children[i].module);
    return found;
}

/* A replay calls no functions of the program. */
static kn_status check_no_hooks(const kn_module *module)
{
    const kn_module *hooked = find_hooked(module);
    if (hooked == NULL)
        return KN_OK;
    return kn_fail(
        KN_ERR_STATE,
        "make_graphed_callable: this %s has a hook, which replays would not run: register hooks of the whole "
        "module afterwards",
        hooked->type_name);
}

kn_status kn_make_graphed_callable_many(kn_module *module, kn_tensor *const *samples, int num_samples)
{
    kn_device *device = NULL;
    if (module == NULL || samples == NULL)
        return kn_fail_argument_null("make_graphed_callable", module == NULL ? "module" : "samples");
    KN_TRY(check_samples(module, samples, num_samples, &device));
    KN_TRY(check_no_hooks(module));
    if (module->graphed != NULL)
        return kn_fail(KN_ERR_STATE, "make_graphed_callable: this %s is graphed already", module->type_name);
    kn_graphed *graphed = new_graphed(module, samples, num_samples);
    kn_status status = graphed != NULL ? record_quietly(module, graphed, device) : kn_error_status();
    if (status != KN_OK) {
        kn_graphed_release(graphed);
        kn_error_prefix("make_graphed_callable");
        return status;
    }
    module->graphed = graphed;
    return KN_OK;
}

kn_status kn_make_graphed_callable(kn_module *module, kn_tensor *sample)
{
    return kn_make_graphed_callable_many(module, &sample, 1);
}
