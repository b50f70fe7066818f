/* Pinned host memory: blocks cached by size, statistics, freeing; blocks of the pool for other libraries. */
#include "rt/rt_test.h"

#include <CL/cl.h>
#include <pthread.h>

#include "base/memory.h"
#include "rt/rt.h"

static int64_t stat(const char *key)
{
    int64_t value = -2;
    assert_ok(kn_host_memory_stat(key, &value));
    return value;
}

static int empty(void **state)
{
    (void)state;
    assert_ok(kn_empty_cache(test_device()));
    kn_reset_accumulated_host_memory_stats();
    kn_reset_peak_host_memory_stats();
    return 0;
}

static void blocks_are_kept_and_counted(void **state)
{
    (void)state;
    kn_pinned *first, *second;
    int64_t bytes = stat("allocated_bytes.current"), blocks = stat("allocations.current");
    int64_t active = stat("active_bytes.current");
    assert_ok(kn_pinned_alloc(&first, test_device(), 70000));
    memset(kn_pinned_data(first), 1, 70000);
    assert_int_equal(stat("allocated_bytes.current"), bytes + 131072);
    assert_int_equal(stat("active_bytes.current"), active + 131072);
    kn_pinned_free(first);
    assert_int_equal(stat("active_bytes.current"), active);
    assert_int_equal(stat("allocated_bytes.current"), bytes + 131072);
    assert_ok(kn_pinned_alloc(&second, test_device(), 131072)); /* the same size class */
    assert_ptr_equal(first, second);
    assert_ok(kn_pinned_alloc(&first, test_device(), 131073)); /* not this one */
    assert_int_equal(stat("num_host_alloc"), 2);
    kn_pinned_free(first);
    kn_pinned_free(second);
    assert_ok(kn_empty_cache(test_device()));
    assert_int_equal(stat("allocations.current"), blocks);
    assert_int_equal(stat("num_host_free"), 2);
    assert_int_equal(stat("allocated_bytes.peak"), bytes + 131072 + 262144);
    kn_reset_peak_host_memory_stats();
    assert_int_equal(stat("allocated_bytes.peak"), bytes);
}

static void data_goes_both_ways(void **state)
{
    (void)state;
    enum { N = 3000 };
    kn_stream *stream = kn_stream_default(test_device());
    kn_buffer *buffer;
    kn_pinned *pinned;
    assert_ok(kn_buffer_alloc(&buffer, stream, N));
    for (int round = 0; round < 3; round++) { /* the block is reused each time */
        char seen[N];
        assert_ok(kn_pinned_alloc(&pinned, test_device(), N));
        memset(kn_pinned_data(pinned), 'a' + round, N);
        assert_ok(kn_buffer_write_pinned(stream, buffer, 0, pinned, 0, N));
        assert_ok(kn_buffer_read(stream, buffer, 0, seen, N));
        assert_int_equal(seen[0], 'a' + round);
        assert_int_equal(seen[N - 1], 'a' + round);
        kn_pinned_free(pinned);
    }
    kn_buffer_free(buffer);
}

static void the_keys_are_pytorchs(void **state)
{
    (void)state;
    kn_memory_stat_entry entries[KN_MEMORY_STATS];
    int count = kn_host_memory_stats(entries, KN_MEMORY_STATS);
    assert_int_equal(count, 4 * 4 + 2);
    assert_string_equal(entries[0].key, "active_bytes.allocated");
    assert_string_equal(entries[count - 1].key, "num_host_free");
    int64_t value;
    assert_int_equal(kn_host_memory_stat("allocations", &value), KN_ERR_ARGUMENT);
    assert_message("there is no statistic `allocations`");
    assert_int_equal(kn_host_memory_stat(NULL, &value), KN_ERR_ARGUMENT);
    assert_message("key");
    assert_int_equal(kn_host_memory_stats(NULL, 3), 0);
    assert_message("entries");
}

static void without_host_memory_it_fails_and_recovers(void **state)
{
    (void)state;
    kn_pinned *pinned = NULL;
    kn_fail_alloc_after(1, 1);
    assert_int_equal(kn_pinned_alloc(&pinned, test_device(), 5000), KN_ERR_MEMORY);
    kn_fail_alloc_after(0, 0);
    kn_error_clear();
    assert_ok(kn_pinned_alloc(&pinned, test_device(), 5000));
    kn_pinned_free(pinned);
    kn_pinned *plain;
    assert_ok(kn_pinned_alloc(&plain, kn_device_host(), 100)); /* for the host: ordinary memory */
    memset(kn_pinned_data(plain), 0, 100);
    kn_pinned_free(plain);
}

