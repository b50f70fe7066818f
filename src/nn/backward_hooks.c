/* nn/backward_hooks.c - hooks of the backward pass: a node of the tape takes all of a module's inputs, and another all
 * of its outputs. Both pass tensors and gradients on unchanged, but for what the hooks do to the latter. */
#include <koine/autograd.h>

#include "autograd/tape.h"
#include "base/error.h"
#include "base/memory.h"
#include "nn/hooks.h"
#include "tensor/scope.h"

/* What the two nodes of one application share. */
typedef struct kn_backward_link {
    atomic_int references;
    kn_module *module; /* borrowed; not a replica, which may be freed before the backward pass */
    kn_module_hooks hooks;
    int num_inputs, num_outputs;
    bool has_inputs;          /* there is a node for the inputs */
    kn_tensor **grad_outputs; /* [num_outputs] from the outputs' node to the inputs' */
    bool was_at_outputs;      /* they are set: gradients may also reach the inputs past the outputs, in second passes */
} kn_backward_link;

static void drop_gradients(kn_backward_link *link)
{
    for (int o = 0; o < link->num_outputs; o++) {
        kn_release(link->grad_outputs[o]);
        link->grad_outputs[o] = NULL;
    }
    link->was_at_outputs = false;
}

static void release(kn_backward_link *link)
{
    if (link == NULL || atomic_fetch_sub(&link->references, 1) > 1)
        return;
    drop_gradients(link);
    kn_hooks_free(&link->hooks);
    kn_free(link->grad_outputs);
    kn_free(link);
}

static kn_backward_link *new_link(const kn_hooked_call *call)
{
    kn_backward_link *link = kn_calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    atomic_init(&link->references, 1);
    link->module = call->module->origin != NULL ? call->module->origin : call->module;
    link->num_inputs = call->num_inputs;
    link->num_outputs = call->num_outputs;
    link->grad_outputs = kn_calloc((size_t)call->num_outputs, sizeof *link->grad_outputs);
    if (link->grad_outputs == NULL)
        link->num_outputs = 0;
    if (link->num_outputs > 0 && kn_hooks_copy(&link->hooks, &call->hooks) == KN_OK)
        return link;
    release(link);
    return NULL;
}

/* --- running the hooks -------------------------------------------------------------------------------------------- */

typedef struct gradients {
    kn_tensor **inputs, **outputs;
} gradients;

static kn_status run_hook(const kn_backward_link *link, const kn_module_hook *hook, gradients g)
{
    const int adopter = kn_scope_enter_user_code();
    const kn_status status =
        hook->kind == KN_HOOK_BACKWARD_PRE
            ? hook->call.backward_pre(link->module, g.outputs, link->num_outputs, hook->user)
            : hook->call.backward(link->module, g.inputs, link->num_inputs, g.outputs, link->num_outputs, hook->user);
    kn_scope_leave_user_code(adopter);
    if (status != KN_OK && kn_error_status() == KN_OK)
        return kn_fail(status, "%s: a backward hook returned %s", link->module->type_name, kn_status_name(status));
    return status;
}

static kn_status run_hooks(const kn_backward_link *link, kn_hook_kind kind, gradients g)
{
    kn_status status = KN_OK;
    for (int i = 0; i < link->hooks.count && status == KN_OK; i++)
        if (link->hooks.items[i]->kind == kind)
            status = run_hook(link, link->hooks.items[i], g);
    return status;
}

/* Neither may a gradient vanish, nor may one appear that nothing receives. */
static kn_status check(const kn_backward_link *link, kn_tensor *const *before, kn_tensor *const *after, int count)
{
    for (int i = 0; i < count; i++)
        if ((before == NULL || before[i] == NULL) != (after[i] == NULL))
            return kn_error_status() != KN_OK
                       ? kn_error_status()
                       : kn_fail(KN_ERR_STATE, "%s: a backward hook %s gradient %d", link->module->type_name,
                                 after[i] == NULL ? "removed" : "added", i);
    return KN_OK;
}

/* --- the nodes ---------------------------------------------------------------------------------------------------- */

typedef struct node_params {
    kn_backward_link *link;
} node_params;

static void keep(void *params) { atomic_fetch_add(&((node_params *)params)->link->references, 1); }
static void drop(void *params) { release(((node_params *)params)->link); }

/* Passes the gradients in `list` on to the node's inputs. */
static kn_status pass_on(kn_grad_call *call, kn_tensor *const *list)
{
    for (int i = 0; i < call->num_inputs; i++)
        if (call->needs[i] && list[i] != NULL && (call->grad_inputs[i] = kn_scope_adopt(kn_retain(list[i]))) == NULL)
            return kn_error_status();
    return KN_OK;
}

