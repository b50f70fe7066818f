/* Ranges are forwarded to a tool in the process: test_range_tools LIBRARY [load]. The library is a fake (fake_tool.c),
 * loaded through an environment variable or, with `load`, already loaded. */
#include <dlfcn.h>
#include <string.h>

#include "support/check.h"

static const char *library_path;
static void *library;

static const char *told(void)
{
    const char *(*log)(void) = NULL;
    void *symbol = dlsym(library, "fake_tool_log");
    memcpy(&log, &symbol, sizeof log);
    assert_non_null(log);
    return log();
}

static void ranges_are_passed_on(void **state)
{
    uint64_t id;
    (void)state;
    CHECK_OK(kn_range_push("outer"));
    CHECK_OK(kn_range_push_format("step %d", 3));
    CHECK_OK(kn_mark("here"));
    CHECK_OK(kn_range_pop());
    CHECK_OK(kn_range_pop());
    assert_int_equal(kn_range_pop(), KN_ERR_STATE); /* not forwarded */
    kn_error_clear();
    id = kn_range_start("elsewhere");
    CHECK_OK(kn_range_end(id));
    assert_string_equal(told(), "push outer;push step 3;mark here;pop ;pop ;start elsewhere;end 42;");
}

static int count(const char *text, const char *word)
{
    int found = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        found++;
    return found;
}

static void operations_are_passed_on_when_asked_for(void **state)
{
    (void)state;
    size_t before = strlen(told());
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(2, 3), .requires_grad = true);
        assert_true(kn_emit_ranges(true, true));
        kn_tensor *y = kn_sum(kn_relu(x));
        CHECK_OK(kn_backward(y));
        kn_emit_ranges(false, false);
        kn_relu(x);
    }
    const char *calls = told() + before;
    assert_ptr_equal(strstr(calls, "push relu, sizes = [[2, 3]];pop ;push sum, sizes = [[2, 3]];pop ;"), calls);
    assert_non_null(strstr(calls, "pop ;push relu_backward, sizes = [[2, 3], [2, 3]];pop ;"));
    assert_int_equal(count(calls, "push "), count(calls, "pop "));
    assert_int_equal(count(calls, "push relu,"), 1); /* not after it was switched off */
}

/* While operations are forwarded, kernels are observed, including those that measure peaks for the table. */
static void a_table_may_be_made_meanwhile(void **state)
{
    (void)state;
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(2, 3));
        {
            KN_PROFILE(.with_flops = true);
            kn_relu(x);
        }
        assert_true(kn_emit_ranges(true, false));
        char *table = kn_profiler_table();
        kn_emit_ranges(false, false);
        CHECK_TENSOR((void *)table);
        assert_non_null(strstr(table, "% of peak"));
        kn_free(table);
    }
    kn_profiler_clear();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(ranges_are_passed_on),
        TEST(operations_are_passed_on_when_asked_for),
        TEST(a_table_may_be_made_meanwhile),
    };
    if (argc < 2)
        return 2;
    library_path = argv[1];
    bool load = argc > 2 && strcmp(argv[2], "load") == 0;
    if (load)
        library = dlopen(library_path, RTLD_NOW | RTLD_GLOBAL);
    kn_range_push("looked for here");
    kn_range_pop();
    if (!load)
        library = dlopen(library_path, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return 1;
    memset((char *)(uintptr_t)told(), 0, 4);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