static void *come_and_go(void *unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++) {
        kn_pinned *pinned;
        if (kn_pinned_alloc(&pinned, test_device(), (size_t)4096 << (i % 3)) != KN_OK)
            return (void *)1;
        *(volatile char *)kn_pinned_data(pinned) = (char)i;
        kn_pinned_free(pinned);
    }
    return NULL;
}

static void threads_share_the_blocks(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *failed;
    int64_t before = stat("active_requests.current");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(stat("active_requests.current"), before);
    assert_true(stat("num_host_alloc") <= 12);
}

static void blocks_of_the_pool_serve_others(void **state)
{
    (void)state;
    kn_memory_block *block = NULL, *second = NULL;
    kn_device *device = test_device();
    uint64_t before = kn_memory_allocated(device);
    assert_new(block = kn_caching_allocator_alloc(1000, device, NULL));
    assert_new(second = kn_caching_allocator_alloc(1000, device, kn_stream_default(device)));
    assert_int_equal(kn_memory_allocated(device), before + 2048);
    assert_non_null(kn_memory_block_object(block));
    assert_ptr_equal(kn_memory_block_object(block), kn_memory_block_object(second)); /* one segment */
    assert_int_not_equal(kn_memory_block_offset(block), kn_memory_block_offset(second));
    assert_int_equal(kn_memory_block_offset(second) % 512, 0);
    kn_caching_allocator_delete(block);
    kn_caching_allocator_delete(second);
    kn_caching_allocator_delete(NULL);
    assert_int_equal(kn_memory_allocated(device), before);
    assert_int_equal(kn_status_of(block = kn_caching_allocator_alloc(10, kn_device_host(), NULL)), KN_ERR_DEVICE);
    kn_error_clear();
    assert_int_equal(kn_status_of(block = kn_caching_allocator_alloc(10, NULL, NULL)), KN_ERR_ARGUMENT);
    assert_message("device");
    assert_null(kn_memory_block_object(NULL));
    assert_message("block");
}

/* --- a user-defined allocator ----------------------------------------------------------------- */

typedef struct own_allocator {
    int allocated, released;
    size_t largest; /* rejects more */
} own_allocator;

static void *own_allocate(void *user, kn_device *device, void *context, size_t bytes)
{
    own_allocator *own = user;
    assert_ptr_equal(device, test_device());
    own->allocated += bytes <= own->largest;
    return bytes <= own->largest ? clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL) : NULL;
}

static void own_release(void *user, kn_device *device, void *memory)
{
    (void)device;
    ((own_allocator *)user)->released++;
    clReleaseMemObject(memory);
}

static void segments_come_from_the_users_functions(void **state)
{
    (void)state;
    own_allocator own = {.largest = 4 << 20};
    kn_pluggable_allocator allocator = {own_allocate, NULL, &own};
    assert_int_equal(kn_change_current_allocator(&allocator), KN_ERR_ARGUMENT);
    assert_message("release");
    allocator.release = own_release;
    assert_ok(kn_change_current_allocator(&allocator));
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(100));
        double sum;
        assert_ok(kn_item(kn_sum(x), &sum));
        assert_true(sum == 100);
        assert_int_equal(kn_change_current_allocator(NULL), KN_ERR_STATE);
        assert_message("kn_empty_cache");
        assert_null(kn_zeros(KN_SHAPE(4 << 20)));
        assert_message("out of memory");
    }
    assert_true(own.allocated > 0);
    assert_ok(kn_empty_cache(test_device()));
    assert_int_equal(own.released, own.allocated);
    assert_ok(kn_change_current_allocator(NULL));
    {
        KN_SCOPE;
        assert_non_null(kn_ones(KN_SHAPE(100)));
    }
    assert_int_equal(own.released, own.allocated);
}

#define PINNED_TEST(function) cmocka_unit_test_setup(function, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PINNED_TEST(blocks_are_kept_and_counted),
        PINNED_TEST(data_goes_both_ways),
        PINNED_TEST(the_keys_are_pytorchs),
        PINNED_TEST(without_host_memory_it_fails_and_recovers),
        PINNED_TEST(threads_share_the_blocks),
        PINNED_TEST(blocks_of_the_pool_serve_others),
        PINNED_TEST(segments_come_from_the_users_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
