/* tensor/host_copies.c - tracks the pending copies of pinned host storages; see host_copies.h. */
#include "tensor/host_copies.h"

#include "base/memory.h"
#include "base/threads.h"

struct kn_copy_mark {
    kn_event *event; /* recorded after the copy */
    kn_device *device;
    kn_host_access access; /* whether the copy reads or writes the host memory */
    kn_copy_mark *next;
};

struct kn_host_copies {
    kn_pinned *pinned;
    kn_mutex lock;       /* several threads may copy from one tensor */
    kn_copy_mark *marks; /* newest first */
    struct kn_host_copies *next_dead;
};

/* Memory whose tensors were released while copies were pending. */
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

/* A failed copy that wrote the memory must be reported: its mark stays. */
static bool can_be_forgotten(const kn_copy_mark *mark)
{
    return kn_event_has_passed(mark->event) && (mark->access == KN_HOST_READ || !kn_event_has_failed(mark->event));
}

static void drop_passed(kn_host_copies *copies)
{
    for (kn_copy_mark **link = &copies->marks; *link;) {
        if (can_be_forgotten(*link))
            drop_mark(link);
        else
            link = &(*link)->next;
    }
}

static bool has_pending(const kn_host_copies *copies)
{
    for (const kn_copy_mark *mark = copies->marks; mark; mark = mark->next)
        if (!kn_event_has_passed(mark->event))
            return true;
    return false;
}

/* Calls `wait` for the conflicting copies and drops their marks. An error is reported once: the copy is over then. */
static kn_status settle(kn_host_copies *copies, kn_host_access access, kn_status (*wait)(kn_copy_mark *, void *),
                        void *user)
{
    kn_status status = KN_OK;
    kn_lock(&copies->lock);
    drop_passed(copies);
    for (kn_copy_mark **link = &copies->marks; *link;) {
        if (!conflict((*link)->access, access)) {
            link = &(*link)->next;
            continue;
        }
        kn_status one = kn_event_has_passed((*link)->event) ? kn_event_await((*link)->event) : wait(*link, user);
        status = status == KN_OK ? one : status;
        if (one == KN_OK ? can_be_forgotten(*link) : kn_event_has_passed((*link)->event))
            drop_mark(link);
        else
            link = &(*link)->next;
    }
    kn_unlock(&copies->lock);
    return status;
}

/* For waits on the user's behalf, which are counted and may be forbidden. */
static kn_status synchronize_mark(kn_copy_mark *mark, void *user)
{
    (void)user;
    return kn_event_synchronize(mark->event);
}

static kn_status await_mark(kn_copy_mark *mark, void *user)
{
    (void)user;
    return kn_event_await(mark->event);
}

/* Waits on the device if possible. */
static kn_status order_mark(kn_copy_mark *mark, void *stream)
{
    return mark->device == kn_stream_device(stream) ? kn_stream_wait_event(stream, mark->event)
                                                    : kn_event_synchronize(mark->event);
}

kn_status kn_storage_wait_slow(const kn_storage *storage, kn_host_access access)
{
    return settle(storage->copies, access, synchronize_mark, NULL);
}

kn_status kn_storage_wait_uncounted(const kn_storage *storage)
{
    return storage->copies ? settle(storage->copies, KN_HOST_WRITE, await_mark, NULL) : KN_OK;
}

bool kn_storage_copies_done(const kn_storage *storage)
{
    if (!storage->copies)
        return true;
    kn_lock(&storage->copies->lock);
    drop_passed(storage->copies);
    bool done = !has_pending(storage->copies);
    kn_unlock(&storage->copies->lock);
    return done;
}

/* Allocates before the copy is enqueued, since an enqueued copy must be tracked. */
kn_status kn_storage_begin_copy(const kn_storage *storage, kn_stream *stream, kn_host_access access,
                                kn_copy_mark **mark)
{
    kn_copy_mark *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_copy_mark){.device = kn_stream_device(stream), .access = access};
    kn_status status = kn_status_of(made->event = kn_event_new_without_timing(made->device));
    if (status == KN_OK)
        status = settle(storage->copies, access, order_mark, stream);
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
    if (status == KN_OK)
        status = kn_event_record(mark->event, stream);
    if (status != KN_OK) {
        free_mark(mark);
        kn_stream_drain(stream); /* an untracked copy must not stay pending, if it was enqueued at all */
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
    while (copies->marks)
        drop_mark(&copies->marks);
    kn_pinned_free(copies->pinned);
    kn_mutex_destroy(&copies->lock);
    kn_free(copies);
}

/* Frees the dead storages without pending copies. They have no other users, so their own locks are not needed. */
static void free_finished(void)
{
    kn_host_copies *done = NULL;
    kn_lock(&dead.lock);
    for (kn_host_copies **link = &dead.first; *link;) {
        kn_host_copies *copies = *link;
        if (has_pending(copies)) {
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
    free_finished();
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
    free_finished();
}

kn_pinned *kn_storage_pinned(const kn_storage *storage) { return storage->copies ? storage->copies->pinned : NULL; }
