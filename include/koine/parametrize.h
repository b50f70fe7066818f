/* koine/parametrize.h - tensors of a module that are computed from others whenever it is applied: torch.nn.utils's
 * parametrize and parametrizations.
 *
 *     kn_parametrizations_weight_norm(linear, "weight");
 *     kn_parametrizations_spectral_norm(conv, "weight", .n_power_iterations = 2);
 *
 * A parametrization is a module that computes the tensor from its original: the module's parameter "weight" becomes
 * "parametrizations.weight.original" (or original0, original1, ... if there are several), and no parameter or buffer is
 * called "weight" any more, in saved files either: these names are PyTorch's. Several parametrizations of one tensor
 * are applied one after the other. A single original is the tensor that was registered before, so optimizers keep it;
 * several are new parameters, made known to optimizers by making them afterwards.
 *
 * kn_module_get(linear, "weight") is the computed tensor. It is computed anew in each forward pass of the module: with
 * a record for the originals' gradients, in replicas from their copies. Other modules with the same tensor use the
 * original. Parametrizations are children of the module's child "parametrizations" and have its mode. A user-defined
 * module, which may store what it likes in its self, must not be applied by several threads at once while it has
 * one. */
#ifndef KOINE_PARAMETRIZE_H
#define KOINE_PARAMETRIZE_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- any parametrization ------------------------------------------------------------------------------------------ */

/* Sets `originals`, as many as the parametrization has inputs, to tensors from which it computes `value`. */
typedef kn_status (*kn_right_inverse)(kn_module *parametrization, kn_tensor *value, kn_tensor **originals);

typedef struct kn_register_parametrization_params {
    /* default NULL: the original is the tensor itself. Required for a parametrization of several inputs. Runs without a
     * record, here and in kn_parametrize_assign. */
    kn_right_inverse right_inverse;
    bool unsafe; /* default false; true: does not check that shape and dtype stay those of the tensor */
} kn_register_parametrization_params;
#define KN_REGISTER_PARAMETRIZATION_DEFAULTS .right_inverse = NULL
KN_API kn_register_parametrization_params kn_register_parametrization_params_init(void);

/* Computes the module's parameter, buffer or already parametrized tensor `name` with `parametrization`, a module of one
 * output; only the first of a tensor may have several inputs, the originals. Takes ownership of it, also on failure,
 * which leaves the module unchanged. */
KN_API kn_status kn_parametrize_register_parametrization_with(kn_module *module, const char *name,
                                                              kn_module *parametrization,
                                                              const kn_register_parametrization_params *params);
#define kn_parametrize_register_parametrization(module, name, parametrization, ...)                                    \
    KN_CALL(kn_parametrize_register_parametrization_with(                                                              \
        module, name, parametrization,                                                                                 \
        &(kn_register_parametrization_params){KN_REGISTER_PARAMETRIZATION_DEFAULTS, __VA_ARGS__}))

/* Does the module have a parametrization of that tensor; NULL: of any? */
KN_API bool kn_parametrize_is_parametrized(const kn_module *module, const char *name);

/* PyTorch's module.weight = value: the originals become what the right inverses give. */
KN_API kn_status kn_parametrize_assign(kn_module *module, const char *name, kn_tensor *value);

/* Removes all parametrizations of a tensor, which is registered again, behind the others. `leave_parametrized`: with
 * its computed value, otherwise with that of its only original. A single original stays the same tensor. */
KN_API kn_status kn_parametrize_remove_parametrizations(kn_module *module, const char *name, bool leave_parametrized);

/* --- norms -------------------------------------------------------------------------------------------------------- */

/* g v / |v|, Salimans and Kingma 2016: original0 is g, the norm of each slice of `dim`, original1 is v. Files with the
 * names of torch.nn.utils.weight_norm, weight_g and weight_v, load too. */
typedef struct kn_weight_norm_params {
    int dim; /* default 0; -1: one norm of the whole tensor (PyTorch's None) */
} kn_weight_norm_params;
#define KN_WEIGHT_NORM_DEFAULTS .dim = 0
KN_API kn_weight_norm_params kn_weight_norm_params_init(void);
KN_API kn_status kn_parametrizations_weight_norm_with(kn_module *module, const char *name,
                                                      const kn_weight_norm_params *params);
#define kn_parametrizations_weight_norm(module, name, ...)                                                             \
    KN_CALL(kn_parametrizations_weight_norm_with(module, name,                                                         \
                                                 &(kn_weight_norm_params){KN_WEIGHT_NORM_DEFAULTS, __VA_ARGS__}))

/* The tensor as a matrix of the rows `dim`, divided by its largest singular value, which power iterations estimate
 * (Miyato et al. 2018): buffers _u and _v, updated by each forward pass in training mode. A vector is divided by its
 * norm. In the second pass of a checkpointed module the estimate is that of the first. Files with the names of
 * torch.nn.utils.spectral_norm, weight_orig, weight_u and weight_v, load too. */
typedef struct kn_spectral_norm_params {
    int n_power_iterations; /* default 1 */
    double eps;             /* default 1e-12: the least norm of u and v */
    int dim;                /* default KN_SPECTRAL_NORM_DIM: 0; 1 in transposed convolutions */
} kn_spectral_norm_params;
#define KN_SPECTRAL_NORM_DIM (-1000)
#define KN_SPECTRAL_NORM_DEFAULTS .n_power_iterations = 1, .eps = 1e-12, .dim = KN_SPECTRAL_NORM_DIM
KN_API kn_spectral_norm_params kn_spectral_norm_params_init(void);
KN_API kn_status kn_parametrizations_spectral_norm_with(kn_module *module, const char *name,
                                                        const kn_spectral_norm_params *params);
#define kn_parametrizations_spectral_norm(module, name, ...)                                                           \
    KN_CALL(kn_parametrizations_spectral_norm_with(                                                                    \
        module, name, &(kn_spectral_norm_params){KN_SPECTRAL_NORM_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
