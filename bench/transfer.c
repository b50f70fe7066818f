/* transfer.c - copies between host and device: their speed from pageable and from pinned memory, synchronous and
 * asynchronous; and how well they overlap with computing, with two streams and with the loader. size: MiB per block,
 * blocks, 1 for device to host, what is measured. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

typedef struct transfer {
    kn_tensor *host, *device;
    kn_tensor *a, *b; /* the operands of the computation */
    int products;     /* per block, taking about as long as its copy */
    kn_stream *copies;
    kn_dataset *dataset;
    kn_loader *loader;
} transfer;

static void teardown(bench_state *state)
{
    transfer *t = state->data;
    if (!t)
        return;
    kn_loader_free(t->loader);
    kn_dataset_free(t->dataset);
    if (t->copies)
        kn_stream_synchronize(t->copies);
    kn_stream_free(t->copies);
    kn_release(t->host);
    kn_release(t->device);
    kn_release(t->a);
    kn_release(t->b);
    free(t);
}

static transfer *new_transfer(bench_state *state)
{
    transfer *t = calloc(1, sizeof *t);
    state->data = t;
    kn_device_set_current(state->device);
    return t;
}

/* --- copies alone ----------------------------------------------------------------------------- */

enum { PAGEABLE, PINNED, PINNED_NON_BLOCKING };

static kn_status copy_setup(const bench_case *self, bench_state *state)
{
    transfer *t = new_transfer(state);
    if (!t)
        return KN_ERR_MEMORY;
    const int64_t n = self->size[0] << 18; /* floats */
    {
        KN_SCOPE;
        t->host = kn_retain(kn_ones(KN_SHAPE(n), .device = kn_device_host(), .pin_memory = self->size[3] != PAGEABLE));
        t->device = kn_retain(kn_ones(KN_SHAPE(n)));
    }
    return t->host && t->device ? KN_OK : kn_error_status();
}

/* A non_blocking copy is only enqueued: the caller waits. The blocking pinned copy waits here. */
static kn_status copy_run(const bench_case *self, bench_state *state)
{
    transfer *t = state->data;
    kn_tensor *to = self->size[2] ? t->host : t->device, *from = self->size[2] ? t->device : t->host;
    return kn_copy(to, from, .non_blocking = self->size[3] == PINNED_NON_BLOCKING);
}

/* --- with computing --------------------------------------------------------------------------- */

enum { COMPUTE = 1, TRANSFER = 2, IN_SEQUENCE = COMPUTE | TRANSFER, OVERLAPPED = 4 | COMPUTE | TRANSFER };

static kn_status compute(const transfer *t)
{
    for (int i = 0; i < t->products; i++) {
        KN_SCOPE;
        if (!kn_matmul(t->a, t->b))
            return kn_error_status();
    }
    return KN_OK;
}

static kn_status wait_copy(transfer *t)
{
    kn_status status = kn_copy(t->device, t->host, .non_blocking = true);
    return status == KN_OK ? kn_synchronize(kn_device_of(t->device)) : status;
}

