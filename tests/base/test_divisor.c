/* test_divisor.c - division by multiplication: every small divisor, those next to powers of 2, the largest, each at the
 * numbers next to its multiples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/divisor.h"

enum { LAST = 0x7fffffff };

static void check(uint32_t n, uint32_t d)
{
    const kn_divisor divisor = kn_divisor_of(d);
    if (kn_quotient(n, divisor) != n / d)
        fail_msg("%u / %u is %u, not %u", n, d, n / d, kn_quotient(n, divisor));
}

static void check_divisor(uint32_t d)
{
    const uint32_t most = LAST / d, multiples[] = {0, 1, 2, 3, most / 3, most / 2, most - 1, most};
    for (unsigned i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        const uint32_t n = multiples[i] > most ? 0 : multiples[i] * d;
        check(n, d);
        check(n > 0 ? n - 1 : 0, d);
        check(n < LAST ? n + 1 : LAST, d);
    }
    check(LAST, d);
    check(LAST - 1, d);
}

static void test_divisors(void **state)
{
    (void)state;
    for (uint32_t d = 1; d < 100000; d++)
        check_divisor(d);
    for (int bit = 2; bit < 31; bit++)
        for (int off = -2; off <= 2; off++)
            check_divisor((uint32_t)((1 << bit) + off));
    for (uint32_t d = LAST; d > LAST - 100000; d--)
        check_divisor(d);
}

/* The divisor that means no division. */
static void test_none(void **state)
{
    (void)state;
    assert_int_equal(kn_quotient(12345, kn_divisor_of(0)), 12345);
    assert_int_equal(kn_quotient(12345, kn_divisor_of(1)), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_divisors), cmocka_unit_test(test_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
