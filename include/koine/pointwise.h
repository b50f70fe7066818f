/* koine/pointwise.h - elementwise operators: arithmetic, functions, comparisons, activations, dropout. Tensor
 * expressions (koine/tensor.h). */
#ifndef KOINE_POINTWISE_H
#define KOINE_POINTWISE_H

#include <koine/common.h>
#include <koine/tensor.h>
#include <math.h>

KN_BEGIN_DECLS

/* --- arithmetic ------------------------------------------------------------------------------- *
 * Shapes broadcast as in NumPy; the result has the dtype of kn_promote_types, except that a 0-dimensional tensor does
 * not widen a tensor with dimensions of the same kind (bool < integer < floating). Operands are converted to the
 * result's dtype first, so float16 rounds integers above 2048 and bfloat16 those above 256; a 0-dimensional factor or
 * divisor b is not rounded. int8, int16 and uint8 wrap around. */

KN_API kn_tensor *kn_add(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_sub(kn_tensor *a, kn_tensor *b); /* not for bool */
KN_API kn_tensor *kn_mul(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_div(kn_tensor *a, kn_tensor *b); /* integers give float32 */
KN_API kn_tensor *kn_pow(kn_tensor *a, kn_tensor *b);
/* NaN propagates; equal elements get half the gradient each */
KN_API kn_tensor *kn_maximum(kn_tensor *a, kn_tensor *b);

/* With a number for b: kn_add_scalar(x, 2). As in PyTorch an integer keeps integer dtypes, exactly for int64, a real
 * number (2.0) turns them into float32, and neither widens a floating dtype. The _with functions take a kn_scalar
 * (koine/dtype.h). */
KN_API kn_tensor *kn_add_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_mul_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_pow_scalar_with(kn_tensor *a, kn_scalar b);
#define kn_add_scalar(a, b) kn_add_scalar_with(a, KN_NUMBER(b))
#define kn_mul_scalar(a, b) kn_mul_scalar_with(a, KN_NUMBER(b))
#define kn_pow_scalar(a, b) kn_pow_scalar_with(a, KN_NUMBER(b))

/* In place: b broadcasts to a's shape; computed in the promoted dtype, then converted to a's. */
KN_API kn_tensor *kn_add_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_sub_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_mul_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_mul_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_fill_with_(kn_tensor *a, kn_scalar value);
#define kn_mul_scalar_(a, b) kn_mul_scalar_with_(a, KN_NUMBER(b))
#define kn_fill_(a, value) kn_fill_with_(a, KN_NUMBER(value))
KN_API kn_tensor *kn_zero_(kn_tensor *a);

/* Functions of real numbers compute integers and bools in float32. */
KN_API kn_tensor *kn_neg(kn_tensor *x);
KN_API kn_tensor *kn_abs(kn_tensor *x);  /* gradient 0 at 0 */
KN_API kn_tensor *kn_sign(kn_tensor *x); /* NaN: 0; gradient 0 */
KN_API kn_tensor *kn_square(kn_tensor *x);
KN_API kn_tensor *kn_reciprocal(kn_tensor *x);
KN_API kn_tensor *kn_sqrt(kn_tensor *x);
KN_API kn_tensor *kn_rsqrt(kn_tensor *x);
KN_API kn_tensor *kn_exp(kn_tensor *x);
KN_API kn_tensor *kn_exp2(kn_tensor *x);
KN_API kn_tensor *kn_expm1(kn_tensor *x);
KN_API kn_tensor *kn_log(kn_tensor *x);
KN_API kn_tensor *kn_log2(kn_tensor *x);
KN_API kn_tensor *kn_log10(kn_tensor *x);
KN_API kn_tensor *kn_log1p(kn_tensor *x);
KN_API kn_tensor *kn_sin(kn_tensor *x);
KN_API kn_tensor *kn_cos(kn_tensor *x);
KN_API kn_tensor *kn_tan(kn_tensor *x);
KN_API kn_tensor *kn_asin(kn_tensor *x);
KN_API kn_tensor *kn_acos(kn_tensor *x);
KN_API kn_tensor *kn_atan(kn_tensor *x);
KN_API kn_tensor *kn_sinh(kn_tensor *x);
KN_API kn_tensor *kn_cosh(kn_tensor *x);
KN_API kn_tensor *kn_tanh(kn_tensor *x);
KN_API kn_tensor *kn_asinh(kn_tensor *x);
KN_API kn_tensor *kn_acosh(kn_tensor *x);
KN_API kn_tensor *kn_atanh(kn_tensor *x);
KN_API kn_tensor *kn_erf(kn_tensor *x);
KN_API kn_tensor *kn_erfc(kn_tensor *x);
KN_API kn_tensor *kn_relu(kn_tensor *x); /* NaN propagates; gradient 0 at 0 */
KN_API kn_tensor *kn_sigmoid(kn_tensor *x);
KN_API kn_tensor *kn_logsigmoid(kn_tensor *x);  /* log(sigmoid(x)) */
KN_API kn_tensor *kn_silu(kn_tensor *x);        /* x sigmoid(x) */
KN_API kn_tensor *kn_softsign(kn_tensor *x);    /* x / (1 + |x|) */
KN_API kn_tensor *kn_tanhshrink(kn_tensor *x);  /* x - tanh(x) */
KN_API kn_tensor *kn_hardsigmoid(kn_tensor *x); /* min(max(x / 6 + 1/2, 0), 1) */
KN_API kn_tensor *kn_hardswish(kn_tensor *x);   /* x hardsigmoid(x) */

/* min(max(x, min), max): kn_clamp(x, .min = 0). With min > max every element is max. A bound that is not an integer
 * turns integer dtypes into float32; a NaN bound is KN_ERR_ARGUMENT. NaN elements stay NaN. The gradient is 1 where min
 * <= x <= max, else 0. */
typedef struct kn_clamp_params {
    double min; /* default -infinity */
    double max; /* default infinity */
} kn_clamp_params;
#define KN_CLAMP_DEFAULTS .min = -(double)INFINITY, .max = (double)INFINITY
KN_API kn_clamp_params kn_clamp_params_init(void);
KN_API kn_tensor *kn_clamp_with(kn_tensor *x, const kn_clamp_params *params);
#define kn_clamp(x, ...) KN_CALL(kn_clamp_with(x, &(kn_clamp_params){KN_CLAMP_DEFAULTS, __VA_ARGS__}))

/* Comparisons: bool results, not differentiable. */
KN_API kn_tensor *kn_eq(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ne(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_lt(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_le(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_gt(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ge(kn_tensor *a, kn_tensor *b);

/* a where `condition` (bool) is true, else b; all three broadcast. */
KN_API kn_tensor *kn_where(kn_tensor *condition, kn_tensor *a, kn_tensor *b);

/* --- activations and dropout -------------------------------------------------------------------- */

/* An activation that another operator applies to its result before storing it, which saves a pass over memory. Results
 * and gradients are those of kn_relu or kn_relu6 applied afterwards. Modules do this themselves where an activation
 * follows (kn_forward_activated in koine/module.h). */
typedef enum kn_activation { KN_ACTIVATION_NONE, KN_ACTIVATION_RELU, KN_ACTIVATION_RELU6 } kn_activation;

/* min_val where x < min_val, max_val where x > max_val, else x (also NaN); min_val <= max_val. Unlike kn_clamp's, the
 * gradient is 0 at the bounds. Not for bool. kn_relu6: hardtanh between 0 and 6. */
KN_API kn_tensor *kn_hardtanh(kn_tensor *x, double min_val, double max_val);
KN_API kn_tensor *kn_relu6(kn_tensor *x);

/* activation(a + b) in one pass, as at the end of a residual block. Floating dtypes. */
KN_API kn_tensor *kn_add_activated(kn_tensor *a, kn_tensor *b, kn_activation activation);

/* Sets each element (dropout2d: each channel of each image) to 0 with probability p, 0 <= p <= 1, and scales the others
 * by 1 / (1 - p). The identity unless `training`. Advances the generator. */
typedef struct kn_dropout_params {
    double p;                /* default 0.5 */
    bool training;           /* default true */
    kn_generator *generator; /* default NULL: that of the device */
} kn_dropout_params;
#define KN_DROPOUT_DEFAULTS .p = 0.5, .training = true
KN_API kn_dropout_params kn_dropout_params_init(void);
KN_API kn_tensor *kn_dropout_with(kn_tensor *x, const kn_dropout_params *params);
KN_API kn_tensor *kn_dropout2d_with(kn_tensor *x, const kn_dropout_params *params);
#define kn_dropout(x, ...) KN_CALL(kn_dropout_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_dropout2d(x, ...) KN_CALL(kn_dropout2d_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
