/* dist/group/work.c - a group's calls: starting them, and waiting for them. */
#include <errno.h>

#include "base/clock.h"
#include "base/fork.h"
#include "dist/group/call.h"

/* --- a call and its references ------------------------------------------------------------------------------------ */

kn_work *kn_work_new(const kn_call_kind *kind)
{
    kn_work *work = kn_calloc(1, sizeof *work);
    if (!work)
        return NULL;
    atomic_init(&work->references, 1);
    work->kind = kind;
    kn_mutex_init(&work->lock);
    kn_condition_init(&work->changed);
    return work;
}

static void release_list(kn_tensor ***list)
{
    for (kn_tensor **t = *list; t && *t; t++)
        kn_release(*t);
    kn_free(*list);
    *list = NULL;
}

static void release_tensors(kn_work *work)
{
    kn_release(work->tensor);
    kn_release(work->memory);
    work->tensor = work->memory = NULL;
    release_list(&work->inputs);
    release_list(&work->outputs);
}

kn_status kn_work_keep(kn_tensor ***list, kn_tensor *const *tensors, int count)
{
    kn_tensor **kept = kn_calloc((size_t)count + 1, sizeof *kept);
    if (!kept)
        return KN_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        kept[i] = kn_retain(tensors[i]);
    *list = kept;
    return KN_OK;
}

void kn_work_free(kn_work *work)
{
    if (!work || atomic_fetch_sub(&work->references, 1) > 1)
        return;
    release_tensors(work);
    kn_event_free(work->ready);
    kn_event_free(work->finished);
    pthread_cond_destroy(&work->changed);
    kn_mutex_destroy(&work->lock);
    kn_free(work->reason);
    kn_free(work);
}

void kn_group_release(const kn_group *group, kn_tensor *memory)
{
    if (!group->transport->is_unfinished)
        kn_release(memory);
}

void kn_transport_release(const kn_transport *transport, void *memory)
{
    if (!transport->is_unfinished)
        kn_free(memory);
}

/* Its tensors stay for good: a call that has failed may still write to them. */
static void abandon_tensors(kn_work *work)
{
    work->tensor = work->memory = NULL;
    work->inputs = work->outputs = NULL;
}

void kn_work_finish(kn_group *group, kn_work *work, kn_status status)
{
    if (status != KN_OK)
        work->reason = kn_strdup(kn_error_message());
    kn_error_clear();
    (group->transport->is_unfinished ? abandon_tensors : release_tensors)(work);
    kn_lock(&work->lock);
    work->status = status;
    work->done = true;
    work->group = NULL;
    pthread_cond_broadcast(&work->changed);
    kn_unlock(&work->lock);
    kn_work_free(work);
}

/* --- starting and waiting ----------------------------------------------------------------------------------------- */

/* The stream on which the inputs are computed; NULL: there is none. */
static kn_status inputs_stream(const kn_work *work, kn_stream **stream)
{
    *stream = NULL;
    if (!work->device || kn_device_is_host(work->device))
        return KN_OK;
    if (!(*stream = kn_stream_current(work->device)))
        return kn_error_status();
    if (kn_stream_is_capturing(*stream))
        return kn_capture_fail(
            *stream, kn_fail(KN_ERR_STATE, "%s: a graph cannot record the calls of groups", work->kind->name));
    return KN_OK;
}

/* What the results need, and where the inputs come from. */
static kn_status mark_inputs(kn_work *work)
{
    kn_stream *stream;
    KN_TRY(inputs_stream(work, &stream));
    if (!stream)
        return KN_OK;
    if (!(work->ready = kn_event_new_without_timing(work->device)) ||
        !(work->finished = kn_event_new_without_timing(work->device)))
        return kn_error_status();
    return kn_event_record(work->ready, NULL);
}

static void enqueue(kn_group *group, kn_work *work)
{
    kn_lock(&group->lock);
    if (group->last)
        group->last->next = work;
    else
        group->first = work;
    group->last = work;
    pthread_cond_broadcast(&group->changed);
    kn_unlock(&group->lock);
}

/* May this thread make the call? Not while the group's has calls to make: they come first. Nor while the profiler
 * watches: calls have a track of their own there. If so, the group is busy. */
