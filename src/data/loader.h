/* data/loader.h - internals of the loader.
 *
 * A batch passes three stages. A worker (or, without workers, the caller) gathers its samples into host tensors, pinned
 * if a device copies from them, in a slot of a ring: batch b uses slot b % num_slots, so batches leave in order
 * whichever worker was faster. kn_loader_next then calls the collate function, by default the copy to the device, on
 * the loader's own stream. This is prefetched one batch ahead if a worker has it ready, so that it overlaps the
 * caller's step; an event makes the caller's stream wait for it. The host tensors are reused once their copies are done
 * (loader_memory.c). */
#pragma once

#include <stdatomic.h>

#include "base/threads.h"
#include "data/dataset.h"
#include "rt/rt.h"

typedef enum kn_slot_state { KN_SLOT_FREE, KN_SLOT_MAKING, KN_SLOT_READY } kn_slot_state;

/* Host memory for a full batch: one tensor per field. */
typedef struct kn_host_batch {
    kn_tensor **fields; /* NULL: none */
} kn_host_batch;

/* Guarded by the loader's mutex, except `memory` and `places`, which belong to whoever holds the slot. */
typedef struct kn_slot {
    kn_slot_state state;
    int64_t batch;
    kn_host_batch memory;
    void **places;    /* where to write the next sample's fields */
    int64_t *lengths; /* of each sample's fields, num_fields together; NULL unless a field varies */
    int64_t *longest; /* of each field, in this batch; 1 if it does not vary */
    kn_status status; /* result of gathering */
    char message[1024];
} kn_slot;

/* A collated batch; the work enqueued for it may still be in flight. */
typedef struct kn_prepared_batch {
    kn_tensor **fields; /* the loader's list; all NULL unless is_made */
    bool is_made;
    kn_event *made; /* NULL if no device is involved */
} kn_prepared_batch;

/* The caller's batch, and the loop that it belongs to. */
typedef struct kn_yielded_batch {
    kn_batch batch; /* first: the loop functions receive a pointer to this */
    kn_loader *loader;
    int64_t starts; /* the loader's `starts` when the loop began */
    int scope;      /* scope of the iteration */
    kn_tensor *fields[];
} kn_yielded_batch;

/* Every `parts`-th sample of the order, from number `index` on; all of them if `parts` is below 2. Parts that `pad` are
 * equally long: the order is lengthened with its own beginning, as torch's DistributedSampler does. `by_batch`, with
 * padding and if there is a batch for each: every `parts`-th batch instead, so that batches are those of the whole. */
typedef struct kn_loader_part {
    int64_t index, parts;
    bool pad, by_batch;
} kn_loader_part;

struct kn_loader {
    kn_dataset *dataset;
    kn_loader_params params;
    kn_device *device;
    kn_device *pinned_for; /* NULL: batches are gathered into pageable memory */
    kn_stream *stream;     /* for the copies; NULL on the host */
    kn_sampler *sampler;   /* the caller's, or the loader's own */
    int64_t dataset_length;
    kn_loader_part part;
    int64_t length;                    /* of this part of the sampler's order */
    int64_t batches, samples, largest; /* per epoch; samples in a full batch */
    int num_fields;
    size_t *bytes; /* of each field: of a sample or, if it varies, of one row of dimension 0 */

    int64_t epoch;
    int64_t starts;          /* how often an epoch was started */
    int64_t *order;          /* sample indices of the epoch, at first of all parts; written while no worker gathers */
    int64_t next_batch;      /* returned by the next kn_loader_next */
    kn_prepared_batch ahead; /* that batch, if prefetched */
    kn_prepared_batch now;   /* the one being handed over */
    kn_tensor **made;        /* storage for the fields of both */
    kn_yielded_batch *given;
    kn_status loop_status; /* of the last loop */

    kn_slot *slots;
    void **places;              /* of all slots */
    int64_t *longest, *lengths; /* likewise */
    int num_slots;
    kn_host_batch *spare; /* guarded by the mutex: unused host tensors, oldest first; copies may be in flight */
    int num_spare, num_memory, max_memory; /* num_memory: total, in slots and spare */

    /* Workers. */
    kn_mutex mutex;
    pthread_cond_t work, done; /* work: a slot became free or the epoch began; done: a slot became ready or idle */
    pthread_t *threads;
    int num_threads;
    int64_t next_to_make; /* guarded; `batches`: nothing left */
    int making;           /* guarded: batches being gathered now */
    bool quit;            /* guarded */
    atomic_bool cancel;   /* the epoch is abandoned: gathering may stop early */
};

/* loader.c: from the next epoch on the loader yields this part of the samples; returns the part that it yielded. */
kn_loader_part kn_loader_divide(kn_loader *loader, kn_loader_part part);

/* loader_gather.c: fills the slot's memory with the batch's samples. */
kn_status kn_loader_gather(kn_loader *loader, kn_slot *slot, int64_t batch);
int64_t kn_loader_batch_size(const kn_loader *loader, int64_t batch); /* the last one may be smaller */

/* loader_memory.c: takes host tensors for a slot / returns them / frees all. */
kn_status kn_loader_acquire_memory(kn_loader *loader, kn_slot *slot);
void kn_loader_release_memory(kn_loader *loader, kn_slot *slot);
void kn_loader_free_memory(kn_loader *loader);

/* loader_collate.c: collates the batch / hands it to the caller, whose current stream waits for it / drops it. */
kn_status kn_loader_make(kn_loader *loader, kn_slot *slot, kn_prepared_batch *batch);
kn_status kn_loader_hand_over(kn_loader *loader, kn_prepared_batch *batch, kn_yielded_batch *given);
void kn_loader_drop(kn_loader *loader, kn_prepared_batch *batch);

/* loader_loop.c: the public batch `number` with these fields. */
kn_batch kn_loader_describe(const kn_loader *loader, kn_tensor **fields, int64_t number);
kn_yielded_batch *kn_loader_new_yielded(kn_loader *loader); /* freed with kn_free; NULL with an error */

/* loader.c: the next batch; `more` is false at the end of the epoch. */
kn_status kn_loader_yield(kn_loader *loader, kn_yielded_batch *given, bool *more);

/* loader_workers.c. Draining leaves all workers idle and all slots free; acquire waits for the slot that holds `batch`,
 * or returns NULL if it is not ready and `wait` is false; release lets a worker refill it. */
kn_status kn_loader_start_workers(kn_loader *loader);
void kn_loader_stop_workers(kn_loader *loader);
void kn_loader_drain(kn_loader *loader);
void kn_loader_begin_epoch(kn_loader *loader);
kn_slot *kn_loader_acquire(kn_loader *loader, int64_t batch, bool wait);
void kn_loader_release(kn_loader *loader, kn_slot *slot);
