/* nn/graphed.c - calls of a module whose forward and backward passes were captured: each replays a graph. */
#include "nn/graphed.h"

#include <koine/autograd.h>
#include <koine/shape.h>
#include <koine/stream.h>

#include "autograd/tape.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor.h"

/* The parameters of a recorded call. */
typedef struct graphed_call {
    kn_graphed *graphed;
    int64_t number;    /* number of the replay */
    unsigned versions; /* sum over all parameters */
} graphed_call;

void kn_graphed_release(kn_graphed *graphed)
{
    if (graphed == NULL || atomic_fetch_sub(&graphed->references, 1) > 1)
        return;
    kn_graph_free(graphed->backward);
    kn_graph_free(graphed->forward);
    for (int i = 0; i < kn_graphed_block_length(graphed); i++)
        kn_release(graphed->block[i]);
    kn_free(graphed->block);
    kn_mutex_destroy(&graphed->lock);
    kn_free(graphed);
}

/* --- a call ----------------------------------------------------------------------------------- */

static void keep(void *params) { atomic_fetch_add(&((graphed_call *)params)->graphed->references, 1); }
static void drop(void *params) { kn_graphed_release(((graphed_call *)params)->graphed); }

static unsigned sum_versions(const kn_graphed *graphed)
{
    unsigned sum = 0;
    for (int i = graphed->num_inputs; i < graphed->count; i++)
        sum += atomic_load(&graphed->inputs[i]->storage->version);
    return sum;
}

/* Are the tensors saved by this call's forward pass still intact? */
static kn_status check_call(const graphed_call *call)
{
    if (call->number != call->graphed->calls)
        return kn_fail(KN_ERR_STATE, "the module was applied again, or its backward pass run, before this backward "
                                     "pass, which overwrote what it needs: a graphed module holds one call at a time");
    if (call->versions != sum_versions(call->graphed))
        return kn_fail(KN_ERR_STATE, "a parameter was changed in place between the module's forward and this pass");
    return KN_OK;
}

/* Copies to and from the graphs' memory must wait for the previous replay, on whatever stream it ran. */
static kn_status follow_last(kn_graphed *graphed)
{
    kn_stream *stream = kn_stream_current(kn_device_of(graphed->outputs[0]));
    if (stream == NULL)
        return kn_error_status();
    if (graphed->last != NULL && graphed->last != stream && kn_stream_id(graphed->last) == graphed->last_id)
        KN_TRY(kn_stream_wait_stream(stream, graphed->last));
    graphed->last = stream;
    graphed->last_id = kn_stream_id(stream);
    return KN_OK;
}

/* Zeros for an output that no gradient reached. */
static kn_status take_gradients(const kn_graphed *graphed, const kn_grad_call *call)
{
    for (int o = 0; o < graphed->num_outputs; o++) {
        kn_tensor *into = graphed->grad_outputs[o], *gradient = call->grad_outputs[o];
        if (into != NULL)
            KN_TRY(gradient != NULL ? kn_copy_(into, gradient) : kn_tensor_fill(into, 0));
    }
    return KN_OK;
}

/* The next replay overwrites the graph's outputs, so gradients are passed on as copies. */
static kn_status replay_backward(kn_graphed *graphed, kn_grad_call *call)
{
    KN_TRY(check_call(call->params));
    KN_TRY(follow_last(graphed));
    graphed->calls++; /* the pass overwrites its inputs and cannot run twice */
    KN_TRY(take_gradients(graphed, call));
    KN_TRY(kn_graph_replay(graphed->backward));
    for (int i = 0; i < call->num_inputs; i++) {
        if (!call->needs[i] || graphed->gradients[i] == NULL)
            continue;
        call->grad_inputs[i] = kn_clone(graphed->gradients[i]);
        if (call->grad_inputs[i] == NULL)
            return kn_error_status();
    }
    return KN_OK;
}

static kn_status backward(kn_grad_call *call)
{
    kn_graphed *graphed = ((const graphed_call *)call->params)->graphed;
    kn_lock(&graphed->lock);
    kn_status status = replay_backward(graphed, call);
    kn_unlock(&graphed->lock);
    return status;
}

static const kn_op graphed_op = {.name = "graphed_module",
                                 .record_size = sizeof(graphed_call),
                                 .record_keep = keep,
                                 .record_drop = drop,
                                 .backward = backward};

