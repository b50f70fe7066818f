/* koine/pointwise.h - arithmetic and elementary functions of each element, and the headers of the other elementwise
 * operators. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_POINTWISE_H
#define KOINE_POINTWISE_H

#include <koine/activation.h>
#include <koine/common.h>
#include <koine/dropout.h>
#include <koine/logic.h>
#include <koine/special.h>
#include <koine/tensor.h>
#include <math.h>

KN_BEGIN_DECLS

/* --- arithmetic ------------------------------------------------------------------------------- *
 * Shapes broadcast as in NumPy; the result has the dtype of kn_promote_types, except that a 0-dimensional tensor does
 * not widen a tensor with dimensions of the same kind (bool < integer < floating). Operands are converted to the
 * result's dtype first, so float16 rounds integers above 2048 and bfloat16 those above 256; a 0-dimensional factor or
 * divisor b is not rounded. int8, int16 and uint8 wrap around.
 *
 * As in PyTorch, the results of all elementwise operators, and of kn_to_dtype, are dense and have their dimensions in
 * the order in memory of the operands, the first one's where they differ: kn_exp of a transposed matrix is a transposed
 * matrix. kn_contiguous gives row-major ones. */

KN_API kn_tensor *kn_add(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_sub(kn_tensor *a, kn_tensor *b); /* not for bool */
KN_API kn_tensor *kn_mul(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_div(kn_tensor *a, kn_tensor *b); /* integers give float32 */
KN_API kn_tensor *kn_pow(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_float_power(kn_tensor *a, kn_tensor *b); /* pow in float64 */
/* NaN propagates; equal elements get half the gradient each */
KN_API kn_tensor *kn_maximum(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_minimum(kn_tensor *a, kn_tensor *b);
/* likewise, but where only one operand is NaN, the other one */
KN_API kn_tensor *kn_fmax(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_fmin(kn_tensor *a, kn_tensor *b);

/* Quotients rounded to integers, in the joint dtype, and remainders: kn_floor_divide and kn_remainder round down, as
 * Python's // and %, so that a remainder has the sign of b; kn_fmod's has that of a. The joint dtype must not be
 * bool. Of integers, a quotient by 0 and its remainder are 0 (PyTorch fails on CPUs). */
KN_API kn_tensor *kn_floor_divide(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_remainder(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_fmod(kn_tensor *a, kn_tensor *b);

/* a / b rounded: not (as kn_div), towards 0, or down. torch.div(a, b, rounding_mode='floor'). */
typedef enum kn_rounding { KN_ROUNDING_NONE, KN_ROUNDING_TRUNC, KN_ROUNDING_FLOOR } kn_rounding;
KN_API kn_tensor *kn_div_mode(kn_tensor *a, kn_tensor *b, kn_rounding rounding_mode);

/* Integers are computed in float32 by kn_copysign, kn_atan2 and kn_ldexp; the others take floating dtypes. */
KN_API kn_tensor *kn_copysign(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_hypot(kn_tensor *a, kn_tensor *b);      /* sqrt(a^2 + b^2), without overflow */
KN_API kn_tensor *kn_atan2(kn_tensor *a, kn_tensor *b);      /* the angle of the point (b, a) */
KN_API kn_tensor *kn_ldexp(kn_tensor *a, kn_tensor *b);      /* a 2^b */
KN_API kn_tensor *kn_logaddexp(kn_tensor *a, kn_tensor *b);  /* log(exp(a) + exp(b)) */
KN_API kn_tensor *kn_logaddexp2(kn_tensor *a, kn_tensor *b); /* log2(2^a + 2^b) */

/* Not differentiable. */
KN_API kn_tensor *kn_nextafter(kn_tensor *a, kn_tensor *b); /* the number next to a towards b; float32, float64 */
KN_API kn_tensor *kn_heaviside(kn_tensor *a, kn_tensor *b); /* 0 where a < 0, b where a is 0, else 1; of one dtype */

/* a + weight (b - a). Floating. */
KN_API kn_tensor *kn_lerp(kn_tensor *a, kn_tensor *b, kn_tensor *weight);
KN_API kn_tensor *kn_lerp_scalar(kn_tensor *a, kn_tensor *b, double weight);

/* a + value b c, not for bool; a + value b / c, floating: kn_addcmul(a, b, c, .value = 0.5). */
typedef struct kn_addcmul_params {
    double value; /* default 1 */
} kn_addcmul_params;
#define KN_ADDCMUL_DEFAULTS .value = 1
KN_API kn_addcmul_params kn_addcmul_params_init(void);
KN_API kn_tensor *kn_addcmul_with(kn_tensor *a, kn_tensor *b, kn_tensor *c, const kn_addcmul_params *params);
KN_API kn_tensor *kn_addcdiv_with(kn_tensor *a, kn_tensor *b, kn_tensor *c, const kn_addcmul_params *params);
#define kn_addcmul(a, b, c, ...)                                                                                       \
    KN_CALL(kn_addcmul_with(a, b, c, &(kn_addcmul_params){KN_ADDCMUL_DEFAULTS, __VA_ARGS__}))
#define kn_addcdiv(a, b, c, ...)                                                                                       \
    KN_CALL(kn_addcdiv_with(a, b, c, &(kn_addcmul_params){KN_ADDCMUL_DEFAULTS, __VA_ARGS__}))

/* With a number for b: kn_add_scalar(x, 2). As in PyTorch an integer keeps integer dtypes, exactly for int64, a real
 * number (2.0) turns them into float32, and neither widens a floating dtype. The _with functions take a kn_scalar
 * (koine/dtype.h). */
KN_API kn_tensor *kn_add_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_sub_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_mul_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_div_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_pow_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_floor_divide_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_remainder_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_fmod_scalar_with(kn_tensor *a, kn_scalar b);
#define kn_add_scalar(a, b) kn_add_scalar_with(a, KN_NUMBER(b))
#define kn_sub_scalar(a, b) kn_sub_scalar_with(a, KN_NUMBER(b))
#define kn_mul_scalar(a, b) kn_mul_scalar_with(a, KN_NUMBER(b))
#define kn_div_scalar(a, b) kn_div_scalar_with(a, KN_NUMBER(b))
#define kn_pow_scalar(a, b) kn_pow_scalar_with(a, KN_NUMBER(b))
#define kn_floor_divide_scalar(a, b) kn_floor_divide_scalar_with(a, KN_NUMBER(b))
#define kn_remainder_scalar(a, b) kn_remainder_scalar_with(a, KN_NUMBER(b))
#define kn_fmod_scalar(a, b) kn_fmod_scalar_with(a, KN_NUMBER(b))

/* With the number first: b - a, b / a, b^a. */
KN_API kn_tensor *kn_rsub_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_rdiv_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_rpow_scalar_with(kn_tensor *a, kn_scalar b);
#define kn_rsub_scalar(a, b) kn_rsub_scalar_with(a, KN_NUMBER(b))
#define kn_rdiv_scalar(a, b) kn_rdiv_scalar_with(a, KN_NUMBER(b))
#define kn_rpow_scalar(a, b) kn_rpow_scalar_with(a, KN_NUMBER(b))

/* Sets every element of a, which may be any view. The other changes in place are in koine/in_place.h. */
KN_API kn_tensor *kn_fill_with_(kn_tensor *a, kn_scalar value);
#define kn_fill_(a, value) kn_fill_with_(a, KN_NUMBER(value))
KN_API kn_tensor *kn_zero_(kn_tensor *a);

/* The diagonal of a matrix, or that of a tensor of more dimensions of equal size; with `wrap` a new one begins below
 * the end of each in a matrix of more rows than columns. In place. */
KN_API kn_tensor *kn_fill_diagonal_with_(kn_tensor *x, kn_scalar value, bool wrap);
#define kn_fill_diagonal_(x, value, wrap) kn_fill_diagonal_with_(x, KN_NUMBER(value), wrap)

/* --- functions of one tensor -------------------------------------------------------------------------------------- */

/* Functions of real numbers compute integers and bools in float32. */
KN_API kn_tensor *kn_neg(kn_tensor *x);
KN_API kn_tensor *kn_abs(kn_tensor *x);  /* gradient 0 at 0 */
KN_API kn_tensor *kn_sign(kn_tensor *x); /* NaN: 0; gradient 0 */
KN_API kn_tensor *kn_square(kn_tensor *x);
KN_API kn_tensor *kn_reciprocal(kn_tensor *x);
KN_API kn_tensor *kn_sqrt(kn_tensor *x);
/* x = fraction 2^exponent, with a fraction from 0.5 to 1 and an exponent of int32; NULL: unwanted. Floating dtypes. */
KN_API kn_tensor *kn_frexp(kn_tensor *x, kn_tensor **exponent);
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
KN_API kn_tensor *kn_sgn(kn_tensor *x);      /* kn_sign */
KN_API kn_tensor *kn_angle(kn_tensor *x);    /* pi of negative numbers, 0 of others, NaN of NaN; integers as float32 */
KN_API kn_tensor *kn_positive(kn_tensor *x); /* x itself; not for bool */

/* Rounding; integers stay as they are, and the gradient is 0. Not for bool. */
KN_API kn_tensor *kn_ceil(kn_tensor *x);
KN_API kn_tensor *kn_floor(kn_tensor *x);
KN_API kn_tensor *kn_trunc(kn_tensor *x);
KN_API kn_tensor *kn_frac(kn_tensor *x); /* x - trunc(x); floating */

/* To the nearest integer or, with decimals, multiple of 10^-decimals; halfway cases to the even one. */
typedef struct kn_round_params {
    int decimals; /* default 0; may be negative; 0 for integers */
} kn_round_params;
#define KN_ROUND_DEFAULTS .decimals = 0
KN_API kn_round_params kn_round_params_init(void);
KN_API kn_tensor *kn_round_with(kn_tensor *x, const kn_round_params *params);
#define kn_round(x, ...) KN_CALL(kn_round_with(x, &(kn_round_params){KN_ROUND_DEFAULTS, __VA_ARGS__}))

/* Replaces what is not finite. */
typedef struct kn_nan_to_num_params {
    double nan;    /* for NaN: default 0 */
    double posinf; /* for infinity: default infinity, the dtype's largest number */
    double neginf; /* for -infinity: default -infinity, the dtype's lowest number */
} kn_nan_to_num_params;
#define KN_NAN_TO_NUM_DEFAULTS .posinf = (double)INFINITY, .neginf = -(double)INFINITY
KN_API kn_nan_to_num_params kn_nan_to_num_params_init(void);
KN_API kn_tensor *kn_nan_to_num_with(kn_tensor *x, const kn_nan_to_num_params *params);
#define kn_nan_to_num(x, ...)                                                                                          \
    KN_CALL(kn_nan_to_num_with(x, &(kn_nan_to_num_params){KN_NAN_TO_NUM_DEFAULTS, __VA_ARGS__}))

/* min(max(x, min), max): kn_clamp(x, .min = 0). With min > max every element is max. A bound that is not an integer
 * turns integer dtypes into float32; a NaN bound is KN_ERR_ARGUMENT. NaN elements stay NaN. The gradient is 1 where min
 * < x < max, else 0, at the bounds too. */
typedef struct kn_clamp_params {
    double min; /* default -infinity */
    double max; /* default infinity */
} kn_clamp_params;
#define KN_CLAMP_DEFAULTS .min = -(double)INFINITY, .max = (double)INFINITY
KN_API kn_clamp_params kn_clamp_params_init(void);
KN_API kn_tensor *kn_clamp_with(kn_tensor *x, const kn_clamp_params *params);
#define kn_clamp(x, ...) KN_CALL(kn_clamp_with(x, &(kn_clamp_params){KN_CLAMP_DEFAULTS, __VA_ARGS__}))
#define kn_clip kn_clamp

KN_END_DECLS

#endif
