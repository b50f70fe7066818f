/* nn/recompute.c - activation checkpointing: the forward pass runs without a record; the backward pass runs it again,
 * recorded, on a replica of the module with copies of the parameters, and takes the gradients from that. */
#include "nn/recompute.h"

#include <koine/amp.h>
#include <koine/autograd.h>
#include <koine/function.h>
#include <koine/random.h>
#include <koine/shape.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/replica.h"
#include "tensor/scope.h"

enum { MOST_INPUTS = 16, MOST_OUTPUTS = 8 };

/* One application. The function's inputs are the module's, without the omitted ones, then the parameters. */
typedef struct application {
    kn_module *module;
    int num_inputs, num_outputs; /* the module's */
    bool given[MOST_INPUTS];
    kn_dtype autocast;
    uint8_t rng_state[KN_RNG_STATE_SIZE]; /* before forward */
} application;

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status call_module(const application *a, kn_module *module, kn_tensor *const *given, kn_tensor **outputs)
{
    kn_tensor *inputs[MOST_INPUTS] = {NULL};
    for (int i = 0; i < a->num_inputs; i++)
        inputs[i] = a->given[i] ? *given++ : NULL;
    return kn_forward_list(module, inputs, a->num_inputs, outputs, a->num_outputs, KN_ACTIVATION_NONE);
}

static kn_status forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    application *a = kn_function_params(context);
    for (int i = 0; i < kn_function_num_inputs(context); i++)
        KN_TRY(kn_function_save(context, inputs[i]));
    KN_TRY(kn_get_rng_state(kn_device_of(inputs[0]), a->rng_state));
    return call_module(a, a->module, inputs, outputs);
}

/* --- the second forward pass -------------------------------------------------------------------------------------- */

/* The replica's tensors: parameters that require gradients share the memory of the module's; others are copies, so
 * that running estimates are not updated twice. */
typedef struct copies {
    kn_tensor **originals, **made;
    int count, capacity;
} copies;

/* The same memory, as a leaf with its own gradient. */
static kn_tensor *leaf_of(kn_tensor *tensor, bool wants_gradient)
{
    kn_tensor *leaf = kn_detach(tensor);
    if (leaf && wants_gradient && kn_set_requires_grad(leaf, true) != KN_OK)
        return NULL;
    return leaf;
}

static kn_status copy_one(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    copies *c = user;
    (void)name;
    for (int i = 0; i < c->count; i++)
        if (c->originals[i] == tensor)
            return KN_OK; /* shared by two modules */
    const int at = c->count++;
    c->originals[at] = tensor;
    c->made[at] = is_buffer ? kn_clone(kn_detach(tensor)) : leaf_of(tensor, kn_requires_grad(tensor));
    return c->made[at] ? KN_OK : kn_error_status();
}

static kn_status count_one(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    (void)name, (void)tensor, (void)is_buffer;
    ((copies *)user)->capacity++;
    return KN_OK;
}

static kn_status copy_tensors(copies *c, kn_module *module)
{
    KN_TRY(kn_module_each(module, count_one, c));
    c->originals = kn_calloc((size_t)c->capacity, 2 * sizeof *c->originals);
    if (!c->originals)
        return KN_ERR_MEMORY;
    c->made = c->originals + c->capacity;
    return kn_module_each(module, copy_one, c);
}

