/* nn/sequential.c - children applied one after the other. */
#include <stdio.h>

#include "base/error.h"
#include "nn/module.h"
#include "tensor/tensor.h"

/* Each value is given up as soon as the next one is there: outside training nothing else holds it, and the peak is two
 * activations. */
static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    kn_tensor *value = kn_retain(x);
    for (int i = 0; i < module->num_children && value != NULL; i++) {
        int depth = kn_scope_begin();
        kn_tensor *next = depth > 0 ? kn_retain(kn_forward(module->children[i].module, value)) : kn_stick();
        kn_release(value);
        value = next;
        if (depth > 0)
            kn_scope_end(depth);
    }
    return kn_scope_adopt(value);
}

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
    kn_module *sequential = valid ? kn_module_new("Sequential", forward, 0, NULL) : kn_stick();
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
