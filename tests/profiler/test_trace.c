/* The trace: it parses, events nest, arrows have two ends, device events are within their bounds. */
#include <cjson/cJSON.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/training.h"
#include "rt/device/device.h"
#include "support/check.h"

static double number(const cJSON *event, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);
    if (!cJSON_IsNumber(item))
        fail_msg("no number `%s` in an event", key);
    return item->valuedouble;
}

static const char *text(const cJSON *event, const char *key)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
    return value ? value : "";
}

static double argument(const cJSON *event, const char *key)
{
    return number(cJSON_GetObjectItemCaseSensitive(event, "args"), key);
}

/* Writes the trace, reads it back, removes it. */
static cJSON *read_trace(void)
{
    char path[] = "/tmp/koine-trace-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    CHECK_OK(kn_profiler_export_chrome_trace(path));
    char *content = read_text(path);
    unlink(path);
    cJSON *root = cJSON_Parse(content);
    free(content);
    if (!root)
        fail_msg("the trace is not JSON: %.40s", cJSON_GetErrorPtr());
    return root;
}

typedef struct slice {
    int process, track;
    double start, end;
    const cJSON *event;
} slice;

typedef struct slices {
    slice *items;
    int count;
} slices;

/* The events with a duration, sorted by track, start and descending end. */
static int by_place(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->process != y->process || x->track != y->track)
        return x->process != y->process ? x->process - y->process : x->track - y->track;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static slices slices_of(const cJSON *events)
{
    slices s = {calloc((size_t)cJSON_GetArraySize(events) + 1, sizeof(slice)), 0};
    const cJSON *event;
    cJSON_ArrayForEach(event, events)
    {
        if (strcmp(text(event, "ph"), "X") != 0)
            continue;
        double start = number(event, "ts"), length = number(event, "dur");
        assert_true(length >= 0);
        s.items[s.count++] =
            (slice){(int)number(event, "pid"), (int)number(event, "tid"), start, start + length, event};
    }
    qsort(s.items, (size_t)s.count, sizeof(slice), by_place);
    return s;
}

static void check_nesting(const slices *s)
{
    const double tolerance = 0.002; /* microseconds: two roundings */
    const slice *open[64];
    int depth = 0;
    for (int i = 0; i < s->count; i++) {
        const slice *now = &s->items[i];
        while (depth > 0 && (open[depth - 1]->process != now->process || open[depth - 1]->track != now->track ||
                             open[depth - 1]->end <= now->start + tolerance))
            depth--;
        if (depth > 0 && now->end > open[depth - 1]->end + tolerance)
            fail_msg("`%s` [%f, %f] sticks out of `%s` [%f, %f]", text(now->event, "name"), now->start, now->end,
                     text(open[depth - 1]->event, "name"), open[depth - 1]->start, open[depth - 1]->end);
        assert_true(depth < 64);
        open[depth++] = now;
    }
}

static const slice *slice_at(const slices *s, int process, int track, double time)
{
    for (int i = 0; i < s->count; i++)
        if (s->items[i].process == process && s->items[i].track == track && s->items[i].start <= time + 0.002 &&
            s->items[i].end >= time - 0.002)
            return &s->items[i];
    return NULL;
}

/* Each arrow leaves from an operation or range of the host and ends where a command begins. Returns how many. */
static int check_arrows(const cJSON *events, const slices *s)
{
    const cJSON *event, *other;
    int arrows = 0;
    cJSON_ArrayForEach(event, events)
    {
        if (strcmp(text(event, "ph"), "s") != 0)
            continue;
        assert_non_null(slice_at(s, (int)number(event, "pid"), (int)number(event, "tid"), number(event, "ts")));
        int ends = 0;
        cJSON_ArrayForEach(other, events)
        {
            if (strcmp(text(other, "ph"), "f") != 0 || number(other, "id") != number(event, "id"))
                continue;
            const slice *target =
                slice_at(s, (int)number(other, "pid"), (int)number(other, "tid"), number(other, "ts"));
            assert_non_null(target);
            assert_true(number(other, "pid") > 0);
            ends++;
        }
        assert_int_equal(ends, 1);
        arrows++;
    }
    return arrows;
}

static int count_events(const cJSON *events, const char *phase, const char *category, const char *name)
{
    const cJSON *event;
    int count = 0;
    cJSON_ArrayForEach(event, events)
    {
        count += strcmp(text(event, "ph"), phase) == 0 && (!category || strcmp(text(event, "cat"), category) == 0) &&
                 (!name || strcmp(text(event, "name"), name) == 0);
    }
    return count;
}

