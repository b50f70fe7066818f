/* koine/prune.h - pruning: torch.nn.utils.prune.
 *
 *     kn_prune_l1_unstructured(linear, "weight", 0.3);              // 30 % of the elements
 *     kn_prune_ln_structured(conv, "weight", 2, 2, 0);              // two output channels, by their 2-norms
 *     ... train ...
 *     kn_prune_remove(linear, "weight");
 *
 * The module's parameter "weight" becomes "weight_orig", the same tensor, and a buffer "weight_mask" of ones and zeros
 * is registered; whenever the module is applied, its weight is their product. These names are PyTorch's. Pruning again
 * combines the masks: the amount is then that of what is not yet pruned, and importance is that of the elements, or
 * channels, that remain. kn_module_get(linear, "weight") is the product.
 *
 * `amount` is a number of elements or channels (an integer) or their part, from 0.0 to 1.0 (a real number: 1.0 is all,
 * 1 is one). Of equal values the first are pruned. Functions return KN_OK, or the status of an error, which leaves the
 * module unchanged. */
#ifndef KOINE_PRUNE_H
#define KOINE_PRUNE_H

#include <koine/common.h>
#include <koine/generator.h>
#include <koine/module.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_prune_params {
    /* default NULL: the tensor itself. Otherwise its importance, of the same shape, from which l1 and ln are
     * computed. */
    kn_tensor *importance_scores;
    kn_generator *generator; /* default NULL: that of the tensor's device; for random pruning */
} kn_prune_params;
#define KN_PRUNE_DEFAULTS .importance_scores = NULL
KN_API kn_prune_params kn_prune_params_init(void);

/* A mask of ones. */
KN_API kn_status kn_prune_identity(kn_module *module, const char *name);
/* The elements with the least absolute values / random ones. */
KN_API kn_status kn_prune_l1_unstructured_with(kn_module *module, const char *name, kn_scalar amount,
                                               const kn_prune_params *params);
KN_API kn_status kn_prune_random_unstructured_with(kn_module *module, const char *name, kn_scalar amount,
                                                   const kn_prune_params *params);
/* Whole slices of dimension `dim` of a tensor of two dimensions or more: those with the least n-norms (n as kn_norm's
 * p) / random ones. */
KN_API kn_status kn_prune_ln_structured_with(kn_module *module, const char *name, kn_scalar amount, double n, int dim,
                                             const kn_prune_params *params);
KN_API kn_status kn_prune_random_structured_with(kn_module *module, const char *name, kn_scalar amount, int dim,
                                                 const kn_prune_params *params);
/* The elements where `mask`, of the tensor's shape, is 0. */
KN_API kn_status kn_prune_custom_from_mask(kn_module *module, const char *name, kn_tensor *mask);

#define kn_prune_l1_unstructured(module, name, amount, ...)                                                            \
    KN_CALL(kn_prune_l1_unstructured_with(module, name, KN_NUMBER(amount),                                             \
                                          &(kn_prune_params){KN_PRUNE_DEFAULTS, __VA_ARGS__}))
#define kn_prune_random_unstructured(module, name, amount, ...)                                                        \
    KN_CALL(kn_prune_random_unstructured_with(module, name, KN_NUMBER(amount),                                         \
                                              &(kn_prune_params){KN_PRUNE_DEFAULTS, __VA_ARGS__}))
#define kn_prune_ln_structured(module, name, amount, n, dim, ...)                                                      \
    KN_CALL(kn_prune_ln_structured_with(module, name, KN_NUMBER(amount), n, dim,                                       \
                                        &(kn_prune_params){KN_PRUNE_DEFAULTS, __VA_ARGS__}))
#define kn_prune_random_structured(module, name, amount, dim, ...)                                                     \
    KN_CALL(kn_prune_random_structured_with(module, name, KN_NUMBER(amount), dim,                                      \
                                            &(kn_prune_params){KN_PRUNE_DEFAULTS, __VA_ARGS__}))

/* Several tensors as one: the least or random elements of all of them. */
typedef struct kn_prune_target {
    kn_module *module;
    const char *name;
    kn_tensor *importance_scores; /* NULL: the tensor itself */
} kn_prune_target;
typedef enum kn_prune_method { KN_PRUNE_L1_UNSTRUCTURED, KN_PRUNE_RANDOM_UNSTRUCTURED } kn_prune_method;
KN_API kn_status kn_prune_global_unstructured_with(const kn_prune_target *targets, int count, kn_prune_method method,
                                                   kn_scalar amount, const kn_prune_params *params);
/* `params`: only its generator. */
#define kn_prune_global_unstructured(targets, count, method, amount, ...)                                              \
    KN_CALL(kn_prune_global_unstructured_with(targets, count, method, KN_NUMBER(amount),                               \
                                              &(kn_prune_params){KN_PRUNE_DEFAULTS, __VA_ARGS__}))

/* Makes pruning permanent: "weight" is registered again, behind the others: the same tensor with the product's values.
 * An error if it is not pruned. */
KN_API kn_status kn_prune_remove(kn_module *module, const char *name);
/* Is a tensor of the module, or of one in it, pruned? */
KN_API bool kn_prune_is_pruned(const kn_module *module);

KN_END_DECLS

#endif
