/* ops/pointwise/special.c - special functions of one tensor: torch.special. Their kernels, cl/pointwise/gamma.clh and
 * others, loop; most run element by element. */
#include <koine/special.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

#define PI "(T)3.14159265358979323846"
#define ROOT_2 1.41421356237309504880

/* --- the error function and the normal distribution --------------------------------------------------------------- */

#define TWO_OVER_SQRT_PI "(T)1.128379167095512573896"
#define HALF_SQRT_PI "(T)0.886226925452758013649"
#define SQRT_2_PI "(T)2.506628274631000502416"
#define LOG_NDTR "#include \"pointwise/log_ndtr.clh\"\n"

KN_FUNCTION(erf, KN_REAL, "erf(a)", "g * " TWO_OVER_SQRT_PI " * exp(-a * a)", erf(a))
KN_FUNCTION(erfc, KN_REAL, "erfc(a)", "-g * " TWO_OVER_SQRT_PI " * exp(-a * a)", erfc(a))

/* exp(x^2) erfc(x): where that would be 0 times infinity, the first terms for large x. */
static double erfcx_of(double x)
{
    const double z = 1 / (x * x);
    return x < 25 ? exp(x * x) * erfc(x)
                  : (1 - z / 2 + z * z * 3 / 4 - z * z * z * 15 / 8) / (x * 1.77245385090551602730);
}

#define ERFCX "#include \"pointwise/erfcx.clh\"\n"
KN_FUNCTION(erfcx, KN_REAL, "kn_scaled_erfc(a)", "g * kn_scaled_erfc_slope(a, y)", erfcx_of(a),
            .forward.functions = ERFCX, .backward.functions = ERFCX,
            .recorded = {"g * (2 * a * y - " TWO_OVER_SQRT_PI ")"})

/* By bisection. */
static double inverse_of(double (*function)(double), double value, double low, double high)
{
    for (int step = 0; step < 200; step++) {
        const double middle = (low + high) / 2;
        *(function(middle) < value ? &low : &high) = middle;
    }
    return low;
}

static double ndtr_of(double x) { return erfc(-x / ROOT_2) / 2; }
static double erfinv_of(double y) { return fabs(y) < 1 ? inverse_of(erf, y, -7, 7) : fabs(y) == 1 ? y / 0.0 : NAN; }
static double ndtri_of(double p)
{
    return p > 0 && p < 1 ? inverse_of(ndtr_of, p, -40, 10) : p == 0 || p == 1 ? (p - 0.5) / 0.0 : NAN;
}

#define ERFINV "#include \"pointwise/erfinv.clh\"\n"
KN_FUNCTION(erfinv, KN_REAL, "kn_erfinv(a)", "g * " HALF_SQRT_PI " * kn_exp_of_square(y)", erfinv_of(a),
            .forward.functions = ERFINV, .backward.functions = ERFINV,
            .recorded = {"g * " HALF_SQRT_PI " * exp(y * y)"})
KN_FUNCTION(ndtr, KN_REAL, "(T)0.5 * erfc(a * (T)-0.707106781186547524401)", "g * exp(a * a / -2) / " SQRT_2_PI,
            ndtr_of(a))
KN_FUNCTION(log_ndtr, KN_REAL, "kn_log_ndtr(a)", "g * kn_log_ndtr_slope(a)", log(ndtr_of(a)),
            .forward.functions = LOG_NDTR, .backward.functions = LOG_NDTR,
            .recorded = {"g * exp(a * a / -2 - kn_log_ndtr(a)) / " SQRT_2_PI})
KN_FUNCTION(ndtri, KN_REAL, "kn_ndtri(a)", "g * " SQRT_2_PI " * exp(y * y / 2)", ndtri_of(a),
            .forward.functions = "#include \"pointwise/ndtri.clh\"\n")

/* --- the gamma function ------------------------------------------------------------------------------------------- */