static void check_devices(const slices *s, const kn_profiler_totals *totals)
{
    double sum = 0;
    for (int i = 0; i < s->count; i++) {
        const slice *now = &s->items[i];
        if (now->process == 0)
            continue;
        if (now->start < 0 || now->end > totals->wall_time)
            fail_msg("`%s` [%f, %f] is outside the profile [0, %f]", text(now->event, "name"), now->start, now->end,
                     totals->wall_time);
        assert_true(argument(now->event, "queued us") >= 0 && argument(now->event, "submitted us") >= 0);
        sum += now->end - now->start;
    }
    assert_true(sum > 0.99 * totals->device_time - 1 && sum < 1.01 * totals->device_time + 1);
}

static void a_training_step_makes_a_sound_trace(void **state)
{
    training t;
    kn_profiler_totals totals;
    (void)state;
    training_open(&t, 16);
    training_step(&t);
    CHECK_OK(kn_synchronize(kn_device_current()));
    CHECK_OK(kn_profiler_start(.record_shapes = true, .profile_memory = true, .with_flops = true));
    for (int i = 0; i < 3; i++) {
        training_step(&t);
        kn_mark("step done");
    }
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    cJSON *root = read_trace();
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    slices s = slices_of(events);
    check_nesting(&s);
    check_devices(&s, &totals);
    assert_int_equal(check_arrows(events, &s), totals.kernels + totals.transfers);
    assert_int_equal(count_events(events, "X", "kernel", NULL), totals.kernels);
    assert_int_equal(count_events(events, "X", "cpu_op", NULL), totals.operations);
    const bool is_cpu = kn_device_limits(kn_device_current())->is_cpu;
    assert_int_equal(totals.operations, 3 * (is_cpu ? 22 : 24)); /* docs/profiling.md says so */
    assert_int_equal(count_events(events, "X", "cpu_op", "conv2d"), 6);
    assert_int_equal(count_events(events, "X", "user_annotation", "forward"), 3);
    assert_int_equal(count_events(events, "i", NULL, "step done"), 3);
    assert_true(count_events(events, "C", NULL, "memory") > 3);
    free(s.items);
    cJSON_Delete(root);
    training_close(&t);
}

/* The contents of a kernel's event. */
TENSOR_TEST(kernels_carry_shapes_work_and_share_of_peak)
{
    kn_tensor *a = kn_rand(KN_SHAPE(64, 64));
    {
        KN_PROFILE(.record_shapes = true, .with_flops = true);
        kn_matmul(a, a);
    }
    cJSON *root = read_trace();
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents"), *event;
    double flops = 0;
    cJSON_ArrayForEach(event, events)
    {
        if (strcmp(text(event, "cat"), "cpu_op") == 0) {
            const cJSON *dims =
                cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(event, "args"), "Input Dims");
            assert_int_equal(cJSON_GetArraySize(dims), 2);
            assert_int_equal(cJSON_GetArrayItem(cJSON_GetArrayItem(dims, 1), 0)->valueint, 64);
        }
        if (strcmp(text(event, "cat"), "kernel") != 0)
            continue;
        flops += argument(event, "flops");
        assert_true(argument(event, "bytes") > 0 && argument(event, "GFLOP/s") > 0);
        assert_true(argument(event, "share of peak") > 0);
        assert_string_equal(text(cJSON_GetObjectItemCaseSensitive(event, "args"), "enqueued by"), "matmul");
    }
    assert_true(flops > 0.999 * 2 * 64 * 64 * 64 && flops < 1.001 * 2 * 64 * 64 * 64);
    cJSON_Delete(root);
}

/* User-defined names: quotes, control characters and other alphabets are preserved. */
TENSOR_TEST(any_name_is_written_soundly)
{
    static const char name[] = "a \"quoted\"\n\\name\\ \xe8\xaf\xad";
    uint64_t id;
    {
        KN_PROFILE();
        {
            KN_RANGE(name);
            kn_mark(name);
        }
        id = kn_range_start(name);
        CHECK_OK(kn_range_end(id));
    }
    cJSON *root = read_trace();
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    assert_int_equal(count_events(events, "X", NULL, name), 1);
    assert_int_equal(count_events(events, "i", NULL, name), 1);
    assert_int_equal(count_events(events, "b", NULL, name), 1);
    assert_int_equal(count_events(events, "e", NULL, name), 1);
    cJSON_Delete(root);
}

/* JSON must be UTF-8: each invalid byte becomes U+FFFD, and so does a truncated character. */
TENSOR_TEST(no_name_makes_the_file_unreadable)
{
    static const struct {
        const char *given, *written;
    } names[] = {
        {"latin \xe9t\xe9", "latin \xef\xbf\xbdt\xef\xbf\xbd"},
        {"overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
        {"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"beyond \xf4\x90\x80\x80", "beyond \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"cut \xe8\xaf", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"whole \xf0\x9f\x98\x80 \xc3\xa9 \x7f\x01", "whole \xf0\x9f\x98\x80 \xc3\xa9 \x7f\x01"},
    };
    const size_t count = sizeof names / sizeof names[0];
    {
        KN_PROFILE();
        for (size_t i = 0; i < count; i++) {
            KN_RANGE(names[i].given);
            kn_mark(names[i].given);
        }
    }
    cJSON *root = read_trace();
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(count_events(events, "X", NULL, names[i].written), 1);
        assert_int_equal(count_events(events, "i", NULL, names[i].written), 1);
    }
    cJSON_Delete(root);
    char *table = kn_profiler_table(); /* its lines stay intact */
    assert_null(strchr(table, '\x01'));
    kn_free(table);
}

