/* nn/forward.c - applying a module to tensors. */
#include <koine/autograd.h>
#include <koine/flags.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/computed.h"
#include "nn/graphed.h"
#include "nn/hooks.h"
#include "nn/recompute.h"
#include "tensor/liveness.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

/* --- naming the module in errors ------------------------------------------------------------------------------- */

/* A call of kn_forward or kn_forward_many; this thread's calls form a stack, innermost first. */
typedef struct forward_call {
    kn_module *module;
    kn_tensor *const *inputs;
    kn_tensor **replaceable; /* the same, while the module runs: its hooks may replace them */
    int num_inputs;
    kn_tensor **outputs;
    int num_outputs;
    kn_activation activation; /* applied to the result */
    struct forward_call *outer;
    bool reported; /* the error message already names the module */
} forward_call;

static _Thread_local forward_call *innermost;

/* Appends the dotted name of `module` below `root` to the `length` characters in `path`; false if not found. */
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

/* Appends the module's name within the outermost calling module: "... (in layer2.0.conv1)". */
static void report_path(const forward_call *call)
{
    char path[256], longest[256] = "";
    for (forward_call *outer = call->outer; outer; outer = outer->outer) {
        if (find_path(path, sizeof path, 0, outer->module, call->module))
            snprintf(longest, sizeof longest, "%s", path);
        outer->reported = true;
    }
    if (longest[0] != '\0')
        kn_error_suffix(" (in %s)", longest);
}

/* --- observer ------------------------------------------------------------------------------------------------- */

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
    return kn_fail_null(KN_ERR_ARGUMENT, "forward: %d is not a kn_activation", (int)activation);
}

/* `activation` only if the module can apply one. */
static kn_status call_kind(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs, kn_activation activation)
{
    if (activation != KN_ACTIVATION_NONE)
        outputs[0] = module->kind.activated(module, inputs[0], activation);
    else if (module->kind.forward_many != NULL)
        return module->kind.forward_many(module, inputs, outputs);
    else
        outputs[0] = module->kind.forward(module, inputs[0]);
    return KN_OK;
}

static kn_status call_activated(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs,
                                kn_activation activation)
{
    kn_computed_view view;
    KN_TRY(kn_computed_begin(&view, module));
    const kn_status status = call_kind(view.module, inputs, outputs, activation);
    kn_computed_end(&view);
    return status;
}

kn_status kn_module_call(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    return call_activated(module, inputs, outputs, KN_ACTIVATION_NONE);
}

/* User-defined forward functions may store their inputs and the tensors they create: see tensor/scope.h. */
static kn_status call_program(const forward_call *call)
{
    int adopter = kn_scope_enter_user_code();
    kn_status status = KN_OK;
    for (int i = 0; i < call->num_inputs && status == KN_OK; i++)
        if (call->inputs[i] != NULL && kn_scope_adopt(kn_retain(call->inputs[i])) == NULL)
            status = kn_error_status();
    if (status == KN_OK)
        status = kn_module_call(call->module, call->inputs, call->outputs);
    kn_scope_leave_user_code(adopter);
    return status;
}

/* A user-defined function may fail without setting an error. */
static kn_status check_outputs(const forward_call *call, kn_status status)
{
    const char *name = call->module->type_name;
    if (status != KN_OK && kn_error_status() == KN_OK)
        return kn_fail(status, "%s: its forward function returned %s", name, kn_status_name(status));
    for (int i = 0; i < call->num_outputs && status == KN_OK; i++) {
        if (call->outputs[i] != NULL)
            continue;
        if (kn_error_status() != KN_OK)
            status = kn_error_status();
        else if (call->module->kind.forward_many == NULL)
            status = kn_fail(KN_ERR_STATE, "%s: its forward function returned NULL without an error", name);
        else
            status = kn_fail(KN_ERR_STATE, "%s: its forward function left outputs[%d] NULL without an error", name, i);
    }
    return status;
}