#define GAMMA "#include \"pointwise/gamma.clh\"\n"

/* -(-1)^n n! times the sum of (x + k)^-(n + 1) over all k: the first terms, then the integral of the others with its
 * first corrections. The first derivative differs from it by a constant, which the logarithm replaces. */
static double polygamma_of(double n, double x)
{
    const double s = n + 1;
    double sum = 0, factor = fmod(n, 2) == 0 ? -1 : 1;
    for (int k = 0; k < 2000; k++, x += 1)
        sum += pow(x, -s);
    for (int k = 2; k <= n; k++)
        factor *= k;
    const double rest = n == 0 ? -log(x) : pow(x, 1 - s) / (s - 1);
    return factor * (sum + rest + pow(x, -s) / 2 + s * pow(x, -s - 1) / 12);
}

KN_FUNCTION(lgamma, KN_REAL, "kn_lgamma(a)", "g * kn_digamma(a)", lgamma(a), .forward.functions = GAMMA,
            .backward.functions = GAMMA)
KN_FUNCTION(digamma, KN_REAL, "kn_digamma(a)", "g * kn_trigamma(a)", polygamma_of(0, a), .forward.functions = GAMMA,
            .backward.functions = GAMMA, .recorded = {"g * kn_polygamma(1, a)"})

KN_ELEMENTWISE_TABLE(polygamma, KN_REAL, "a", "p", KN_NO_VECTORS, "kn_polygamma(p, a)",
                     KN_GRADIENTS("g * kn_polygamma(p + 1, a)"), polygamma_of(p, a), .forward.functions = GAMMA,
                     .backward.functions = GAMMA);

static kn_status polygamma_enter(kn_entry *entry)
{
    const kn_scalar n = ((const kn_scalar_args *)entry->params)->values[0];
    return n.is_whole && n.whole >= 0 ? KN_OK
                                      : kn_fail(KN_ERR_ARGUMENT, "n must be an integer from 0 on, not %g", n.real);
}

static const kn_op_param order_row[] = {KN_PARAM_NAMED("n", kn_scalar_args, values[0])};
const kn_op kn_polygamma_op = {
    KN_ELEMENTWISE_FIELDS("polygamma", false, true, &polygamma_table), .inputs = {"x"}, .dtypes = {KN_DTYPES_ALL},
    .params = KN_PARAMS(kn_scalar_args, order_row, {{true, 0, 0}}), .enter = polygamma_enter};
kn_tensor *kn_polygamma(int n, kn_tensor *x)
{
    return kn_invoke(&kn_polygamma_op, &(kn_scalar_args){{kn_scalar_int(n)}}, x);
}

/* --- Bessel functions --------------------------------------------------------------------------------------------- */

#define BESSEL "#include \"pointwise/bessel.clh\"\n"

/* The mean of exp(x cos t - scale) cos(order t) over a period, which equally spaced points give exactly. */
static double bessel_of(int order, double x, double scale)
{
    const int points = 400;
    double sum = 0;
    for (int i = 0; i < points; i++) {
        const double t = 6.28318530717958647693 * i / points;
        sum += exp(x * cos(t) - scale) * cos(order * t);
    }
    return sum / points;
}

#define BESSEL_ROW(name, gradient, recorded_, ...)                                                                     \
    KN_FUNCTION(name, KN_REAL, "kn_" #name "(a)", gradient, __VA_ARGS__, .forward.functions = BESSEL,                  \
                .backward.functions = BESSEL, .recorded = {recorded_})
