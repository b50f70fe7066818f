/* The profiler's schedule of steps: which steps are recorded, what on_trace_ready sees. */
#include <string.h>

#include "profiler/training.h"
#include "support/check.h"

typedef struct seen {
    int calls, relus, exps, steps;
} seen;

static void look(void *user)
{
    seen *s = user;
    kn_profiler_row *rows;
    int count;
    s->calls++;
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    s->relus = has_row(rows, count, "relu") ? (int)find_row(rows, count, "relu", false)->count : 0;
    s->exps = has_row(rows, count, "exp") ? (int)find_row(rows, count, "exp", false)->count : 0;
    const kn_profiler_row *step = find_row(rows, count, "ProfilerStep*", false);
    kn_profiler_totals totals;
    s->steps = (int)step->count;
    CHECK_OK(kn_profiler_get_totals(&totals)); /* which include the steps, as in PyTorch: at most 100 % */
    assert_true(step->cpu_time_total > 0 && step->cpu_time_total <= 1.001 * totals.self_cpu_time);
    kn_free(rows);
    assert_int_equal(kn_profiler_stop(), KN_ERR_STATE); /* from inside: rejected */
    kn_error_clear();
}

/* Like torch.profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2): steps 3, 4 and 7, 8 are
 * recorded. */
TENSOR_TEST(the_schedule_is_pytorchs)
{
    seen s = {0};
    kn_tensor *x = kn_ones(KN_SHAPE(10));
    CHECK_OK(kn_profiler_start(.skip_first = 1, .wait = 1, .warmup = 1, .active = 2, .repeat = 2,
                               .on_trace_ready = look, .user = &s));
    for (int step = 0; step < 12; step++) {
        {
            KN_SCOPE;
            kn_relu(x);
            if (step == 3 || step == 7)
                kn_exp(x);
        }
        CHECK_OK(kn_profiler_step());
        assert_int_equal(s.calls, step < 4 ? 0 : step < 8 ? 1 : 2);
    }
    assert_int_equal(s.relus, 2);
    assert_int_equal(s.exps, 1);
    assert_int_equal(s.steps, 2);
    CHECK_OK(kn_profiler_stop());
    assert_int_equal(s.calls, 2);
    char *table = kn_profiler_table(.row_limit = 0); /* the last cycle's */
    assert_non_null(strstr(table, "ProfilerStep*"));
    kn_free(table);
}

TENSOR_TEST(a_stop_inside_a_cycle_completes_it)
{
    seen s = {0};
    kn_tensor *x = kn_ones(KN_SHAPE(10));
    CHECK_OK(kn_profiler_start(.warmup = 1, .active = 5, .on_trace_ready = look, .user = &s));
    for (int step = 0; step < 3; step++) {
        kn_relu(x);
        CHECK_OK(kn_profiler_step());
    }
    kn_relu(x);
    CHECK_OK(kn_profiler_stop());
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.relus, 3);
    assert_int_equal(s.steps, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_schedule_is_pytorchs),
        TEST(a_stop_inside_a_cycle_completes_it),
    };
    return cmocka_run_group_tests(tests, NULL, close_profiler);
}