/* Will it run again in the backward pass? */
static bool is_recomputed(const kn_module *module)
{
    return module->graphed == NULL && module->is_checkpointed && watcher.applied == NULL && kn_grad_enabled();
}

/* Replays the graph if the module is graphed. */
static kn_status run(const forward_call *call)
{
    kn_module *module = call->module;
    kn_activation activation = call->activation;
    kn_status status = KN_OK;
    if (module->graphed != NULL && watcher.applied == NULL) {
        status = kn_graphed_forward(module, call->inputs, call->outputs);
    } else if (is_recomputed(module)) {
        status = kn_recomputed_forward(module, call->inputs, call->outputs);
    } else if (activation != KN_ACTIVATION_NONE && module->kind.activated != NULL && kn_forward_fuses()) {
        status = call_activated(module, call->inputs, call->outputs, activation);
        activation = KN_ACTIVATION_NONE;
    } else {
        status = module->kind.is_layer ? kn_module_call(module, call->inputs, call->outputs) : call_program(call);
    }
    KN_TRY(check_outputs(call, status));
    if (activation != KN_ACTIVATION_NONE)
        call->outputs[0] = kn_activate(call->outputs[0], activation);
    return call->outputs[0] != NULL ? KN_OK : kn_error_status();
}

/* A recomputed module's hooks run inside, in both passes. */
static bool runs_hooks(const kn_module *module)
{
    return kn_module_has_hooks(module) && watcher.applied == NULL && !is_recomputed(module);
}

/* The activation comes after the hooks. */
static kn_status run_hooked(const forward_call *call)
{
    forward_call plain = *call;
    kn_hooked_call hooked = {.module = call->module,
                             .inputs = call->replaceable,
                             .num_inputs = call->num_inputs,
                             .outputs = call->outputs,
                             .num_outputs = call->num_outputs};
    plain.activation = KN_ACTIVATION_NONE;
    kn_status status = kn_hooks_before(&hooked);
    if (status == KN_OK)
        status = run(&plain);
    if (status == KN_OK)
        status = kn_hooks_after(&hooked);
    kn_hooks_end(&hooked);
    if (status == KN_OK && call->activation != KN_ACTIVATION_NONE)
        call->outputs[0] = kn_activate(call->outputs[0], call->activation);
    return status == KN_OK && call->outputs[0] == NULL ? kn_error_status() : status;
}

/* The arrays have the signature's lengths. The enclosing scope owns the results. */
static kn_status apply(forward_call *call, kn_tensor **results)
{
    int depth = kn_scope_begin_internal();
    if (depth == 0)
        return kn_error_status();
    if (watcher.applied != NULL)
        watcher.applied(call->module, NULL, 0, watcher.user);
    kn_status status = runs_hooks(call->module) ? run_hooked(call) : run(call);
    if (watcher.applied != NULL && status == KN_OK)
        watcher.applied(call->module, call->outputs, call->num_outputs, watcher.user);
    if (status == KN_OK)
        return kn_scope_return_all(depth, call->outputs, call->num_outputs, results);
    kn_scope_end(depth);
    return status;
}

/* --- checking inputs -------------------------------------------------------------------------------------------- */

/* "2 inputs", "1 or 2 inputs", "2 to 4 inputs" */
static const char *describe_inputs(char *text, size_t size, kn_signature signature)
{
    const int most = signature.inputs, least = most - signature.optional;
    if (least == most)
        snprintf(text, size, "%d input%s", most, most == 1 ? "" : "s");
    else
        snprintf(text, size, "%d %s %d inputs", least, most - least == 1 ? "or" : "to", most);
    return text;
}

