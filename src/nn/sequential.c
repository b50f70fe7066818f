/* nn/sequential.c - children applied one after the other. */
#include <stdio.h>

#include "base/error.h"
#include "nn/module.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

/* --- the order of things -------------------------------------------------------------------------------------- */

/* What child `i` does to each element, if that is all it does and another child may do it in its stead. */
static kn_activation activation_of(const kn_module *module, int i)
{
    const kn_module *child = i < module->num_children ? module->children[i].module : NULL;
    return child != NULL && child->graphed == NULL ? child->activation : KN_ACTIVATION_NONE;
}

static bool keeps_order(const kn_module *module, int i)
{
    const kn_module *child = i < module->num_children ? module->children[i].module : NULL;
    return child != NULL && child->graphed == NULL && child->keeps_order;
}

/* A child and the activation that is applied to its result. */
typedef struct step {
    kn_module *child;
    kn_activation activation;
} step;

/* The step that begins with child *i, which moves on. An activation is left to the child before it, or, where a maximum
 * over windows follows, to that: there are fewer elements then, and backward needs no pass over the others. */
static step next_step(const kn_module *module, int *i)
{
    step next = {.child = module->children[*i].module};
    if (!kn_forward_fuses()) {
        ++*i;
        return next;
    }
    if (activation_of(module, *i) != KN_ACTIVATION_NONE && keeps_order(module, *i + 1)) {
        next.activation = activation_of(module, *i);
        next.child = module->children[*i + 1].module;
        *i += 2;
        return next;
    }
    ++*i;
    if (!keeps_order(module, *i + 1))
        next.activation = activation_of(module, *i);
    *i += next.activation != KN_ACTIVATION_NONE;
    return next;
}

/* Each value is given up as soon as the next one is there: outside training nothing else holds what a layer of the
 * library made, and the peak is two activations. `activation` comes last. */
static kn_tensor *forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    kn_tensor *value = kn_retain(x);
    for (int i = 0; i < module->num_children && value != NULL;) {
        step next = next_step(module, &i);
        if (i == module->num_children && next.activation == KN_ACTIVATION_NONE) {
            next.activation = activation;
            activation = KN_ACTIVATION_NONE;
        }
        int depth = kn_scope_begin_internal();
        kn_tensor *result =
            depth > 0 ? kn_retain(kn_forward_activated(next.child, value, next.activation)) : kn_stick();
        kn_release(value);
        value = result;
        if (depth > 0)
            kn_scope_end(depth);
    }
    value = kn_scope_adopt(value);
    return activation != KN_ACTIVATION_NONE ? kn_activate(value, activation) : value;
}

/* --- making ---------------------------------------------------------------------------------------------------- */

/* A child that could not be made is NULL and has left its error; where it has not, the caller passed NULL. */
static kn_module *add(kn_module *sequential, const char *name, kn_module *child)
{
    if (child == NULL) {
        kn_fail_argument_null("Sequential", name);
        return kn_stick();
    }
    return kn_module_register_module(sequential, name, child);
}

kn_module *kn_nn_sequential_of(kn_module *const *children, int count)
{
    bool valid = count >= 0 && (count == 0 || children != NULL);
    if (!valid)
        kn_fail(KN_ERR_ARGUMENT, "Sequential: %d children cannot be had from the array given", count);
    kn_module *sequential = valid ? kn_layer_new_activated("Sequential", forward, NULL, NULL, 0) : kn_stick();
    bool failed = sequential == NULL;
    for (int i = 0; i < count && valid; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        if (!failed)
            failed = add(sequential, name, children[i]) == NULL;
        else if (children[i] != NULL && !children[i]->owned)
            kn_module_free(children[i]); /* taken over also on failure */
    }
    return failed ? kn_layer_failed(sequential) : sequential;
}

kn_status kn_nn_add_module(kn_module *sequential, const char *name, kn_module *child)
{
    if (sequential == NULL || child == NULL) {
        kn_fail_argument_null("add_module", sequential == NULL ? "sequential" : "child");
        kn_stick();
        kn_status status = kn_error_status();
        if (child != NULL && !child->owned)
            kn_module_free(child);
        return status;
    }
    return kn_module_register_module(sequential, name, child) != NULL ? KN_OK : kn_error_status();
}