static kn_status outputs_backward(const kn_backward_link *link, kn_tensor *const *given, gradients g)
{
    for (int o = 0; o < link->num_outputs; o++)
        g.outputs[o] = given[o];
    KN_TRY(run_hooks(link, KN_HOOK_BACKWARD_PRE, g));
    KN_TRY(check(link, given, g.outputs, link->num_outputs));
    if (link->has_inputs)
        return KN_OK;
    KN_TRY(run_hooks(link, KN_HOOK_BACKWARD, g));
    return check(link, NULL, g.inputs, link->num_inputs);
}

static kn_status at_outputs(kn_grad_call *call)
{
    kn_backward_link *link = ((const node_params *)call->params)->link;
    kn_tensor **block = kn_calloc((size_t)(link->num_inputs + link->num_outputs), sizeof *block);
    if (block == NULL)
        return KN_ERR_MEMORY;
    const gradients g = {.outputs = block, .inputs = block + link->num_outputs};
    kn_status status = outputs_backward(link, call->grad_outputs, g);
    drop_gradients(link);
    link->was_at_outputs = status == KN_OK && link->has_inputs;
    for (int o = 0; o < link->num_outputs && link->was_at_outputs; o++)
        link->grad_outputs[o] = kn_retain(g.outputs[o]);
    if (status == KN_OK)
        status = pass_on(call, g.outputs);
    kn_free(block);
    return status;
}

static kn_status at_inputs(kn_grad_call *call)
{
    kn_backward_link *link = ((const node_params *)call->params)->link;
    kn_tensor **list = kn_calloc((size_t)link->num_inputs, sizeof *list);
    if (list == NULL)
        return KN_ERR_MEMORY;
    for (int i = 0; i < link->num_inputs; i++)
        list[i] = call->grad_outputs[i];
    kn_status status = KN_OK;
    if (link->was_at_outputs)
        status = run_hooks(link, KN_HOOK_BACKWARD, (gradients){.inputs = list, .outputs = link->grad_outputs});
    if (status == KN_OK)
        status = check(link, call->grad_outputs, list, link->num_inputs);
    if (status == KN_OK)
        status = pass_on(call, list);
    drop_gradients(link);
    kn_free(list);
    return status;
}

static const kn_op outputs_op = {.name = "module_outputs",
                                 .record_size = sizeof(node_params),
                                 .record_keep = keep,
                                 .record_drop = drop,
                                 .backward = at_outputs,
                                 .backward_recorded = at_outputs};
static const kn_op inputs_op = {.name = "module_inputs",
                                .record_size = sizeof(node_params),
                                .record_keep = keep,
                                .record_drop = drop,
                                .backward = at_inputs,
                                .backward_recorded = at_inputs};

/* Replaces those of the tensors that require gradients by aliases, which are results of a node that takes them all.
 * false: there are none. */
static kn_status put_node(bool *made, const kn_op *op, kn_backward_link *link, kn_tensor **tensors, int count)
{
    kn_tensor **aliases = kn_calloc((size_t)count, sizeof *aliases);
    kn_status status = aliases != NULL ? KN_OK : KN_ERR_MEMORY;
    *made = false;
    for (int i = 0; i < count && status == KN_OK; i++)
        if (tensors[i] != NULL && kn_requires_grad(tensors[i])) {
            *made = true;
            aliases[i] = kn_detach(tensors[i]);
            status = aliases[i] != NULL ? KN_OK : kn_error_status();
        }
    if (status == KN_OK && *made)
        status = kn_tape_record_many(op, &(const node_params){link}, tensors, count, aliases, count);
    for (int i = 0; i < count && status == KN_OK; i++)
        tensors[i] = aliases[i] != NULL ? aliases[i] : tensors[i];
    kn_free(aliases);
    return status;
}

static bool has_backward_hooks(const kn_module_hooks *hooks)
{
    bool has = false;
    for (int i = 0; i < hooks->count; i++)
        has = has || hooks->items[i]->kind == KN_HOOK_BACKWARD_PRE || hooks->items[i]->kind == KN_HOOK_BACKWARD;
    return has;
}

kn_status kn_backward_hooks_before(kn_hooked_call *call)
{
    if (!has_backward_hooks(&call->hooks))
        return KN_OK;
    call->link = new_link(call);
    if (call->link == NULL)
        return KN_ERR_MEMORY;
    return put_node(&call->link->has_inputs, &inputs_op, call->link, call->inputs, call->num_inputs);
}

kn_status kn_backward_hooks_after(kn_hooked_call *call)
{
    bool made;
    return put_node(&made, &outputs_op, call->link, call->outputs, call->num_outputs);
}

void kn_backward_hooks_end(kn_hooked_call *call)
{
    release(call->link);
    call->link = NULL;
}
