/* rt/stream/current.c - the calling thread's current streams, one per device. */
#include "base/error.h"
#include "rt/stream/open.h"

/* By id too, since a stream may have been destroyed and its struct reused. */
static _Thread_local struct {
    kn_stream *stream;
    unsigned long long id;
} current[KN_MAX_DEVICES];

kn_stream *kn_stream_default(kn_device *device)
{
    if (!device || kn_device_ensure_open(device) != KN_OK)
        return NULL;
    return device->default_stream;
}

/* How many of the thread's open guards could not be entered. */
static _Thread_local int refusals;

void kn_refuse_work(void)
{
    kn_error_make_sticky(); /* errors inside the block are consequences */
    refusals++;
}

void kn_accept_work(void)
{
    if (refusals > 0)
        refusals--;
}

kn_stream *kn_stream_current(kn_device *device)
{
    if (!device)
        return NULL;
    if (refusals > 0)
        return kn_fail_null(KN_ERR_STATE, "no work is done in this block, because its guard failed");
    kn_stream *stream = current[device->slot].stream;
    if (!stream)
        return kn_stream_default(device);
    if (atomic_load_explicit(&stream->id, memory_order_relaxed) == current[device->slot].id)
        return stream;
    current[device->slot].stream = NULL;
    return kn_fail_null(KN_ERR_STATE,
                        "the current stream of this thread on %s has been destroyed; its default stream is current now",
                        device->label);
}

kn_status kn_stream_set_current(kn_stream *stream)
{
    if (!stream)
        return kn_fail_argument_null("kn_stream_set_current", "stream");
    unsigned long long id = atomic_load(&stream->id);
    if (id == 0)
        return kn_fail(KN_ERR_STATE, "kn_stream_set_current: the stream has been destroyed");
    current[stream->device->slot].stream = stream;
    current[stream->device->slot].id = id;
    return KN_OK;
}

kn_stream_guard kn_stream_use(kn_stream *stream)
{
    kn_stream_guard guard = {.before = stream ? kn_stream_current(stream->device) : NULL};
    if (!stream)
        kn_fail_argument_null("KN_STREAM", "stream");
    guard.entered = guard.before && kn_stream_set_current(stream) == KN_OK;
    if (!guard.entered)
        kn_refuse_work();
    return guard;
}

void kn_stream_leave(kn_stream_guard *guard)
{
    if (!guard)
        return;
    if (guard->entered)
        kn_stream_set_current(guard->before);
    else
        kn_accept_work();
}

void kn_stream_forget_current(const kn_stream *stream)
{
    if (current[stream->device->slot].stream == stream)
        current[stream->device->slot].stream = NULL;
}
