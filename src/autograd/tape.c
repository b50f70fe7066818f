/* autograd/tape.c - nodes: making, recording, freeing. */
#include "autograd/tape.h"

#include <string.h>

#include "base/memory.h"

static atomic_uint_fast64_t next_number = 1;

/* --- nodes ------------------------------------------------------------------------------------ */

void kn_node_free_saved(kn_node *node)
{
    for (int i = 0; i < node->num_saved; i++)
        kn_release(node->saved[i]);
    node->num_saved = 0;
    node->released = !node->reusable;
}

static void free_hooks(kn_hook *hook)
{
    while (hook) {
        kn_hook *next = hook->next;
        if (hook->destroy)
            hook->destroy(hook->user);
        kn_free(hook);
        hook = next;
    }
}

/* 10^5 recorded operations form one chain of references: freed with a list, not by recursion. */
void kn_node_release(kn_node *node)
{
    kn_node *doomed = NULL;
    if (node && atomic_fetch_sub(&node->references, 1) == 1) {
        node->next = NULL;
        doomed = node;
    }
    while (doomed) {
        kn_node *dead = doomed;
        doomed = dead->next;
        kn_node_free_saved(dead);
        for (int i = 0; i < dead->num_inputs; i++) {
            kn_node *input = dead->edges[i].node;
            kn_leaf_drop_use(input, dead);
            if (input && atomic_fetch_sub(&input->references, 1) == 1) {
                input->next = doomed;
                doomed = input;
            }
        }
        free_hooks(dead->hooks);
        kn_free(dead->slice);
        if (dead->params && dead->op->record_drop)
            dead->op->record_drop(dead->params);
        kn_free(dead->params);
        kn_free(dead);
    }
}

static kn_node *new_node(const kn_op *op, int num_inputs, int num_outputs, int num_saved)
{
    size_t inputs = (size_t)num_inputs, outputs = (size_t)num_outputs;
    size_t places = (size_t)(num_saved > KN_OP_MAX_SAVED ? num_saved : KN_OP_MAX_SAVED);
    size_t edges = inputs * sizeof(kn_edge), specs = inputs * sizeof(kn_input_spec);
    size_t gradients = outputs * sizeof(kn_tensor *), saved = places * sizeof(kn_tensor *);
    size_t versions = places * sizeof(unsigned);
    kn_node *node = kn_calloc(1, sizeof *node + edges + specs + gradients + saved + versions + inputs * sizeof(bool));
    if (!node)
        return NULL;
    char *behind = (char *)(node + 1); /* the strictest alignment first */
    node->input = (kn_input_spec *)behind;
    node->edges = (kn_edge *)(behind + specs);
    node->gradients = (kn_tensor **)(behind + specs + edges);
    node->saved = (kn_tensor **)(behind + specs + edges + gradients);
    node->saved_versions = (unsigned *)(behind + specs + edges + gradients + saved);
    node->needs = (bool *)(behind + specs + edges + gradients + saved + versions);
    node->num_inputs = num_inputs;
    node->num_outputs = num_outputs;
    atomic_init(&node->references, 1);
    node->op = op;
    return node;
}

/* --- a tensor's state ------------------------------------------------------------------------- */

struct kn_autograd *kn_autograd_of(kn_tensor *tensor)
{
    if (tensor->whole) {
        kn_storage_fail_emptied(tensor->storage);
        return NULL;
    }
    if (!tensor->autograd)
        tensor->autograd = kn_calloc(1, sizeof *tensor->autograd);
    return tensor->autograd;
}

void kn_keeper_release(void *user)
{
    kn_keeper *keeper = user;
    if (keeper && atomic_fetch_sub(&keeper->references, 1) == 1)
        kn_free(keeper);
}

void kn_autograd_free(struct kn_autograd *autograd)
{
    kn_node *node = autograd->node;
    if (node && node->leaf && node->leaf->autograd == autograd) /* not an alias that has the leaf's history */
        node->leaf = NULL;
    if (autograd->keeper)
        autograd->keeper->tensor = NULL;
    kn_keeper_release(autograd->keeper);
    kn_node_release(autograd->node);
    kn_release(autograd->grad);
    kn_release(autograd->base);
    kn_free(autograd);
}

kn_node *kn_autograd_node(kn_tensor *tensor)
{
    struct kn_autograd *autograd = kn_autograd_of(tensor);
    if (autograd && kn_view_is_outdated(tensor) && kn_view_regenerate(tensor) != KN_OK)
        return NULL;
    if (autograd && !autograd->node) {
        autograd->node = new_node(NULL, 0, 1, 0);
        if (autograd->node)
            autograd->node->leaf = tensor;
    }
    return autograd ? autograd->node : NULL;
}

/* --- recording -------------------------------------------------------------------------------- */

/* The tensor whose history an in-place op continues: a view's base. */
static kn_tensor *changed_tensor(kn_tensor *target)
{
    kn_tensor *base = kn_view_base(target);
    return base ? base : target;
}