static bool wants_record(const kn_graphed *graphed, kn_tensor *const *inputs)
{
    if (!kn_grad_enabled() || graphed->backward == NULL)
        return false;
    bool wants = false;
    for (int i = 0; i < graphed->count; i++) {
        const kn_tensor *input = i < graphed->num_inputs ? inputs[i] : graphed->inputs[i];
        wants = wants || (input != NULL && kn_requires_grad(input));
    }
    return wants;
}

static kn_status check_input(const kn_graphed *graphed, int i, const kn_tensor *x)
{
    const kn_tensor *sample = graphed->samples[i];
    char one[KN_DESCRIBE], other[KN_DESCRIBE];
    if (x == NULL && sample == NULL)
        return KN_OK;
    if (x == NULL || sample == NULL)
        return kn_fail(KN_ERR_ARGUMENT,
                       "a graphed module takes inputs like those it was recorded with: %s for input %d",
                       sample == NULL ? "NULL" : "a tensor", i);
    if (kn_grad_enabled() && kn_requires_grad(x) && graphed->gradients[i] == NULL)
        return kn_fail(KN_ERR_STATE, "a graphed module's input requires a gradient, but the sample it was recorded "
                                     "with did not: kn_set_requires_grad(sample, true) before recording");
    if (kn_same_shape(x, sample) && x->dtype == sample->dtype && x->storage->device == sample->storage->device)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "a graphed module takes inputs like those it was recorded with: %s, not %s",
                   kn_tensor_describe(one, sizeof one, sample), kn_tensor_describe(other, sizeof other, x));
}

static kn_status check_inputs(const kn_graphed *graphed, kn_tensor *const *inputs)
{
    for (int i = graphed->num_inputs; i < graphed->count; i++)
        if (graphed->inputs[i]->storage != graphed->recorded[i]->storage)
            return kn_fail(KN_ERR_STATE,
                           "a parameter of a graphed module was moved or converted after it was recorded");
    for (int i = 0; i < graphed->num_inputs; i++)
        KN_TRY(check_input(graphed, i, inputs[i]));
    return KN_OK;
}

/* Copies inputs in, replays, and copies outputs out, because the next replay overwrites them. */
static kn_status pass(kn_graphed *graphed, kn_tensor *const *inputs, kn_tensor **outputs)
{
    graphed->calls++;
    KN_TRY(follow_last(graphed));
    for (int i = 0; i < graphed->num_inputs; i++)
        if (inputs[i] != NULL)
            KN_TRY(kn_copy_(graphed->samples[i], inputs[i]));
    KN_TRY(kn_graph_replay(graphed->forward));
    for (int o = 0; o < graphed->num_outputs; o++)
        if ((outputs[o] = kn_clone(graphed->outputs[o])) == NULL)
            return kn_error_status();
    return KN_OK;
}

/* Outputs without a gradient at capture time have none now. */
static kn_status record_call(kn_graphed *graphed, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const graphed_call call = {graphed, graphed->calls, sum_versions(graphed)};
    kn_tensor **differentiable = kn_calloc((size_t)graphed->num_outputs, sizeof *differentiable);
    if (differentiable == NULL)
        return KN_ERR_MEMORY;
    for (int o = 0; o < graphed->num_outputs; o++)
        differentiable[o] = graphed->grad_outputs[o] != NULL ? outputs[o] : NULL;
    for (int i = 0; i < graphed->num_inputs; i++)
        graphed->inputs[i] = inputs[i]; /* these entries are empty between calls */
    kn_status status =
        kn_tape_record_many(&graphed_op, &call, graphed->inputs, graphed->count, differentiable, graphed->num_outputs);
    for (int i = 0; i < graphed->num_inputs; i++)
        graphed->inputs[i] = NULL;
    kn_free(differentiable);
    return status;
}

static kn_status replay(kn_graphed *graphed, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_status status = check_inputs(graphed, inputs);
    bool grad = kn_set_grad_enabled(false);
    if (status == KN_OK)
        status = pass(graphed, inputs, outputs);
    kn_set_grad_enabled(grad);
    return status == KN_OK && wants_record(graphed, inputs) ? record_call(graphed, inputs, outputs) : status;
}

kn_status kn_graphed_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const kn_signature signature = kn_module_signature(module);
    if (signature.inputs != module->graphed->num_inputs || signature.outputs != module->graphed->num_outputs)
        return kn_fail(KN_ERR_STATE, "modules were added to a graphed module after it was recorded");
    if (module->training != module->graphed->training)
        return kn_module_call(module, inputs, outputs);
    kn_lock(&module->graphed->lock);
    kn_status status = replay(module->graphed, inputs, outputs);
    kn_unlock(&module->graphed->lock);
    return status;
}