BESSEL_ROW(i0, "g * kn_i1(a)", NULL, bessel_of(0, a, 0))
BESSEL_ROW(i0e, "g * (kn_i1e(a) - (a > 0 ? y : a < 0 ? -y : a * 0))", NULL, bessel_of(0, a, fabs(a)))
/* i1(a) / a near 0, whose derivative by division would be a difference of equal numbers. */
#define SERIES                                                                                                         \
    "(T)0.5 + a * a * ((T)0.0625 + a * a * ((T)0.0026041666666666665 + a * a * ("                                      \
    "(T)5.4253472222222219e-05 + a * a * ((T)6.781684027777778e-07 + a * a * ("                                        \
    "(T)5.6514033564814812e-09 + a * a * ((T)3.3639305693342149e-11 + a * a * ("                                       \
    "(T)1.5017547184527747e-13)))))))"
#define RATIO(factor, y) "(fabs(a) < (T)0.5 ? " factor "(" SERIES ") : " y " / (fabs(a) < (T)0.5 ? (T)1 : a))"
BESSEL_ROW(i1, "g * (kn_i0(a) - kn_i1_ratio(a))", "g * (kn_i0(a) - " RATIO("", "kn_i1(a)") ")", bessel_of(1, a, 0))
BESSEL_ROW(i1e, "g * (kn_i0e(a) - kn_i1e_ratio(a) - fabs(y))",
           "g * (kn_i0e(a) - " RATIO("exp(-fabs(a)) * ", "kn_i1e(a)") " - (a > 0 ? y : a < 0 ? -y : a * 0))",
           bessel_of(1, a, fabs(a)))

/* --- others ------------------------------------------------------------------------------------------------------- */

/* The derivative near 0 is a series, because cos(x) - sin(x) / x is a difference of equal numbers. */
#define SINC_SERIES                                                                                                    \
    "(T)-3.2898681336964528 + a * a * ("                                                                               \
    "(T)3.246969701133414 + a * a * ("                                                                                 \
    "(T)-1.144510944732505 + a * a * ("                                                                                \
    "(T)0.20918278254123832 + a * a * ("                                                                               \
    "(T)-0.023460810354558225 + a * a * ("                                                                             \
    "(T)0.001781145516372851 + a * a * ("                                                                              \
    "(T)-9.7662231263189277e-05 + a * a * ("                                                                           \
    "(T)4.0499478466192413e-06 + a * a * ("                                                                            \
    "(T)-1.3148481279991983e-07))))))))"
KN_FUNCTION(sinc, KN_REAL, "a == 0 ? (T)1 : sin(" PI " * a) / (" PI " * a)",
            "fabs(a) < (T)0.3 ? g * a * (" SINC_SERIES ") : g * (cos(" PI " * a) - y) / (fabs(a) < (T)0.3 ? (T)1 : a)",
            a == 0 ? 1 : sin(M_PI * a) / (M_PI * a))
KN_FUNCTION(entr, KN_REAL, "a > 0 ? -a * log(a) : a == 0 ? (T)0 : a != a ? a : -(T)INFINITY", "-g * (1 + log(a))",
            a > 0      ? -a * log(a)
            : a == 0   ? 0
            : isnan(a) ? a
                       : -(double)INFINITY)
KN_UNARY(deg2rad, KN_REAL, "a * (T)0.0174532925199432957692", "g * (T)0.0174532925199432957692", a *M_PI / 180)
KN_UNARY(rad2deg, KN_REAL, "a * (T)57.2957795130823208768", "g * (T)57.2957795130823208768", a * 180 / M_PI)

/* A negative eps does not clip. */
#define CLIPPED "(p < 0 ? a : a < p ? p : a > 1 - p ? 1 - p : a)"
static double logit_of(double a, double p)
{
    const double x = p < 0 ? a : a < p ? p : a > 1 - p ? 1 - p : a;
    return log(x / (1 - x));
}
KN_FUNCTION_OF(logit, LOGIT, KN_REAL, "p", KN_VECTORS, "log(" CLIPPED " / (1 - " CLIPPED "))",
               "p >= 0 && (a < p || a > 1 - p) ? g * 0 : a < 0 || a > 1 ? (T)0 / (T)0 : g / (a * (1 - a))",
               logit_of(a, p), KN_PARAM(kn_logit_params, eps))