/* Numbers the node last: outdated views get their nodes here, and those need smaller numbers. */
static kn_status connect_inputs(kn_node *node, kn_tensor *const *inputs)
{
    for (int i = 0; i < node->num_inputs; i++) {
        kn_tensor *input = inputs[i];
        if (!input)
            continue;
        node->input[i].dtype = input->dtype;
        node->input[i].ndim = input->ndim;
        memcpy(node->input[i].shape, input->shape, sizeof input->shape);
        node->input[i].device = input->storage->device;
        if (i == 0 && node->op->in_place)
            input = changed_tensor(input);
        if (!kn_autograd_wants(input))
            continue;
        kn_node *source = kn_autograd_node(input);
        if (!source)
            return kn_error_status();
        atomic_fetch_add(&source->references, 1);
        node->edges[i] = (kn_edge){source, input->autograd->output};
        kn_leaf_add_use(source);
        node->needs[i] = true;
    }
    node->number = atomic_fetch_add(&next_number, 1);
    return KN_OK;
}

static kn_status keep_saved(kn_node *node, kn_tensor *const *saved, int num_saved)
{
    for (int i = 0; i < num_saved; i++, node->num_saved++) {
        kn_tensor *original = saved[i], *alias;
        if (!original)
            continue;
        KN_TRY(kn_tensor_view(&alias, original, original->ndim, original->shape, original->strides, original->offset));
        node->saved[i] = alias;
        node->saved_versions[i] = atomic_load(&original->storage->version);
    }
    return KN_OK;
}

static kn_status keep_params(kn_node *node, const void *params)
{
    const size_t size = kn_op_record_size(node->op);
    if (size == 0 || !params)
        return KN_OK;
    node->params = kn_malloc(size);
    if (!node->params)
        return KN_ERR_MEMORY;
    memcpy(node->params, params, size);
    if (node->op->record_keep)
        node->op->record_keep(node->params);
    return KN_OK;
}

/* A change in place of a view changes a part of its base. */
static kn_status note_slice(kn_node *node, const kn_tensor *target)
{
    const kn_tensor *base = kn_view_base(target);
    if (!base)
        return KN_OK;
    node->slice = kn_malloc(sizeof *node->slice);
    if (!node->slice)
        return KN_ERR_MEMORY;
    kn_slice_of(node->slice, base, target);
    return KN_OK;
}

/* A tensor that is no longer a leaf accumulates no gradient. */
static void detach_node(kn_node *node)
{
    if (node && !node->op) {
        node->leaf = NULL;
        node->released = true;
    }
    kn_node_release(node);
}

/* Makes the outputs results of the node. An in-place op's tensor drops its former node, which the new node's edge keeps
 * alive. */
static kn_status attach_outputs(kn_node *node, kn_tensor *const *outputs)
{
    const int count = node->op->first_statistic ? node->op->first_statistic : node->num_outputs;
    for (int i = 0; i < count; i++) {
        kn_tensor *output = outputs[i];
        if (!output || !kn_dtype_is_floating(output->dtype))
            continue;
        if (node->op->in_place)
            output = changed_tensor(output);
        struct kn_autograd *autograd = kn_autograd_of(output);
        if (!autograd)
            return KN_ERR_MEMORY;
        kn_node *before = autograd->node;
        atomic_fetch_add(&node->references, 1);
        autograd->node = node;
        autograd->output = i;
        autograd->requires_grad = true;
        detach_node(before);
    }
    return KN_OK;
}

kn_status kn_tape_begin(kn_node **begun, const kn_record *record)
{
    kn_node *node = new_node(record->op, record->num_inputs, record->num_outputs, record->num_saved);
    if (!node)
        return KN_ERR_MEMORY;
    node->reusable = record->reusable;
    kn_status status = connect_inputs(node, record->inputs);
    if (status == KN_OK && record->op->in_place)
        status = note_slice(node, record->inputs[0]);
    if (status == KN_OK)
        status = keep_params(node, record->params);
    if (status == KN_OK)
        *begun = node;
    else
        kn_node_release(node);
    return status;
}

kn_status kn_tape_end(kn_node *node, const kn_record *record)
{
    kn_status status = keep_saved(node, record->saved, record->num_saved);
    return status == KN_OK ? attach_outputs(node, record->outputs) : status;
}

kn_status kn_tape_add(const kn_record *record)
{
    kn_node *node;
    KN_TRY(kn_tape_begin(&node, record));
    kn_status status = kn_tape_end(node, record);
    kn_node_release(node);
    return status;
}

kn_record kn_record_of(const kn_call *call)
{
    return (kn_record){.op = call->op,
                       .params = call->params,
                       .inputs = call->inputs,
                       .num_inputs = call->num_inputs,
                       .outputs = call->outputs,
                       .num_outputs = call->num_outputs,
                       .saved = call->saved,
                       .num_saved = call->num_saved};
}

kn_status kn_tape_record_many(const kn_op *op, const void *params, kn_tensor *const *inputs, int num_inputs,
                              kn_tensor *const *outputs, int num_outputs)
{
    return kn_tape_add(&(kn_record){.op = op,
                                    .params = params,
                                    .inputs = inputs,
                                    .num_inputs = num_inputs,
                                    .outputs = outputs,
                                    .num_outputs = num_outputs,
                                    .reusable = true});
}
