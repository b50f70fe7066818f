/* autograd/engine.c - the backward pass: nodes by descending number from a heap, each once, after all that depend on
 * it. */
#include "autograd/engine.h"

#include <inttypes.h>
#include <string.h>

#include "autograd/accumulate.h"
#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/grad_hooks.h"
#include "autograd/pass_end.h"
#include "autograd/whole.h"
#include "autograd/work.h"
#include "base/memory.h"
#include "tensor/scope.h"

/* --- one node --------------------------------------------------------------------------------- */

static kn_status check_saved(const kn_node *node)
{
    if (node->released)
        return kn_fail(KN_ERR_STATE,
                       "the recorded graph was freed by an earlier kn_backward; keep it with retain_graph");
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
                : kn_fail(KN_ERR_INTERNAL, "backward of %s returned a gradient that does not match input %d: %s",
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

/* Does edge `i` lead to a wanted gradient? */
static bool leads(const kn_node *node, int i)
{
    return node->needs[i] && node->edges[i].node->mark != KN_MARK_OFF_PATH;
}

/* One node in a pass: `needs` and `results` have a place for each input. */
typedef struct step {
    const kn_pass *pass;
    kn_queue *queue;
    kn_node *node;
    kn_stream *stream;
    bool *needs;
    kn_tensor **results;
} step;

/* May gradients be parts of others? */
static bool may_place(const kn_pass *pass)
{
    return !pass->create_graph && pass->num_wanted == 0 && !kn_anomaly_is_wanted();
}

static kn_grad_call grad_call_of(const step *s, kn_tensor *const *gradients)
{
    const kn_node *node = s->node;
    return (kn_grad_call){.op = node->op,
                          .params = node->params,
                          .stream = s->stream,
                          .num_inputs = node->num_inputs,
                          .num_outputs = node->num_outputs,
                          .needs = s->needs,
                          .input = node->input,
                          .saved = node->saved,
                          .num_saved = node->num_saved,
                          .grad_outputs = gradients,
                          .grad_inputs = s->results,
                          .node = s->pass->create_graph ? node : NULL,
                          .queue = may_place(s->pass) ? s->queue : NULL,
                          .edges = node->edges};
}

static kn_status call_op(const step *s, kn_grad_call *call)
{
    const kn_op *op = call->op;
    if (!s->pass->create_graph)
        return op->backward(call);
    return op->backward_recorded
               ? op->backward_recorded(call)
               : kn_fail(KN_ERR_STATE,
                         "its gradient is not differentiable: leave out create_graph, or replace the operation");
}

/* The op's backward from `gradients`; results that are not needed are dropped. */
static kn_status run_backward(const step *s, kn_tensor *const *gradients)
{
    kn_grad_call call = grad_call_of(s, gradients);
    kn_span span = kn_grad_call_span(&call);
    kn_status status = call_op(s, &call);
    kn_grad_call_span_end(span, &call);
    KN_TRY(status);
    for (int i = 0; i < s->node->num_inputs; i++) {
        if (s->needs[i] && s->results[i])
            KN_TRY(check_gradient(s->node, i, s->results[i]));
        else
            s->results[i] = NULL;
    }
    return KN_OK;
}

/* The op changed a part of its tensor: the part's gradient goes through its backward, the rest passes unchanged. */
static kn_status run_slice_backward(const step *s)
{
    const kn_node *node = s->node;
    kn_tensor *gradient = node->gradients[0], *whole, *part, *inside;
    if (s->pass->create_graph)
        return kn_fail(KN_ERR_STATE, "it changed a view in place, whose gradient is not differentiable: avoid the "
                                     "in-place change, or leave out create_graph");
    KN_TRY(kn_slice_new(node->slice, gradient->dtype, kn_device_of(gradient), &whole, &part));
    whole = kn_scope_adopt(whole);
    part = kn_scope_adopt(part);
    if (!whole || !part)
        return kn_error_status();
    KN_TRY(kn_tensor_copy(whole, gradient));
    KN_TRY(kn_gradient_clone(&inside, part));
    if (!kn_scope_adopt(inside))
        return kn_error_status();
    KN_TRY(run_backward(s, &inside));
    if (!s->needs[0])
        return KN_OK;
    KN_TRY(s->results[0] ? kn_tensor_copy(part, s->results[0]) : kn_tensor_fill(part, 0));
    s->results[0] = whole;
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

static kn_status backward_in_scope(step *s)
{
    kn_node *node = s->node;
    KN_TRY(check_saved(node));
    const bool strided = (node->op->is_view || node->op->strided_gradients) && !node->slice;
    if (!s->pass->create_graph && !strided)
        KN_TRY(make_contiguous(node));
    KN_TRY(stream_of(node, &s->stream));
    KN_TRY(node->slice ? run_slice_backward(s) : run_backward(s, node->gradients));
    if (kn_anomaly_is_wanted())
        KN_TRY(kn_anomaly_check(node, s->results));
    for (int i = 0; i < node->num_inputs; i++) /* the scope owns them */
        kn_retain(s->results[i]);
    return KN_OK;
}

/* Calls the op's backward; the results become owned references, none on failure. */
static kn_status call_backward(step *s)
{
    int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    const kn_dtype autocast = kn_autocast_pause();
    kn_status status = backward_in_scope(s);
    kn_autocast_resume(autocast);
    kn_scope_end(scope);
    for (int i = 0; i < s->node->num_inputs && status != KN_OK; i++)
        s->results[i] = NULL;
    if (status != KN_OK)
        kn_error_prefix("backward of %s", s->node->op->name);
    return status;
}

static void drop_gradients(kn_node *node)
{
    for (int i = 0; i < node->num_outputs; i++) {
        kn_release(node->gradients[i]);
        node->gradients[i] = NULL;
    }
    kn_whole_drop(node);
}

/* Accumulates the node's results at its inputs and takes ownership of them. */
static kn_status propagate(const step *s, kn_status status)
{
    for (int i = 0; i < s->node->num_inputs; i++) {
        if (!s->results[i])
            continue;
        kn_edge *edge = &s->node->edges[i];
        if (status == KN_OK)
            status = kn_gradient_add(&edge->node->gradients[edge->output], s->results[i], s->pass->create_graph);
        else
            kn_release(s->results[i]);
        if (status == KN_OK)
            status = kn_queue_push(s->queue, edge->node);
        if (status != KN_OK && !edge->node->queued)
            drop_gradients(edge->node);
    }
    return status;
}

static kn_status run_node(kn_queue *q, const kn_pass *pass, kn_node *node);

/* The node was the last of the pass that uses some leaves. They stay in the queue, without a gradient. */
static kn_status finish_leaves(const step *s)
{
    kn_leaf_note_run(s->node, s->pass->number);
    for (int i = 0; i < s->node->num_inputs; i++) {
        kn_node *leaf = s->node->edges[i].node;
        if (!leaf || !leaf->queued || !kn_leaf_is_complete(leaf, s->pass->number))
            continue;
        const kn_status status = run_node(s->queue, s->pass, leaf);
        drop_gradients(leaf);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status run_op(step *s)
{
    for (int i = 0; i < s->node->num_inputs; i++)
        s->needs[i] = leads(s->node, i);
    bool taken = false;
    kn_status status = s->pass->create_graph ? KN_OK : kn_whole_put(&taken, s->queue, s->node, may_place(s->pass));
    if (status == KN_OK && !taken)
        status = call_backward(s);
    drop_gradients(s->node);
    if (status == KN_OK && !s->pass->retain_graph && !s->pass->create_graph)
        kn_node_free_saved(s->node);
    status = propagate(s, status);
    return status == KN_OK ? finish_leaves(s) : status;
}

/* Stores the gradients that the pass was asked for. */
static void keep_wanted(const kn_pass *pass, const kn_node *node)
{
    for (int i = 0; i < pass->num_wanted; i++)
        if (pass->wanted[i].node == node)
            pass->wanted[i].gradient = kn_retain(node->gradients[pass->wanted[i].output]);
}

static bool has_gradients(const kn_node *node)
{
    for (int i = 0; i < node->num_outputs; i++)
        if (node->gradients[i])
            return true;
    return false;
}

static kn_status run_node(kn_queue *q, const kn_pass *pass, kn_node *node)
{
    enum { FEW = 8 };
    KN_TRY(kn_whole_finish(node));
    if (!has_gradients(node)) /* a place was asked for and not used */
        return KN_OK;
    KN_TRY(kn_run_grad_hooks(node));
    keep_wanted(pass, node);
    if (pass->num_wanted == 0)
        KN_TRY(kn_keep_gradients(node));
    if (pass->num_wanted > 0 && node->mark != KN_MARK_ON_PATH)
        return KN_OK;
    if (!node->op) {
        KN_TRY(kn_leaf_accumulate(node, pass->create_graph));
        return kn_run_accumulated_hooks(node);
    }
    kn_tensor *results[FEW] = {NULL};
    bool needs[FEW];
    step s = {.pass = pass, .queue = q, .node = node, .needs = needs, .results = results};
    if (node->num_inputs <= FEW)
        return run_op(&s);
    const size_t count = (size_t)node->num_inputs;
    s.results = kn_calloc(count, sizeof *results + sizeof *needs);
    if (!s.results)
        return KN_ERR_MEMORY;
    s.needs = (bool *)(s.results + count);
    const kn_status status = run_op(&s);
    kn_free(s.results);
    return status;
}

/* --- the pass --------------------------------------------------------------------------------- */

/* If `status` is a failure, only empties the queue. */
static kn_status walk(kn_queue *q, const kn_pass *pass, kn_status status)
{
    for (kn_node *node = kn_queue_pop(q); node; node = kn_queue_pop(q)) {
        if (status == KN_OK)
            status = run_node(q, pass, node);
        drop_gradients(node); /* left by a failure */
        kn_node_release(node);
    }
    return status;
}

static kn_status begin(kn_queue *q, const kn_pass *pass, kn_pass_endpoint *roots, int num_roots)
{
    kn_status status = KN_OK;
    for (int i = 0; i < num_roots; i++) {
        kn_node *node = roots[i].node;
        if (status == KN_OK)
            status = kn_gradient_add(&node->gradients[roots[i].output], roots[i].gradient, pass->create_graph);
        else
            kn_release(roots[i].gradient);
        if (status == KN_OK)
            status = kn_queue_push(q, node);
        if (status != KN_OK && !node->queued)
            drop_gradients(node);
        roots[i].gradient = NULL;
    }
    return status;
}

kn_status kn_pass_run(kn_pass *pass, kn_pass_endpoint *roots, int num_roots)
{
    static atomic_ullong passes;
    pass->number = atomic_fetch_add(&passes, 1) + 1;
    const bool enabled = kn_set_grad_enabled(pass->create_graph), tracking = kn_view_set_tracking(pass->create_graph);
    kn_pass_marks marks = {0};
    kn_queue q = {0};
    kn_pass_ends ends;
    kn_pass_ends_enter(&ends);
    kn_status status = pass->num_wanted > 0 ? kn_pass_marks_set(&marks, pass, roots, num_roots) : KN_OK;
    if (status == KN_OK)
        status = begin(&q, pass, roots, num_roots);
    status = walk(&q, pass, status);
    for (int i = 0; i < num_roots; i++)
        kn_release(roots[i].gradient);
    status = kn_pass_ends_leave(&ends, status);
    kn_free(q.items);
    kn_pass_marks_clear(&marks);
    kn_view_set_tracking(tracking);
    kn_set_grad_enabled(enabled);
    return status;
}
