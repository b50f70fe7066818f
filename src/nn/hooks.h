/* nn/hooks.h - a module's hooks (koine/hook.h). */
#pragma once

#include <koine/hook.h>
#include <stdatomic.h>

#include "nn/module.h"

typedef enum kn_hook_kind { KN_HOOK_FORWARD_PRE, KN_HOOK_FORWARD, KN_HOOK_BACKWARD_PRE, KN_HOOK_BACKWARD } kn_hook_kind;

typedef struct kn_module_hook {
    kn_hook_kind kind;
    union {
        kn_forward_pre_hook forward_pre;
        kn_forward_hook forward;
        kn_backward_pre_hook backward_pre;
        kn_backward_hook backward;
    } call;
    void *user;
    void (*destroy)(void *user);
    kn_hook_handle handle;
    atomic_int references; /* of the module, its replicas, and calls that may still run it */
} kn_module_hook;

static inline bool kn_module_has_hooks(const kn_module *module) { return module->hooks.count > 0; }

kn_status kn_hooks_copy(kn_module_hooks *copy, const kn_module_hooks *hooks); /* empty on failure */
void kn_hooks_free(kn_module_hooks *hooks);                                   /* and empties the list */

/* One application of a module with hooks: `inputs` and `outputs` have the signature's lengths. Before the module runs:
 * may replace inputs. Afterwards, if it succeeded: may replace outputs. Finally the end, in any case. */
typedef struct kn_hooked_call {
    kn_module *module;
    kn_tensor **inputs;
    int num_inputs;
    kn_tensor **outputs;
    int num_outputs;
    kn_module_hooks hooks;         /* those of the beginning: a hook may remove itself */
    struct kn_backward_link *link; /* NULL: no gradient passes through */
} kn_hooked_call;
kn_status kn_hooks_before(kn_hooked_call *call);
kn_status kn_hooks_after(kn_hooked_call *call);
void kn_hooks_end(kn_hooked_call *call);

/* backward_hooks.c: puts a node on the tape around the inputs, and one around the outputs, where they require
 * gradients; these call the backward hooks. */
kn_status kn_backward_hooks_before(kn_hooked_call *call);
kn_status kn_backward_hooks_after(kn_hooked_call *call);
void kn_backward_hooks_end(kn_hooked_call *call);