static bool begin_here(kn_group *group, const kn_work *work)
{
    if (!work->kind->may_stay || !group->transport->notices_losses || kn_is_watched() || kn_is_forked())
        return false;
    kn_lock(&group->lock);
    const bool is_free = !group->is_busy && !group->first && !group->has_messages;
    if (is_free)
        group->is_busy = true;
    kn_unlock(&group->lock);
    return is_free;
}

/* Without the way to another thread and back, and on the stream of the inputs. */
static kn_status make_here(kn_group *group, kn_work *work)
{
    KN_NO_GRAD;
    kn_stream *stream;
    kn_status status = inputs_stream(work, &stream);
    if (status == KN_OK) {
        work->group = group;
        atomic_fetch_add(&work->references, 1);
        kn_group_call_here(group, work);
        status = kn_work_wait(work);
    } else {
        kn_group_end_call(group);
    }
    kn_work_free(work);
    return status;
}

kn_status kn_work_start(kn_group *group, kn_work *work, kn_work **result)
{
    if (!result && begin_here(group, work))
        return make_here(group, work);
    kn_status status = mark_inputs(work);
    if (status == KN_OK && !group->is_started)
        status = kn_group_start_thread(group);
    if (status != KN_OK) {
        kn_work_free(work);
        return status;
    }
    work->group = group;
    atomic_fetch_add(&work->references, 1); /* the thread's */
    enqueue(group, work);
    if (result) {
        *result = work;
        return KN_OK;
    }
    status = kn_work_wait(work);
    kn_work_free(work);
    return status;
}

/* Will the call that the thread makes return? If not, the group has failed and its thread is left behind. */
static kn_status check_group(kn_group *group)
{
    kn_transport *transport = group->transport;
    const int64_t began = atomic_load(&group->began);
    if (!transport->class->check || began == 0)
        return KN_OK;
    const kn_status status = transport->class->check(transport, 1e-9 * (double)(kn_clock_now() - began));
    if (status != KN_OK)
        kn_group_keep_failure(group, kn_error_message());
    return status;
}

/* How often those who wait ask whether the call will return. */
#define CHECK_NS 50000000

/* The work is locked. Until it is done; false: it will not be. */
static bool wait_until_done(kn_work *work)
{
    while (!work->done) {
        const int64_t next = kn_clock_now() + CHECK_NS;
        const struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        if (pthread_cond_timedwait(&work->changed, &work->lock, &until) != ETIMEDOUT || work->done)
            continue;
        if (check_group(work->group) != KN_OK)
            return false;
    }
    return true;
}

kn_status kn_work_wait(kn_work *work)
{
    if (!work)
        return kn_fail_argument_null("work_wait", "work");
    kn_lock(&work->lock);
    const bool done = wait_until_done(work);
    const kn_status status = done ? work->status : kn_error_status();
    kn_unlock(&work->lock);
    if (!done)
        kn_error_prefix("%s", work->kind->name);
    else if (status != KN_OK)
        kn_fail(status, "%s: %s", work->kind->name, work->reason ? work->reason : "out of memory");
    if (status != KN_OK)
        return status;
    return work->finished ? kn_stream_wait_event(kn_stream_current(work->device), work->finished) : KN_OK;
}

bool kn_work_is_done(const kn_work *work)
{
    if (!work)
        return true;
    kn_work *w = (kn_work *)work; /* the lock changes */
    kn_lock(&w->lock);
    const bool done = w->done;
    kn_unlock(&w->lock);
    return done;
}

/* The group is locked. Until its thread has ended; false: it will not. */
static bool wait_for_end(kn_group *group)
{
    while (!group->has_ended) {
        const int64_t next = kn_clock_now() + CHECK_NS;
        const struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        if (pthread_cond_timedwait(&group->changed, &group->lock, &until) != ETIMEDOUT)
            continue;
        kn_unlock(&group->lock);
        const kn_status status = check_group(group);
        kn_lock(&group->lock);
        if (status != KN_OK && !group->has_ended)
            return false;
    }
    return true;
}

bool kn_group_end_thread(kn_group *group)
{
    if (!group->is_started)
        return true;
    kn_lock(&group->lock);
    group->is_ending = true;
    pthread_cond_broadcast(&group->changed);
    const bool ended = wait_for_end(group);
    kn_unlock(&group->lock);
    if (ended && !group->transport->is_unfinished)
        pthread_join(group->thread, NULL);
    else
        pthread_detach(group->thread);
    return ended;
}
