/* torch.cuda.memory_stats: the keys, what each counts, resetting, the table. */
#include "rt/rt_test.h"

#include <stdio.h>

#include "rt/rt.h"

#define MIB ((int64_t)1 << 20)

static int64_t stat(const char *key)
{
    int64_t value = -2;
    assert_ok(kn_memory_stat(test_device(), key, &value));
    return value;
}

static int empty(void **state)
{
    (void)state;
    assert_ok(kn_empty_cache(test_device()));
    kn_reset_accumulated_memory_stats(test_device());
    kn_reset_peak_memory_stats(test_device());
    return 0;
}

static bool has(const kn_memory_stat_entry *entries, int count, const char *key)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entries[i].key, key) == 0)
            return true;
    return false;
}

static void the_keys_are_pytorchs(void **state)
{
    (void)state;
    static const char *const figures[] = {"allocation",      "segment",        "active",       "inactive_split",
                                          "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
                                          "requested_bytes"};
    static const char *const pools[] = {"all", "large_pool", "small_pool"};
    static const char *const metrics[] = {"current", "peak", "allocated", "freed"};
    static const char *const singles[] = {
        "num_alloc_retries",    "num_ooms",       "num_device_alloc",          "num_device_free",
        "num_sync_all_streams", "max_split_size", "oversize_segments.current", "oversize_allocations.peak"};
    kn_memory_stat_entry entries[KN_MEMORY_STATS];
    int count = kn_memory_stats(test_device(), entries, KN_MEMORY_STATS);
    assert_int_equal(count, 9 * 3 * 4 + 2 * 4 + 6);
    for (int i = 1; i < count; i++)
        assert_true(strcmp(entries[i - 1].key, entries[i].key) < 0);
    for (int f = 0; f < 9; f++)
        for (int p = 0; p < 3; p++)
            for (int m = 0; m < 4; m++) {
                char key[KN_MEMORY_STAT_KEY];
                snprintf(key, sizeof key, "%s.%s.%s", figures[f], pools[p], metrics[m]);
                assert_true(has(entries, count, key));
            }
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++)
        assert_true(has(entries, count, singles[i]));
    kn_memory_stat_entry few[3] = {{"", 0}};
    assert_int_equal(kn_memory_stats(test_device(), few, 2), count);
    assert_string_equal(few[2].key, "");
}

static void they_count_what_pytorch_counts(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());
    kn_buffer *small, *large;
    int64_t outside = stat("allocation.all.current"); /* other tests' tensors: none */
    assert_ok(kn_buffer_alloc(&small, stream, 1000));
    assert_ok(kn_buffer_alloc(&large, stream, 3 * (size_t)MIB));
    assert_int_equal(stat("allocation.all.current"), outside + 2);
    assert_int_equal(stat("allocation.small_pool.current"), 1);
    assert_int_equal(stat("requested_bytes.small_pool.current"), 1000);
    assert_int_equal(stat("allocated_bytes.small_pool.current"), 1024);
    assert_int_equal(stat("reserved_bytes.small_pool.current"), 2 * MIB);
    assert_int_equal(stat("reserved_bytes.large_pool.current"), 20 * MIB);
    assert_int_equal(stat("segment.all.current"), 2);
    assert_int_equal(stat("num_device_alloc"), 2);
    assert_int_equal(stat("inactive_split.all.current"), 2); /* the remainders of both segments */
    assert_int_equal(stat("inactive_split_bytes.large_pool.current"), 17 * MIB);
    kn_buffer_free(large);
    assert_int_equal(stat("inactive_split.large_pool.current"), 0); /* merged again: it could be freed */
    assert_int_equal(stat("allocated_bytes.large_pool.freed"), 3 * MIB);
    assert_int_equal(stat("allocated_bytes.large_pool.peak"), 3 * MIB);
    assert_int_equal(stat("active_bytes.large_pool.current"), 0);
    kn_buffer_free(small);
    assert_ok(kn_empty_cache(test_device()));
    assert_int_equal(stat("reserved_bytes.all.current"), 0);
    assert_int_equal(stat("num_device_free"), 2);
    assert_int_equal(stat("segment.all.freed"), 2);
}

static void peaks_and_sums_are_reset_apart(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_buffer *buffer;
    assert_ok(kn_buffer_alloc(&buffer, kn_stream_default(device), 5000));
    kn_buffer_free(buffer);
    kn_reset_peak_memory_stats(device);
    assert_int_equal(stat("allocated_bytes.all.peak"), 0);
    assert_int_equal(stat("allocated_bytes.all.allocated"), 5120);
    assert_int_equal(kn_max_memory_allocated(device), 0);
    assert_int_equal(stat("reserved_bytes.all.peak"), 2 * MIB);
    kn_reset_accumulated_memory_stats(device);
    assert_int_equal(stat("allocated_bytes.all.allocated"), 0);
    assert_int_equal(stat("allocated_bytes.all.freed"), 0);
    assert_int_equal(stat("num_device_alloc"), 0);
    assert_int_equal(stat("reserved_bytes.all.current"), 2 * MIB);
}

static void the_table_is_pytorchs(void **state)
{
    (void)state;
    kn_buffer *buffer;
    assert_ok(kn_buffer_alloc(&buffer, kn_stream_default(test_device()), 3 * (size_t)MIB));
    char *text = kn_memory_summary(test_device()), *brief = kn_memory_summary_abbreviated(test_device());
    assert_non_null(text);
    assert_non_null(brief);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        assert_int_equal(length, 77);
        line += length + 1;
    }
    assert_non_null(strstr(text, "| Allocated memory      |   3072 KiB |   3072 KiB |   3072 KiB |      0 B   |\n"));
    assert_non_null(strstr(text, "| GPU reserved memory   |  20480 KiB |  20480 KiB |  20480 KiB |      0 B   |\n"));
    assert_non_null(strstr(text, "|       from large pool |       1    |       1    |       1    |       0    |\n"));
    assert_non_null(strstr(text, "| Oversize GPU segments |       0    |       0    |       0    |       0    |\n"));
    assert_null(strstr(brief, "from large pool"));
    assert_non_null(strstr(brief, "Non-releasable allocs"));
    kn_free(text);
    kn_free(brief);
    kn_buffer_free(buffer);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    int64_t value;
    assert_int_equal(kn_memory_stat(test_device(), "allocated_bytes", &value), KN_ERR_ARGUMENT);
    assert_message("there is no statistic `allocated_bytes`");
    assert_int_equal(kn_memory_stat(NULL, "num_ooms", &value), KN_ERR_ARGUMENT);
    assert_message("device");
    assert_int_equal(kn_memory_stats(NULL, NULL, 0), 0);
    assert_message("device");
    assert_null(kn_memory_summary(NULL));
    assert_message("device");
    assert_int_equal(kn_memory_allocated(NULL), 0);
    assert_message("device");
    kn_reset_peak_memory_stats(NULL);
    assert_message("device");
    kn_reset_accumulated_memory_stats(NULL);
    assert_message("device");
    assert_int_equal(kn_memory_allocated(kn_device_host()), 0); /* the host's pool is always empty */
}

#define STAT_TEST(function) cmocka_unit_test_setup(function, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAT_TEST(the_keys_are_pytorchs),
        STAT_TEST(they_count_what_pytorch_counts),
        STAT_TEST(peaks_and_sums_are_reset_apart),
        STAT_TEST(the_table_is_pytorchs),
        STAT_TEST(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
