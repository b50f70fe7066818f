/* test_scopes.c - ownership of tensors, release of their memory, and statistics of the memory pool. */
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/sanitized.h"

static uint64_t allocated(void) { return kn_memory_allocated(kn_device_current()); }

static void test_scope_releases(void **state)
{
    (void)state;
    uint64_t before = allocated();
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(1000));
        kn_add(kn_mul(x, x), kn_exp(x));
        assert_true(allocated() > before);
    }
    assert_int_equal(allocated(), before);
}

/* break and continue apply to the enclosing loop, and end the scope. */
static void test_break_and_continue(void **state)
{
    (void)state;
    uint64_t before = allocated();
    int rounds = 0, ends = 0;
    for (int i = 0; i < 5; i++) {
        KN_SCOPE;
        KN_NO_GRAD;
        kn_ones(KN_SHAPE(1000));
        rounds++;
        if (i == 1)
            continue;
        if (i == 2)
            break;
        ends++;
    }
    assert_int_equal(rounds, 3);
    assert_int_equal(ends, 1);
    assert_true(kn_grad_enabled());
    assert_int_equal(allocated(), before);
}

/* As a binding does it in a function that the library calls. */
static void test_suspended(void **state)
{
    (void)state;
    uint64_t before = allocated();
    {
        KN_SCOPE;
        int suspended = kn_scope_suspend(), nested = kn_scope_suspend();
        kn_tensor *own = kn_ones(KN_SHAPE(1000)), *sum = NULL;
        {
            KN_SCOPE;
            sum = kn_retain(kn_add(own, own));
        }
        kn_scope_resume(nested);
        kn_tensor *third = kn_exp(sum);
        kn_scope_resume(suspended);
        uint64_t three = allocated();
        kn_release(third);
        kn_release(own);
        assert_true(allocated() < three);
        kn_scope_return(kn_scope_begin(), sum); /* gives it to the scope */
        kn_release(sum);
    }
    assert_int_equal(allocated(), before);
}

static void test_nested_scopes(void **state)
{
    (void)state;
    uint64_t before = allocated();
    int outer = kn_scope_begin();
    assert_true(outer >= 1);
    kn_tensor *kept = kn_ones(KN_SHAPE(1000));
    uint64_t one = allocated();
    int inner = kn_scope_begin();
    assert_int_equal(inner, outer + 1);
    kn_exp(kept);
    assert_true(allocated() > one);
    kn_scope_end(inner);
    assert_int_equal(allocated(), one);
    CHECK_VALUES(kn_narrow(kept, 0, 0, 2), 1, 1);
    /* Ending an outer scope ends the scopes still open inside it. */
    kn_scope_begin();
    kn_exp(kept);
    kn_scope_begin();
    kn_exp(kept);
    kn_scope_end(outer);
    assert_int_equal(allocated(), before);
    kn_scope_end(outer); /* already ended: no effect */
}

static void test_retain(void **state)
{
    (void)state;
    uint64_t before = allocated();
    kn_tensor *kept = NULL;
    {
        KN_SCOPE;
        kept = kn_retain(kn_full(KN_SHAPE(3), 2));
    }
    CHECK_VALUES(kept, 2, 2, 2);
    kn_release(kept);
    assert_int_equal(allocated(), before);
}

static kn_tensor *square_plus_one(kn_tensor *x)
{
    int scope = kn_scope_begin();
    return kn_scope_return(scope, kn_add_scalar(kn_mul(x, x), 1));
}

static void test_scope_return(void **state)
{
    (void)state;
    uint64_t before = allocated();
    {
        KN_SCOPE;
        kn_tensor *x = kn_full(KN_SHAPE(1000), 3);
        uint64_t one = allocated();
        kn_tensor *y = square_plus_one(x);
        assert_int_equal(allocated() - one, one - before); /* one result, no temporary */
        CHECK_VALUES(kn_narrow(y, 0, 0, 1), 10);
        assert_null(square_plus_one(NULL));
        assert_int_not_equal(kn_error_status(), KN_OK);
        kn_error_clear();
    }
    assert_int_equal(allocated(), before);
}

/* Without a scope a result belongs to the caller. */
static void test_without_scope(void **state)
{
    (void)state;
    uint64_t before = allocated();
    kn_tensor *x = kn_ones(KN_SHAPE(1000));
    kn_tensor *same = kn_to(x, kn_device_current()); /* another reference to the same tensor */
    assert_ptr_equal(same, x);
    kn_release(x);
    kn_tensor *sum = kn_sum(same);
    CHECK_VALUES(sum, 1000);
    kn_release(sum);
    kn_release(same);
    assert_int_equal(allocated(), before);
}

static void test_view_keeps_storage(void **state)
{
    (void)state;
    uint64_t before = allocated();
    kn_tensor *base = kn_full(KN_SHAPE(4), 5);
    kn_tensor *view = kn_narrow(base, 0, 1, 2);
    kn_release(base);
    assert_true(allocated() > before);
    CHECK_VALUES(view, 5, 5);
    kn_release(view);
    assert_int_equal(allocated(), before);
}

