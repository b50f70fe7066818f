/* test_vector_math.c - functions of float32 and float64 are the mathematical ones to a few roundings, also in elements
 * next to infinite, huge and subnormal ones, which share a vector with them (cl/pointwise/vector_math.clh). */
#include "support/check.h"

#include <float.h>
#include <koine/operators.h>
#include <koine/shape.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"
#include "tensor/tensor.h"

enum { COUNT = 2011 };

/* `ulps`: the largest error allowed, of both dtypes. */
typedef struct function_of_one {
    const char *name;
    long double (*reference)(long double);
    double low, high, ulps;
} function_of_one;

static long double gelu(long double a) { return 0.5L * a * erfcl(-a * sqrtl(0.5L)); }
/* By bisection. */
static long double inverse_of(long double (*function)(long double), long double value, long double low,
                              long double high)
{
    for (int step = 0; step < 90; step++) {
        const long double middle = (low + high) / 2;
        *(function(middle) < value ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static long double erfinv(long double y)
{
    if (fabsl(y) < 1e-10L)
        return y * sqrtl(atanl(1));
    return fabsl(y) < 1 ? copysignl(inverse_of(erfl, fabsl(y), 0, 7), y) : fabsl(y) == 1 ? y * INFINITY : NAN;
}

static long double ndtr(long double x) { return erfcl(-x * sqrtl(0.5L)) / 2; }
static long double ndtri(long double p)
{
    if (p >= 0.5L)
        return p > 0.5L ? -ndtri(1 - p) : 0;
    return p == 0 ? -INFINITY : p > 0 ? inverse_of(ndtr, p, -40, 1) : NAN;
}
static long double sigmoid(long double a) { return 1 / (1 + expl(-a)); }

static const function_of_one functions_of_one[] = {
    {"exp", expl, -105, 90, 2},  {"exp2", exp2l, -151, 129, 2}, {"expm1", expm1l, -20, 90, 2},
    {"expm1", expm1l, -1, 1, 2}, {"tanh", tanhl, -10, 10, 3},   {"sigmoid", sigmoid, -40, 40, 3},
    {"log", logl, 0, 3, 2},      {"log2", log2l, 0, 3, 2},      {"log10", log10l, 0, 3, 2},
    {"log1p", log1pl, -1, 1, 2}, {"sin", sinl, -10, 10, 3},     {"sin", sinl, -1e6, 1e6, 4},
    {"cos", cosl, -10, 10, 3},   {"cos", cosl, -1e6, 1e6, 4},   {"sinh", sinhl, -10, 10, 3},
    {"cosh", coshl, -10, 10, 3}, {"asinh", asinhl, -10, 10, 3}, {"acosh", acoshl, 1, 10, 3},
    {"atanh", atanhl, -1, 1, 3}, {"erfinv", erfinv, -1, 1, 3},  {"ndtri", ndtri, 0, 1, 8},
    {"tan", tanl, -10, 10, 4},   {"tan", tanl, -1e6, 1e6, 4},   {"atan", atanl, -4, 4, 3},
    {"asin", asinl, -1, 1, 3},   {"acos", acosl, -1, 1, 3},     {"erf", erfl, -4, 4, 2},
    {"erfc", erfcl, -6, 10, 8},  {"lgamma", lgammal, 0, 20, 4}, {"gelu", gelu, -3, 30, 8},
};

static const function_of_one f64_functions_of_one[] = {
    {"exp", expl, -746, 710, 2},       {"exp2", exp2l, -1076, 1025, 2},     {"expm1", expm1l, -40, 710, 2},
    {"expm1", expm1l, -1e-9, 1e-9, 2}, {"tanh", tanhl, -25, 25, 2},         {"log", logl, 0, 1e300, 2},
    {"log2", log2l, 0, 1e300, 2},      {"log10", log10l, 0, 1e300, 2},      {"log1p", log1pl, -1e-9, 1e-9, 2},
    {"log1p", log1pl, 0, 1e300, 2},    {"sin", sinl, -1e9, 1e9, 2},         {"cos", cosl, -1e9, 1e9, 2},
    {"sinh", sinhl, -711, 711, 2},     {"sinh", sinhl, -1e-9, 1e-9, 2},     {"cosh", coshl, -711, 711, 2},
    {"asinh", asinhl, -1e9, 1e9, 3},   {"asinh", asinhl, -1e300, 1e300, 3}, {"acosh", acoshl, 1, 1e300, 3},
    {"erfinv", erfinv, 0.99, 1, 3},    {"ndtri", ndtri, 0, 1e-300, 3},      {"lgamma", lgammal, 0, 1e300, 4},
    {"tan", tanl, -1e9, 1e9, 3},       {"atan", atanl, -1e300, 1e300, 2},   {"erf", erfl, -1e-9, 1e-9, 2},
    {"erfc", erfcl, -6, 26, 4},
};

typedef struct function_of_two {
    const char *name;
    long double (*reference)(long double, long double);
    double low, high, other_low, other_high, ulps;
} function_of_two;

static long double modulo(long double a, long double b)
{
    const long double r = fmodl(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static const function_of_two functions_of_two[] = {
    {"pow", powl, 0, 10, -20, 20, 2},         {"pow", powl, -5, 5, -3, 3, 2},
    {"pow", powl, 0.9, 1.1, -500, 500, 2},    {"atan2", atan2l, -1, 1, -1, 1, 3},
    {"fmod", fmodl, -1e6, 1e6, -3, 3, 0.5},   {"fmod", fmodl, -1e9, 1e9, -1, 1, 0.5},
    {"remainder", modulo, -99, 99, -3, 3, 1},
};

static const function_of_two f64_functions_of_two[] = {
    {"pow", powl, 0, 1e3, -110, 110, 2},      {"pow", powl, 0.99, 1.01, -72000, 72000, 2},
    {"pow", powl, 0, 1e300, -1, 1, 2},        {"atan2", atan2l, -1.7e308, 1.7e308, -1.7e308, 1.7e308, 3},
    {"fmod", fmodl, -1e20, 1e20, -1, 1, 0.5},
};

/* --- values ------------------------------------------------------------------------------------------------------- */

/* A subnormal number that the device has as 0 in one place, not in another. */
static bool is_lost(kn_dtype dtype, double value)
{
    return fabs(value) < (dtype == KN_F64 ? DBL_MIN : (double)FLT_MIN) && !check_has_denormals();
}

/* Every 7th value is odd; 7 and the numbers of odd values are relatively prime, so that all pairs occur. */
static void draw(double *values, kn_dtype dtype, double low, double high, const char *seed, int odd_step)
{
    static const double oddities[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY, 1, -1, 0.5, -2, 3e38, -3e38, 1e-40, -1e-40};
    static const double wide[] = {1.7e308, 1e-310, 1e-320, 1e22, -7e200};
    test_random random = test_random_from(seed);
    for (int i = 0; i < COUNT; i++) {
        const int odd = i / 7 / odd_step;
        values[i] = test_random_uniform(&random, low, high);
        if (i % 7 == 3)
            values[i] = oddities[odd % (int)(sizeof oddities / sizeof *oddities)];
        if (dtype == KN_F64 && i % 35 == 5)
            values[i] = wide[odd % (int)(sizeof wide / sizeof *wide)];
        values[i] = dtype == KN_F64 ? values[i] : (double)(float)values[i];
        if (is_lost(dtype, values[i]))
            values[i] = 0;
    }
}

/* In units of the last place, which of subnormal results is as large as that of the least normal one. */
static double distance(kn_dtype dtype, double found, long double wanted)
{
    const bool is_f64 = dtype == KN_F64;
    const double nearest = is_f64 ? (double)wanted : (double)(float)wanted, size = fabs(nearest);
    const double next = is_f64 ? nextafter(size, INFINITY) : (double)nextafterf((float)size, INFINITY);
    if (found == 0 && is_lost(dtype, size))
        return 0;
    if (isnan(found) || isnan(wanted))
        return isnan(found) && isnan(wanted) ? 0 : INFINITY;
    if (isinf(found) || isinf(nearest))
        return found == nearest || fabsl(wanted) > (is_f64 ? 1.797e308L : 3.4e38L) ? 0 : INFINITY;
    return (double)(fabsl(found - wanted) / (next - size));
}

static void check(const char *name, kn_tensor *const *inputs, int num_inputs, const long double *wanted, double ulps)
{
    kn_tensor *y = NULL;
    static double found[COUNT];
    const kn_dtype dtype = kn_dtype_of(inputs[0]);
    CHECK_OK(kn_op_call(kn_op_find(name), inputs, num_inputs, NULL, &y, 1));
    CHECK_OK(kn_read(kn_to_dtype(y, KN_F64), found, sizeof found));
    for (int i = 0; i < COUNT; i++) {
        const double ulp = distance(dtype, found[i], wanted[i]);
        if (!(ulp <= ulps))
            fail_msg("%s: element %d is %.17g, should be %.17Lg (%.1f ulp)", name, i, found[i], wanted[i], ulp);
    }
}

static const int64_t shape[] = {COUNT};

static void check_of_one(kn_dtype dtype, const function_of_one *functions, size_t count)
{
    static double x[COUNT];
    static long double wanted[COUNT];
    for (size_t k = 0; k < count; k++) {
        KN_SCOPE;
        const function_of_one *f = &functions[k];
        draw(x, dtype, f->low, f->high, f->name, 1);
        for (int i = 0; i < COUNT; i++)
            wanted[i] = f->reference(x[i]);
        check(f->name, (kn_tensor *[]){tensor_of_doubles(x, 1, shape, dtype, false)}, 1, wanted, f->ulps);
    }
}

static void check_of_two(kn_dtype dtype, const function_of_two *functions, size_t count)
{
    static double x[COUNT], other[COUNT];
    static long double wanted[COUNT];
    for (size_t k = 0; k < count; k++) {
        KN_SCOPE;
        const function_of_two *f = &functions[k];
        draw(x, dtype, f->low, f->high, f->name, 1);
        draw(other, dtype, f->other_low, f->other_high, "other", 13);
        for (int i = 0; i < COUNT; i++)
            wanted[i] = f->reference(x[i], other[i]);
        check(f->name,
              (kn_tensor *[]){tensor_of_doubles(x, 1, shape, dtype, false),
                              tensor_of_doubles(other, 1, shape, dtype, false)},
              2, wanted, f->ulps);
    }
}

#define LIST(table) table, sizeof table / sizeof *table

static void float_functions_are_exact_to_a_few_roundings(void **state)
{
    (void)state;
    check_of_one(KN_F32, LIST(functions_of_one));
    check_of_two(KN_F32, LIST(functions_of_two));
}

static void double_functions_are_exact_to_a_few_roundings(void **state)
{
    (void)state;
    if (!check_has_f64())
        skip();
    check_of_one(KN_F64, LIST(functions_of_one));
    check_of_one(KN_F64, LIST(f64_functions_of_one));
    check_of_two(KN_F64, LIST(functions_of_two));
    check_of_two(KN_F64, LIST(f64_functions_of_two));
}

/* --- other dtypes ------------------------------------------------------------------------------------------------- */

/* Of the same values: `x` and as float32 `y`. */
static void check_same(const char *name, kn_tensor *x, kn_tensor *y)
{
    static float found[COUNT], wanted[COUNT];
    const size_t size = (size_t)kn_numel(x) * sizeof *found;
    const int count = strcmp(name, "atan2") == 0 ? 2 : 1;
    kn_tensor *results[2] = {NULL};
    CHECK_OK(kn_op_call(kn_op_find(name), (kn_tensor *[]){x, y}, count, NULL, &results[0], 1));
    CHECK_OK(kn_op_call(kn_op_find(name), (kn_tensor *[]){y, y}, count, NULL, &results[1], 1));
    CHECK_OK(kn_read(results[0], found, size));
    CHECK_OK(kn_read(results[1], wanted, size));
    if (memcmp(found, wanted, size) != 0)
        fail_msg("%s of %s differs from that of float32", name, kn_dtype_name(kn_dtype_of(x)));
}

/* Bit by bit, contiguous or not. */
static void functions_of_integers_are_those_of_floats(void **state)
{
    static const kn_dtype dtypes[] = {KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
    static const char *const names[] = {"sin", "tanh", "exp", "atan2"};
    static double values[COUNT];
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        KN_SCOPE;
        for (int i = 0; i < COUNT; i++)
            values[i] = dtypes[d] == KN_BOOL ? i % 2 : dtypes[d] == KN_U8 ? i % 256 : i % 161 - 80;
        kn_tensor *x = tensor_of_doubles(values, 1, shape, dtypes[d], false), *y = kn_to_dtype(x, KN_F32);
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            check_same(names[n], x, y);
            check_same(names[n], kn_slice(x, 0, 1, COUNT, 3), kn_slice(y, 0, 1, COUNT, 3));
        }
    }
}

/* All halves: neg, abs and copysign, which change bits, are those of float32. */
static void signs_of_halves_are_those_of_floats(void **state)
{
    enum { HALVES = 65536 };
    static const char *const names[] = {"neg", "abs", "copysign"};
    static uint16_t bits[HALVES];
    static float found[HALVES], wanted[HALVES];
    (void)state;
    for (int i = 0; i < HALVES; i++)
        bits[i] = (uint16_t)i;
    for (int n = 0; n < 6; n++) {
        KN_SCOPE;
        kn_tensor *x = kn_from_data(bits, KN_SHAPE(HALVES), .dtype = n < 3 ? KN_F16 : KN_BF16), *y[2] = {NULL};
        kn_tensor *wide = kn_to_dtype(x, KN_F32), *other = kn_flip(x, (const int[]){0}, 1);
        const kn_op *op = kn_op_find(names[n % 3]);
        const int count = n % 3 == 2 ? 2 : 1;
        CHECK_OK(kn_op_call(op, (kn_tensor *[]){x, other}, count, NULL, &y[0], 1));
        CHECK_OK(kn_op_call(op, (kn_tensor *[]){wide, kn_to_dtype(other, KN_F32)}, count, NULL, &y[1], 1));
        CHECK_OK(kn_read(kn_to_dtype(y[0], KN_F32), found, sizeof found));
        CHECK_OK(kn_read(y[1], wanted, sizeof wanted));
        for (int i = 0; i < HALVES; i++)
            if (!(isnan(found[i]) && isnan(wanted[i])) && memcmp(&found[i], &wanted[i], sizeof *found) != 0)
                fail_msg("%s of half %#x is %g, should be %g", names[n % 3], i, (double)found[i], (double)wanted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(float_functions_are_exact_to_a_few_roundings),
        TEST(double_functions_are_exact_to_a_few_roundings),
        TEST(functions_of_integers_are_those_of_floats),
        TEST(signs_of_halves_are_those_of_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
