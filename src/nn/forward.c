/* nn/forward.c - applying a module to a tensor. */
#include <koine/flags.h>
#include <koine/ops.h>
#include <stdio.h>

#include "base/error.h"
#include "nn/graphed.h"
#include "tensor/liveness.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

/* --- which module an error came from --------------------------------------------------------------------------- */

/* The calls of kn_forward that this thread is in, innermost first. */
typedef struct forward_call {
    const kn_module *module;
    struct forward_call *outer;
    bool told; /* the error's message names the module already */
} forward_call;

static _Thread_local forward_call *innermost;

/* Appends the dotted name of `module` below `root` to the `length` characters in `path`; false where it is not. */
static bool find_path(char *path, size_t size, size_t length, const kn_module *root, const kn_module *module)
{
    if (root == module)
        return true;
    for (int i = 0; i < root->num_children; i++) {
        path[length] = '\0';
        int added = snprintf(path + length, size - length, "%s%s", length > 0 ? "." : "", root->children[i].name);
        if (added >= 0 && length + (size_t)added < size &&
            find_path(path, size, length + (size_t)added, root->children[i].module, module))
            return true;
    }
    return false;
}

/* Ends the message with the module's name in the largest network that it was called from: "... (in layer2.0.conv1)". */
static void tell_path(const forward_call *call)
{
    char path[256], longest[256] = "";
    for (forward_call *outer = call->outer; outer; outer = outer->outer) {
        if (find_path(path, sizeof path, 0, outer->module, call->module))
            snprintf(longest, sizeof longest, "%s", path);
        outer->told = true;
    }
    if (longest[0] != '\0')
        kn_error_suffix(" (in %s)", longest);
}

/* --- who watches ----------------------------------------------------------------------------------------------- */

static _Thread_local kn_forward_observer watcher;

kn_forward_observer kn_forward_observe(kn_forward_observer observer)
{
    kn_forward_observer before = watcher;
    watcher = observer;
    return before;
}

bool kn_forward_fuses(void) { return kn_get_fusion() && watcher.applied == NULL; }

/* --- applying -------------------------------------------------------------------------------------------------- */

kn_tensor *kn_activate(kn_tensor *x, kn_activation activation)
{
    switch (activation) {
    case KN_ACTIVATION_NONE:
        return x;
    case KN_ACTIVATION_RELU:
        return kn_relu(x);
    case KN_ACTIVATION_RELU6:
        return kn_relu6(x);
    }
    return kn_fail_null(KN_ERR_ARGUMENT, "forward: %d is no kn_activation", (int)activation);
}

/* The program's own forward functions may keep what they make, and what they are given: see tensor/scope.h. */
static kn_tensor *call_forward(kn_module *module, kn_tensor *x)
{
    if (module->is_layer)
        return module->forward(module, x);
    int adopter = kn_scope_enter_program();
    kn_tensor *y = kn_scope_adopt(kn_retain(x)) ? module->forward(module, x) : NULL;
    kn_scope_leave_program(adopter);
    return y;
}

/* What was recorded is replayed as it is. */
static kn_tensor *run(kn_module *module, kn_tensor *x, kn_activation activation)
{
    if (module->graphed != NULL && watcher.applied == NULL)
        return kn_activate(kn_graphed_forward(module, x), activation);
    if (activation != KN_ACTIVATION_NONE && module->activated != NULL && kn_forward_fuses())
        return module->activated(module, x, activation);
    return kn_activate(call_forward(module, x), activation);
}

kn_tensor *kn_forward(kn_module *module, kn_tensor *x) { return kn_forward_activated(module, x, KN_ACTIVATION_NONE); }

kn_tensor *kn_forward_activated(kn_module *module, kn_tensor *x, kn_activation activation)
{
    if (module == NULL) {
        kn_fail_argument_null("forward", "module");
        return kn_stick();
    }
    if (kn_tensor_given("forward", "x", x) != KN_OK)
        return kn_stick();
    int depth = kn_scope_begin_internal();
    if (depth == 0)
        return kn_stick();
    forward_call call = {.module = module, .outer = innermost};
    innermost = &call;
    if (watcher.applied != NULL)
        watcher.applied(module, NULL, watcher.user);
    kn_tensor *y = run(module, x, activation);
    innermost = call.outer;
    if (watcher.applied != NULL && y != NULL)
        watcher.applied(module, y, watcher.user);
    if (y == NULL && kn_error_status() == KN_OK)
        kn_fail(KN_ERR_STATE, "%s: its forward function returned NULL without an error", module->type_name);
    if (y == NULL && !call.told)
        tell_path(&call);
    if (y == NULL)
        kn_stick();
    return kn_scope_return(depth, y);
}
