/* koine/activation.h - activation functions. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_ACTIVATION_H
#define KOINE_ACTIVATION_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* kn_relu, kn_hardtanh, kn_relu6 and kn_threshold take integers; kn_sigmoid to kn_hardswish compute integers and bools
 * in float32; all others take floating dtypes only. NaN stays NaN. */

KN_API kn_tensor *kn_relu(kn_tensor *x); /* NaN propagates; gradient 0 at 0 */
KN_API kn_tensor *kn_sigmoid(kn_tensor *x);
KN_API kn_tensor *kn_logsigmoid(kn_tensor *x);  /* log(sigmoid(x)) */
KN_API kn_tensor *kn_silu(kn_tensor *x);        /* x sigmoid(x) */
KN_API kn_tensor *kn_softsign(kn_tensor *x);    /* x / (1 + |x|) */
KN_API kn_tensor *kn_tanhshrink(kn_tensor *x);  /* x - tanh(x) */
KN_API kn_tensor *kn_hardsigmoid(kn_tensor *x); /* min(max(x / 6 + 1/2, 0), 1) */
KN_API kn_tensor *kn_hardswish(kn_tensor *x);   /* x hardsigmoid(x) */
KN_API kn_tensor *kn_mish(kn_tensor *x);        /* x tanh(log(1 + exp(x))) */
/* x where x > 0, else alpha (exp(x) - 1), all times scale; alpha and scale as in Klambauer et al., 2017 */
KN_API kn_tensor *kn_selu(kn_tensor *x);

/* An activation that another operator applies to its result before storing it, which saves a pass over memory. Results
 * and gradients are those of kn_relu or kn_relu6 applied afterwards. Modules do this themselves where an activation
 * follows (kn_forward_activated in koine/module.h). */
typedef enum kn_activation { KN_ACTIVATION_NONE, KN_ACTIVATION_RELU, KN_ACTIVATION_RELU6 } kn_activation;

/* min_val where x < min_val, max_val where x > max_val, else x (also NaN); min_val <= max_val. The gradient is
 * 0 at the bounds. Not for bool. kn_relu6: hardtanh between 0 and 6. */
KN_API kn_tensor *kn_hardtanh(kn_tensor *x, double min_val, double max_val);
KN_API kn_tensor *kn_relu6(kn_tensor *x);

/* activation(a + b) in one pass, as at the end of a residual block. Floating dtypes. */
KN_API kn_tensor *kn_add_activated(kn_tensor *a, kn_tensor *b, kn_activation activation);

/* value where x <= threshold, else x, also NaN. Not for bool; a number that is not integral turns integers into
 * float32. */
KN_API kn_tensor *kn_threshold(kn_tensor *x, double threshold, double value);

/* --- with parameters: kn_elu(x, .alpha = 2) ----------------------------------------------------------------------- */

/* x where x > 0, else alpha (exp(x) - 1). */
typedef struct kn_elu_params {
    double alpha; /* default 1 */
} kn_elu_params;
#define KN_ELU_DEFAULTS .alpha = 1
KN_API kn_elu_params kn_elu_params_init(void);
KN_API kn_tensor *kn_elu_with(kn_tensor *x, const kn_elu_params *params);
#define kn_elu(x, ...) KN_CALL(kn_elu_with(x, &(kn_elu_params){KN_ELU_DEFAULTS, __VA_ARGS__}))

/* x where x > 0, else alpha (exp(x / alpha) - 1). */
typedef struct kn_celu_params {
    double alpha; /* default 1; not 0 */
} kn_celu_params;
#define KN_CELU_DEFAULTS .alpha = 1
KN_API kn_celu_params kn_celu_params_init(void);
KN_API kn_tensor *kn_celu_with(kn_tensor *x, const kn_celu_params *params);
#define kn_celu(x, ...) KN_CALL(kn_celu_with(x, &(kn_celu_params){KN_CELU_DEFAULTS, __VA_ARGS__}))

/* x where x > 0, else negative_slope x. */
typedef struct kn_leaky_relu_params {
    double negative_slope; /* default 0.01 */
} kn_leaky_relu_params;
#define KN_LEAKY_RELU_DEFAULTS .negative_slope = 0.01
KN_API kn_leaky_relu_params kn_leaky_relu_params_init(void);
KN_API kn_tensor *kn_leaky_relu_with(kn_tensor *x, const kn_leaky_relu_params *params);
#define kn_leaky_relu(x, ...)                                                                                          \
    KN_CALL(kn_leaky_relu_with(x, &(kn_leaky_relu_params){KN_LEAKY_RELU_DEFAULTS, __VA_ARGS__}))

