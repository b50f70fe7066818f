/* nn/graphed.c - a module's forward and backward pass, each recorded in a graph and replayed at every call. */
#include "nn/graphed.h"

#include <koine/autograd.h>
#include <koine/graph.h>
#include <koine/ops.h>
#include <koine/random.h>
#include <koine/stream.h>
#include <string.h>

#include "autograd/tape.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "tensor/tensor.h"

struct kn_graphed {
    atomic_int references; /* the module's, and one of each recorded call */
    bool training;         /* the mode that was recorded */
    kn_graph *forward, *backward;
    kn_tensor *x, *y, *grad_y; /* what the graphs read and write */
    int count;                 /* inputs of the recorded call: x and the parameters */
    kn_tensor **inputs;        /* the parameters from 1 on; 0 is each call's own x */
    kn_tensor **recorded;      /* the parameters' memory that the graphs use: kept, and known by it */
    kn_tensor **gradients;     /* of the inputs, as the backward graph leaves them; NULL where none flows */
    int64_t calls;             /* replays of either pass; each overwrites what the one before left */
    kn_mutex lock;             /* held while a replay is enqueued: threads may apply one module at once */
    kn_stream *last;           /* of the replay before, with its number: a stream may be gone by then */
    uint64_t last_id;
};

/* The parameters of a recorded call. */
typedef struct graphed_call {
    kn_graphed *graphed;
    int64_t number;    /* of the replay */
    unsigned versions; /* of all parameters, summed */
} graphed_call;

void kn_graphed_release(kn_graphed *graphed)
{
    if (graphed == NULL || atomic_fetch_sub(&graphed->references, 1) > 1)
        return;
    kn_graph_free(graphed->backward);
    kn_graph_free(graphed->forward);
    kn_release(graphed->x);
    kn_release(graphed->y);
    kn_release(graphed->grad_y);
    for (int i = 0; i < graphed->count; i++) {
        kn_release(graphed->inputs[i]);
        kn_release(graphed->recorded[i]);
        kn_release(graphed->gradients[i]);
    }
    kn_free(graphed->inputs);
    kn_free(graphed->recorded);
    kn_free(graphed->gradients);
    kn_mutex_destroy(&graphed->lock);
    kn_free(graphed);
}

/* --- a call ----------------------------------------------------------------------------------- */

static void keep(void *params) { atomic_fetch_add(&((graphed_call *)params)->graphed->references, 1); }
static void drop(void *params) { kn_graphed_release(((graphed_call *)params)->graphed); }

static unsigned sum_versions(const kn_graphed *graphed)
{
    unsigned sum = 0;
    for (int i = 1; i < graphed->count; i++)
        sum += atomic_load(&graphed->inputs[i]->storage->version);
    return sum;
}

/* Is what the forward pass left for this call still there? */
static kn_status check_call(const graphed_call *call)
{
    if (call->number != call->graphed->calls)
        return kn_fail(KN_ERR_STATE,
                       "the module was applied again, or a backward pass made, before this backward pass, which "
                       "overwrote what it needs: a graphed module keeps one call at a time");
    if (call->versions != sum_versions(call->graphed))
        return kn_fail(KN_ERR_STATE, "a parameter was changed in place between the module's forward and this pass");
    return KN_OK;
}

/* The copies to and from the graphs' memory follow the replay before, on whatever stream that was. */
static kn_status follow_last(kn_graphed *graphed)
{
    kn_stream *stream = kn_stream_current(graphed->x->storage->device);
    if (stream == NULL)
        return kn_error_status();
    if (graphed->last != NULL && graphed->last != stream && kn_stream_id(graphed->last) == graphed->last_id)
        KN_TRY(kn_stream_wait_stream(stream, graphed->last));
    graphed->last = stream;
    graphed->last_id = kn_stream_id(stream);
    return KN_OK;
}

