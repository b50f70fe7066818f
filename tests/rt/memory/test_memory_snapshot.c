/* Snapshots: PyTorch's format, the recorded history, reading back, the plot, invalid files. */
#include "rt/rt_test.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include "base/files.h"
#include "rt/device/device.h"
#include "rt/memory/pool.h"

#define MIB ((size_t)1 << 20)

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/memory-%ld-%s", KOINE_BINARY_DIR, (long)getpid(), name);
    return path;
}

static void put(const char *path, const char *text)
{
    kn_atomic_file file;
    assert_ok(kn_file_begin(&file, path));
    assert_ok(kn_file_write(&file, text, strlen(text)));
    assert_ok(kn_file_end(&file, KN_OK));
}

static cJSON *snapshot(void)
{
    char *text;
    size_t size;
    const char *path = path_of("snapshot.json");
    assert_ok(kn_memory_snapshot(test_device(), path));
    assert_ok(kn_file_read_all(&text, &size, path, MIB));
    cJSON *root = cJSON_ParseWithLength(text, size);
    kn_free(text);
    unlink(path);
    assert_non_null(root);
    return root;
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *text(const cJSON *object, const char *key)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    assert_non_null(value);
    return value;
}

static const cJSON *list(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsArray(item));
    return item;
}

static int fresh(void **state)
{
    (void)state;
    assert_ok(kn_empty_cache(test_device()));
    return 0;
}

static int stop_recording(void **state)
{
    (void)state;
    assert_ok(kn_memory_record_history(test_device(), 0));
    return 0;
}

static void segments_and_blocks_are_pytorchs(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device()), *other;
    kn_buffer *first, *second;
    assert_new(other = kn_stream_new(test_device()));
    assert_ok(kn_buffer_alloc(&first, stream, 1000));
    assert_ok(kn_buffer_alloc(&second, stream, 5 * MIB));
    cJSON *root = snapshot();
    const cJSON *segments = list(root, "segments"), *small = cJSON_GetArrayItem(segments, 0),
                *large = cJSON_GetArrayItem(segments, 1);
    assert_int_equal(cJSON_GetArraySize(segments), 2);
    assert_string_equal(text(small, "segment_type"), "small");
    assert_string_equal(text(large, "segment_type"), "large");
    assert_true(number(small, "address") < number(large, "address"));
    assert_true(number(large, "total_size") == 20.0 * MIB && number(large, "allocated_size") == 5.0 * MIB);
    assert_true(number(small, "requested_size") == 1000 && number(small, "active_size") == 1024);
    assert_true(number(small, "stream") == 0 && number(small, "device") == kn_device_slot(test_device()) - 1);
    assert_int_equal(cJSON_GetArraySize(list(small, "segment_pool_id")), 2);
    const cJSON *block = list(small, "blocks")->child;
    assert_string_equal(text(block, "state"), "active_allocated");
    assert_true(number(block, "size") == 1024 && number(block, "requested_size") == 1000);
    assert_string_equal(text(block->next, "state"), "inactive");
    assert_true(number(block->next, "address") == number(block, "address") + 1024);
    assert_int_equal(cJSON_GetArraySize(list(root, "device_traces")), kn_device_slot(test_device()));
    cJSON_Delete(root);
    kn_buffer_free(second);
    kn_buffer_free(first);
    assert_ok(kn_stream_free(other));
}

static void expect_actions(const cJSON *trace, const char *const *actions)
{
    const cJSON *entry = trace->child;
    double before = 0;
    for (int i = 0; actions[i]; i++, entry = entry->next) {
        assert_non_null(entry);
        assert_string_equal(text(entry, "action"), actions[i]);
        assert_true(number(entry, "time_us") >= before);
        before = number(entry, "time_us");
    }
    assert_null(entry);
}

static const cJSON *own_trace(const cJSON *root)
{
    return cJSON_GetArrayItem(list(root, "device_traces"), kn_device_slot(test_device()) - 1);
}

