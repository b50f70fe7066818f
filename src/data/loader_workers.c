/* data/loader_workers.c - threads that gather batches ahead of the caller. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "data/loader.h"

static kn_slot *slot_of(const kn_loader *loader, int64_t batch) { return &loader->slots[batch % loader->num_slots]; }

/* Waits for a batch to gather and takes it; NULL when the loader is freed. Called with the mutex held, and returns with
 * it held. */
static kn_slot *take_work(kn_loader *loader)
{
    for (;;) {
        if (loader->quit)
            return NULL;
        if (loader->next_to_make < loader->batches) {
            kn_slot *slot = slot_of(loader, loader->next_to_make);
            if (slot->state == KN_SLOT_FREE) {
                slot->state = KN_SLOT_MAKING;
                slot->batch = loader->next_to_make++;
                loader->making++;
                return slot;
            }
        }
        pthread_cond_wait(&loader->work, &loader->mutex);
    }
}

/* Errors are per thread: the slot carries this one to the caller of kn_loader_next. */
static void make_batch(kn_loader *loader, kn_slot *slot)
{
    kn_error_clear();
    kn_status status = kn_loader_gather(loader, slot, slot->batch);
    slot->status = status;
    if (status != KN_OK)
        snprintf(slot->message, sizeof(slot->message), "%s", kn_error_message());
}

static void *work(void *argument)
{
    kn_loader *loader = argument;
    kn_slot *slot;
    kn_lock(&loader->mutex);
    while ((slot = take_work(loader)) != NULL) {
        kn_unlock(&loader->mutex);
        make_batch(loader, slot);
        kn_lock(&loader->mutex);
        slot->state = KN_SLOT_READY;
        loader->making--;
        pthread_cond_broadcast(&loader->done);
    }
    kn_unlock(&loader->mutex);
    return NULL;
}

/* A thread with all signals blocked: Ctrl-C is for the program's own threads. New threads inherit the mask. */
static int create_quiet_thread(pthread_t *thread, kn_loader *loader)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, work, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

kn_status kn_loader_start_workers(kn_loader *loader)
{
    int wanted = loader->params.num_workers;
    if (wanted == 0)
        return KN_OK;
    if (kn_is_forked())
        return kn_fail_forked();
    kn_fork_watch();
    loader->threads = kn_calloc((size_t)wanted, sizeof(*loader->threads));
    if (!loader->threads)
        return KN_ERR_MEMORY;
    for (; loader->num_threads < wanted; loader->num_threads++) {
        int error = create_quiet_thread(&loader->threads[loader->num_threads], loader);
        if (error != 0)
            return kn_fail(KN_ERR_MEMORY, "loader: worker thread %d of %d could not be started: %s",
                           loader->num_threads + 1, wanted, strerror(error));
    }
    return KN_OK;
}

void kn_loader_stop_workers(kn_loader *loader)
{
    atomic_store(&loader->cancel, true);
    kn_lock(&loader->mutex);
    loader->quit = true;
    pthread_cond_broadcast(&loader->work);
    kn_unlock(&loader->mutex);
    for (int i = 0; i < loader->num_threads; i++)
        pthread_join(loader->threads[i], NULL);
    kn_free(loader->threads);
    loader->threads = NULL;
    loader->num_threads = 0;
}

void kn_loader_drain(kn_loader *loader)
{
    atomic_store(&loader->cancel, true);
    kn_lock(&loader->mutex);
    loader->next_to_make = loader->batches;
    while (loader->making > 0)
        pthread_cond_wait(&loader->done, &loader->mutex);
    for (int i = 0; i < loader->num_slots; i++)
        loader->slots[i].state = KN_SLOT_FREE; /* the next owner of the slot returns its memory */
    kn_unlock(&loader->mutex);
    atomic_store(&loader->cancel, false);
}

void kn_loader_begin_epoch(kn_loader *loader)
{
    kn_lock(&loader->mutex);
    loader->next_to_make = 0;
    pthread_cond_broadcast(&loader->work);
    kn_unlock(&loader->mutex);
}

/* Without workers the caller gathers the batch. */
static kn_slot *make_here(kn_loader *loader, int64_t batch)
{
    kn_slot *slot = slot_of(loader, batch);
    slot->batch = batch;
    slot->status = kn_loader_gather(loader, slot, batch);
    slot->message[0] = '\0'; /* the error is already this thread's */
    return slot;
}

kn_slot *kn_loader_acquire(kn_loader *loader, int64_t batch, bool wait)
{
    if (loader->num_threads == 0)
        return wait ? make_here(loader, batch) : NULL;
    kn_slot *slot = slot_of(loader, batch);
    kn_lock(&loader->mutex);
    while (wait && (slot->state != KN_SLOT_READY || slot->batch != batch))
        pthread_cond_wait(&loader->done, &loader->mutex);
    bool ready = slot->state == KN_SLOT_READY && slot->batch == batch;
    kn_unlock(&loader->mutex);
    return ready ? slot : NULL;
}

void kn_loader_release(kn_loader *loader, kn_slot *slot)
{
    kn_loader_release_memory(loader, slot);
    if (loader->num_threads == 0)
        return;
    kn_lock(&loader->mutex);
    slot->state = KN_SLOT_FREE;
    pthread_cond_broadcast(&loader->work);
    kn_unlock(&loader->mutex);
}