/* log(1 + exp(beta x)) / beta; x itself where beta x > threshold. */
typedef struct kn_softplus_params {
    double beta;      /* default 1 */
    double threshold; /* default 20 */
} kn_softplus_params;
#define KN_SOFTPLUS_DEFAULTS .beta = 1, .threshold = 20
KN_API kn_softplus_params kn_softplus_params_init(void);
KN_API kn_tensor *kn_softplus_with(kn_tensor *x, const kn_softplus_params *params);
#define kn_softplus(x, ...) KN_CALL(kn_softplus_with(x, &(kn_softplus_params){KN_SOFTPLUS_DEFAULTS, __VA_ARGS__}))

/* 0 where -lambd <= x <= lambd, else x. */
typedef struct kn_hardshrink_params {
    double lambd; /* default 0.5 */
} kn_hardshrink_params;
#define KN_HARDSHRINK_DEFAULTS .lambd = 0.5
KN_API kn_hardshrink_params kn_hardshrink_params_init(void);
KN_API kn_tensor *kn_hardshrink_with(kn_tensor *x, const kn_hardshrink_params *params);
#define kn_hardshrink(x, ...)                                                                                          \
    KN_CALL(kn_hardshrink_with(x, &(kn_hardshrink_params){KN_HARDSHRINK_DEFAULTS, __VA_ARGS__}))

/* 0 where -lambd <= x <= lambd, else x, nearer to 0 by lambd. */
typedef struct kn_softshrink_params {
    double lambd; /* default 0.5; at least 0 */
} kn_softshrink_params;
#define KN_SOFTSHRINK_DEFAULTS .lambd = 0.5
KN_API kn_softshrink_params kn_softshrink_params_init(void);
KN_API kn_tensor *kn_softshrink_with(kn_tensor *x, const kn_softshrink_params *params);
#define kn_softshrink(x, ...)                                                                                          \
    KN_CALL(kn_softshrink_with(x, &(kn_softshrink_params){KN_SOFTSHRINK_DEFAULTS, __VA_ARGS__}))

/* x P(X <= x) of a normally distributed X: x (1 + erf(x / sqrt(2))) / 2, or approximately
 * x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. */
typedef enum kn_gelu_approximation { KN_GELU_NONE, KN_GELU_TANH } kn_gelu_approximation;
typedef struct kn_gelu_params {
    kn_gelu_approximation approximate; /* default KN_GELU_NONE */
} kn_gelu_params;
#define KN_GELU_DEFAULTS .approximate = KN_GELU_NONE
KN_API kn_gelu_params kn_gelu_params_init(void);
KN_API kn_tensor *kn_gelu_with(kn_tensor *x, const kn_gelu_params *params);
#define kn_gelu(x, ...) KN_CALL(kn_gelu_with(x, &(kn_gelu_params){KN_GELU_DEFAULTS, __VA_ARGS__}))

/* x where x > 0, else slope x: in training the slope of each element is drawn uniformly between lower and upper, which
 * advances the generator; otherwise it is their mean. */
typedef struct kn_rrelu_params {
    double lower;            /* default 1/8 */
    double upper;            /* default 1/3; not less than lower */
    bool training;           /* default false */
    kn_generator *generator; /* default NULL: that of the device */
} kn_rrelu_params;
#define KN_RRELU_DEFAULTS .lower = 1.0 / 8, .upper = 1.0 / 3
KN_API kn_rrelu_params kn_rrelu_params_init(void);
KN_API kn_tensor *kn_rrelu_with(kn_tensor *x, const kn_rrelu_params *params);
#define kn_rrelu(x, ...) KN_CALL(kn_rrelu_with(x, &(kn_rrelu_params){KN_RRELU_DEFAULTS, __VA_ARGS__}))

/* --- of other tensors, and along a dimension ---------------------------------------------------------------------- */

/* x where x > 0, else weight x: `weight` has one element, or one for each channel (dimension 1 of x). Both have
 * gradients. Floating. */
KN_API kn_tensor *kn_prelu(kn_tensor *x, kn_tensor *weight);

/* a sigmoid(b) of the halves a and b of x along `dim`, whose size must be even; negative: from the end. */
KN_API kn_tensor *kn_glu(kn_tensor *x, int dim);

KN_END_DECLS

#endif
