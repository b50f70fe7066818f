/* profile_cases.c - the profiler's view of a group's calls, and the trace of all ranks. */
#include "dist/group/profile_cases.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dist/group/rank_case.h"
#include "rt/rt.h"
#include "rt/stream/timing.h"

#define CALLS 3
#define ELEMENTS ((int64_t)1 << 20) /* one piece */

static bool profiles(const state *s) { return s->rank == 0 || strcmp(kn_group_backend(s->group), "threads") != 0; }

/* Of how many ranks this process has the calls. */
static int ranks_here(const state *s) { return strcmp(kn_group_backend(s->group), "threads") == 0 ? s->size : 1; }

static void record(state *s)
{
    kn_tensor *x = kn_ones(KN_SHAPE(ELEMENTS), .device = s->device);
    EXPECT_OK(kn_group_barrier(s->group));
    if (profiles(s))
        EXPECT_OK(kn_profiler_start());
    EXPECT_OK(kn_group_barrier(s->group));
    for (int i = 0; i < CALLS; i++)
        EXPECT_OK(kn_group_all_reduce(s->group, x));
    EXPECT_OK(kn_group_broadcast(s->group, x, 0));
    EXPECT_OK(kn_group_barrier(s->group));
    if (profiles(s))
        EXPECT_OK(kn_profiler_stop());
    EXPECT_OK(kn_group_barrier(s->group));
}

static const kn_profiler_call *find(const kn_profiler_call *rows, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

static void check_rows(state *s)
{
    int count = 0;
    kn_profiler_call *rows = kn_profiler_communication(&count);
    const kn_profiler_call *reduce = find(rows, count, "all_reduce"), *broadcast = find(rows, count, "broadcast");
    if (!EXPECT(reduce && broadcast))
        return;
    const int calls = CALLS * ranks_here(s);
    const double bytes = (double)calls * ELEMENTS * 4, moving = reduce->time_total - reduce->wait_time;
    EXPECT(reduce->count == calls && broadcast->count == ranks_here(s));
    EXPECT(reduce->bytes == bytes);
    EXPECT(is_near(reduce->bus_bandwidth, 2.0 * (s->size - 1) / s->size * bytes / moving * 1e6) || s->size == 1);
    EXPECT(is_near(broadcast->bus_bandwidth, broadcast->bytes / (broadcast->time_total - broadcast->wait_time) * 1e6));
    const bool copies = s->device != kn_device_host() && !kn_can_map(s->device) && kn_timing_has_commands(s->device);
    EXPECT(reduce->exchange_time > 0 && reduce->exchange_time <= reduce->time_total);
    EXPECT((reduce->copy_down_time > 0) == copies && (reduce->copy_up_time > 0) == copies);
    EXPECT(reduce->copy_down_time + reduce->copy_up_time <= reduce->time_total);
    kn_free(rows);
}

static void check_totals_and_table(state *s)
{
    kn_profiler_totals totals;
    EXPECT_OK(kn_profiler_get_totals(&totals));
    EXPECT(totals.communication_time > 0 && totals.communication_time <= totals.wall_time);
    EXPECT(totals.overlap >= 0 && totals.overlap < 0.5); /* nothing was computed meanwhile */
    char *table = kn_profiler_table(.width = KN_WIDE);
    EXPECT(table && strstr(table, "all_reduce") && strstr(table, "Bus GB/s") && strstr(table, "Communication: "));
    kn_free(table);
}

static void figures_of_calls(state *s)
{
    record(s);
    if (profiles(s)) {
        check_rows(s);
        check_totals_and_table(s);
    }
    EXPECT_OK(kn_group_barrier(s->group));
}

/* --- hidden by kernels -------------------------------------------------------------------------------------------- */

/* Rank 0 computes until the others have come. */
static void kernels_hide_calls(state *s)
{
    if (s->device == kn_device_host() || s->size == 1)
        return;
    kn_tensor *x = kn_ones(KN_SHAPE(ELEMENTS), .device = s->device);
    kn_tensor *a = kn_zeros(KN_SHAPE(256, 256), .device = s->device);
    kn_work *work = NULL;
    kn_matmul(a, a);
    kn_synchronize(s->device);
    EXPECT_OK(kn_group_barrier(s->group));
    if (profiles(s))
        EXPECT_OK(kn_profiler_start());
    EXPECT_OK(kn_group_barrier(s->group));
    if (s->rank > 0)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    EXPECT_OK(kn_group_all_reduce(s->group, x, .work = &work));
    while (!kn_work_is_done(work)) {
        KN_SCOPE;
        kn_matmul(a, a);
        kn_synchronize(s->device);
    }
    EXPECT_OK(kn_work_wait(work));
    kn_work_free(work);
    EXPECT_OK(kn_group_barrier(s->group));
    if (profiles(s)) {
        kn_profiler_totals totals;
        EXPECT_OK(kn_profiler_stop());
        EXPECT_OK(kn_profiler_get_totals(&totals));
        EXPECT((totals.overlap > 0 || s->rank > 0 || !kn_timing_has_commands(s->device)) && totals.overlap <= 1);
    }
    EXPECT_OK(kn_group_barrier(s->group));
}

/* --- the trace of all ranks --------------------------------------------------------------------------------------- */

static cJSON *read_trace(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    const long length = ftell(file);
    char *content = calloc((size_t)length + 1, 1);
    rewind(file);
    const bool whole = fread(content, 1, (size_t)length, file) == (size_t)length;
    fclose(file);
    cJSON *root = whole ? cJSON_Parse(content) : NULL;
    free(content);
    return root;
}

static double number(const cJSON *event, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(event, key));
}

