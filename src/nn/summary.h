/* nn/summary.h - what a pass through a network tells of its modules. */
#ifndef KN_NN_SUMMARY_H
#define KN_NN_SUMMARY_H

#include "nn/module.h"

typedef struct kn_module_figures {
    const kn_module *module;
    char *output;         /* the shapes of its outputs in its last call, "[2, 5], [2, 8]"; NULL: it was not applied */
    double multiply_adds; /* its own, without those of the modules below it; of all its calls */
} kn_module_figures;

typedef struct kn_figures_list {
    kn_module_figures *items; /* in the tree's order */
    int count;
    double multiply_adds;
} kn_figures_list;

/* Rehearses a pass without gradients in evaluation mode: nothing is computed, compiled or changed. `list` is freed by
 * kn_figures_free, also after a failure. */
kn_status kn_module_dry_run(kn_figures_list *list, kn_module *module, kn_tensor *const *inputs, int num_inputs);
void kn_figures_free(kn_figures_list *list);

/* "[2, 5], [2, 8]"; a tensor that is NULL is "none". The caller frees it; NULL when memory is exhausted. */
char *kn_describe_shapes(kn_tensor *const *tensors, int count);

/* NULL where the module was not applied. */
const kn_module_figures *kn_figures_find(const kn_figures_list *list, const kn_module *module);

#endif