static double seconds_of(transfer *t, kn_status (*work)(transfer *))
{
    double best = INFINITY;
    for (int i = 0; i < 4; i++) {
        double start = bench_now();
        if (work(t) != KN_OK)
            return 0;
        double seconds = bench_now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static kn_status wait_product(transfer *t)
{
    t->products = 1; /* one, for timing */
    kn_status status = compute(t);
    return status == KN_OK ? kn_synchronize(kn_device_of(t->device)) : status;
}

/* Chooses slightly more computing than transfer time on any device; once, so that all cases of a run do the same. */
static kn_status balance(transfer *t, int64_t mib)
{
    static struct {
        int64_t mib;
        int products;
    } found;
    if (found.mib != mib) {
        double copy = seconds_of(t, wait_copy), product = seconds_of(t, wait_product);
        if (!(copy > 0) || !(product > 0))
            return kn_error_status();
        found.mib = mib;
        found.products = (int)ceil(1.25 * copy / product);
    }
    t->products = found.products;
    return KN_OK;
}

static kn_status overlap_setup(const bench_case *self, bench_state *state)
{
    transfer *t = new_transfer(state);
    if (!t)
        return KN_ERR_MEMORY;
    const int64_t n = self->size[0] << 18, side = kn_device_get_type(state->device) == KN_DEVICE_GPU ? 2048 : 256;
    {
        KN_SCOPE;
        t->host = kn_retain(kn_ones(KN_SHAPE(n), .pin_memory = true));
        t->device = kn_retain(kn_ones(KN_SHAPE(n)));
        t->a = kn_retain(kn_rand(KN_SHAPE(side, side)));
        t->b = kn_retain(kn_rand(KN_SHAPE(side, side)));
    }
    if (!t->host || !t->device || !t->a || !t->b)
        return kn_error_status();
    t->copies = kn_stream_new(state->device);
    return t->copies ? balance(t, self->size[0]) : kn_error_status();
}

/* For each block its copy, then the computation, on one stream; or the copies on a second stream. */
static kn_status overlap_run(const bench_case *self, bench_state *state)
{
    transfer *t = state->data;
    const int64_t what = self->size[3];
    kn_stream *stream = kn_stream_current(state->device);
    kn_status status = KN_OK;
    for (int64_t i = 0; i < self->size[1] && status == KN_OK; i++) {
        if (what == OVERLAPPED)
            status = kn_stream_set_current(t->copies);
        if (status == KN_OK && (what & TRANSFER))
            status = kn_copy(t->device, t->host, .non_blocking = true);
        kn_stream_set_current(stream);
        if (status == KN_OK && (what & COMPUTE))
            status = compute(t);
    }
    return status;
}

/* --- by the loader ---------------------------------------------------------------------------- */

#define BATCH 16

static kn_status loader_setup(const bench_case *self, bench_state *state)
{
    kn_status status = overlap_setup(self, state);
    transfer *t = state->data;
    if (status != KN_OK)
        return status;
    const int64_t samples = BATCH * self->size[1], width = (self->size[0] << 18) / BATCH;
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(samples, width), .device = kn_device_host());
        kn_tensor *y = kn_zeros(KN_SHAPE(samples), .dtype = KN_I64, .device = kn_device_host());
        t->dataset = kn_tensor_dataset(x, y);
    }
    t->loader = kn_loader_new(t->dataset, .batch_size = BATCH, .num_workers = 4);
    return kn_status_of(t->loader);
}

static kn_status loader_run(const bench_case *self, bench_state *state)
{
    transfer *t = state->data;
    kn_status status = self->size[3] & TRANSFER ? kn_loader_start(t->loader, 0) : KN_OK;
    for (int64_t i = 0; i < self->size[1] && status == KN_OK; i++) {
        KN_SCOPE;
        const kn_batch *batch;
        if (self->size[3] & TRANSFER)
            status = kn_loader_next(t->loader, &batch);
        if (status == KN_OK && (self->size[3] & COMPUTE))
            status = compute(t);
    }
    return status;
}

#define MIB 1048576.0
#define COPY(label, mib, back, what)                                                                                   \
    {                                                                                                                  \
        .name = "transfer/" label, .shape = #mib " MiB", .dtype = KN_F32, .bytes = mib * MIB, .setup = copy_setup,     \
        .run = copy_run, .teardown = teardown, .size = {mib, 1, back, what},                                           \
    }
#define BESIDE(label, mib, blocks, what, family)                                                                       \
    {                                                                                                                  \
        .name = "transfer/" label, .shape = #blocks "x" #mib " MiB", .dtype = KN_F32,                                  \
        .bytes = (what)&TRANSFER ? blocks * mib * MIB : 0, .setup = family##_setup, .run = family##_run,               \
        .teardown = teardown, .size = {mib, blocks, 0, what},                                                          \
    }

static const bench_case cases[] = {
    COPY("h2d/pageable", 64, 0, PAGEABLE),
    COPY("h2d/pinned", 64, 0, PINNED),
    COPY("h2d/pinned_non_blocking", 64, 0, PINNED_NON_BLOCKING),
    COPY("d2h/pageable", 64, 1, PAGEABLE),
    COPY("d2h/pinned", 64, 1, PINNED),
    COPY("d2h/pinned_non_blocking", 64, 1, PINNED_NON_BLOCKING),
    BESIDE("overlap/compute", 64, 8, COMPUTE, overlap),
    BESIDE("overlap/transfer", 64, 8, TRANSFER, overlap),
    BESIDE("overlap/in_sequence", 64, 8, IN_SEQUENCE, overlap),
    BESIDE("overlap/overlapped", 64, 8, OVERLAPPED, overlap),
    BESIDE("loader/compute", 16, 16, COMPUTE, loader),
    BESIDE("loader/loader", 16, 16, TRANSFER, loader),
    BESIDE("loader/both", 16, 16, COMPUTE | TRANSFER, loader),
};
const bench_list bench_transfer = {cases, sizeof cases / sizeof cases[0]};