/* A graph of a thousand steps is freed completely and without deep recursion. */
static void test_long_graph(void **state)
{
    (void)state;
    uint64_t before = allocated();
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true);
        kn_tensor *y = x;
        for (int i = 0; i < 1000; i++)
            y = kn_add_scalar(y, 1);
        CHECK_VALUES(y, 1001, 1001);
    }
    assert_int_equal(allocated(), before);
}

/* Resident memory of the process in bytes. */
static long resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * 4096;
}

static void train_step(kn_tensor *w)
{
    KN_SCOPE;
    kn_tensor *loss = kn_mean(kn_relu(kn_matmul(kn_ones(KN_SHAPE(16, 8)), w)));
    CHECK_TENSOR(loss);
    kn_set_grad(w, NULL);
    CHECK_OK(kn_backward(loss));

    KN_NO_GRAD;
    kn_sub_(w, kn_mul_scalar(kn_grad(w), 0.01));
}

/* By how much the process grows in a thousand steps. */
static long growth(kn_tensor *w)
{
    const long before = resident_bytes();
    for (int step = 0; step < 1000; step++)
        train_step(w);
    kn_synchronize(kn_device_current());
    return resident_bytes() - before;
}

/* Training steps leak no memory, on the device or in the process, once drivers have what they keep. */
static void test_steps_do_not_grow(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    kn_tensor *w = kn_full(KN_SHAPE(8, 8), 0.5, .requires_grad = true);
    for (int step = 0; step < 200; step++)
        train_step(w);
    kn_synchronize(device);
    uint64_t start = allocated(), peak = kn_max_memory_allocated(device), reserved = kn_memory_reserved(device);
    long grown = growth(w);
    for (int again = 0; again < 5 && grown > 2 << 20; again++)
        grown = growth(w);
    assert_int_equal(allocated(), start);
    assert_int_equal(kn_max_memory_allocated(device), peak);
    assert_int_equal(kn_memory_reserved(device), reserved);
    if (!SANITIZED && grown > 2 << 20)
        fail_msg("the process grew by %ld bytes in 1000 steps", grown);
    kn_release(w);
}

static void *thread_body(void *user)
{
    (void)user;
    double total = 0;
    for (int i = 0; i < 20; i++) {
        KN_SCOPE;
        double value = -1;
        kn_tensor *x = kn_full(KN_SHAPE(100), i);
        if (kn_item(kn_sum(kn_add_scalar(x, 1)), &value) == KN_OK)
            total += value;
    }
    return total == 100 * (20 * 21 / 2) ? user : (void *)"wrong sum";
}

/* Scopes and errors are per thread; several threads may use a device. */
static void test_threads(void **state)
{
    (void)state;
    uint64_t before = allocated();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread_body, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    kn_synchronize(kn_device_current());
    assert_int_equal(allocated(), before);
}

static void *end_inside_scopes(void *unused)
{
    (void)unused;
    kn_scope_begin();
    kn_zeros(KN_SHAPE(100));
    kn_scope_begin();
    kn_ones(KN_SHAPE(100));
    return NULL;
}

static void test_thread_ends_inside_scopes(void **state)
{
    (void)state;
    uint64_t before = allocated();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_inside_scopes, NULL), 0);
    pthread_join(thread, NULL);
    kn_synchronize(kn_device_current());
    assert_int_equal(allocated(), before);
}

static void test_memory_figures(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    uint64_t free_bytes = 0, total = 0;
    CHECK_OK(kn_mem_get_info(device, &free_bytes, &total));
    assert_true(free_bytes <= total && total > 0);
    kn_reset_peak_memory_stats(device);
    uint64_t before = allocated();
    {
        KN_SCOPE;
        kn_zeros(KN_SHAPE(1 << 20));
        assert_true(allocated() >= before + (4u << 20));
        assert_true(kn_memory_reserved(device) >= allocated());
    }
    assert_true(kn_max_memory_allocated(device) >= before + (4u << 20));
    assert_true(kn_max_memory_reserved(device) >= kn_max_memory_allocated(device));
    kn_reset_peak_memory_stats(device);
    assert_int_equal(kn_max_memory_allocated(device), allocated());
    uint64_t reserved = kn_memory_reserved(device);
    CHECK_OK(kn_empty_cache(device));
    assert_true(kn_memory_reserved(device) < reserved);
    char *summary = kn_memory_summary(device);
    assert_non_null(summary);
    assert_non_null(strstr(summary, kn_device_string(device)));
    kn_free(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_scope_releases),
        TEST(test_break_and_continue),
        TEST(test_suspended),
        TEST(test_nested_scopes),
        TEST(test_retain),
        TEST(test_scope_return),
        TEST(test_view_keeps_storage),
        TEST(test_long_graph),
        TEST(test_steps_do_not_grow),
        TEST(test_threads),
        TEST(test_thread_ends_inside_scopes),
        TEST(test_memory_figures),
        TEST(test_without_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
