/* koine/special.h - special functions: torch.special. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_SPECIAL_H
#define KOINE_SPECIAL_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* Integers and bools are computed in float32. */

KN_API kn_tensor *kn_erf(kn_tensor *x);
KN_API kn_tensor *kn_erfc(kn_tensor *x);
KN_API kn_tensor *kn_erfcx(kn_tensor *x);    /* exp(x^2) erfc(x), also where the one is infinite and the other 0 */
KN_API kn_tensor *kn_erfinv(kn_tensor *x);   /* infinite at -1 and 1, NaN beyond */
KN_API kn_tensor *kn_ndtr(kn_tensor *x);     /* the probability of a normally distributed number below x */
KN_API kn_tensor *kn_log_ndtr(kn_tensor *x); /* its logarithm, exact where it is close to 0 */
KN_API kn_tensor *kn_ndtri(kn_tensor *x);    /* its inverse */

KN_API kn_tensor *kn_lgamma(kn_tensor *x);           /* log |gamma(x)| */
KN_API kn_tensor *kn_digamma(kn_tensor *x);          /* its derivative; NaN at negative integers */
KN_API kn_tensor *kn_polygamma(int n, kn_tensor *x); /* the derivative of order n >= 0 of digamma */

KN_API kn_tensor *kn_mvlgamma(kn_tensor *x, int p); /* of the multivariate gamma function of dimension p >= 1 */

/* Of floating dtypes: the share of the gamma function's integral at a > 0 that lies below x, and above it; broadcast.
 * As in PyTorch, without a gradient of a. */
KN_API kn_tensor *kn_igamma(kn_tensor *a, kn_tensor *x);
KN_API kn_tensor *kn_igammac(kn_tensor *a, kn_tensor *x);

/* Modified Bessel functions of the first kind; those ending in e are scaled by exp(-|x|). */
KN_API kn_tensor *kn_i0(kn_tensor *x);
KN_API kn_tensor *kn_i0e(kn_tensor *x);
KN_API kn_tensor *kn_i1(kn_tensor *x);
KN_API kn_tensor *kn_i1e(kn_tensor *x);

KN_API kn_tensor *kn_sinc(kn_tensor *x); /* sin(pi x) / (pi x), 1 at 0 */
KN_API kn_tensor *kn_entr(kn_tensor *x); /* -x log(x), 0 at 0, -infinity below */
KN_API kn_tensor *kn_deg2rad(kn_tensor *x);
KN_API kn_tensor *kn_rad2deg(kn_tensor *x);

KN_API kn_tensor *kn_xlogy(kn_tensor *a, kn_tensor *b);   /* a log(b), 0 where a is 0 */
KN_API kn_tensor *kn_xlog1py(kn_tensor *a, kn_tensor *b); /* a log(1 + b), 0 where a is 0 */

/* log(x / (1 - x)), of x clipped to [eps, 1 - eps]. */
typedef struct kn_logit_params {
    double eps; /* default -1: x is not clipped */
} kn_logit_params;
#define KN_LOGIT_DEFAULTS .eps = -1
KN_API kn_logit_params kn_logit_params_init(void);
KN_API kn_tensor *kn_logit_with(kn_tensor *x, const kn_logit_params *params);
#define kn_logit(x, ...) KN_CALL(kn_logit_with(x, &(kn_logit_params){KN_LOGIT_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
