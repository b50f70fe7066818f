/* koine/in_place.h - operators that change their first tensor: kn_exp_(x) writes exp(x) into x, any view, and returns
 * x, which is not a new reference. Tensor expressions (koine/tensor.h). kn_op_find knows them, too: "exp_".
 *
 * As in PyTorch the result is computed as kn_exp does, then converted to x's dtype, which must be of the same kind or
 * wider (bool < integer < floating), and must have x's shape: other tensors broadcast to it. The change is recorded, of
 * views too, with kn_exp's gradient. A leaf that requires a gradient cannot be changed outside KN_NO_GRAD; nor can, by
 * an operator without a gradient, what depends on one, but comparisons and logic have a gradient of 0. kn_fill_ is in
 * koine/pointwise.h, changes at indices are in koine/index.h. */
#ifndef KOINE_IN_PLACE_H
#define KOINE_IN_PLACE_H

#include <koine/common.h>
#include <koine/index.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- of one tensor ------------------------------------------------------------------------------------------------ */

KN_API kn_tensor *kn_abs_(kn_tensor *x);
KN_API kn_tensor *kn_acos_(kn_tensor *x);
KN_API kn_tensor *kn_acosh_(kn_tensor *x);
KN_API kn_tensor *kn_asin_(kn_tensor *x);
KN_API kn_tensor *kn_asinh_(kn_tensor *x);
KN_API kn_tensor *kn_atan_(kn_tensor *x);
KN_API kn_tensor *kn_atanh_(kn_tensor *x);
KN_API kn_tensor *kn_ceil_(kn_tensor *x);
KN_API kn_tensor *kn_cos_(kn_tensor *x);
KN_API kn_tensor *kn_cosh_(kn_tensor *x);
KN_API kn_tensor *kn_deg2rad_(kn_tensor *x);
KN_API kn_tensor *kn_digamma_(kn_tensor *x);
KN_API kn_tensor *kn_erf_(kn_tensor *x);
KN_API kn_tensor *kn_erfc_(kn_tensor *x);
KN_API kn_tensor *kn_erfinv_(kn_tensor *x);
KN_API kn_tensor *kn_exp2_(kn_tensor *x);
KN_API kn_tensor *kn_exp_(kn_tensor *x);
KN_API kn_tensor *kn_expm1_(kn_tensor *x);
KN_API kn_tensor *kn_floor_(kn_tensor *x);
KN_API kn_tensor *kn_frac_(kn_tensor *x);
KN_API kn_tensor *kn_hardsigmoid_(kn_tensor *x);
KN_API kn_tensor *kn_hardswish_(kn_tensor *x);
KN_API kn_tensor *kn_i0_(kn_tensor *x);
KN_API kn_tensor *kn_lgamma_(kn_tensor *x);
KN_API kn_tensor *kn_log10_(kn_tensor *x);
KN_API kn_tensor *kn_log1p_(kn_tensor *x);
KN_API kn_tensor *kn_log2_(kn_tensor *x);
KN_API kn_tensor *kn_log_(kn_tensor *x);
KN_API kn_tensor *kn_logical_not_(kn_tensor *x);
KN_API kn_tensor *kn_mish_(kn_tensor *x);
KN_API kn_tensor *kn_neg_(kn_tensor *x);
KN_API kn_tensor *kn_rad2deg_(kn_tensor *x);
KN_API kn_tensor *kn_reciprocal_(kn_tensor *x);
KN_API kn_tensor *kn_relu6_(kn_tensor *x);
KN_API kn_tensor *kn_relu_(kn_tensor *x);
KN_API kn_tensor *kn_rsqrt_(kn_tensor *x);
KN_API kn_tensor *kn_selu_(kn_tensor *x);
KN_API kn_tensor *kn_sgn_(kn_tensor *x);
KN_API kn_tensor *kn_sigmoid_(kn_tensor *x);
KN_API kn_tensor *kn_sign_(kn_tensor *x);
KN_API kn_tensor *kn_silu_(kn_tensor *x);
KN_API kn_tensor *kn_sin_(kn_tensor *x);
KN_API kn_tensor *kn_sinc_(kn_tensor *x);
KN_API kn_tensor *kn_sinh_(kn_tensor *x);
KN_API kn_tensor *kn_sqrt_(kn_tensor *x);
KN_API kn_tensor *kn_square_(kn_tensor *x);
KN_API kn_tensor *kn_tan_(kn_tensor *x);
KN_API kn_tensor *kn_tanh_(kn_tensor *x);
KN_API kn_tensor *kn_trunc_(kn_tensor *x);
KN_API kn_tensor *kn_bitwise_not_(kn_tensor *x);

