/* nn/summary.h - what a pass through a network tells of its modules. */
#ifndef KN_NN_SUMMARY_H
#define KN_NN_SUMMARY_H

#include "nn/module.h"

typedef struct kn_module_figures {
    const kn_module *module;
    bool applied; /* in the pass: */
    int ndim;     /* its output, in its last call */
    int64_t shape[KN_MAX_DIMS];
    double multiply_adds; /* its own, without those of the modules below it; of all its calls */
} kn_module_figures;

typedef struct kn_figures_list {
    kn_module_figures *items; /* in the tree's order */
    int count;
    double multiply_adds;
} kn_figures_list;

/* Rehearses a pass without gradients in evaluation mode: nothing is computed, compiled or changed. Freed with
 * kn_free(list->items). */
kn_status kn_module_rehearse(kn_figures_list *list, kn_module *module, kn_tensor *input);

/* NULL where the module was not applied. */
const kn_module_figures *kn_figures_find(const kn_figures_list *list, const kn_module *module);

#endif
