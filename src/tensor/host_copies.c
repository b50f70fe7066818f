/* tensor/host_copies.c - what a pinned host storage remembers of its copies. host_copies.h tells why. */
#include "tensor/host_copies.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

struct kn_copy_mark {
    kn_event *event; /* after the copy */
    kn_device *device;
    kn_host_access access; /* of the copy: does it read or write the host's memory? */
    kn_copy_mark *next;
};

struct kn_host_copies {
    kn_pinned *pinned;
    kn_mutex lock;       /* several threads may copy from one tensor */
    kn_copy_mark *marks; /* newest first */
    struct kn_host_copies *next_dead;
};

/* Memory whose tensors are gone while copies of it were under way. */
static struct {
    kn_mutex lock;
    kn_host_copies *first;
} dead = {.lock = KN_MUTEX_INIT};

/* --- marks ------------------------------------------------------------------------------------ */

static bool conflict(kn_host_access a, kn_host_access b) { return a == KN_HOST_WRITE || b == KN_HOST_WRITE; }

static void free_mark(kn_copy_mark *mark)
{
    kn_event_free(mark->event);
    kn_free(mark);
}

static void drop_mark(kn_copy_mark **link)
{
    kn_copy_mark *mark = *link;
    *link = mark->next;
    free_mark(mark);
}

static void drop_passed(kn_host_copies *copies)
{
    for (kn_copy_mark **link = &copies->marks; *link;) {
        if (kn_event_has_passed((*link)->event))
            drop_mark(link);
        else
            link = &(*link)->next;
    }
}

/* `wait`: kn_event_synchronize for a wait of the user's, which is counted and may be forbidden, or kn_event_await. */
static kn_status wait_for_copies(kn_host_copies *copies, kn_host_access access, kn_status (*wait)(kn_event *))
{
    kn_status status = KN_OK;
    kn_lock(&copies->lock);
    drop_passed(copies);
    for (kn_copy_mark **link = &copies->marks; *link;) {
        if (!conflict((*link)->access, access)) {
            link = &(*link)->next;
            continue;
        }
        kn_status one = wait((*link)->event);
        status = status == KN_OK ? one : status;
        if (one == KN_OK)
            drop_mark(link);
        else
            link = &(*link)->next; /* still under way, for all that is known */
    }
    kn_unlock(&copies->lock);
    return status;
}

kn_status kn_storage_wait_slow(const kn_storage *storage, kn_host_access access)
{
    return wait_for_copies(storage->copies, access, kn_event_synchronize);
}

kn_status kn_storage_await(const kn_storage *storage)
{
    return storage->copies ? wait_for_copies(storage->copies, KN_HOST_WRITE, kn_event_await) : KN_OK;
}

bool kn_storage_copies_done(const kn_storage *storage)
{
    if (!storage->copies)
        return true;
    kn_lock(&storage->copies->lock);
    drop_passed(storage->copies);
    bool done = storage->copies->marks == NULL;
    kn_unlock(&storage->copies->lock);
    return done;
}

static kn_status order_copy(kn_host_copies *copies, kn_stream *stream, kn_host_access access)
{
    kn_status status = KN_OK;
    kn_lock(&copies->lock);
    drop_passed(copies);
    for (kn_copy_mark *mark = copies->marks; mark && status == KN_OK; mark = mark->next)
        if (conflict(mark->access, access))
            status = mark->device == kn_stream_device(stream) ? kn_stream_wait_event(stream, mark->event)
                                                              : kn_event_synchronize(mark->event);
    kn_unlock(&copies->lock);
    return status;
}

/* What may fail for want of memory does so before there is a copy that must be remembered. */
kn_status kn_storage_begin_copy(const kn_storage *storage, kn_stream *stream, kn_host_access access,
                                kn_copy_mark **mark)
{
    kn_copy_mark *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_copy_mark){.device = kn_stream_device(stream), .access = access};
    kn_status status = kn_event_create(&made->event, made->device);
    if (status == KN_OK)
        status = order_copy(storage->copies, stream, access);
    if (status != KN_OK) {
        free_mark(made);
        return status;
    }
    *mark = made;
    return KN_OK;
}

kn_status kn_storage_end_copy(const kn_storage *storage, kn_stream *stream, kn_copy_mark *mark, kn_status status)
{
    kn_host_copies *copies = storage->copies;
    bool enqueued = status == KN_OK;
    if (enqueued)
        status = kn_event_record(mark->event, stream);
    if (status != KN_OK) {
        free_mark(mark);
        if (enqueued) /* a copy that nobody remembers must not be under way */
            kn_stream_synchronize(stream);
        return status;
    }
    kn_lock(&copies->lock);
    drop_passed(copies);
    mark->next = copies->marks;
    copies->marks = mark;
    kn_unlock(&copies->lock);
    return KN_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void free_copies(kn_host_copies *copies)
{
    kn_pinned_free(copies->pinned);
    kn_mutex_destroy(&copies->lock);
    kn_free(copies);
}

/* Frees what no copy uses any more. Nobody else has these: their own locks are not needed. */
static void bury(void)
{
    kn_host_copies *done = NULL;
    kn_lock(&dead.lock);
    for (kn_host_copies **link = &dead.first; *link;) {
        kn_host_copies *copies = *link;
        drop_passed(copies);
        if (copies->marks) {
            link = &copies->next_dead;
            continue;
        }
        *link = copies->next_dead;
        copies->next_dead = done;
        done = copies;
    }
    kn_unlock(&dead.lock);
    while (done) {
        kn_host_copies *next = done->next_dead;
        free_copies(done);
        done = next;
    }
}

kn_status kn_storage_pin(kn_storage *storage, kn_device *device, size_t bytes)
{
    bury();
    kn_host_copies *copies = kn_calloc(1, sizeof *copies);
    if (!copies)
        return KN_ERR_MEMORY;
    kn_status status = kn_pinned_alloc(&copies->pinned, device, bytes);
    if (status != KN_OK) {
        kn_free(copies);
        return status;
    }
    kn_mutex_init(&copies->lock);
    storage->copies = copies;
    storage->host = kn_pinned_data(copies->pinned);
    return KN_OK;
}

void kn_storage_unpin(kn_storage *storage)
{
    kn_host_copies *copies = storage->copies;
    kn_lock(&dead.lock);
    copies->next_dead = dead.first;
    dead.first = copies;
    kn_unlock(&dead.lock);
    bury();
}

kn_pinned *kn_storage_pinned(const kn_storage *storage) { return storage->copies ? storage->copies->pinned : NULL; }