/* With parameters. */
KN_API kn_tensor *kn_celu_with_(kn_tensor *x, const kn_celu_params *params);
KN_API kn_tensor *kn_elu_with_(kn_tensor *x, const kn_elu_params *params);
KN_API kn_tensor *kn_leaky_relu_with_(kn_tensor *x, const kn_leaky_relu_params *params);
KN_API kn_tensor *kn_logit_with_(kn_tensor *x, const kn_logit_params *params);
KN_API kn_tensor *kn_nan_to_num_with_(kn_tensor *x, const kn_nan_to_num_params *params);
KN_API kn_tensor *kn_round_with_(kn_tensor *x, const kn_round_params *params);
KN_API kn_tensor *kn_rrelu_with_(kn_tensor *x, const kn_rrelu_params *params);
KN_API kn_tensor *kn_clamp_with_(kn_tensor *x, const kn_clamp_params *params);
#define kn_celu_(x, ...) KN_CALL(kn_celu_with_(x, &(kn_celu_params){KN_CELU_DEFAULTS, __VA_ARGS__}))
#define kn_elu_(x, ...) KN_CALL(kn_elu_with_(x, &(kn_elu_params){KN_ELU_DEFAULTS, __VA_ARGS__}))
#define kn_leaky_relu_(x, ...)                                                                                         \
    KN_CALL(kn_leaky_relu_with_(x, &(kn_leaky_relu_params){KN_LEAKY_RELU_DEFAULTS, __VA_ARGS__}))
#define kn_logit_(x, ...) KN_CALL(kn_logit_with_(x, &(kn_logit_params){KN_LOGIT_DEFAULTS, __VA_ARGS__}))
#define kn_nan_to_num_(x, ...)                                                                                         \
    KN_CALL(kn_nan_to_num_with_(x, &(kn_nan_to_num_params){KN_NAN_TO_NUM_DEFAULTS, __VA_ARGS__}))
#define kn_round_(x, ...) KN_CALL(kn_round_with_(x, &(kn_round_params){KN_ROUND_DEFAULTS, __VA_ARGS__}))
#define kn_rrelu_(x, ...) KN_CALL(kn_rrelu_with_(x, &(kn_rrelu_params){KN_RRELU_DEFAULTS, __VA_ARGS__}))
#define kn_clamp_(x, ...) KN_CALL(kn_clamp_with_(x, &(kn_clamp_params){KN_CLAMP_DEFAULTS, __VA_ARGS__}))
#define kn_clip_ kn_clamp_
KN_API kn_tensor *kn_hardtanh_(kn_tensor *x, double min_val, double max_val);
KN_API kn_tensor *kn_threshold_(kn_tensor *x, double threshold, double value);
KN_API kn_tensor *kn_polygamma_(int n, kn_tensor *x);
KN_API kn_tensor *kn_mvlgamma_(kn_tensor *x, int p);

/* --- of two tensors, or a tensor and a number --------------------------------------------------------------------- */

/* Arithmetic. */
KN_API kn_tensor *kn_add_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_sub_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_mul_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_div_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_pow_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_floor_divide_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_remainder_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_fmod_(kn_tensor *a, kn_tensor *b);

KN_API kn_tensor *kn_copysign_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_hypot_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_igamma_(kn_tensor *a, kn_tensor *x);
KN_API kn_tensor *kn_igammac_(kn_tensor *a, kn_tensor *x);
KN_API kn_tensor *kn_atan2_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ldexp_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_nextafter_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_heaviside_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_xlogy_(kn_tensor *a, kn_tensor *b);

/* Comparisons and logic: 1 where it is true, else 0. */
KN_API kn_tensor *kn_eq_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ne_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_lt_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_le_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_gt_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ge_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_logical_and_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_logical_or_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_logical_xor_(kn_tensor *a, kn_tensor *b);

/* Integers and bools bit by bit; integers. */
KN_API kn_tensor *kn_bitwise_and_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_or_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_xor_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_left_shift_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_right_shift_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_gcd_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_lcm_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_float_power_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_div_mode_(kn_tensor *a, kn_tensor *b, kn_rounding rounding_mode);