static void history_tells_what_happened(void **state)
{
    (void)state;
    kn_buffer *buffer, *never;
    assert_ok(kn_memory_record_history(test_device(), 100));
    assert_ok(kn_buffer_alloc(&buffer, kn_stream_default(test_device()), 3000));
    kn_buffer_free(buffer);
    assert_ok(kn_empty_cache(test_device()));
    assert_int_equal(kn_buffer_alloc(&never, kn_stream_default(test_device()), (size_t)1 << 50), KN_ERR_MEMORY);
    kn_error_clear();
    cJSON *root = snapshot();
    static const char *const actions[] = {"segment_alloc", "alloc", "free_requested", "free_completed",
                                          "segment_free",  "oom",   "snapshot",       NULL};
    expect_actions(own_trace(root), actions);
    const cJSON *alloc = own_trace(root)->child->next, *oom = cJSON_GetArrayItem(own_trace(root), 5);
    assert_true(number(alloc, "size") == 3072);
    assert_true(number(alloc, "addr") == number(own_trace(root)->child, "addr"));
    assert_true(number(oom, "size") == (double)((size_t)1 << 50) && number(oom, "device_free") > 0);
    cJSON_Delete(root);
}

static void a_full_history_forgets_the_oldest(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());
    kn_buffer *kept, *buffer;
    assert_ok(kn_buffer_alloc(&kept, stream, 2000)); /* keeps the segment: no driver calls below */
    assert_ok(kn_memory_record_history(test_device(), 5));
    for (int i = 0; i < 7; i++) {
        assert_ok(kn_buffer_alloc(&buffer, stream, 3000));
        kn_buffer_free(buffer);
    }
    cJSON *root = snapshot();
    static const char *const actions[] = {"free_completed", "alloc",    "free_requested",
                                          "free_completed", "snapshot", NULL};
    expect_actions(own_trace(root), actions);
    cJSON_Delete(root);
    assert_ok(kn_memory_record_history(test_device(), 0));
    root = snapshot();
    assert_null(own_trace(root)->child);
    cJSON_Delete(root);
    kn_buffer_free(kept);
}

static void a_private_pool_has_a_snapshot_of_its_own(void **state)
{
    (void)state;
    kn_mem_pool *pool;
    kn_buffer *inside = NULL, *outside;
    assert_new(pool = kn_mem_pool_new(test_device()));
    assert_int_equal(kn_mem_pool_use_count(pool), 1);
    {
        KN_MEM_POOL(pool);
        assert_int_equal(kn_mem_pool_use_count(pool), 2);
        assert_ok(kn_buffer_alloc(&inside, kn_stream_default(test_device()), 10));
    }
    assert_ok(kn_buffer_alloc(&outside, kn_stream_default(test_device()), 10));
    const char *path = path_of("pool.json");
    char *json;
    size_t size;
    assert_ok(kn_mem_pool_snapshot(pool, path));
    assert_ok(kn_file_read_all(&json, &size, path, MIB));
    unlink(path);
    cJSON *root = cJSON_ParseWithLength(json, size);
    kn_free(json);
    assert_int_equal(cJSON_GetArraySize(list(root, "segments")), 1);
    const cJSON *id = list(list(root, "segments")->child, "segment_pool_id");
    assert_true(id->child->next->valuedouble == (double)kn_mem_pool_id(pool));
    cJSON_Delete(root);
    kn_buffer_free(inside);
    kn_buffer_free(outside);
    kn_mem_pool_free(pool);
}