static kn_status check_numbers(const forward_call *call, kn_signature signature)
{
    char takes[48];
    if (call->num_inputs < signature.inputs - signature.optional || call->num_inputs > signature.inputs)
        return kn_fail(KN_ERR_ARGUMENT, "%s: takes %s, not %d", call->module->type_name,
                       describe_inputs(takes, sizeof takes, signature), call->num_inputs);
    if (call->num_outputs != signature.outputs)
        return kn_fail(KN_ERR_ARGUMENT, "%s: returns %d output%s, not %d%s", call->module->type_name, signature.outputs,
                       signature.outputs == 1 ? "" : "s", call->num_outputs,
                       call->num_outputs == 1 ? "; use kn_forward_many to get all" : "");
    return KN_OK;
}

/* A NULL input gives NULL outputs, unless that input is optional. */
static kn_status check_given(const forward_call *call, kn_signature signature)
{
    for (int i = 0; i < call->num_inputs; i++) {
        const kn_tensor *input = call->inputs[i];
        char name[24] = "x";
        if (input != NULL ? !kn_tensors_are_guarded() : i >= signature.inputs - signature.optional)
            continue;
        if (signature.inputs > 1)
            snprintf(name, sizeof name, "inputs[%d]", i);
        KN_TRY(kn_check_tensor("forward", name, input));
    }
    return KN_OK;
}

/* Up to this many tensors stay on the stack. */
enum { FEW = 12 };

static kn_status call_with_all(forward_call *call, kn_signature signature, kn_tensor **results)
{
    kn_tensor *few[FEW], **all = few;
    KN_TRY(check_numbers(call, signature));
    const int count = signature.inputs + signature.outputs;
    if (count > FEW && (all = kn_malloc((size_t)count * sizeof *all)) == NULL)
        return KN_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        all[i] = i < call->num_inputs ? call->inputs[i] : NULL;
    call->inputs = call->replaceable = all;
    call->num_inputs = signature.inputs;
    call->outputs = all + signature.inputs;
    kn_status status = apply(call, results);
    call->inputs = call->replaceable = NULL;
    call->outputs = NULL;
    if (all != few)
        kn_free(all);
    return status;
}

kn_status kn_forward_list(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                          int num_outputs, kn_activation activation)
{
    forward_call call = {.module = module,
                         .inputs = inputs,
                         .num_inputs = num_inputs,
                         .num_outputs = num_outputs,
                         .activation = activation,
                         .outer = innermost};
    const kn_signature signature = kn_module_signature(module);
    KN_TRY(check_given(&call, signature));
    innermost = &call;
    kn_status status = call_with_all(&call, signature, outputs);
    innermost = call.outer;
    if (status != KN_OK && !call.reported)
        report_path(&call);
    if (status != KN_OK)
        kn_error_make_sticky();
    return status;
}

/* --- the interface --------------------------------------------------------------------------------------------- */

kn_tensor *kn_forward(kn_module *module, kn_tensor *x) { return kn_forward_activated(module, x, KN_ACTIVATION_NONE); }

kn_tensor *kn_forward_activated(kn_module *module, kn_tensor *x, kn_activation activation)
{
    kn_tensor *y = NULL;
    if (module == NULL)
        kn_fail_argument_null("forward", "module");
    else if (kn_forward_list(module, &x, 1, &y, 1, activation) == KN_OK)
        return y;
    return kn_error_make_sticky();
}

kn_status kn_forward_many(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                          int num_outputs)
{
    kn_status status;
    if (module == NULL || inputs == NULL || outputs == NULL)
        status = kn_fail_argument_null("forward_many", module == NULL   ? "module"
                                                       : inputs == NULL ? "inputs"
                                                                        : "outputs");
    else
        status = kn_forward_list(module, inputs, num_inputs, outputs, num_outputs, KN_ACTIVATION_NONE);
    if (status == KN_OK)
        return KN_OK;
    for (int i = 0; i < num_outputs && outputs != NULL; i++)
        outputs[i] = NULL; /* only now: the two lists may be the same array */
    kn_error_make_sticky();
    return status;
}
