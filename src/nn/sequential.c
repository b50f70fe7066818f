/* nn/sequential.c - children applied one after the other. */
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/module.h"
#include "tensor/scope.h"

/* --- fusing activations --------------------------------------------------------------------------------------- */

/* Children that are applied in order: the next one is child `i`. */
typedef struct line {
    const kn_module *module;
    int i, end;
} line;

/* Is there a child `ahead` of the next one, and may another child do its work? */
static bool is_plain(const line *l, int ahead)
{
    const int i = l->i + ahead;
    if (i >= l->end)
        return false;
    const kn_module *child = l->module->children[i].module;
    return child->graphed == NULL && child->hooks.count == 0;
}

/* The activation that it is, if another child may apply it instead; else none. */
static kn_activation activation_of(const line *l, int ahead)
{
    return is_plain(l, ahead) ? l->module->children[l->i + ahead].module->kind.activation : KN_ACTIVATION_NONE;
}

static bool keeps_order(const line *l, int ahead)
{
    return is_plain(l, ahead) && l->module->children[l->i + ahead].module->kind.keeps_order;
}

/* A child and the activation that is applied to its result. */
typedef struct step {
    kn_module *child;
    kn_activation activation;
} step;

/* The step that begins with the next child. An activation is fused into the child before it or, if max pooling follows,
 * into that: there are fewer elements then, and backward needs no pass over the others. */
static step next_step(line *l)
{
    step next = {.child = l->module->children[l->i].module};
    if (!kn_forward_fuses()) {
        l->i++;
        return next;
    }
    if (activation_of(l, 0) != KN_ACTIVATION_NONE && keeps_order(l, 1)) {
        next.activation = activation_of(l, 0);
        next.child = l->module->children[l->i + 1].module;
        l->i += 2;
        return next;
    }
    l->i++;
    if (!keeps_order(l, 1) && kn_module_signature(next.child).outputs == 1)
        next.activation = activation_of(l, 0);
    l->i += next.activation != KN_ACTIVATION_NONE;
    return next;
}

kn_tensor *kn_forward_children(kn_module *module, int from, int end, kn_tensor *x)
{
    for (line l = {module, from, end}; l.i < end;) {
        const step next = next_step(&l);
        x = kn_forward_activated(next.child, x, next.activation);
    }
    return x;
}

/* What one child passes to the next; owned references. */
typedef struct values {
    kn_tensor **tensors, *one; /* `tensors` points to `one` if count is 1 */
    int count;
} values;

static kn_status hold(values *held, int count)
{
    *held = (values){.count = count};
    held->tensors = count == 1 ? &held->one : kn_calloc((size_t)count, sizeof *held->tensors);
    return held->tensors != NULL ? KN_OK : KN_ERR_MEMORY;
}

static void let_go(values *held)
{
    for (int i = 0; i < held->count && held->tensors != NULL; i++)
        kn_release(held->tensors[i]);
    if (held->tensors != &held->one)
        kn_free(held->tensors);
    *held = (values){0};
}

static kn_status take_step(step next, const values *in, values *out)
{
    KN_TRY(hold(out, kn_module_signature(next.child).outputs));
    int depth = kn_scope_begin_internal();
    if (depth == 0)
        return kn_error_status();
    kn_status status = kn_forward_list(next.child, in->tensors, in->count, out->tensors, out->count, next.activation);
    for (int i = 0; i < out->count && status == KN_OK; i++)
        kn_retain(out->tensors[i]);
    kn_scope_end(depth);
    return status;
}

/* The results of each child are the inputs of the next and are released as soon as it has run: outside training nothing
 * else holds a built-in layer's results, so at most two activations are alive. `activation` is applied last. */
static kn_status run(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs, kn_activation activation)
{
    values pair[2] = {{0}}, *in = &pair[0], *out = &pair[1];
    KN_TRY(hold(in, kn_module_signature(module).inputs));
    for (int i = 0; i < in->count; i++)
        in->tensors[i] = kn_retain(inputs[i]);
    kn_status status = KN_OK;
    for (line l = {module, 0, module->num_children}; l.i < l.end && status == KN_OK;) {
        step next = next_step(&l);
        if (l.i == l.end && next.activation == KN_ACTIVATION_NONE) {
            next.activation = activation;
            activation = KN_ACTIVATION_NONE;
        }
        status = take_step(next, in, out);
        let_go(in);
        values *made = out;
        out = in;
        in = made;
    }
    if (status == KN_OK) {
        status = kn_scope_adopt_all(in->tensors, in->count, outputs);
        in->count = 0; /* now owned by the scope */
    }
    let_go(in);
    if (status == KN_OK && activation != KN_ACTIVATION_NONE)
        outputs[0] = kn_activate(outputs[0], activation);
    return status;
}

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    return run(module, inputs, outputs, KN_ACTIVATION_NONE);
}

static kn_tensor *activated(kn_module *module, kn_tensor *x, kn_activation activation)
{
    kn_tensor *y = NULL;
    return run(module, &x, &y, activation) == KN_OK ? y : kn_error_make_sticky();
}

/* The first child's inputs and the last one's outputs. */
static kn_signature signature_of(const kn_module *module)
{
    if (module->num_children == 0)
        return (kn_signature){.inputs = 1, .outputs = 1};
    kn_signature signature = kn_module_signature(module->children[0].module);
    signature.outputs = kn_module_signature(module->children[module->num_children - 1].module).outputs;
    return signature;
}

/* --- constructors ------------------------------------------------------------------------------------------------- */

/* A child whose constructor failed is NULL and has left its error; without an error the caller passed NULL. */
static kn_module *add(kn_module *sequential, const char *name, kn_module *child)
{
    if (child == NULL) {
        kn_fail_argument_null("Sequential", name);
        return kn_error_make_sticky();
    }
    return kn_module_register_module(sequential, name, child);
}

kn_module *kn_nn_sequential_of(kn_module *const *children, int count)
{
    bool valid = count >= 0 && (count == 0 || children != NULL);
    if (!valid)
        kn_fail(KN_ERR_ARGUMENT, "Sequential: %d children, or the array of children is NULL", count);
    static const kn_module_kind kind = {.forward_many = forward,
                                        .activated = activated,
                                        .signature_of = signature_of,
                                        .is_layer = true,
                                        .is_container = true};
    kn_module *sequential = valid ? kn_layer_new_kind("Sequential", &kind, NULL, 0) : kn_error_make_sticky();
    bool failed = sequential == NULL;
    int i = 0;
    for (; i < count && valid && !failed; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        failed = add(sequential, name, children[i]) == NULL;
    }
    if (valid)
        kn_module_discard(children, i, count);
    return failed ? kn_layer_failed(sequential) : sequential;
}

kn_status kn_nn_add_module(kn_module *sequential, const char *name, kn_module *child)
{
    if (sequential == NULL || child == NULL) {
        kn_fail_argument_null("add_module", sequential == NULL ? "sequential" : "child");
        kn_error_make_sticky();
        kn_status status = kn_error_status();
        kn_module_discard(&child, 0, 1);
        return status;
    }
    return kn_module_register_module(sequential, name, child) != NULL ? KN_OK : kn_error_status();
}