static void the_picture_starts_where_the_history_does(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());
    kn_buffer *before, *after;
    assert_ok(kn_buffer_alloc(&before, stream, 4 * MIB));
    assert_ok(kn_memory_record_history(test_device(), 100));
    assert_ok(kn_buffer_alloc(&after, stream, 2 * MIB));
    kn_buffer_free(after);
    const char *json = path_of("plot.json");
    char svg[512];
    snprintf(svg, sizeof svg, "%s", path_of("plot.svg"));
    json = path_of("plot.json");
    assert_ok(kn_memory_snapshot(test_device(), json));
    char *summary = kn_memory_snapshot_summary(json);
    assert_non_null(summary);
    assert_non_null(strstr(summary, "peak allocated              6.0 MiB"));
    assert_non_null(strstr(summary, "fragmentation                 0.000"));
    kn_free(summary);
    setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* if installed: gnuplot's numbers must have a point */
    kn_status status = kn_memory_snapshot_save_plot(json, svg);
    setlocale(LC_NUMERIC, "C");
    if (status == KN_ERR_IO && strstr(kn_error_message(), "not installed")) {
        kn_error_clear();
    } else {
        assert_int_equal(status, KN_OK);
        assert_true(kn_file_exists(svg));
        unlink(svg);
        assert_ok(kn_memory_save_plot(test_device(), svg));
        assert_true(kn_file_exists(svg));
    }
    unlink(svg);
    unlink(json);
    kn_buffer_free(before);
}

static void refuse(const char *json, kn_status status, const char *message)
{
    char path[512];
    snprintf(path, sizeof path, "%s", path_of("bad.json"));
    put(path, json);
    assert_int_equal(kn_memory_snapshot_save_plot(path, "never.svg"), status);
    assert_message(message);
    unlink(path);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    refuse("not json", KN_ERR_FORMAT, "it is not JSON");
    refuse("[]", KN_ERR_FORMAT, "no list named \"segments\"");
    refuse("{\"segments\": 3}", KN_ERR_FORMAT, "no list named \"segments\"");
    refuse("{\"segments\": []}", KN_ERR_STATE, "kn_memory_record_history");
    refuse("{\"segments\": [1, {\"blocks\": 2}], \"device_traces\": [[], 5]}", KN_ERR_STATE, "holds no history");
    assert_int_equal(kn_memory_snapshot_save_plot("/nowhere.json", "x.svg"), KN_ERR_IO);
    assert_message("/nowhere.json");
    assert_int_equal(kn_memory_save_plot(test_device(), "picture.jpg"), KN_ERR_ARGUMENT);
    assert_message(".svg or .png");
    assert_int_equal(kn_memory_save_plot(test_device(), "picture.svg"), KN_ERR_STATE);
    assert_message("holds no history");
    assert_int_equal(kn_memory_snapshot(test_device(), "/nowhere/at/all.json"), KN_ERR_IO);
    assert_message("/nowhere/at/all");
    assert_int_equal(kn_memory_snapshot(NULL, "x"), KN_ERR_ARGUMENT);
    assert_message("device");
    assert_int_equal(kn_mem_pool_snapshot(NULL, "x"), KN_ERR_ARGUMENT);
    assert_message("pool");
    assert_int_equal(kn_mem_pool_id(NULL), 0);
    assert_message("pool");
    assert_null(kn_memory_snapshot_summary("/nowhere.json"));
    assert_message("/nowhere.json");
}

/* Entries of wrong types: no out-of-bounds reads, no NaN figures. */
static void odd_numbers_do_no_harm(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", path_of("odd.json"));
    put(path,
        "{\"segments\": [{\"total_size\": 1e999, \"blocks\": [{\"state\": \"inactive\", \"size\": -5}, 7, "
        "{\"state\": 3, \"size\": \"x\"}]}], \"device_traces\": [[{\"action\": \"alloc\", \"size\": 1e300}, 9]]}");
    char *summary = kn_memory_snapshot_summary(path);
    assert_non_null(summary);
    assert_null(strstr(summary, "nan"));
    kn_free(summary);
    unlink(path);
}

#define SNAPSHOT_TEST(function) cmocka_unit_test_setup_teardown(function, fresh, stop_recording)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(segments_and_blocks_are_pytorchs),
        SNAPSHOT_TEST(history_tells_what_happened),
        SNAPSHOT_TEST(a_full_history_forgets_the_oldest),
        SNAPSHOT_TEST(a_private_pool_has_a_snapshot_of_its_own),
        SNAPSHOT_TEST(the_picture_starts_where_the_history_does),
        SNAPSHOT_TEST(misuse_is_refused),
        SNAPSHOT_TEST(odd_numbers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