static bool has_text(const cJSON *event, const char *key, const char *text)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
    return value && strcmp(value, text) == 0;
}

/* The nth all_reduce of a rank, in microseconds. */
static bool find_reduce(const cJSON *events, int rank, int n, double *start, double *end)
{
    const cJSON *event;
    cJSON_ArrayForEach(event, events)
    {
        if (!has_text(event, "name", "all_reduce") || number(event, "pid") != rank || n-- > 0)
            continue;
        *start = number(event, "ts");
        *end = *start + number(event, "dur");
        return has_text(event, "cat", "communication");
    }
    return false;
}

/* No rank is done before all have begun. */
static void check_clock(state *s, const cJSON *events, int processes)
{
    for (int n = 0; n < CALLS; n++) {
        double last_start = -INFINITY, first_end = INFINITY;
        for (int rank = 0; rank < processes; rank++) {
            double start = NAN, end = NAN;
            EXPECT(find_reduce(events, rank, n, &start, &end));
            last_start = fmax(last_start, start);
            first_end = fmin(first_end, end);
        }
        EXPECT(last_start < first_end);
    }
}

static void check_trace(state *s, const char *path)
{
    const int processes = ranks_here(s) == 1 ? s->size : 1;
    cJSON *root = read_trace(path);
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents"), *event;
    int named = 0;
    if (!EXPECT(root && events))
        return;
    cJSON_ArrayForEach(event, events) named += has_text(event, "name", "process_name");
    EXPECT(named == processes);
    check_clock(s, events, processes);
    cJSON_Delete(root);
}

static void all_ranks_in_one_trace(state *s)
{
    char path[64], elsewhere[64];
    snprintf(path, sizeof path, "/tmp/koine-ranks-%ld.json", (long)getpid());
    snprintf(elsewhere, sizeof elsewhere, "/no/such/folder/%d", s->rank);
    record(s);
    EXPECT_OK(kn_group_export_trace(s->group, path));
    if (s->rank == 0) {
        check_trace(s, path);
        unlink(path);
    }
    EXPECT(kn_group_export_trace(s->group, elsewhere) != KN_OK);
    EXPECT(kn_group_export_trace(s->group, NULL) == KN_ERR_ARGUMENT);
    EXPECT_OK(kn_group_barrier(s->group));
}

int profile_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {figures_of_calls, kernels_hide_calls, all_ranks_in_one_trace};
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
