/* rt/memory/watchers.c - notifying holders of a buffer's address when it is freed. */
#include "base/error.h"
#include "rt/memory/blocks.h"

kn_status kn_buffer_watch(kn_buffer *buffer, kn_buffer_watcher *watcher)
{
    kn_pool *pool = buffer->segment->pool;
    kn_status status = KN_OK;
    kn_lock(&pool->lock);
    if (watcher->link) {
        status = kn_fail(KN_ERR_STATE, "the watcher already watches a buffer: call kn_buffer_unwatch first");
    } else {
        watcher->device = kn_buffer_device(buffer);
        watcher->next = buffer->watchers;
        watcher->link = &buffer->watchers;
        if (watcher->next)
            watcher->next->link = &watcher->next;
        buffer->watchers = watcher;
    }
    kn_unlock(&pool->lock);
    return status;
}

static void unlink_watcher(kn_buffer_watcher *watcher)
{
    *watcher->link = watcher->next;
    if (watcher->next)
        watcher->next->link = watcher->link;
    watcher->next = NULL;
    watcher->link = NULL;
}

void kn_buffer_unwatch(kn_buffer_watcher *watcher)
{
    if (!watcher->device)
        return;
    kn_lock(&watcher->device->pool->lock);
    if (watcher->link)
        unlink_watcher(watcher);
    kn_unlock(&watcher->device->pool->lock);
}

void kn_pool_tell_watchers(kn_buffer *block)
{
    while (block->watchers) {
        kn_buffer_watcher *watcher = block->watchers;
        unlink_watcher(watcher);
        watcher->freed(watcher);
    }
}
