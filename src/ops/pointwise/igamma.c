/* ops/pointwise/igamma.c - incomplete gamma functions, the multivariate one, and numbers as fractions and exponents. */
#include <koine/autograd.h>
#include <koine/operators.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/special.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

/* --- incomplete gamma functions ----------------------------------------------------------------------------------- */

/* By the series of the lower one; 1 where its terms would overflow. */
static double lower_share(double a, double x)
{
    double term = 1, sum = 1;
    if (isnan(a) || isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) || (isinf(a) && isinf(x)))
        return NAN;
    if (a == 0 || x > 600)
        return 1;
    if (x == 0 || isinf(a))
        return 0;
    for (int k = 1; k < 10000 && term > 1e-18 * sum; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return exp(a * log(x) - x - lgamma(a + 1)) * sum;
}

/* As in PyTorch, without a gradient of a. */
#define IGAMMA "#include \"pointwise/igamma.clh\"\n"
#define DENSITY "exp((a - 1) * log(b) - b - lgamma(a))"
KN_TWO_TENSORS(igamma, KN_FLOATS, KN_NO_VECTORS, "kn_igamma(a, b)", NULL, "g * " DENSITY, lower_share(a, b),
               .forward.functions = IGAMMA);
KN_TWO_TENSORS(igammac, KN_FLOATS, KN_NO_VECTORS, "kn_igammac(a, b)", NULL, "-g * " DENSITY, 1 - lower_share(a, b),
               .forward.functions = IGAMMA);
KN_OF_TWO(igamma, igamma, false, true, KN_DTYPES_FLOATING)
KN_OF_TWO(igammac, igammac, false, true, KN_DTYPES_FLOATING)

/* --- the multivariate gamma function ------------------------------------------------------------------------------ */

static kn_status mvlgamma_enter(kn_entry *entry)
{
    const int p = ((const kn_mvlgamma_args *)entry->params)->p;
    kn_tensor *x = entry->inputs[0];
    const kn_dtype dtype = kn_dtype_is_floating(x->dtype) ? x->dtype : KN_F32;
    const double constant = (double)p * (p - 1) / 4 * log(M_PI);

    kn_tensor *shifts = kn_mul_scalar(kn_arange(0, p, 1, .dtype = dtype, .device = kn_device_of(x)), -0.5);
    kn_tensor *terms = kn_lgamma(kn_add(kn_unsqueeze(kn_to_dtype(x, dtype), -1), shifts));
    return kn_status_of(entry->result = kn_add_scalar(kn_sum_dims(terms, (int[]){-1}, 1, false), constant));
}

static const kn_op_param p_row[] = {KN_PARAM(kn_mvlgamma_args, p, .min = 1, .max = 1e6)};
const kn_op kn_mvlgamma_op = {.name = "mvlgamma",
                              .inputs = {"x"},
                              .dtypes = {KN_DTYPES_NUMBERS},
                              .params = KN_PARAMS(kn_mvlgamma_args, p_row, .p = 1),
                              .composes = true,
                              .enter = mvlgamma_enter};
kn_tensor *kn_mvlgamma(kn_tensor *x, int p) { return kn_invoke(&kn_mvlgamma_op, &(kn_mvlgamma_args){p}, x); }

/* --- fractions and exponents -------------------------------------------------------------------------------------- */

/* x = fraction 2^exponent, with a fraction from 0.5 to 1; 0, infinities and NaN have an exponent of 0. */
static double fraction_of(double x)
{
    int exponent;
    return frexp(x, &exponent);
}

static double exponent_of(double x)
{
    int exponent = 0;
    if (isfinite(x))
        frexp(x, &exponent);
    return exponent;
}

#define EXPONENT "(a == 0 || a - a != 0 ? 0 : ilogb(a) + 1)"
KN_ELEMENTWISE_TABLE(frexp, KN_FLOATS, "a", NULL, KN_NO_VECTORS, "ldexp(a, -" EXPONENT ")",
                     KN_GRADIENTS("a == 0 || a - a != 0 ? g : g * (y / a)"), fraction_of(a),
                     .recorded = {"g * kn_fraction_scale(a)"});
KN_ELEMENTWISE_TABLE(exponent, KN_FLOATS, "a", NULL, KN_NO_VECTORS, "(T)" EXPONENT, KN_GRADIENTS(NULL), exponent_of(a));
const kn_op kn_frexp_op = KN_ELEMENTWISE_OP("frexp", false, true, &frexp_table, KN_DTYPES_FLOATING, KN_NO_PARAMS, "x");

static kn_status exponent_shape(kn_call *call)
{
    KN_TRY(kn_elementwise_shape(call));
    call->spec[0].dtype = KN_I32;
    return KN_OK;
}

static const kn_op exponent_op = {.name = "frexp",
                                  .inputs = {"x"},
                                  .dtypes = {KN_DTYPES_FLOATING},
                                  .record_size = sizeof(kn_scalar_args),
                                  .strided_outputs = true,
                                  .elementwise = true,
                                  .arrange = kn_call_arrange,
                                  .shape = exponent_shape,
                                  .forward = kn_elementwise_forward,
                                  .reference = kn_elementwise_reference,
                                  .detail = &exponent_table};

kn_tensor *kn_frexp(kn_tensor *x, kn_tensor **exponent)
{
    kn_tensor *fraction = kn_invoke(&kn_frexp_op, NULL, x);
    if (exponent) {
        const int depth = fraction ? kn_scope_begin() : 0;
        *exponent = depth > 0 ? kn_scope_return(depth, kn_invoke(&exponent_op, NULL, kn_detach(x))) : NULL;
    }
    return !exponent || *exponent ? fraction : NULL;
}