/* Runs the replica with the random numbers and the autocast region of the first pass. */
static kn_status run_again(const application *a, kn_module *replica, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_rng_fork *fork = kn_fork_rng_begin();
    if (!fork)
        return kn_error_status();
    kn_status status = kn_set_rng_state(kn_device_of(inputs[0]), a->rng_state);
    const kn_dtype before = kn_autocast_enter(a->autocast);
    const bool enabled = kn_set_grad_enabled(true);
    if (status == KN_OK)
        status = call_module(a, replica, inputs, outputs);
    kn_set_grad_enabled(enabled);
    kn_autocast_leave(before);
    const kn_status ended = kn_fork_rng_end(fork);
    return status != KN_OK ? status : ended;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* The gradients of those leaves that want one; the others' stay NULL. */
static kn_status differentiate(kn_tensor *const *outputs, kn_tensor *const *grad_outputs, int num_outputs,
                               kn_tensor *const *leaves, int count, kn_tensor **gradients)
{
    kn_tensor **wanted = kn_calloc((size_t)count, 2 * sizeof *wanted), **found = wanted + count;
    kn_tensor *roots[MOST_OUTPUTS], *weights[MOST_OUTPUTS];
    int num_wanted = 0, num_roots = 0;
    if (!wanted)
        return KN_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        if (leaves[i] && kn_requires_grad(leaves[i]))
            wanted[num_wanted++] = leaves[i];
    for (int i = 0; i < num_outputs; i++)
        if (kn_requires_grad(outputs[i])) {
            roots[num_roots] = outputs[i];
            weights[num_roots++] = grad_outputs[i];
        }
    kn_status status = KN_OK;
    if (num_wanted > 0 && num_roots > 0)
        status = kn_autograd_grad(roots, num_roots, wanted, num_wanted, found, .grad_outputs = weights,
                                  .allow_unused = true);
    for (int i = 0, w = 0; i < count && status == KN_OK; i++)
        if (leaves[i] && kn_requires_grad(leaves[i]))
            gradients[i] = found[w++];
    kn_free(wanted);
    return status;
}

static kn_tensor *made_for(const copies *c, const kn_tensor *parameter)
{
    int i = 0;
    while (c->originals[i] != parameter)
        i++;
    return c->made[i];
}

/* All of the function's inputs as leaves. */
static kn_status leaves_of(kn_function_context *context, const application *a, const copies *c, kn_tensor **leaves)
{
    kn_parameter_list parameters;
    int count = 0;
    KN_TRY(kn_module_find_parameters(&parameters, a->module));
    for (int i = 0; i < a->num_inputs; i++)
        if (a->given[i]) {
            kn_tensor *saved = kn_function_saved(context, count);
            leaves[count] = saved ? leaf_of(saved, kn_function_needs_grad(context, count)) : NULL;
            if (!leaves[count++])
                return kn_error_status();
        }
    for (int i = 0; i < parameters.count; i++)
        if (kn_requires_grad(parameters.tensors[i]) && count < kn_function_num_inputs(context))
            leaves[count++] = made_for(c, parameters.tensors[i]);
    return count == kn_function_num_inputs(context)
               ? KN_OK
               : kn_fail(KN_ERR_STATE, "other parameters require gradients now than in the forward pass");
}

static kn_status recompute(kn_function_context *context, const application *a, copies *c, kn_tensor **leaves,
                           kn_tensor *const *grad_outputs, kn_tensor **gradients)
{
    kn_tensor *outputs[MOST_OUTPUTS] = {NULL};
    kn_module *replica;
    KN_TRY(copy_tensors(c, a->module));
    KN_TRY(leaves_of(context, a, c, leaves));
    const kn_replica_map map = {.originals = c->originals, .copies = c->made, .count = c->count, .repeats = true};
    KN_TRY(kn_module_replica_new(&replica, a->module, &map));
    kn_status status = run_again(a, replica, leaves, outputs);
    if (status == KN_OK)
        status =
            differentiate(outputs, grad_outputs, a->num_outputs, leaves, kn_function_num_inputs(context), gradients);
    kn_module_free(replica);
    return status;
}

static kn_status backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    const int count = kn_function_num_inputs(context);
    const int depth = kn_scope_begin_internal();
    kn_tensor **leaves = depth ? kn_calloc((size_t)count, 2 * sizeof *leaves) : NULL;
    copies c = {.originals = NULL};
    if (!leaves) {
        kn_scope_end(depth);
        return KN_ERR_MEMORY;
    }
    kn_tensor **gradients = leaves + count;
    kn_status status = recompute(context, kn_function_params(context), &c, leaves, grad_outputs, gradients);
    if (status == KN_OK)
        status = kn_scope_return_all(depth, gradients, count, grad_inputs);
    else
        kn_scope_end(depth);
    kn_free(c.originals);
    kn_free(leaves);
    return status;
}

/* --- applying ----------------------------------------------------------------------------------------------------- */

static const kn_function function = {
    .name = "checkpoint", .forward = forward, .backward = backward, .params_size = sizeof(application)};

static kn_status apply(const application *a, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_parameter_list parameters;
    KN_TRY(kn_module_find_parameters(&parameters, a->module));
    kn_tensor **all = kn_malloc((size_t)(a->num_inputs + parameters.count) * sizeof *all);
    int count = 0;
    if (!all)
        return KN_ERR_MEMORY;
    for (int i = 0; i < a->num_inputs; i++)
        if (a->given[i])
            all[count++] = inputs[i];
    for (int i = 0; i < parameters.count; i++)
        if (kn_requires_grad(parameters.tensors[i]))
            all[count++] = parameters.tensors[i];
    const kn_status status = kn_function_apply_many(&function, all, count, a, outputs, a->num_outputs);
    kn_free(all);
    return status;
}

kn_status kn_recomputed_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const kn_signature signature = kn_module_signature(module);
    application a = {.module = module,
                     .num_inputs = signature.inputs,
                     .num_outputs = signature.outputs,
                     .autocast = kn_autocast_dtype()};
    if (signature.inputs > MOST_INPUTS || signature.outputs > MOST_OUTPUTS)
        return kn_fail(KN_ERR_ARGUMENT, "%s: a checkpointed module has at most %d inputs and %d outputs",
                       module->type_name, MOST_INPUTS, MOST_OUTPUTS);
    for (int i = 0; i < a.num_inputs; i++)
        a.given[i] = inputs[i] != NULL;
    return apply(&a, inputs, outputs);
}

kn_status kn_module_checkpoint(kn_module *module, bool checkpoint)
{
    if (module == NULL)
        return kn_fail_argument_null("module_checkpoint", "module");
    module->is_checkpointed = checkpoint;
    return KN_OK;
}
