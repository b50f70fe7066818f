/* autograd/engine.c - the backward pass: nodes by falling number from a heap, each once, when all that depends on it
 * has been. */
#include <inttypes.h>
#include <string.h>

#include "autograd/tape.h"
#include "autograd/work.h"
#include "base/memory.h"
#include "tensor/liveness.h"
#include "tensor/scope.h"

/* --- the queue: a heap, largest number first -------------------------------------------------- */

typedef struct queue {
    kn_node **items; /* each with a reference */
    int count, capacity;
} queue;

static kn_status queue_push(queue *q, kn_node *node)
{
    if (node->queued)
        return KN_OK;
    if (q->count == q->capacity) {
        int capacity = q->capacity ? 2 * q->capacity : 64;
        kn_node **items = kn_realloc(q->items, (size_t)capacity * sizeof *items);
        if (!items)
            return KN_ERR_MEMORY;
        q->items = items;
        q->capacity = capacity;
    }
    atomic_fetch_add(&node->references, 1);
    node->queued = true;
    int at = q->count++;
    while (at > 0 && q->items[(at - 1) / 2]->number < node->number) {
        q->items[at] = q->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    q->items[at] = node;
    return KN_OK;
}

static kn_node *queue_pop(queue *q)
{
    if (q->count == 0)
        return NULL;
    kn_node *top = q->items[0], *moved = q->items[--q->count];
    int at = 0;
    for (int child = 1; child < q->count; child = 2 * at + 1) {
        if (child + 1 < q->count && q->items[child + 1]->number > q->items[child]->number)
            child++;
        if (q->items[child]->number <= moved->number)
            break;
        q->items[at] = q->items[child];
        at = child;
    }
    q->items[at] = moved;
    top->queued = false;
    return top;
}

/* --- gradients on their way ------------------------------------------------------------------- */

/* Nobody else sees its values: it may be changed. */
static bool is_ours(const kn_tensor *tensor)
{
    return atomic_load(&tensor->references) == 1 && atomic_load(&tensor->storage->references) == 1 &&
           kn_is_contiguous(tensor);
}

static kn_status clone_of(kn_tensor **copy, kn_tensor *tensor)
{
    return kn_tensor_cast(copy, tensor, tensor->dtype, tensor->storage->device);
}

/* *sum += gradient, taking over the reference to `gradient`. */
static kn_status add_gradient(kn_tensor **sum, kn_tensor *gradient)
{
    kn_status status = KN_OK;
    if (!*sum) {
        *sum = gradient;
        return KN_OK;
    }
    if (!is_ours(*sum)) {
        kn_tensor *copy;
        status = clone_of(&copy, *sum);
        if (status == KN_OK) {
            kn_release(*sum);
            *sum = copy;
        }
    }
    if (status == KN_OK)
        status = kn_tensor_accumulate(*sum, gradient);
    kn_release(gradient);
    return status;
}

static kn_status run_hooks(kn_node *node)
{
    for (kn_hook *hook = node->hooks; hook; hook = hook->next) {
        kn_tensor **slot = &node->gradients[hook->output];
        if (!*slot)
            continue;
        int scope = kn_scope_begin_internal();
        if (!scope)
            return KN_ERR_MEMORY;
        int adopter = kn_scope_enter_program();
        bool tracking = kn_view_set_tracking(true);
        kn_tensor *changed = kn_retain(hook->function(*slot, hook->user));
        kn_view_set_tracking(tracking);
        kn_scope_leave_program(adopter);
        kn_scope_end(scope);
        if (!changed)
            return kn_error_status() ? kn_error_status() : kn_fail(KN_ERR_STATE, "a gradient hook returned NULL");
        kn_release(*slot);
        *slot = changed;
    }
    return KN_OK;
}

static kn_status check_leaf(const kn_tensor *leaf, const kn_tensor *gradient)
{
    if (gradient->storage->device == leaf->storage->device && gradient->dtype == leaf->dtype)
        return KN_OK;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    return kn_fail(KN_ERR_STATE,
                   "kn_backward: a leaf was moved or converted after it was used: it is %s, its gradient %s; move a "
                   "module before its forward pass",
                   kn_tensor_describe(a, sizeof a, leaf), kn_tensor_describe(b, sizeof b, gradient));
}

/* The end of the way: adds to the leaf's gradient. */
static kn_status accumulate_leaf(kn_node *node)
{
    kn_tensor *leaf = node->leaf, *gradient = node->gradients[0];
    node->gradients[0] = NULL;
    if (node->released) {
        kn_release(gradient);
        return kn_fail(KN_ERR_STATE, "a leaf that the record leads to became a result by a change in place: its "
                                     "gradient has no place to go; kn_clone it before the change");
    }
    if (!leaf || !gradient) {
        kn_release(gradient);
        return KN_OK;
    }
    kn_status fits = check_leaf(leaf, gradient);
    if (fits != KN_OK) {
        kn_release(gradient);
        return fits;
    }
    if (!leaf->autograd->grad && !is_ours(gradient)) {
        kn_tensor *copy;
        kn_status status = clone_of(&copy, gradient);
        kn_release(gradient);
        if (status != KN_OK)
            return status;
        gradient = copy;
    }
    if (leaf->autograd->grad) {
        kn_tensor_bump_version(leaf->autograd->grad);
        kn_status status = kn_tensor_accumulate(leaf->autograd->grad, gradient);
        kn_release(gradient);
        return status;
    }
    leaf->autograd->grad = gradient;
    return KN_OK;
}

/* --- one node --------------------------------------------------------------------------------- */

static kn_status check_saved(const kn_node *node)
{
    if (node->released)
        return kn_fail(KN_ERR_STATE, "the record was freed by an earlier kn_backward; keep it with retain_graph");
    for (int i = 0; i < node->num_saved; i++) {
        const kn_tensor *saved = node->saved[i];
        if (!saved)
            continue;
        unsigned now = atomic_load(&saved->storage->version);
        char text[KN_DESCRIBE];
        if (now != node->saved_versions[i])
            return kn_fail(KN_ERR_STATE,
                           "a value that it needs (%s) was changed in place after it was used (version "
                           "%u, expected %u); "
                           "kn_clone it before the change",
                           kn_tensor_describe(text, sizeof text, saved), now, node->saved_versions[i]);
    }
    return KN_OK;
}

static kn_status check_gradient(const kn_node *node, int i, const kn_tensor *gradient)
{
    bool fits = gradient->dtype == node->input[i].dtype && gradient->ndim == node->input[i].ndim &&
                gradient->storage->device == node->input[i].device;
    for (int d = 0; fits && d < gradient->ndim; d++)
        fits = gradient->shape[d] == node->input[i].shape[d];
    char text[KN_DESCRIBE];
    return fits ? KN_OK
                : kn_fail(KN_ERR_INTERNAL, "backward of %s made a gradient of input %d that does not fit it: %s",
                          node->op->name, i, kn_tensor_describe(text, sizeof text, gradient));
}

static kn_status make_contiguous(kn_node *node)
{
    for (int i = 0; i < node->num_outputs; i++) {
        kn_tensor *packed;
        if (!node->gradients[i] || kn_is_contiguous(node->gradients[i]))
            continue;
        KN_TRY(kn_tensor_contiguous(&packed, node->gradients[i]));
        kn_release(node->gradients[i]);
        node->gradients[i] = packed;
    }
    return KN_OK;
}

static kn_grad_call grad_call_of(const kn_node *node, kn_stream *stream, kn_tensor *const *gradients,
                                 kn_tensor **results)
{
    return (kn_grad_call){.op = node->op,
                          .params = node->params,
                          .stream = stream,
                          .num_inputs = node->num_inputs,
                          .num_outputs = node->num_outputs,
                          .needs = node->needs,
                          .input = node->input,
                          .saved = node->saved,
                          .num_saved = node->num_saved,
                          .grad_outputs = gradients,
                          .grad_inputs = results};
}

/* The op's backward from `gradients`; of its results only those that are wanted stay. */
static kn_status run_backward(const kn_node *node, kn_stream *stream, kn_tensor *const *gradients, kn_tensor **results)
{
    kn_grad_call call = grad_call_of(node, stream, gradients, results);
    kn_span span = kn_grad_call_span(&call);
    kn_status status = node->op->backward(&call);
    kn_grad_call_span_end(span, &call);
    KN_TRY(status);
    for (int i = 0; i < node->num_inputs; i++) {
        if (node->needs[i] && results[i])
            KN_TRY(check_gradient(node, i, results[i]));
        else
            results[i] = NULL;
    }
    return KN_OK;
}

/* The op changed a part of its tensor: the part's gradient goes through its backward, the rest passes by. */
static kn_status run_slice_backward(const kn_node *node, kn_stream *stream, kn_tensor **results)
{
    kn_tensor *gradient = node->gradients[0], *whole, *part, *inside;
    KN_TRY(kn_slice_new(node->slice, gradient->dtype, kn_device_of(gradient), false, &whole, &part));
    whole = kn_scope_adopt(whole);
    part = kn_scope_adopt(part);
    if (!whole || !part)
        return kn_error_status();
    KN_TRY(kn_tensor_copy(whole, gradient));
    KN_TRY(clone_of(&inside, part));
    if (!kn_scope_adopt(inside))
        return kn_error_status();
    KN_TRY(run_backward(node, stream, &inside, results));
    if (!node->needs[0])
        return KN_OK;
    KN_TRY(results[0] ? kn_tensor_copy(part, results[0]) : kn_tensor_fill(part, 0));
    results[0] = whole;
    return KN_OK;
}

/* The stream of the gradients' device; NULL for gradients on the host, which only kn_to's backward sees. */
static kn_status stream_of(const kn_node *node, kn_stream **stream)
{
    const kn_tensor *gradient = NULL;
    for (int i = 0; i < node->num_outputs && !gradient; i++)
        gradient = node->gradients[i];
    if (!gradient || kn_device_is_host(gradient->storage->device))
        return KN_OK;
    *stream = kn_tensor_stream(gradient);
    return *stream ? KN_OK : kn_error_status();
}

static kn_status backward_in_scope(kn_node *node, kn_tensor **results)
{
    KN_TRY(check_saved(node));
    KN_TRY(make_contiguous(node));
    kn_stream *stream = NULL;
    KN_TRY(stream_of(node, &stream));
    KN_TRY(node->slice ? run_slice_backward(node, stream, results)
                       : run_backward(node, stream, node->gradients, results));
    for (int i = 0; i < node->num_inputs; i++) /* they are the scope's */
        kn_retain(results[i]);
    return KN_OK;
}

/* Calls the op's backward; its results come out as owned references, none on failure. */
static kn_status call_backward(kn_node *node, kn_tensor **results)
{
    int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    kn_status status = backward_in_scope(node, results);
    kn_scope_end(scope);
    for (int i = 0; i < node->num_inputs && status != KN_OK; i++)
        results[i] = NULL;
    if (status != KN_OK)
        kn_error_prefix("backward of %s", node->op->name);
    return status;
}

static void drop_gradients(kn_node *node)
{
    for (int i = 0; i < node->num_outputs; i++) {
        kn_release(node->gradients[i]);
        node->gradients[i] = NULL;
    }
}

/* Adds the node's gradients to those that wait at its inputs, taking over the references. */
static kn_status hand_on(queue *q, kn_node *node, kn_tensor **results, kn_status status)
{
    for (int i = 0; i < node->num_inputs; i++) {
        if (!results[i])
            continue;
        kn_edge *edge = &node->edges[i];
        if (status == KN_OK)
            status = add_gradient(&edge->node->gradients[edge->output], results[i]);
        else
            kn_release(results[i]);
        if (status == KN_OK)
            status = queue_push(q, edge->node);
        if (status != KN_OK && !edge->node->queued)
            drop_gradients(edge->node);
    }
    return status;
}

static kn_status run_node(queue *q, kn_node *node, bool retain_graph)
{
    KN_TRY(run_hooks(node));
    if (!node->op)
        return accumulate_leaf(node);
    kn_tensor *few[KN_OP_MAX_INPUTS] = {NULL};
    bool many = node->num_inputs > KN_OP_MAX_INPUTS;
    kn_tensor **results = many ? kn_calloc((size_t)node->num_inputs, sizeof *results) : few;
    if (!results)
        return KN_ERR_MEMORY;
    kn_status status = call_backward(node, results);
    drop_gradients(node);
    if (status == KN_OK && !retain_graph)
        kn_node_free_saved(node);
    status = hand_on(q, node, results, status);
    if (many)
        kn_free(results);
    return status;
}

/* --- the pass --------------------------------------------------------------------------------- */

static kn_status first_gradient(kn_tensor **first, kn_tensor *tensor, kn_tensor *gradient)
{
    if (gradient) {
        if (!kn_same_shape(tensor, gradient) || tensor->dtype != gradient->dtype ||
            kn_device_of(tensor) != kn_device_of(gradient)) {
            char a[KN_DESCRIBE], b[KN_DESCRIBE];
            return kn_fail(KN_ERR_SHAPE, "kn_backward_with: the tensor is %s, the gradient given %s",
                           kn_tensor_describe(a, sizeof a, tensor), kn_tensor_describe(b, sizeof b, gradient));
        }
        *first = kn_retain(gradient);
        return KN_OK;
    }
    if (kn_numel(tensor) != 1) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE,
                       "kn_backward: gradients start from one element, not from %s; give kn_backward_with a gradient",
                       kn_tensor_describe(text, sizeof text, tensor));
    }
    KN_TRY(kn_tensor_new(first, tensor->dtype, tensor->ndim, tensor->shape, tensor->storage->device));
    kn_status status = kn_tensor_fill(*first, 1);
    if (status != KN_OK)
        kn_release(*first);
    return status;
}

