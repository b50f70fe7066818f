/* test_whole_division.c - quotients and remainders of int64 are exact for all sizes of numbers, by tensors and by
 * numbers; indices as coordinates. */
#include "support/check.h"

#include <stdint.h>

#include "support/as_gpu.h"

static const int64_t numbers[] = {1,
                                  2,
                                  3,
                                  7,
                                  10,
                                  1023,
                                  INT64_C(1) << 31,
                                  (INT64_C(1) << 32) - 1,
                                  (INT64_C(1) << 52) + 1,
                                  INT64_C(1) << 53,
                                  (INT64_C(1) << 53) + 1,
                                  INT64_C(6148914691236517205),
                                  (INT64_C(1) << 62) - 1,
                                  INT64_C(1) << 62,
                                  (INT64_C(1) << 62) + 1,
                                  INT64_MAX - 1024,
                                  INT64_MAX - 1};
enum { NUMBERS = sizeof numbers / sizeof *numbers, VALUES = 2 * NUMBERS + 3, PAIRS = VALUES * VALUES };

static void make_values(int64_t *values)
{
    for (int i = 0; i < NUMBERS; i++) {
        values[i] = numbers[i];
        values[NUMBERS + i] = -numbers[i];
    }
    values[2 * NUMBERS] = 0;
    values[2 * NUMBERS + 1] = INT64_MAX;
    values[2 * NUMBERS + 2] = INT64_MIN;
}

/* By 0 and -1, which C does not divide all numbers by, as 1. */
static int64_t divisor_of(int64_t b) { return b == 0 || b == -1 ? 1 : b; }

static void check(kn_tensor *quotients, kn_tensor *rests, const int64_t *a, const int64_t *b, int count, bool repeats)
{
    static int64_t quotient[PAIRS], rest[PAIRS];
    CHECK_OK(kn_read(quotients, quotient, (size_t)count * sizeof *quotient));
    CHECK_OK(kn_read(rests, rest, (size_t)count * sizeof *rest));
    for (int i = 0; i < count; i++) {
        const int64_t by = b[repeats ? 0 : i];
        assert_int_equal(quotient[i], a[i] / by);
        assert_int_equal(rest[i], a[i] % by);
    }
}

TENSOR_TEST(quotients_of_tensors_are_exact)
{
    static int64_t values[VALUES], a[PAIRS], b[PAIRS];
    make_values(values);
    for (int i = 0; i < PAIRS; i++) {
        a[i] = values[i / VALUES];
        b[i] = divisor_of(values[i % VALUES]);
    }
    kn_tensor *x = kn_from_data(a, KN_SHAPE(PAIRS), .dtype = KN_I64);
    kn_tensor *y = kn_from_data(b, KN_SHAPE(PAIRS), .dtype = KN_I64);
    check(kn_div_mode(x, y, KN_ROUNDING_TRUNC), kn_fmod(x, y), a, b, PAIRS, false);
}

TENSOR_TEST(quotients_by_numbers_are_exact)
{
    static int64_t values[VALUES];
    make_values(values);
    kn_tensor *x = kn_from_data(values, KN_SHAPE(VALUES), .dtype = KN_I64);
    for (int i = 0; i < VALUES; i++) {
        const int64_t by = divisor_of(values[i]);
        kn_tensor *rests = kn_fmod_scalar(x, by);
        check(kn_floor_divide_scalar(kn_sub(x, rests), by), rests, values, &by, VALUES, true);
    }
}

/* Also of negative numbers and those beyond the shape, which wrap. */
TENSOR_TEST(coordinates_leave_no_temporaries)
{
    static const int64_t places[] = {0, 1, 23, 24, -1};
    kn_tensor *at[3], *x = kn_from_data(places, KN_SHAPE(5), .dtype = KN_I64);
    const uint64_t before = kn_memory_allocated(kn_device_current());
    for (int d = 0; d < 3; d++)
        CHECK_TENSOR(kn_empty(KN_SHAPE(5), .dtype = KN_I64));
    const uint64_t three = kn_memory_allocated(kn_device_current()) - before;
    CHECK_OK(kn_unravel_index(x, KN_SHAPE(2, 3, 4), at));
    assert_int_equal(kn_memory_allocated(kn_device_current()) - before, 2 * three);
    CHECK_VALUES(at[0], 0, 0, 1, 0, 1);
    CHECK_VALUES(at[1], 0, 0, 2, 0, 2);
    CHECK_VALUES(at[2], 0, 1, 3, 0, 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(quotients_of_tensors_are_exact),
        TEST(quotients_by_numbers_are_exact),
        TEST(coordinates_leave_no_temporaries),
    };
    obey_as_gpu(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
