/* nn/summary.h - per-module figures from a dry run of a network. */
#pragma once

#include "nn/module.h"

typedef struct kn_module_figures {
    const kn_module *module;
    char *output;         /* output shapes of its last call, "[2, 5], [2, 8]"; NULL: not applied */
    double multiply_adds; /* sum over its calls, without its children's */
} kn_module_figures;

typedef struct kn_figures_list {
    kn_module_figures *items; /* in tree order */
    int count;
    double multiply_adds;
} kn_figures_list;

/* A dry run without gradients in evaluation mode: nothing is computed, compiled or changed. Free `list` with
 * kn_figures_free, also after a failure. */
kn_status kn_module_dry_run(kn_figures_list *list, kn_module *module, kn_tensor *const *inputs, int num_inputs);
void kn_figures_free(kn_figures_list *list);

/* "[2, 5], [2, 8]"; a tensor that is NULL is "none". The caller frees it; NULL when memory is exhausted. */
char *kn_describe_shapes(kn_tensor *const *tensors, int count);

/* NULL if the module was not applied. */
const kn_module_figures *kn_figures_find(const kn_figures_list *list, const kn_module *module);
