/* koine/averaged_model.h - averages of parameters over steps: torch.optim.swa_utils.AveragedModel, as an exponential
 * moving average (EMA) or an equal one (stochastic weight averaging, SWA).
 *
 *     kn_averaged_model *ema = kn_averaged_model_new(kn_module_parameters(net), .decay = 0.999);
 *     ...
 *     kn_optim_step(optim);
 *     kn_averaged_model_update(ema);
 *     ...
 *     kn_averaged_model_swap(ema);    // the module now has the averages, the average the module's weights
 *     evaluate(net);
 *     kn_averaged_model_swap(ema);
 *
 * The averages are tensors of the parameters' shapes, dtypes and devices; buffers may be averaged likewise. After SWA
 * the statistics of batch normalisation are to be computed anew, with kn_update_bn. */
#ifndef KOINE_AVERAGED_MODEL_H
#define KOINE_AVERAGED_MODEL_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef struct kn_averaged_model kn_averaged_model;

typedef struct kn_averaged_model_params {
    double decay; /* default 0: the equal average; else a = decay a + (1 - decay) p, get_ema_multi_avg_fn(decay) */
} kn_averaged_model_params;
#define KN_AVERAGED_MODEL_DEFAULTS .decay = 0
KN_API kn_averaged_model_params kn_averaged_model_params_init(void);

/* Of floating parameters, to which it keeps references. NULL with a sticky error. */
KN_API kn_averaged_model *kn_averaged_model_new_with(kn_parameter_list parameters,
                                                     const kn_averaged_model_params *params);
#define kn_averaged_model_new(parameters, ...)                                                                         \
    KN_CALL(                                                                                                           \
        kn_averaged_model_new_with(parameters, &(kn_averaged_model_params){KN_AVERAGED_MODEL_DEFAULTS, __VA_ARGS__}))
KN_API void kn_averaged_model_free(kn_averaged_model *model); /* NULL allowed */

/* The first update copies the parameters; does not wait. */
KN_API kn_status kn_averaged_model_update(kn_averaged_model *model);
KN_API int64_t kn_averaged_model_n_averaged(const kn_averaged_model *model);              /* updates so far */
KN_API kn_tensor *kn_averaged_model_parameter(const kn_averaged_model *model, int index); /* borrowed; NULL outside */
/* Exchanges the values of parameters and averages. */
KN_API kn_status kn_averaged_model_swap(kn_averaged_model *model);

/* To and from a file of tensors: "n_averaged", "module.0", "module.1", ... */
KN_API kn_status kn_averaged_model_save(const kn_averaged_model *model, const char *path);
KN_API kn_status kn_averaged_model_load(kn_averaged_model *model, const char *path);

/* Computes the running statistics of the batch normalisation layers in `module` anew, as equal averages over one epoch
 * of the loader's batches (field "input", on the module's device): torch.optim.swa_utils.update_bn. Nothing is
 * recorded; modes and momenta are as before. Without such layers nothing is done. */
KN_API kn_status kn_update_bn(kn_loader *loader, kn_module *module);

KN_END_DECLS

#endif
