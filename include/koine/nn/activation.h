/* koine/nn/activation.h - activations and softmax. Constructors as in koine/module.h. */
#ifndef KOINE_NN_ACTIVATION_H
#define KOINE_NN_ACTIVATION_H

#include <koine/activation.h>
#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_relu(void);
KN_API kn_module *kn_nn_relu6(void);
KN_API kn_module *kn_nn_sigmoid(void);
KN_API kn_module *kn_nn_log_sigmoid(void);
KN_API kn_module *kn_nn_tanh(void);
KN_API kn_module *kn_nn_tanhshrink(void);
KN_API kn_module *kn_nn_silu(void);
KN_API kn_module *kn_nn_mish(void);
KN_API kn_module *kn_nn_selu(void);
KN_API kn_module *kn_nn_softsign(void);
KN_API kn_module *kn_nn_hardsigmoid(void);
KN_API kn_module *kn_nn_hardswish(void);

/* With the parameters of the functions: kn_nn_elu(.alpha = 2), and those of koine/activation.h. */
KN_API kn_module *kn_nn_hardtanh(double min_val, double max_val); /* PyTorch's defaults are -1, 1 */
KN_API kn_module *kn_nn_threshold(double threshold, double value);
KN_API kn_module *kn_nn_elu_with(const kn_elu_params *params);
KN_API kn_module *kn_nn_celu_with(const kn_celu_params *params);
KN_API kn_module *kn_nn_leaky_relu_with(const kn_leaky_relu_params *params);
KN_API kn_module *kn_nn_softplus_with(const kn_softplus_params *params);
KN_API kn_module *kn_nn_hardshrink_with(const kn_hardshrink_params *params);
KN_API kn_module *kn_nn_softshrink_with(const kn_softshrink_params *params);
KN_API kn_module *kn_nn_gelu_with(const kn_gelu_params *params);
KN_API kn_module *kn_nn_rrelu_with(const kn_rrelu_params *params);
#define kn_nn_elu(...) KN_CALL(kn_nn_elu_with(&(kn_elu_params){KN_ELU_DEFAULTS, __VA_ARGS__}))
#define kn_nn_celu(...) KN_CALL(kn_nn_celu_with(&(kn_celu_params){KN_CELU_DEFAULTS, __VA_ARGS__}))
#define kn_nn_leaky_relu(...)                                                                                          \
    KN_CALL(kn_nn_leaky_relu_with(&(kn_leaky_relu_params){KN_LEAKY_RELU_DEFAULTS, __VA_ARGS__}))
#define kn_nn_softplus(...) KN_CALL(kn_nn_softplus_with(&(kn_softplus_params){KN_SOFTPLUS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_hardshrink(...)                                                                                          \
    KN_CALL(kn_nn_hardshrink_with(&(kn_hardshrink_params){KN_HARDSHRINK_DEFAULTS, __VA_ARGS__}))
#define kn_nn_softshrink(...)                                                                                          \
    KN_CALL(kn_nn_softshrink_with(&(kn_softshrink_params){KN_SOFTSHRINK_DEFAULTS, __VA_ARGS__}))
#define kn_nn_gelu(...) KN_CALL(kn_nn_gelu_with(&(kn_gelu_params){KN_GELU_DEFAULTS, __VA_ARGS__}))
#define kn_nn_rrelu(...) KN_CALL(kn_nn_rrelu_with(&(kn_rrelu_params){KN_RRELU_DEFAULTS, __VA_ARGS__}))
/* kn_nn_rrelu draws slopes in training mode; `training` of its parameters has no effect, and `generator` is borrowed: it
 * must live as long as the module and its copies. */

/* The slope below 0 is a parameter: weight, of one element or of one for each channel. */
typedef struct kn_nn_prelu_params {
    int64_t num_parameters; /* default 1 */
    double init;            /* the initial slope: default 0.25 */
} kn_nn_prelu_params;
#define KN_NN_PRELU_DEFAULTS .num_parameters = 1, .init = 0.25
KN_API kn_nn_prelu_params kn_nn_prelu_params_init(void);
KN_API kn_module *kn_nn_prelu_with(const kn_nn_prelu_params *params);
#define kn_nn_prelu(...) KN_CALL(kn_nn_prelu_with(&(kn_nn_prelu_params){KN_NN_PRELU_DEFAULTS, __VA_ARGS__}))

/* Along a dimension; negative: from the end. */
KN_API kn_module *kn_nn_glu(int dim); /* PyTorch's default is -1 */
KN_API kn_module *kn_nn_softmax(int dim);
KN_API kn_module *kn_nn_softmin(int dim);
KN_API kn_module *kn_nn_log_softmax(int dim);
KN_API kn_module *kn_nn_softmax2d(void); /* over the channels of [N, C, H, W] or [C, H, W] */

KN_END_DECLS

#endif
