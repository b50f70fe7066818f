/* data/loader.h - the loader's parts.
 *
 * A batch goes through three hands. A worker (or, without workers, the caller) collates it into a slot: pinned staging
 * memory, one of a ring. kn_loader_next has the device copy the slot into new tensors on the loader's own stream and
 * notes an event: the slot may be filled again once it has passed, and the caller's stream waits for it before it
 * computes. Batch b uses slot b % num_slots, so batches leave in order whichever worker was faster. */
#ifndef KN_DATA_LOADER_H
#define KN_DATA_LOADER_H

#include <stdatomic.h>

#include "base/threads.h"
#include "data/dataset.h"
#include "rt/rt.h"

typedef enum kn_slot_state { KN_SLOT_FREE, KN_SLOT_MAKING, KN_SLOT_READY } kn_slot_state;

/* Staging memory of one batch: all inputs, then (aligned) all targets. */
typedef struct kn_slot {
    kn_slot_state
        state; /* guarded by the loader's mutex, as all below but `copied`, which belongs to whoever holds the slot */
    int64_t batch;
    kn_pinned *memory;
    kn_event *copied; /* a copy out of it that may be under way; NULL: none */
    kn_status status; /* of collating */
    char message[1024];
} kn_slot;

/* A batch whose copy to the device is under way or done. */
typedef struct kn_device_batch {
    kn_tensor *input, *target; /* NULL: no batch here */
    kn_event *copied;          /* NULL on the host */
} kn_device_batch;

struct kn_loader {
    kn_dataset *dataset;
    kn_loader_params params;
    kn_device *device;
    kn_stream *stream; /* for the copies; NULL on the host */
    int64_t length;    /* of the dataset */
    int64_t batches, samples;
    size_t input_bytes, target_bytes; /* of one sample */
    size_t target_offset, slot_bytes; /* in a slot */

    int64_t epoch;
    bool started;
    int64_t *order;        /* sample indices of the epoch; written only while nobody collates */
    int64_t next_batch;    /* that kn_loader_next will give */
    kn_device_batch ahead; /* that very batch, if its copy was started early */

    kn_slot *slots;
    int num_slots;

    /* Workers. */
    kn_mutex mutex;
    pthread_cond_t work, done; /* a slot became free or the epoch began; a slot became ready or idle */
    pthread_t *threads;
    int num_threads;
    int64_t next_to_make; /* guarded; `batches` when there is nothing to do */
    int making;           /* guarded: batches being collated now */
    bool quit;            /* guarded */
    atomic_bool cancel;   /* the epoch is being left: collating may stop half way */
};

/* loader_collate.c: fills the slot with the batch's samples. */
kn_status kn_loader_collate(kn_loader *loader, kn_slot *slot, int64_t batch);
int64_t kn_loader_batch_size(const kn_loader *loader, int64_t batch); /* the last one may be smaller */

/* loader_copy.c: starts the copy of a slot to the device / hands the batch to the caller, whose current stream waits
 * for the copy. */
kn_status kn_loader_copy(kn_loader *loader, kn_slot *slot, kn_device_batch *batch);
kn_status kn_loader_hand_over(kn_loader *loader, kn_device_batch *batch, kn_tensor **input, kn_tensor **target);
void kn_device_batch_drop(kn_device_batch *batch);
kn_status kn_slot_wait(kn_slot *slot); /* until the copy out of it has passed */

/* loader_workers.c. Draining leaves all workers idle and all slots free; acquire waits for the slot that holds `batch`,
 * or gives NULL at once if it is not ready and `wait` is false; release lets a worker fill it again. */
kn_status kn_loader_start_workers(kn_loader *loader);
void kn_loader_stop_workers(kn_loader *loader);
void kn_loader_drain(kn_loader *loader);
void kn_loader_begin_epoch(kn_loader *loader);
kn_slot *kn_loader_acquire(kn_loader *loader, int64_t batch, bool wait);
void kn_loader_release(kn_loader *loader, kn_slot *slot);

#endif