/* What the graph leaves is overwritten by its next replay, so gradients go on as copies. */
static kn_status replay_backward(kn_graphed *graphed, kn_grad_call *call)
{
    KN_TRY(check_call(call->params));
    KN_TRY(follow_last(graphed));
    graphed->calls++; /* the pass overwrites what it read: there is no second one */
    KN_TRY(kn_copy_(graphed->grad_y, call->grad_outputs[0]));
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

static bool wants_record(const kn_graphed *graphed, const kn_tensor *x)
{
    if (!kn_grad_enabled() || graphed->backward == NULL)
        return false;
    bool wants = kn_requires_grad(x);
    for (int i = 1; i < graphed->count; i++)
        wants = wants || kn_requires_grad(graphed->inputs[i]);
    return wants;
}

static kn_status check_input(const kn_graphed *graphed, const kn_tensor *x)
{
    char one[KN_DESCRIBE], other[KN_DESCRIBE];
    for (int i = 1; i < graphed->count; i++)
        if (graphed->inputs[i]->storage != graphed->recorded[i]->storage)
            return kn_fail(KN_ERR_STATE,
                           "a parameter of a graphed module was moved or converted after it was recorded");
    if (kn_grad_enabled() && kn_requires_grad(x) && graphed->gradients[0] == NULL)
        return kn_fail(KN_ERR_STATE, "a graphed module's input requires a gradient, but the sample it was recorded "
                                     "with did not: kn_set_requires_grad(sample, true) before recording");
    if (kn_same_shape(x, graphed->x) && x->dtype == graphed->x->dtype &&
        x->storage->device == graphed->x->storage->device)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "a graphed module takes what it was recorded with, %s, not %s",
                   kn_tensor_describe(one, sizeof one, graphed->x), kn_tensor_describe(other, sizeof other, x));
}

static kn_tensor *replay(kn_graphed *graphed, kn_tensor *x)
{
    kn_status status = check_input(graphed, x);
    bool grad = kn_set_grad_enabled(false);
    graphed->calls++;
    if (status == KN_OK)
        status = follow_last(graphed);
    if (status == KN_OK)
        status = kn_copy_(graphed->x, x);
    if (status == KN_OK)
        status = kn_graph_replay(graphed->forward);
    kn_tensor *y = status == KN_OK ? kn_clone(graphed->y) : NULL;
    kn_set_grad_enabled(grad);
    if (y == NULL)
        return kn_stick();
    if (!wants_record(graphed, x))
        return y;
    const graphed_call call = {graphed, graphed->calls, sum_versions(graphed)};
    graphed->inputs[0] = x; /* the list's own place for it, empty between calls */
    status = kn_tape_record_many(&graphed_op, &call, graphed->inputs, graphed->count, &y, 1);
    graphed->inputs[0] = NULL;
    return status == KN_OK ? y : kn_stick();
}

kn_tensor *kn_graphed_forward(kn_module *module, kn_tensor *x)
{
    if (module->training != module->graphed->training)
        return module->forward(module, x);
    kn_lock(&module->graphed->lock);
    kn_tensor *y = replay(module->graphed, x);
    kn_unlock(&module->graphed->lock);
    return y;
}

/* --- recording -------------------------------------------------------------------------------- */

static kn_graphed *new_graphed(kn_module *module, const kn_tensor *sample)
{
    kn_parameter_list parameters;
    if (kn_module_find_parameters(&parameters, module) != KN_OK)
        return NULL;
    kn_graphed *made = kn_calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    atomic_init(&made->references, 1);
    kn_mutex_init(&made->lock);
    made->training = module->training;
    made->inputs = kn_calloc((size_t)parameters.count + 1, sizeof *made->inputs);
    made->recorded = kn_calloc((size_t)parameters.count + 1, sizeof *made->recorded);
    made->gradients = kn_calloc((size_t)parameters.count + 1, sizeof *made->gradients);
    bool fine = made->inputs != NULL && made->recorded != NULL && made->gradients != NULL;
    made->count = fine ? parameters.count + 1 : 0;
    for (int i = 1; i < made->count; i++) {
        made->inputs[i] = kn_retain(parameters.tensors[i - 1]);
        {
            KN_SCOPE;
            made->recorded[i] = kn_retain(kn_detach(made->inputs[i]));
        }
        fine = fine && made->recorded[i] != NULL;
    }
    fine = fine && kn_graph_create(&made->forward) == KN_OK;
    {
        KN_SCOPE;
        KN_NO_GRAD;
        made->x = fine ? kn_retain(kn_clone((kn_tensor *)(uintptr_t)sample)) : NULL;
    }
    if (made->x != NULL && (!kn_requires_grad(sample) || kn_set_requires_grad(made->x, true) == KN_OK))
        return made;
    kn_graphed_release(made);
    return NULL;
}

/* Both passes as they are, so that kernels are compiled when they are recorded. */
static kn_status warm_up(kn_module *module, kn_graphed *graphed)
{
    kn_status status = KN_OK;
    for (int i = 0; i < 2 && status == KN_OK; i++) {
        KN_SCOPE;
        kn_tensor *y = module->forward(module, graphed->x);
        status = y == NULL ? kn_error_status() : KN_OK;
        if (status == KN_OK && kn_requires_grad(y))
            status = kn_backward_with(y, kn_ones_like(y), false);
    }
    return status;
}