KN_API kn_tensor *kn_add_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_and_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_left_shift_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_or_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_right_shift_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_xor_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_div_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_eq_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_floor_divide_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_fmod_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_ge_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_gt_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_le_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_lt_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_mul_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_ne_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_pow_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_remainder_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_sub_scalar_with_(kn_tensor *a, kn_scalar b);
#define kn_add_scalar_(a, b) kn_add_scalar_with_(a, KN_NUMBER(b))
#define kn_bitwise_and_scalar_(a, b) kn_bitwise_and_scalar_with_(a, KN_NUMBER(b))
#define kn_bitwise_left_shift_scalar_(a, b) kn_bitwise_left_shift_scalar_with_(a, KN_NUMBER(b))
#define kn_bitwise_or_scalar_(a, b) kn_bitwise_or_scalar_with_(a, KN_NUMBER(b))
#define kn_bitwise_right_shift_scalar_(a, b) kn_bitwise_right_shift_scalar_with_(a, KN_NUMBER(b))
#define kn_bitwise_xor_scalar_(a, b) kn_bitwise_xor_scalar_with_(a, KN_NUMBER(b))
#define kn_div_scalar_(a, b) kn_div_scalar_with_(a, KN_NUMBER(b))
#define kn_eq_scalar_(a, b) kn_eq_scalar_with_(a, KN_NUMBER(b))
#define kn_floor_divide_scalar_(a, b) kn_floor_divide_scalar_with_(a, KN_NUMBER(b))
#define kn_fmod_scalar_(a, b) kn_fmod_scalar_with_(a, KN_NUMBER(b))
#define kn_ge_scalar_(a, b) kn_ge_scalar_with_(a, KN_NUMBER(b))
#define kn_gt_scalar_(a, b) kn_gt_scalar_with_(a, KN_NUMBER(b))
#define kn_le_scalar_(a, b) kn_le_scalar_with_(a, KN_NUMBER(b))
#define kn_lt_scalar_(a, b) kn_lt_scalar_with_(a, KN_NUMBER(b))
#define kn_mul_scalar_(a, b) kn_mul_scalar_with_(a, KN_NUMBER(b))
#define kn_ne_scalar_(a, b) kn_ne_scalar_with_(a, KN_NUMBER(b))
#define kn_pow_scalar_(a, b) kn_pow_scalar_with_(a, KN_NUMBER(b))
#define kn_remainder_scalar_(a, b) kn_remainder_scalar_with_(a, KN_NUMBER(b))
#define kn_sub_scalar_(a, b) kn_sub_scalar_with_(a, KN_NUMBER(b))

/* --- of three tensors --------------------------------------------------------------------------------------------- */

KN_API kn_tensor *kn_lerp_(kn_tensor *a, kn_tensor *b, kn_tensor *weight);
KN_API kn_tensor *kn_lerp_scalar_(kn_tensor *a, kn_tensor *b, double weight);
KN_API kn_tensor *kn_addcmul_with_(kn_tensor *a, kn_tensor *b, kn_tensor *c, const kn_addcmul_params *params);
KN_API kn_tensor *kn_addcdiv_with_(kn_tensor *a, kn_tensor *b, kn_tensor *c, const kn_addcmul_params *params);
#define kn_addcmul_(a, b, c, ...)                                                                                      \
    KN_CALL(kn_addcmul_with_(a, b, c, &(kn_addcmul_params){KN_ADDCMUL_DEFAULTS, __VA_ARGS__}))
#define kn_addcdiv_(a, b, c, ...)                                                                                      \
    KN_CALL(kn_addcdiv_with_(a, b, c, &(kn_addcmul_params){KN_ADDCMUL_DEFAULTS, __VA_ARGS__}))

/* --- products ----------------------------------------------------------------------------------------------------- */

KN_API kn_tensor *kn_addmm_with_(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_addmv_with_(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_addr_with_(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_baddbmm_with_(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_addbmm_with_(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
#define kn_addmm_(input, a, b, ...)                                                                                    \
    KN_CALL(kn_addmm_with_(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_addmv_(input, a, b, ...)                                                                                    \
    KN_CALL(kn_addmv_with_(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_addr_(input, a, b, ...)                                                                                     \
    KN_CALL(kn_addr_with_(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_baddbmm_(input, a, b, ...)                                                                                  \
    KN_CALL(kn_baddbmm_with_(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_addbmm_(input, a, b, ...)                                                                                   \
    KN_CALL(kn_addbmm_with_(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))

/* --- along dimensions --------------------------------------------------------------------------------------------- */

KN_API kn_tensor *kn_cumsum_(kn_tensor *x, int dim);
KN_API kn_tensor *kn_cumprod_(kn_tensor *x, int dim);
KN_API kn_tensor *kn_renorm_(kn_tensor *x, double p, int dim, double maxnorm);
KN_API kn_tensor *kn_tril_(kn_tensor *x, int64_t diagonal);
KN_API kn_tensor *kn_triu_(kn_tensor *x, int64_t diagonal);
KN_API kn_tensor *kn_masked_scatter_(kn_tensor *x, kn_tensor *mask, kn_tensor *source);
KN_API kn_tensor *kn_scatter_reduce_with_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src,
                                          kn_scatter_reduction reduce, const kn_scatter_reduce_params *params);
KN_API kn_tensor *kn_index_reduce_with_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source,
                                        kn_scatter_reduction reduce, const kn_scatter_reduce_params *params);
#define kn_scatter_reduce_(x, dim, index, src, reduce, ...)                                                            \
    KN_CALL(kn_scatter_reduce_with_(x, dim, index, src, reduce,                                                        \
                                    &(kn_scatter_reduce_params){KN_SCATTER_REDUCE_DEFAULTS, __VA_ARGS__}))
#define kn_index_reduce_(x, dim, index, source, reduce, ...)                                                           \
    KN_CALL(kn_index_reduce_with_(x, dim, index, source, reduce,                                                       \
                                  &(kn_scatter_reduce_params){KN_SCATTER_REDUCE_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
