/* dist/group/trace.c - one trace of all ranks, on rank 0's clock.
 *
 * Clocks are compared by messages to and fro: rank 0 asks for the time, which was that in the middle between the
 * question and the answer, to within half the time of the quickest of several rounds (Cristian, "Probabilistic clock
 * synchronization", 1989). */
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "dist/group/bytes.h"
#include "dist/group/call.h"
#include "watch/profiler/timeline.h"

#define FUNCTION "kn_group_export_trace"

/* --- clocks ------------------------------------------------------------------------------------------------------- */

#define CLOCK_TAG 32766
#define ROUNDS 32

static kn_status exchange_time(kn_transport *t, int64_t *time, int other, bool sends)
{
    return kn_message_exchange(t, sends,
                               (kn_message_end){.data = time, .bytes = sizeof *time, .other = other, .tag = CLOCK_TAG});
}

/* On rank 0: what the clock of rank `other` shows when that of rank 0 shows *time. */
static kn_status ask_clock(kn_transport *t, int other, int64_t *time)
{
    int64_t narrowest = INT64_MAX, offset = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t there = 0;
        const int64_t before = kn_clock_now();
        KN_TRY(exchange_time(t, &there, other, true));
        KN_TRY(exchange_time(t, &there, other, false));
        const int64_t after = kn_clock_now();
        if (after - before < narrowest) {
            narrowest = after - before;
            offset = there - (before + narrowest / 2);
        }
    }
    *time += offset;
    return KN_OK;
}

static kn_status answer_clock(kn_transport *t)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t time;
        KN_TRY(exchange_time(t, &time, 0, false));
        time = kn_clock_now();
        KN_TRY(exchange_time(t, &time, 0, true));
    }
    return KN_OK;
}

/* *work->clock, a time of rank 0's, becomes the same moment on each rank's own clock. */
kn_status kn_run_clocks(kn_group *group, kn_work *work)
{
    kn_transport *t = group->transport;
    if (t->rank != 0) {
        KN_TRY(answer_clock(t));
        return exchange_time(t, work->clock, 0, false);
    }
    for (int other = 1; other < t->size; other++) {
        int64_t time = *work->clock;
        KN_TRY(ask_clock(t, other, &time));
        KN_TRY(exchange_time(t, &time, other, true));
    }
    return KN_OK;
}

static kn_status find_origin(kn_group *group, int64_t *origin)
{
    static const kn_call_kind kind = {.name = FUNCTION, .run = kn_run_clocks};
    kn_work *work = kn_work_new(&kind);
    if (!work)
        return KN_ERR_MEMORY;
    work->clock = origin;
    return kn_work_start(group, work, NULL);
}

/* --- the ranks' events -------------------------------------------------------------------------------------------- */

#define CHUNK ((size_t)64 << 20)

static kn_status send_events(kn_group *group, kn_text *events)
{
    int64_t length = (int64_t)events->length;
    KN_TRY(kn_group_pass_bytes(group, (char *)&length, sizeof length, 0, true));
    for (size_t first = 0; first < events->length; first += CHUNK) {
        const size_t left = events->length - first;
        KN_TRY(kn_group_pass_bytes(group, events->data + first, left < CHUNK ? left : CHUNK, 0, true));
    }
    return KN_OK;
}

/* All is taken even if it cannot be written. */
static kn_status take_events(kn_group *group, int rank, kn_atomic_file *file, kn_status *written)
{
    int64_t length = 0;
    KN_TRY(kn_group_pass_bytes(group, (char *)&length, sizeof length, rank, false));
    char *chunk = kn_malloc(CHUNK);
    kn_status status = chunk ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK && *written == KN_OK && length > 0)
        *written = kn_file_write(file, ",\n", 2);
    for (size_t first = 0; first < (size_t)length && status == KN_OK; first += CHUNK) {
        const size_t left = (size_t)length - first, bytes = left < CHUNK ? left : CHUNK;
        status = kn_group_pass_bytes(group, chunk, bytes, rank, false);
        if (status == KN_OK && *written == KN_OK)
            *written = kn_file_write(file, chunk, bytes);
    }
    kn_free(chunk);
    return status;
}

static kn_status write_all(kn_group *group, const char *path, const kn_text *own)
{
    kn_atomic_file file = {0};
    kn_status written = kn_file_begin(&file, path), taken = KN_OK;
    if (written == KN_OK)
        written = kn_file_write(&file, kn_trace_opening, strlen(kn_trace_opening));
    if (written == KN_OK)
        written = kn_file_write(&file, own->data, own->length);
    for (int rank = 1; rank < kn_group_size(group) && taken == KN_OK; rank++)
        taken = take_events(group, rank, &file, &written);
    if (written == KN_OK && taken == KN_OK)
        written = kn_file_write(&file, kn_trace_closing, strlen(kn_trace_closing));
    return kn_file_end(&file, taken != KN_OK ? taken : written);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Has any rank failed? Then all do; those that have not say so. */
static kn_status agree_on(kn_group *group, kn_status status, const char *what)
{
    KN_NO_GRAD;
    kn_tensor *failed;
    const int64_t one = 1;
    KN_TRY(kn_tensor_new(&failed, KN_I32, 1, &one, kn_device_host()));
    int32_t *value = kn_data(failed);
    *value = status == KN_OK ? kn_group_size(group) : kn_group_rank(group);
    kn_status agreed = kn_group_all_reduce(group, failed, .op = KN_REDUCE_MIN);
    if (agreed == KN_OK && status == KN_OK && *value < kn_group_size(group))
        agreed = kn_fail(KN_ERR_STATE, FUNCTION ": rank %d %s", *value, what);
    kn_release(failed);
    return status != KN_OK ? status : agreed;
}

static kn_status export_events(kn_group *group, const char *path, int64_t origin)
{
    const int rank = kn_group_rank(group);
    const kn_trace_rank own = {.rank = rank, .host = kn_group_host(group, rank), .origin = origin};
    const bool is_alone = rank == 0 || strcmp(kn_group_backend(group), "threads") != 0;
    kn_text events = {0}; /* of threads of one process, which has one profile, rank 0 has them all */
    kn_status status = is_alone ? kn_profile_trace_of_rank(&events, &own, FUNCTION) : KN_OK;
    status = agree_on(group, status, "cannot make its part");
    if (status == KN_OK)
        status = agree_on(group, rank == 0 ? write_all(group, path, &events) : send_events(group, &events),
                          "cannot write the file");
    kn_text_free(&events);
    return status;
}

kn_status kn_group_export_trace(kn_group *group, const char *path)
{
    if (!group || !path)
        return kn_fail_argument_null(FUNCTION, group ? "path" : "group");
    int64_t origin = 0;
    KN_TRY(agree_on(group, kn_profile_started(&origin, FUNCTION), "has no profile"));
    KN_TRY(find_origin(group, &origin));
    return export_events(group, path, origin);
}
