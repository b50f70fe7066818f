/* koine/logic.h - comparisons, logic and bits. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_LOGIC_H
#define KOINE_LOGIC_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- comparisons -------------------------------------------------------------------------------------------------- *
 * Bool results of operands that broadcast, computed in their joint dtype; not differentiable. With a number for b:
 * kn_gt_scalar(x, 0), which is rounded to float16 or bfloat16 where that is the joint dtype. An integer that an integer
 * dtype cannot hold is compared correctly. */
KN_API kn_tensor *kn_eq(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ne(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_lt(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_le(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_gt(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ge(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_eq_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_ne_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_lt_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_le_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_gt_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_ge_scalar_with(kn_tensor *a, kn_scalar b);
#define kn_eq_scalar(a, b) kn_eq_scalar_with(a, KN_NUMBER(b))
#define kn_ne_scalar(a, b) kn_ne_scalar_with(a, KN_NUMBER(b))
#define kn_lt_scalar(a, b) kn_lt_scalar_with(a, KN_NUMBER(b))
#define kn_le_scalar(a, b) kn_le_scalar_with(a, KN_NUMBER(b))
#define kn_gt_scalar(a, b) kn_gt_scalar_with(a, KN_NUMBER(b))
#define kn_ge_scalar(a, b) kn_ge_scalar_with(a, KN_NUMBER(b))

/* a where `condition` (bool) is true, else b; all three broadcast. */
KN_API kn_tensor *kn_where(kn_tensor *condition, kn_tensor *a, kn_tensor *b);

/* Bool results; an element is true unless it is 0. */
KN_API kn_tensor *kn_logical_and(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_logical_or(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_logical_xor(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_logical_not(kn_tensor *x);

/* Bool results, of any dtype; integers are finite. */
KN_API kn_tensor *kn_isnan(kn_tensor *x);
KN_API kn_tensor *kn_isinf(kn_tensor *x);
KN_API kn_tensor *kn_isfinite(kn_tensor *x);
KN_API kn_tensor *kn_isposinf(kn_tensor *x);
KN_API kn_tensor *kn_isneginf(kn_tensor *x);
KN_API kn_tensor *kn_signbit(kn_tensor *x); /* also of -0 and NaN */

/* --- closeness ---------------------------------------------------------------------------------------------------- *
 * |a - b| <= atol + rtol |b|; equal infinities are close. Integers are compared in float32. */
typedef struct kn_isclose_params {
    double rtol;    /* default 1e-5 */
    double atol;    /* default 1e-8 */
    bool equal_nan; /* default false */
} kn_isclose_params;
#define KN_ISCLOSE_DEFAULTS .rtol = 1e-5, .atol = 1e-8
KN_API kn_isclose_params kn_isclose_params_init(void);
KN_API kn_tensor *kn_isclose_with(kn_tensor *a, kn_tensor *b, const kn_isclose_params *params);
#define kn_isclose(a, b, ...) KN_CALL(kn_isclose_with(a, b, &(kn_isclose_params){KN_ISCLOSE_DEFAULTS, __VA_ARGS__}))

/* Are all elements close? Wait for the answer. */
KN_API kn_status kn_allclose_with(kn_tensor *a, kn_tensor *b, bool *result, const kn_isclose_params *params);
#define kn_allclose(a, b, result, ...)                                                                                 \
    KN_CALL(kn_allclose_with(a, b, result, &(kn_isclose_params){KN_ISCLOSE_DEFAULTS, __VA_ARGS__}))

/* Have they the same shape and equal elements? NaN is not equal to itself. Waits for the answer. */
KN_API kn_status kn_equal(kn_tensor *a, kn_tensor *b, bool *result);

/* --- bits ---------------------------------------------------------------------------------------------------------- *
 * Of integers and bools; the shifts, gcd and lcm of integers only. Shifts by less than 0 or by as many bits as there
 * are, or more, give 0, or -1 where a negative number is shifted to the right. gcd and lcm are not negative. */
KN_API kn_tensor *kn_bitwise_and(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_or(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_xor(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_left_shift(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_right_shift(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_not(kn_tensor *x);
KN_API kn_tensor *kn_gcd(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_lcm(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bitwise_and_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_or_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_xor_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_left_shift_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_bitwise_right_shift_scalar_with(kn_tensor *a, kn_scalar b);
#define kn_bitwise_and_scalar(a, b) kn_bitwise_and_scalar_with(a, KN_NUMBER(b))
#define kn_bitwise_or_scalar(a, b) kn_bitwise_or_scalar_with(a, KN_NUMBER(b))
#define kn_bitwise_xor_scalar(a, b) kn_bitwise_xor_scalar_with(a, KN_NUMBER(b))
#define kn_bitwise_left_shift_scalar(a, b) kn_bitwise_left_shift_scalar_with(a, KN_NUMBER(b))
#define kn_bitwise_right_shift_scalar(a, b) kn_bitwise_right_shift_scalar_with(a, KN_NUMBER(b))

KN_END_DECLS

#endif
