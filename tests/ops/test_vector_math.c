/* test_vector_math.c - functions of float32 are those of double to a few roundings, also in elements next to infinite,
 * huge and subnormal ones, which share a vector with them (cl/pointwise/vector_math.clh). */
#include "support/check.h"

#include <float.h>
#include <koine/operators.h>
#include <math.h>
#include <stdlib.h>

#include "support/values.h"
#include "tensor/tensor.h"

enum { COUNT = 2011 };

/* `ulps`: the largest error allowed. */
typedef struct function_of_one {
    const char *name;
    double (*reference)(double);
    double low, high, ulps;
} function_of_one;

static double gelu(double a) { return 0.5 * a * erfc(-a * sqrt(0.5)); }

static const function_of_one functions_of_one[] = {
    {"exp", exp, -105, 90, 2},  {"exp2", exp2, -151, 129, 2}, {"expm1", expm1, -20, 90, 2},
    {"expm1", expm1, -1, 1, 2}, {"tanh", tanh, -10, 10, 3},   {"log", log, 0, 3, 2},
    {"log2", log2, 0, 3, 2},    {"log10", log10, 0, 3, 2},    {"log1p", log1p, -1, 1, 2},
    {"sin", sin, -10, 10, 3},   {"sin", sin, -1e6, 1e6, 4},   {"cos", cos, -10, 10, 3},
    {"cos", cos, -1e6, 1e6, 4}, {"tan", tan, -10, 10, 4},     {"tan", tan, -1e6, 1e6, 4},
    {"atan", atan, -4, 4, 3},   {"asin", asin, -1, 1, 3},     {"acos", acos, -1, 1, 3},
    {"erf", erf, -4, 4, 2},     {"erfc", erfc, -6, 10, 8},    {"lgamma", lgamma, 0, 20, 4},
    {"gelu", gelu, -3, 30, 8},
};

typedef struct function_of_two {
    const char *name;
    double (*reference)(double, double);
    double low, high, other_low, other_high, ulps;
} function_of_two;

static double modulo(double a, double b)
{
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static const function_of_two functions_of_two[] = {
    {"pow", pow, 0, 10, -20, 20, 2},          {"pow", pow, -5, 5, -3, 3, 2},
    {"pow", pow, 0.9, 1.1, -500, 500, 2},     {"atan2", atan2, -1, 1, -1, 1, 3},
    {"fmod", fmod, -1e6, 1e6, -3, 3, 0.5},    {"fmod", fmod, -1e9, 1e9, -1, 1, 0.5},
    {"remainder", modulo, -99, 99, -3, 3, 1},
};

/* Every 7th value is odd; 7 and the numbers of odd values are relatively prime, so that all pairs occur. */
static void draw(double *values, double low, double high, const char *seed, int odd_step)
{
    static const double oddities[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY, 1, -1, 0.5, -2, 3e38, -3e38, 1e-40, -1e-40};
    test_random random = test_random_from(seed);
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)test_random_uniform(&random, low, high);
        if (i % 7 == 3)
            values[i] = (float)oddities[i / 7 / odd_step % (int)(sizeof oddities / sizeof *oddities)];
        if (values[i] != 0 && fabs(values[i]) < FLT_MIN && !check_has_denormals()) /* 0 in one place, not in another */
            values[i] = 0;
    }
}

static double distance(double found, double wanted)
{
    const float nearest = fabsf((float)wanted);
    if (found == 0 && nearest < FLT_MIN && !check_has_denormals())
        return 0;
    if (isnan(found) || isnan(wanted))
        return isnan(found) && isnan(wanted) ? 0 : INFINITY;
    if (isinf(found) || isinf(nearest))
        return found == (float)wanted || fabs(wanted) > 3.4e38 ? 0 : INFINITY;
    return fabs(found - wanted) / ((double)nextafterf(nearest, INFINITY) - (double)nearest);
}

static void check(const char *name, kn_tensor *const *inputs, int num_inputs, const double *wanted, double ulps)
{
    kn_tensor *y = NULL;
    static float found[COUNT];
    CHECK_OK(kn_op_call(kn_op_find(name), inputs, num_inputs, NULL, &y, 1));
    CHECK_OK(kn_read(y, found, sizeof found));
    for (int i = 0; i < COUNT; i++)
        if (!(distance(found[i], wanted[i]) <= ulps))
            fail_msg("%s: element %d is %.9g, should be %.9g (%.1f ulp)", name, i, (double)found[i], wanted[i],
                     distance(found[i], wanted[i]));
}

static const int64_t shape[] = {COUNT};

static void functions_of_one_are_those_of_double(void **state)
{
    static double x[COUNT], wanted[COUNT];
    (void)state;
    for (size_t k = 0; k < sizeof functions_of_one / sizeof *functions_of_one; k++) {
        KN_SCOPE;
        const function_of_one *f = &functions_of_one[k];
        draw(x, f->low, f->high, f->name, 1);
        for (int i = 0; i < COUNT; i++)
            wanted[i] = f->reference(x[i]);
        check(f->name, (kn_tensor *[]){tensor_of_doubles(x, 1, shape, KN_F32, false)}, 1, wanted, f->ulps);
    }
}

static void functions_of_two_are_those_of_double(void **state)
{
    static double x[COUNT], other[COUNT], wanted[COUNT];
    (void)state;
    for (size_t k = 0; k < sizeof functions_of_two / sizeof *functions_of_two; k++) {
        KN_SCOPE;
        const function_of_two *f = &functions_of_two[k];
        draw(x, f->low, f->high, f->name, 1);
        draw(other, f->other_low, f->other_high, "other", 13);
        for (int i = 0; i < COUNT; i++)
            wanted[i] = f->reference(x[i], other[i]);
        check(f->name,
              (kn_tensor *[]){tensor_of_doubles(x, 1, shape, KN_F32, false),
                              tensor_of_doubles(other, 1, shape, KN_F32, false)},
              2, wanted, f->ulps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(functions_of_one_are_those_of_double),
        TEST(functions_of_two_are_those_of_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
