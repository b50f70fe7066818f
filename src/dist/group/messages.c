/* dist/group/messages.c - messages between two ranks, of which several are on their way at once. */
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "dist/group/call.h"

/* --- one message -------------------------------------------------------------------------------------------------- */

/* A contiguous host tensor with the shape of `tensor`: itself if it is one. Owned. */
static kn_status host_memory(kn_tensor **memory, kn_tensor *tensor)
{
    kn_device *device = kn_device_of(tensor);
    if (kn_device_is_host(device))
        return kn_is_contiguous(tensor) ? (*memory = kn_retain(tensor), KN_OK)
                                        : kn_tensor_new(memory, tensor->dtype, tensor->ndim, tensor->shape, device);
    return kn_tensor_new_pinned(memory, tensor->dtype, tensor->ndim, tensor->shape, device);
}

static size_t bytes_of(const kn_tensor *tensor) { return (size_t)kn_numel(tensor) * kn_dtype_size(tensor->dtype); }

static kn_status copy(kn_tensor *to, kn_tensor *from, const char *part)
{
    KN_PART(part);
    return to == from ? KN_OK : kn_tensor_copy_with(to, from, true);
}

kn_status kn_run_message(kn_group *group, kn_work *work)
{
    (void)group;
    KN_TRY(host_memory(&work->memory, work->tensor));
    if (work->kind->sends)
        KN_TRY(copy(work->memory, work->tensor, KN_PART_COPY_DOWN));
    work->message = (kn_message_end){.data = kn_data(work->memory),
                                     .bytes = bytes_of(work->memory),
                                     .other = work->root,
                                     .tag = work->tag,
                                     .sender = work->sender};
    work->began = kn_clock_now();
    return work->message.data || work->message.bytes == 0 ? KN_OK : kn_error_status();
}

static kn_status copy_up(kn_group *group, kn_work *work)
{
    if (!work->finished)
        return copy(work->tensor, work->memory, KN_PART_COPY_UP);
    kn_stream *stream = NULL;
    KN_TRY(kn_work_stream(group, work, &stream));
    KN_STREAM(stream);
    KN_TRY(copy(work->tensor, work->memory, KN_PART_COPY_UP));
    return kn_event_record(work->finished, stream);
}

/* Asks the back end to go on with it. */
static kn_status go_on(kn_transport *transport, bool sends, int64_t began, kn_message_end *message, bool *done)
{
    message->waited = 1e-9 * (double)(kn_clock_now() - began);
    return (sends ? transport->class->send : transport->class->receive)(transport, message, done);
}

static kn_status try_message(kn_group *group, kn_work *work, bool *done)
{
    kn_transport *transport = group->transport;
    const kn_status status = kn_group_check_failure(group);
    if (status != KN_OK) {
        transport->is_unfinished |= work->message.state != NULL; /* its memory may still be written to */
        return status;
    }
    KN_TRY(go_on(transport, work->kind->sends, work->began, &work->message, done));
    return *done && !work->kind->sends ? copy_up(group, work) : KN_OK;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

/* Is there no earlier receive whose message this one might take? */
static bool has_turn(const kn_group *group, const kn_work *work)
{
    const int from = work->message.other;
    for (const kn_work *w = group->messages; w != work; w = w->next)
        if (!w->kind->sends && !work->kind->sends && w->message.tag == work->message.tag &&
            (w->message.other == from || w->message.other == KN_ANY_RANK || from == KN_ANY_RANK))
            return false;
    return true;
}

/* Is one of them done? */
static bool try_messages(kn_group *group)
{
    bool any = false;
    for (kn_work **link = &group->messages, *work; (work = *link);) {
        bool done = false;
        const kn_status status = has_turn(group, work) ? try_message(group, work, &done) : KN_OK;
        if (status == KN_OK && !done) {
            link = &work->next;
            continue;
        }
        *link = work->next;
        any = true;
        if (status == KN_ERR_DEVICE)
            kn_group_keep_failure(group, kn_error_message());
        kn_work_finish(group, work, status);
    }
    return any;
}

/* A thread looks again at once, after that time in naps: short ones while anything may be moving, since a back end may
 * move the next piece only when it is asked, else the longer the longer nothing has come. */
#define EAGER_NS 500000
#define SHORT_NAP_NS 20000
#define LONGEST_NAP_NS 1000000

static void rest(int64_t since, bool moves)
{
    const int64_t waited = kn_clock_now() - since;
    const int64_t nap = moves ? SHORT_NAP_NS : waited / 16 < LONGEST_NAP_NS ? waited / 16 : LONGEST_NAP_NS;
    if (waited < EAGER_NS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
}

static bool any_moves(const kn_group *group)
{
    const kn_work *w = group->messages;
    while (w && !w->message.state)
        w = w->next;
    return w != NULL;
}

static bool is_on_its_way(const kn_group *group, const kn_work *work)
{
    const kn_work *w = group->messages;
    while (w && w != work)
        w = w->next;
    return w != NULL;
}

static bool another_waits(kn_group *group)
{
    kn_lock(&group->lock);
    const bool waits = group->first != NULL;
    kn_unlock(&group->lock);
    return waits;
}

/* For other threads. */
static void note_whether_any(kn_group *group)
{
    kn_lock(&group->lock);
    group->has_messages = group->messages != NULL;
    kn_unlock(&group->lock);
}

void kn_messages_add(kn_group *group, kn_work *work)
{
    KN_WAITING_PART(KN_PART_EXCHANGE);
    kn_work **link = &group->messages;
    while (*link)
        link = &(*link)->next;
    work->next = NULL;
    *link = work;
    for (int64_t since = work->began;; rest(since, any_moves(group))) {
        if (try_messages(group))
            since = kn_clock_now();
        if (!is_on_its_way(group, work) || another_waits(group))
            break;
    }
    note_whether_any(group);
}

void kn_messages_progress(kn_group *group)
{
    atomic_store(&group->began, group->messages->began);
    if (!try_messages(group))
        rest(group->messages->began, any_moves(group));
    atomic_store(&group->began, 0);
    note_whether_any(group);
}

kn_status kn_message_exchange(kn_transport *transport, bool sends, kn_message_end message)
{
    const int64_t began = kn_clock_now();
    for (bool done = false;; rest(began, message.state != NULL)) {
        KN_TRY(go_on(transport, sends, began, &message, &done));
        if (done)
            return KN_OK;
    }
}

/* --- calls that move no values ------------------------------------------------------------------------------------ */

kn_status kn_run_barrier(kn_group *group, kn_work *work)
{
    (void)work;
    KN_WAITING_PART(KN_PART_WAIT);
    return group->transport->class->barrier(group->transport);
}

kn_status kn_run_split(kn_group *group, kn_work *work)
{
    return group->transport->class->split(group->transport, work->color, work->key, work->part);
}
