/* nn/computed.h - tensors of a module that are computed from others of its tensors before each forward pass: the one
 * mechanism of parametrizations (nn/parametrize.c) and pruning (nn/prune.c).
 *
 * A forward function finds its tensors in self. While it runs, self points to the computed value wherever it points to
 * the tensor that the value stands for. A built-in layer gets a copy of the module with a self of its own, so that any
 * number of threads may apply it; a user-defined one, which may store something in self, the module itself. */
#pragma once

#include "nn/module.h"

typedef struct kn_computed {
    char *name;
    /* what self points to outside of forward passes: a registered tensor, which the value is computed from, or, kept
     * for its address alone, the one that was registered before */
    kn_tensor *original;
    kn_tensor *(*compute)(kn_module *module, const char *name); /* the value, owned as results are */
    kn_tensor *value;                                           /* during a forward pass; owned by its scope */
} kn_computed;

kn_status kn_computed_add(kn_module *module, const char *name, kn_tensor *original,
                          kn_tensor *(*compute)(kn_module *module, const char *name));
void kn_computed_remove(kn_module *module, const char *name); /* an existing one */
kn_computed *kn_computed_find(const kn_module *module, const char *name);
void kn_computed_free(kn_computed_list *list);

/* The value by its dotted name below `module`: that of the running forward pass, or a new one. NULL with an error;
 * *found is false if no tensor of that name is computed. */
kn_tensor *kn_computed_value(kn_module *module, const char *name, bool *found);

/* The module as its forward function sees it, from begin to end. */
typedef struct kn_computed_view {
    kn_module *module; /* `copy`, or the module itself */
    kn_module copy;
} kn_computed_view;
kn_status kn_computed_begin(kn_computed_view *view, kn_module *module); /* no end on failure */
void kn_computed_end(kn_computed_view *view);
