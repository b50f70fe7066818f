/* koine/nn/dropout.h - dropout. Constructors as in koine/module.h. */
#ifndef KOINE_NN_DROPOUT_H
#define KOINE_NN_DROPOUT_H

#include <koine/common.h>
#include <koine/dropout.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef struct kn_nn_dropout_params {
    double p; /* default 0.5 */
    /* of the masks; default NULL: that of x's device. Borrowed: it must live as long as the module and its copies. */
    kn_generator *generator;
} kn_nn_dropout_params;
#define KN_NN_DROPOUT_DEFAULTS .p = 0.5
KN_API kn_nn_dropout_params kn_nn_dropout_params_init(void);
KN_API kn_module *kn_nn_dropout_with(const kn_nn_dropout_params *params);
KN_API kn_module *kn_nn_dropout1d_with(const kn_nn_dropout_params *params);
KN_API kn_module *kn_nn_dropout2d_with(const kn_nn_dropout_params *params);
KN_API kn_module *kn_nn_dropout3d_with(const kn_nn_dropout_params *params);
KN_API kn_module *kn_nn_alpha_dropout_with(const kn_nn_dropout_params *params);
KN_API kn_module *kn_nn_feature_alpha_dropout_with(const kn_nn_dropout_params *params);
#define kn_nn_dropout(...) KN_CALL(kn_nn_dropout_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_nn_dropout1d(...) KN_CALL(kn_nn_dropout1d_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_nn_dropout2d(...) KN_CALL(kn_nn_dropout2d_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_nn_dropout3d(...) KN_CALL(kn_nn_dropout3d_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_nn_alpha_dropout(...)                                                                                       \
    KN_CALL(kn_nn_alpha_dropout_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_nn_feature_alpha_dropout(...)                                                                               \
    KN_CALL(kn_nn_feature_alpha_dropout_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))

/* torchvision.ops.StochasticDepth (koine/dropout.h). */
KN_API kn_module *kn_nn_stochastic_depth(double p, kn_stochastic_depth_mode mode);

KN_END_DECLS

#endif
