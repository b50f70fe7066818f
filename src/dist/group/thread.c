/* dist/group/thread.c - a group's thread, which makes the group's calls one after another; messages are on their way
 * meanwhile (messages.c). */
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "dist/group/call.h"

/* --- one call ----------------------------------------------------------------------------------------------------- */

/* So that the profiler does not take it for a slow copy: otherwise the device waits. */
static kn_status await_inputs(const kn_work *work)
{
    KN_PART(KN_PART_WAIT);
    return kn_event_synchronize(work->ready);
}

kn_status kn_group_check_failure(kn_group *group)
{
    kn_lock(&group->lock);
    const char *reason = group->failure; /* which stays */
    kn_unlock(&group->lock);
    return reason ? kn_fail(KN_ERR_DEVICE, "the group has failed: %s", reason) : KN_OK;
}

static kn_status make_call(kn_group *group, kn_work *work)
{
    KN_TRY(kn_group_check_failure(group));
    if (!work->kind->pairs) {
        group->calls++;
        if (group->transport->class->begin)
            group->transport->class->begin();
    }
    if (!work->kind->pairs && group->params.check_calls)
        KN_TRY(kn_group_agree(group, work));
    if (kn_is_watched() && work->ready)
        KN_TRY(await_inputs(work));
    return work->kind->run(group, work);
}

kn_status kn_work_stream(kn_group *group, const kn_work *work, kn_stream **stream)
{
    kn_stream **kept = &group->streams[kn_device_slot(work->device)];
    if (!*kept && !(*kept = kn_stream_new(work->device)))
        return kn_error_status();
    KN_TRY(kn_stream_wait_event(*kept, work->ready));
    *stream = *kept;
    return KN_OK;
}

static kn_status make_call_on_stream(kn_group *group, kn_work *work)
{
    if (!work->device || kn_device_is_host(work->device))
        return make_call(group, work);
    kn_stream *stream = NULL;
    KN_TRY(kn_work_stream(group, work, &stream));
    KN_STREAM(stream);
    KN_TRY(make_call(group, work));
    return kn_event_record(work->finished, stream);
}

void kn_group_keep_failure(kn_group *group, const char *reason)
{
    kn_lock(&group->lock);
    if (!group->failure)
        group->failure = kn_strdup(reason);
    kn_unlock(&group->lock);
}

/* The first of the queue; NULL: none will come. Meanwhile messages arrive. */
static kn_work *next_call(kn_group *group)
{
    kn_lock(&group->lock);
    while (group->is_busy || (!group->first && (group->has_messages || !group->is_ending))) {
        if (group->is_busy || !group->has_messages) {
            pthread_cond_wait(&group->changed, &group->lock);
            continue;
        }
        kn_unlock(&group->lock);
        kn_messages_progress(group);
        kn_lock(&group->lock);
    }
    kn_work *work = group->first;
    if (work) {
        group->first = work->next;
        if (!group->first)
            group->last = NULL;
        group->is_busy = true;
    }
    kn_unlock(&group->lock);
    return work;
}

void kn_group_end_call(kn_group *group)
{
    kn_lock(&group->lock);
    group->is_busy = false;
    if (group->first || group->is_ending)
        pthread_cond_broadcast(&group->changed);
    kn_unlock(&group->lock);
}

/* A message that has begun is finished when it has arrived. */
static void run_call(kn_group *group, kn_work *work, kn_status (*make)(kn_group *group, kn_work *work))
{
    atomic_store(&group->began, kn_clock_now());
    atomic_fetch_add(&work->references, 1);
    const kn_span span = kn_call_span(work);
    const kn_status status = make(group, work);
    const bool has_begun = status == KN_OK && work->kind->pairs;
    if (has_begun)
        kn_messages_add(group, work);
    else if (status == KN_ERR_DEVICE)
        kn_group_keep_failure(group, kn_error_message());
    kn_call_span_end(span, group, work);
    kn_waiting_note(group);
    atomic_store(&group->began, 0);
    kn_group_end_call(group);
    if (!has_begun)
        kn_work_finish(group, work, status);
    kn_work_free(work);
}

void kn_group_call_here(kn_group *group, kn_work *work) { run_call(group, work, make_call); }

/* --- all calls ---------------------------------------------------------------------------------------------------- */

/* After a call that has failed the thread does not end. MPICH frees buffers of its own into which messages still come
 * (a tree's, when the second message of a step cannot be sent): malloc would follow what they have overwritten. */
static void *make_calls(void *argument)
{
    kn_group *group = argument;
    kn_set_grad_enabled(false);
    kn_work *work;
    while ((work = next_call(group)))
        run_call(group, work, make_call_on_stream);
    const bool stays = group->transport->is_unfinished;
    kn_lock(&group->lock);
    group->has_ended = true;
    pthread_cond_broadcast(&group->changed);
    kn_unlock(&group->lock);
    if (stays)
        for (;;)
            pause();
    return NULL;
}

/* Signals are for the program's threads. */
kn_status kn_group_start_thread(kn_group *group)
{
    if (kn_is_forked())
        return kn_fail_forked();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&group->thread, NULL, make_calls, group);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return kn_fail(KN_ERR_MEMORY, "cannot start the group's thread");
    group->is_started = true;
    return KN_OK;
}
