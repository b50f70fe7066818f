/* test_stress.c - four threads with random streams, events, allocations, private pools, copies, pinned memory, graphs,
 * backward passes, collectives and operations on two devices, switching the profiler on and off, for
 * KOINE_STRESS_SECONDS; each thread's values must equal those of a sequential run of the same random actions on the
 * default stream, bit for bit, and nothing may leak. A failure prints its seed, which KOINE_STRESS_SEED reproduces. */
#include "rt/stream/stress.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, CHOICES = 60 };

/* --- a course --------------------------------------------------------------------------------- */

static void prepare(course *c)
{
    c->length = 2 + draw(c, 40000);
    EXPECT(kn_status_of(c->pool = kn_mem_pool_new(c->device)));
    for (int i = 0; i < STRESS_STREAMS && c->concurrent; i++)
        EXPECT(kn_status_of(c->streams[i] = kn_stream_new(c->device)));
    for (int v = 0; v < STRESS_VALUES; v++) {
        EXPECT(kn_status_of(c->written[v] = kn_event_new(c->device)));
        if (c->concurrent)
            EXPECT(kn_stream_set_current(c->streams[draw(c, STRESS_STREAMS)]));
        else
            draw(c, STRESS_STREAMS);
        kn_tensor *ramp = kn_arange(0, (double)c->length, 1, .dtype = KN_F32);
        put(c, v, kn_add_scalar(kn_mul_scalar(ramp, (v + 1) / 1024.0), -(double)draw(c, 9)));
    }
}

static void leave(course *c)
{
    for (int i = 0; i < STRESS_STREAMS && c->concurrent; i++) {
        EXPECT(kn_stream_synchronize(c->streams[i]));
        EXPECT(kn_stream_wait_stream(kn_stream_default(c->device), c->streams[i]));
    }
    EXPECT(kn_stream_set_current(kn_stream_default(c->device)));
    for (int i = 0; i < STRESS_STREAMS && c->concurrent; i++)
        EXPECT(kn_stream_free(c->streams[i]));
    for (int v = 0; v < STRESS_VALUES; v++)
        kn_event_free(c->written[v]);
    kn_mem_pool_free(c->pool);
    if (c->profiles && kn_profiler_is_running())
        EXPECT(kn_profiler_stop());
    expect(c, c->expected_callbacks == atomic_load(&c->callbacks), "callbacks");
}

static void *run(void *user)
{
    course *c = user;
    expect(c, kn_device_set_current(c->device) == KN_OK, "the device");
    {
        KN_SCOPE;
        prepare(c);
    }
    for (int i = 0; i < CHOICES && c->problems == 0; i++) {
        uint32_t choice = draw(c, (uint32_t)stress_num_choices);
        int a = (int)draw(c, STRESS_VALUES), b = (int)draw(c, STRESS_VALUES), to = (int)draw(c, STRESS_VALUES);

        KN_SCOPE;
        stress_choices[choice](c, a, b, to);
    }
    leave(c);
    return NULL;
}

static void compare(const course *one, const course *two, uint64_t seed)
{
    if (one->problems || two->problems)
        fail_msg("seed %llu: %s%s", (unsigned long long)seed, one->message, two->message);
    size_t bytes = (size_t)one->length * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes);
    for (int v = 0; v < STRESS_VALUES; v++) {
        assert_ok(kn_read(one->values[v], x, bytes));
        assert_ok(kn_read(two->values[v], y, bytes));
        for (int64_t i = 0; i < one->length; i++)
            if (memcmp(&x[i], &y[i], sizeof(float)) != 0)
                fail_msg("seed %llu: value %d differs at %lld of %lld: %g, sequentially %g", (unsigned long long)seed,
                         v, (long long)i, (long long)one->length, (double)x[i], (double)y[i]);
        kn_release(one->values[v]);
        kn_release(two->values[v]);
    }
    if (memcmp(&one->checksum, &two->checksum, sizeof(double)) != 0)
        fail_msg("seed %llu: the sums differ: %g, sequentially %g", (unsigned long long)seed, one->checksum,
                 two->checksum);
    free(x);
    free(y);
}

static void episode(uint64_t seed)
{
    course together[THREADS] = {0}, alone[THREADS] = {0};
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        kn_device *device = kn_device_at(t % kn_device_count()), *other = kn_device_at((t + 1) % kn_device_count());
        together[t] = (course){.random = seed * THREADS + (uint64_t)t,
                               .concurrent = true,
                               .profiles = t == 0,
                               .device = device,
                               .other = other};
        alone[t] = (course){.random = seed * THREADS + (uint64_t)t, .device = device, .other = other};
        assert_int_equal(pthread_create(&threads[t], NULL, run, &together[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    kn_profiler_clear();
    for (int t = 0; t < THREADS; t++) {
        run(&alone[t]);
        compare(&together[t], &alone[t], seed);
    }
    for (int d = 0; d < kn_device_count(); d++)
        assert_int_equal(kn_memory_allocated(kn_device_at(d)), 0);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void threads_agree_with_a_sequential_run(void **state)
{
    (void)state;
    const char *seconds = getenv("KOINE_STRESS_SECONDS"), *first = getenv("KOINE_STRESS_SEED");
    double end = seconds_now() + (seconds ? atof(seconds) : 5);
    uint64_t start = first ? strtoull(first, NULL, 10) : 1, seed = start;
    do
        episode(seed++);
    while (seconds_now() < end);
    print_message("%llu episodes of %d threads, %d choices each\n", (unsigned long long)(seed - start), THREADS,
                  CHOICES);
    for (int d = 0; d < kn_device_count(); d++) { /* no graph, event or stream holds memory any more */
        assert_ok(kn_empty_cache(kn_device_at(d)));
        assert_int_equal(kn_memory_reserved(kn_device_at(d)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_agree_with_a_sequential_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