static kn_status walk(queue *q, bool retain_graph)
{
    kn_status status = KN_OK;
    for (kn_node *node = queue_pop(q); node; node = queue_pop(q)) {
        if (status == KN_OK)
            status = run_node(q, node, retain_graph);
        drop_gradients(node); /* what a failure left */
        kn_node_release(node);
    }
    return status;
}

static kn_status run_pass(kn_tensor *tensor, kn_tensor *gradient, bool retain_graph)
{
    kn_tensor *first = NULL;
    KN_TRY(first_gradient(&first, tensor, gradient));
    kn_node *node = kn_autograd_node(tensor);
    if (!node) {
        kn_release(first);
        return kn_error_status();
    }
    bool enabled = kn_set_grad_enabled(false), tracking = kn_view_set_tracking(false);
    queue q = {0};
    node->gradients[tensor->autograd->output] = first;
    kn_status status = queue_push(&q, node);
    if (status != KN_OK)
        drop_gradients(node);
    else
        status = walk(&q, retain_graph);
    kn_free(q.items);
    kn_view_set_tracking(tracking);
    kn_set_grad_enabled(enabled);
    return status;
}

kn_status kn_backward_with(kn_tensor *tensor, kn_tensor *gradient, bool retain_graph)
{
    KN_TRY(kn_tensor_given("kn_backward", "tensor", tensor));
    if (!kn_autograd_wants(tensor))
        return kn_fail(KN_ERR_STATE, "kn_backward: the tensor does not require gradients: no input of it does, or it "
                                     "was made inside KN_NO_GRAD");
    kn_span span = kn_phase_span("backward");
    kn_status status = run_pass(tensor, gradient, retain_graph);
    kn_span_end(span, NULL);
    return status;
}

kn_status kn_backward(kn_tensor *tensor) { return kn_backward_with(tensor, NULL, false); }