static kn_status record_forward(kn_module *module, kn_graphed *graphed, kn_stream *stream)
{
    KN_TRY(kn_graph_capture_begin(graphed->forward, stream));
    {
        KN_SCOPE;
        graphed->y = kn_retain(module->forward(module, graphed->x));
    }
    kn_status status = graphed->y != NULL ? KN_OK : kn_error_status(), ended = kn_graph_capture_end(graphed->forward);
    return status == KN_OK ? ended : status;
}

/* In the memory of the forward graph: the passes never run at once. Gradients are left where the leaves have them. */
static kn_status record_backward(kn_graphed *graphed, kn_stream *stream)
{
    KN_TRY(kn_graph_create(&graphed->backward));
    KN_TRY(kn_graph_set_pool(graphed->backward, kn_graph_pool(graphed->forward)));
    {
        KN_SCOPE;
        graphed->grad_y = kn_retain(kn_ones_like(graphed->y));
    }
    if (graphed->grad_y == NULL)
        return kn_error_status();
    KN_TRY(kn_graph_capture_begin(graphed->backward, stream));
    kn_status status = KN_OK;
    {
        KN_SCOPE;
        status = kn_backward_with(graphed->y, graphed->grad_y, false);
    }
    kn_status ended = kn_graph_capture_end(graphed->backward);
    if (status == KN_OK)
        status = ended;
    for (int i = 0; i < graphed->count && status == KN_OK; i++)
        graphed->gradients[i] = kn_retain(kn_grad(i == 0 ? graphed->x : graphed->inputs[i]));
    return status;
}

static kn_status record(kn_module *module, kn_graphed *graphed)
{
    kn_stream *stream = kn_stream_current(graphed->x->storage->device);
    KN_TRY(warm_up(module, graphed));
    for (int i = 0; i < graphed->count; i++)
        KN_TRY(kn_set_grad(i == 0 ? graphed->x : graphed->inputs[i], NULL));
    KN_TRY(record_forward(module, graphed, stream));
    if (kn_requires_grad(graphed->y))
        KN_TRY(record_backward(graphed, stream));
    kn_tensor *plain = NULL;
    {
        KN_SCOPE;
        plain = kn_retain(kn_detach(graphed->y));
    }
    if (plain == NULL)
        return kn_error_status();
    kn_release(graphed->y);
    graphed->y = plain;
    return KN_OK;
}

/* The parameters' gradients and the generator are the caller's: as they were before, whatever happens. */
static kn_status record_quietly(kn_module *module, kn_graphed *graphed)
{
    uint8_t state[KN_RNG_STATE_SIZE];
    kn_device *device = graphed->x->storage->device;
    kn_tensor **before = kn_calloc((size_t)graphed->count, sizeof *before);
    if (before == NULL)
        return KN_ERR_MEMORY;
    kn_status status = kn_get_rng_state(device, state);
    for (int i = 1; i < graphed->count; i++)
        before[i] = kn_retain(kn_grad(graphed->inputs[i]));
    bool grad = kn_set_grad_enabled(true);
    if (status == KN_OK)
        status = record(module, graphed);
    kn_set_grad_enabled(grad);
    for (int i = 1; i < graphed->count; i++) {
        kn_set_grad(graphed->inputs[i], before[i]);
        kn_release(before[i]);
    }
    kn_set_grad(graphed->x, NULL);
    kn_set_rng_state(device, state);
    kn_free(before);
    return status;
}

kn_status kn_make_graphed_callable(kn_module *module, kn_tensor *sample)
{
    if (module == NULL || sample == NULL)
        return kn_fail_argument_null("make_graphed_callable", module == NULL ? "module" : "sample");
    if (kn_device_is_host(sample->storage->device))
        return kn_fail(KN_ERR_DEVICE, "make_graphed_callable: the sample is on the host, which runs no operations: "
                                      "move it first, kn_to(tensor, device)");
    if (module->graphed != NULL)
        return kn_fail(KN_ERR_STATE, "make_graphed_callable: this %s is one already", module->type_name);
    kn_graphed *graphed = new_graphed(module, sample);
    kn_status status = graphed != NULL ? record_quietly(module, graphed) : kn_error_status();
    if (status != KN_OK) {
        kn_graphed_release(graphed);
        kn_error_prefix("make_graphed_callable");
        return status;
    }
    module->graphed = graphed;
    return KN_OK;
}
