/* The caching pool: reuse, splitting and merging, figures, random traffic. */
#include "rt/rt_test.h"

#include <pthread.h>

#include "rt/memory/pool.h"
#include "rt/rt.h"
#include "tensor/philox.h"

#define MIB ((size_t)1 << 20)

static void a_freed_block_is_reused(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());
    kn_buffer *first, *second;
    assert_ok(kn_buffer_alloc(&first, stream, 3000));
    uint64_t asked = kn_pool_read_figures(test_device()).driver_allocations;
    kn_buffer_free(first);
    assert_ok(kn_buffer_alloc(&second, stream, 2500));
    assert_int_equal(kn_pool_read_figures(test_device()).driver_allocations, asked);
    kn_buffer_free(second);
}

static void neighbours_merge(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *stream = kn_stream_default(device);
    kn_buffer *parts[4];
    assert_ok(kn_empty_cache(device));
    for (int i = 0; i < 4; i++) /* four quarters of one 20 MiB segment */
        assert_ok(kn_buffer_alloc(&parts[i], stream, 5 * MIB));
    assert_int_equal(kn_memory_reserved(device), 20 * MIB);
    kn_buffer_free(parts[1]);
    kn_buffer_free(parts[3]);
    kn_buffer_free(parts[2]); /* between two free blocks */
    kn_buffer *whole;
    assert_ok(kn_buffer_alloc(&whole, stream, 9 * MIB));
    assert_int_equal(kn_memory_reserved(device), 20 * MIB);
    kn_buffer_free(whole);
    kn_buffer_free(parts[0]);
    assert_ok(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 0);
}

static void figures_follow_tensors(void **state)
{
    (void)state;
    kn_device *device = test_device();
    uint64_t before = kn_memory_allocated(device);
    kn_reset_peak_memory_stats(device);
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(1000, 1000)));
        assert_true(kn_memory_allocated(device) >= before + 4000000);
    }
    assert_int_equal(kn_memory_allocated(device), before);
    assert_true(kn_max_memory_allocated(device) >= before + 4000000);
    uint64_t free_bytes, total_bytes;
    assert_ok(kn_mem_get_info(device, &free_bytes, &total_bytes));
    assert_true(free_bytes <= total_bytes && total_bytes > 0);
    char *summary = kn_memory_summary(device);
    assert_non_null(strstr(summary, "Allocated memory"));
    assert_non_null(strstr(summary, "Peak Usage"));
    kn_free(summary);
}

/* 4,000 allocations and frees of sizes from bytes to megabytes: each live buffer keeps its own mark. */
static void random_traffic_keeps_values(void **state)
{
    (void)state;
    enum { LIVE = 64, ROUNDS = 4000 };
    kn_device *device = test_device();
    kn_stream *stream = kn_stream_default(device);
    kn_buffer *buffers[LIVE] = {NULL};
    uint32_t marks[LIVE] = {0}, words[4];
    for (int round = 0; round < ROUNDS; round++) {
        kn_philox_block(words, 7, 0, (uint64_t)round);
        int slot = (int)(words[0] % LIVE);
        if (buffers[slot]) {
            uint32_t seen;
            assert_ok(kn_buffer_read(stream, buffers[slot], 0, &seen, sizeof seen));
            assert_int_equal(seen, marks[slot]);
            kn_buffer_free(buffers[slot]);
            buffers[slot] = NULL;
        } else {
            size_t bytes = sizeof(uint32_t) + (words[1] % 8 == 0 ? words[2] % (4 * MIB) : words[2] % 5000);
            assert_ok(kn_buffer_alloc(&buffers[slot], stream, bytes));
            marks[slot] = words[3];
            assert_ok(kn_buffer_write(stream, buffers[slot], 0, &marks[slot], sizeof marks[slot]));
        }
    }
    for (int slot = 0; slot < LIVE; slot++)
        kn_buffer_free(buffers[slot]);
    assert_int_equal(kn_pool_read_figures(device).stats[KN_STAT_ALLOCATION][KN_PART_ALL].current, 0);
    assert_ok(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 0);
}

static void *destroy_stream(void *stream) { return kn_stream_free(stream) == KN_OK ? NULL : stream; }

/* The memory of a destroyed stream passes to the default stream, also while another still uses it. */
static void a_stream_goes_while_others_use_its_memory(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());
    for (int round = 0; round < 20; round++) {
        kn_stream *side;
        kn_buffer *buffer;
        pthread_t thread;
        void *failed;
        char seen = 0;
        assert_new(side = kn_stream_new(test_device()));
        assert_ok(kn_buffer_alloc(&buffer, side, 100));
        assert_int_equal(pthread_create(&thread, NULL, destroy_stream, side), 0);
        for (int i = 0; i < 50; i++)
            assert_ok(kn_buffer_fill(stream, buffer, 0, "x", 1, 100));
        pthread_join(thread, &failed);
        assert_null(failed);
        assert_ok(kn_buffer_read(stream, buffer, 99, &seen, 1));
        assert_int_equal(seen, 'x');
        kn_buffer_free(buffer);
    }
}

static void zero_bytes_are_a_buffer(void **state)
{
    (void)state;
    kn_buffer *buffer;
    assert_ok(kn_buffer_alloc(&buffer, kn_stream_default(test_device()), 0));
    kn_buffer_free(buffer);
}

static void too_much_is_refused_and_survived(void **state)
{
    (void)state;
    kn_buffer *buffer = NULL;
    kn_device *device = test_device();
    assert_int_equal(kn_buffer_alloc(&buffer, kn_stream_default(device), (size_t)1 << 50), KN_ERR_MEMORY);
    assert_message("out of memory");
    assert_null(kn_zeros(KN_SHAPE((int64_t)1 << 40, 4)));
    assert_message("asked for 16.0 TiB");
    assert_null(kn_zeros(KN_SHAPE(INT64_MAX / 2, 4)));
    assert_message("too large");

    KN_SCOPE;
    assert_non_null(kn_zeros(KN_SHAPE(10)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freed_block_is_reused),
        cmocka_unit_test(neighbours_merge),
        cmocka_unit_test(figures_follow_tensors),
        cmocka_unit_test(random_traffic_keeps_values),
        cmocka_unit_test(zero_bytes_are_a_buffer),
        cmocka_unit_test(too_much_is_refused_and_survived),
        cmocka_unit_test(a_stream_goes_while_others_use_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
