/* test_halves.c - every float16 becomes the float that it is, and floats become the nearest float16, ties to even, by
 * each of the ways that kernels convert them (cl/common/half.clh). */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "support/as_gpu.h"

enum { HALVES = 1 << 16, ROW = 16 };

/* NaN is equal to NaN. */
static bool same_float(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }
static bool same_half(uint16_t a, uint16_t b) { return a == b || ((a & 0x7fffu) > 0x7c00u && (b & 0x7fffu) > 0x7c00u); }

static kn_tensor *all_halves(void)
{
    static uint16_t bits[HALVES];
    for (int i = 0; i < HALVES; i++)
        bits[i] = (uint16_t)i;
    return kn_view_dtype(kn_from_data(bits, KN_SHAPE(HALVES), .dtype = KN_I16), KN_F16);
}

/* `step`: between the halves that the elements of x should be. */
static void expect_floats(const char *way, kn_tensor *x, int step)
{
    static float values[HALVES];
    const int count = (HALVES + step - 1) / step;
    CHECK_OK(kn_read(x, values, (size_t)count * sizeof *values));
    for (int i = 0; i < count; i++)
        if (!same_float(values[i], kn_half_to_float((uint16_t)(i * step))))
            fail_msg("%s: 0x%04x is %a, not %a", way, (unsigned)(i * step), (double)values[i],
                     (double)kn_half_to_float((uint16_t)(i * step)));
}

TENSOR_TEST(halves_become_floats)
{
    kn_tensor *x = all_halves();
    expect_floats("a copy", kn_to_dtype(x, KN_F32), 1);
    expect_floats("every third", kn_to_dtype(kn_slice(x, 0, 0, KN_SLICE_END, 3), KN_F32), 3);
    expect_floats("with a condition", kn_where(kn_isnan(x), kn_full(KN_SHAPE(1), NAN), kn_to_dtype(x, KN_F32)), 1);
    if (kn_device_limits(kn_device_current())->has_f64)
        expect_floats("by way of double", kn_to_dtype(kn_to_dtype(x, KN_F64), KN_F32), 1);
}

/* Floats around the halves, their ties, and the ends of the range: all upper halves of bits with some lower ones. */
enum { LOWER = 10, FLOATS = HALVES * LOWER };
static float *floats(void)
{
    static const uint32_t lower[LOWER] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x8000, 0xffff};
    float *values = malloc(FLOATS * sizeof *values);
    assert_non_null(values);
    for (uint32_t i = 0; i < FLOATS; i++) {
        const uint32_t bits = i / LOWER << 16 | lower[i % LOWER];
        memcpy(&values[i], &bits, sizeof bits);
    }
    return values;
}

static void expect_halves(const char *way, kn_tensor *x, const float *from, int step)
{
    const int count = (FLOATS + step - 1) / step;
    uint16_t *bits = malloc((size_t)count * sizeof *bits);
    assert_non_null(bits);
    CHECK_OK(kn_read(kn_view_dtype(x, KN_I16), bits, (size_t)count * sizeof *bits));
    for (int i = 0; i < count; i++)
        if (!same_half(bits[i], kn_float_to_half(from[i * step])))
            fail_msg("%s: %a is 0x%04x, not 0x%04x", way, (double)from[i * step], bits[i],
                     kn_float_to_half(from[i * step]));
    free(bits);
}

TENSOR_TEST(floats_become_halves)
{
    float *from = floats();
    kn_tensor *x = kn_from_data(from, KN_SHAPE(FLOATS), .dtype = KN_F32),
              *y = kn_empty(KN_SHAPE(FLOATS, 2), .dtype = KN_F16);
    expect_halves("a copy", kn_to_dtype(x, KN_F16), from, 1);
    expect_halves("every third", kn_to_dtype(kn_slice(x, 0, 0, KN_SLICE_END, 3), KN_F16), from, 3);
    CHECK_OK(kn_copy_(kn_select(y, 1, 0), x) ? KN_OK : kn_error_status());
    expect_halves("to every other", kn_contiguous(kn_select(y, 1, 0)), from, 1);
    if (kn_device_limits(kn_device_current())->has_f64)
        expect_halves("by way of double", kn_to_dtype(kn_to_dtype(x, KN_F64), KN_F16), from, 1);
    free(from);
}

/* Reductions read vectors of their own. */
TENSOR_TEST(rows_of_halves)
{
    float largest[HALVES / ROW];
    kn_tensor *rows = kn_reshape(all_halves(), KN_SHAPE(HALVES / ROW, ROW));
    CHECK_OK(kn_read(kn_to_dtype(kn_amax(rows, (const int[]){1}, 1, false), KN_F32), largest, sizeof largest));
    for (int i = 0; i < HALVES / ROW; i++) {
        float expected = -INFINITY;
        for (int j = 0; j < ROW; j++) {
            const float value = kn_half_to_float((uint16_t)(i * ROW + j));
            expected = value > expected || isnan(value) ? value : expected;
        }
        if (!same_float(largest[i], expected))
            fail_msg("row %d: %a, not %a", i, (double)largest[i], (double)expected);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(halves_become_floats),
        TEST(floats_become_halves),
        TEST(rows_of_halves),
    };
    obey_as_gpu(argc, argv);
    obey_vector_width(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
