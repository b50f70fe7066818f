/* test_defaults.c - the defaults of each parameter struct have one definition: a call with NULL, one with the
 * initialiser's struct, and the macro without arguments do the same. tests/params/params.sh checks that no function
 * with such a struct is missing in the tables, defaults_*.c. */
#include "support/check.h"

#include "defaults.h"

#define ADDRESS(family) &family##_defaults,
static const defaults_table *const tables[] = {DEFAULTS_TABLES(ADDRESS)};

static char *seeded(char *(*with)(const void *params), char *(*macro)(void), const void *params)
{
    KN_SCOPE;
    kn_manual_seed(3);
    return with ? with(params) : macro();
}

/* `text`, which it frees, is what the macro gave. */
static bool same(const defaults_row *r, const char *what, char *text, const char *expected)
{
    const bool equal = text && expected && strcmp(text, expected) == 0;
    if (!equal)
        print_error("%s: %s gives\n%s\nand the macro\n%s\n", r->name, what, text ? text : "?",
                    expected ? expected : "?");
    free(text);
    return equal;
}

static bool check_row(const defaults_row *r)
{
    bool fine = true;
    char *expected = seeded(NULL, r->macro, NULL);
    assert_non_null(expected);
    const bool needs_f64 = !check_has_f64() && strstr(expected, "no float64 arithmetic");
    if (is_error(expected) != r->fails && !needs_f64) {
        print_error("%s: the macro gives\n%s\n", r->name, expected);
        fine = false;
    }
    if (!r->give)
        fine = same(r, "NULL", seeded(r->with, NULL, NULL), expected) && fine;
    KN_SCOPE;
    const void *params = r->initialised();
    if (r->give)
        r->give((void *)(uintptr_t)params);
    fine = same(r, "the initialiser", seeded(r->with, NULL, params), expected) && fine;
    free(expected);
    return fine;
}

static void defaults_are_the_same_three_ways(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (int i = 0; i < tables[t]->count; i++)
            wrong += !check_row(&tables[t]->rows[i]);
    kn_profiler_clear();
    forget_outcomes();
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(defaults_are_the_same_three_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