/* A host program may have set a locale with another decimal point. */
TENSOR_TEST(numbers_have_a_point_in_every_locale)
{
    kn_tensor *x = kn_ones(KN_SHAPE(1000));
    {
        KN_PROFILE(.with_flops = true);
        kn_relu(x);
    }
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        setlocale(LC_NUMERIC, "de_DE"); /* neither may exist */
    char path[] = "/tmp/koine-trace-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    kn_status status = kn_profiler_export_chrome_trace(path);
    setlocale(LC_NUMERIC, "C");
    CHECK_OK(status);
    char *content = read_text(path);
    unlink(path);
    cJSON *root = cJSON_Parse(content);
    free(content);
    assert_non_null(root);
    cJSON_Delete(root);
}

/* A hook that opens a range inside an operation and never closes it there. */
static kn_tensor *leave_open(kn_tensor *gradient, void *user)
{
    (void)user;
    kn_range_push("from a hook");
    return gradient;
}

TENSOR_TEST(what_a_callback_leaves_open_still_nests)
{
    kn_tensor *x = kn_ones(KN_SHAPE(4), .requires_grad = true);
    kn_tensor *y = kn_exp(x);
    CHECK_OK(kn_register_hook(y, leave_open, NULL));
    {
        KN_PROFILE();
        CHECK_OK(kn_backward(kn_sum(kn_relu(y))));
    }
    assert_int_equal(kn_range_depth(), 1);
    CHECK_OK(kn_range_pop());
    cJSON *root = read_trace();
    slices s = slices_of(cJSON_GetObjectItemCaseSensitive(root, "traceEvents"));
    check_nesting(&s);
    free(s.items);
    cJSON_Delete(root);
}

/* The schedule's steps have their own track. */
TENSOR_TEST(steps_are_numbered)
{
    CHECK_OK(kn_profiler_start(.wait = 1, .active = 2, .repeat = 1));
    for (int step = 0; step < 3; step++) {
        kn_relu(kn_ones(KN_SHAPE(3)));
        CHECK_OK(kn_profiler_step());
    }
    CHECK_OK(kn_profiler_stop());
    cJSON *root = read_trace();
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    assert_int_equal(count_events(events, "X", NULL, "ProfilerStep#0"), 0);
    assert_int_equal(count_events(events, "X", NULL, "ProfilerStep#1"), 1);
    assert_int_equal(count_events(events, "X", NULL, "ProfilerStep#2"), 1);
    cJSON_Delete(root);
}

/* Each device is a process of the trace, each stream a track of it. */
TENSOR_TEST(devices_and_streams_have_tracks_of_their_own)
{
    kn_device *device = kn_device_current(), *other = kn_device_count() > 1 ? kn_device_at(1) : device;
    kn_stream *side = kn_stream_new(device);
    CHECK_NEW(side);
    {
        KN_PROFILE();
        kn_relu(kn_ones(KN_SHAPE(5)));
        CHECK_OK(kn_stream_set_current(side));
        kn_relu(kn_ones(KN_SHAPE(5)));
        CHECK_OK(kn_stream_set_current(kn_stream_default(device)));
        kn_relu(kn_ones(KN_SHAPE(5), .device = other));
    }
    CHECK_OK(kn_stream_free(side));
    cJSON *root = read_trace();
    const cJSON *event;
    bool found[3] = {false};
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(root, "traceEvents"))
    {
        if (strcmp(text(event, "cat"), "kernel") != 0)
            continue;
        found[0] |= number(event, "pid") == 1 && number(event, "tid") == 0;
        found[1] |= number(event, "pid") == 1 && number(event, "tid") == 1;
        found[2] |= number(event, "pid") == 2 && number(event, "tid") == 0;
    }
    assert_true(found[0] && found[1]);
    assert_true(found[2] == (other != device));
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_training_step_makes_a_sound_trace),
        TEST(kernels_carry_shapes_work_and_share_of_peak),
        TEST(any_name_is_written_soundly),
        TEST(no_name_makes_the_file_unreadable),
        TEST(numbers_have_a_point_in_every_locale),
        TEST(what_a_callback_leaves_open_still_nests),
        TEST(steps_are_numbered),
        TEST(devices_and_streams_have_tracks_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, close_profiler);
}
