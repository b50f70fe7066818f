/* dist/scale.c - see dist/scale.h. Latency and bandwidth of all_reduce: Thakur, Rabenseifner, Gropp, "Optimization of
 * Collective Communication Operations in MPICH", 2005. */
#include "dist/scale.h"

#include <math.h>

#include "base/memory.h"
#include "tensor/tensor.h"

#define PIECE_BYTES 4194304.0 /* dist/group/pieces.c */

/* --- a collective ------------------------------------------------------------------------------------------------- */

static double rounds(int ranks) { return ceil(log2(ranks)); }

/* Both move 2 (n - 1) / n bytes over each link, for each byte; a ring in 2 (n - 1) messages, halving and doubling in
 * 2 log2 n. */
static double exchange(const kn_scale_link *link, kn_scale_algorithm algorithm, double bytes, int ranks)
{
    const double moved = 2 * bytes * (ranks - 1) / ranks / link->bandwidth;
    const double ring = 2 * (ranks - 1) * link->latency + moved, halving = 2 * rounds(ranks) * link->latency + moved;
    return algorithm == KN_SCALE_RING ? ring : algorithm == KN_SCALE_HALVING ? halving : fmin(ring, halving);
}

/* The ranks first compare their calls, by a reduction of a few bytes. In pieces: while one is exchanged, the next is
 * copied from the device and the one before to it, one after the other. All are alike but the first and the last. */
double kn_scale_all_reduce(const kn_scale_link *link, kn_scale_algorithm algorithm, double bytes, int ranks)
{
    if (ranks < 2)
        return 0;
    const double start = link->call + rounds(ranks) * link->latency;
    if (link->staging <= 0)
        return start + exchange(link, algorithm, bytes, ranks);
    double time = start + fmin(bytes, PIECE_BYTES) / link->staging, last = 0, left = bytes;
    while (left > 0) {
        const double piece = fmin(left, PIECE_BYTES), next = fmin(fmax(left - PIECE_BYTES, 0), PIECE_BYTES);
        const double alike = last > 0 ? fmax(floor(left / PIECE_BYTES) - 2, 1) : 1;
        time += alike * fmax(exchange(link, algorithm, piece, ranks), (last + next) / link->staging);
        last = piece;
        left -= alike * PIECE_BYTES;
    }
    return time + last / link->staging;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static double copying(const kn_scale_link *link, double bytes) { return link->copies > 0 ? bytes / link->copies : 0; }

static double all_bytes(const kn_scale_job *job)
{
    double bytes = 0;
    for (int b = 0; b < job->num_buckets; b++)
        bytes += job->buckets[b].bytes;
    return bytes;
}

/* A bucket is sent when its gradients are there and copied, and the one before is done. In the end all are copied
 * back. */
kn_scale_step kn_scale_predict(const kn_scale_job *job, int ranks)
{
    const double computed = job->forward + job->backward, copies = copying(&job->link, all_bytes(job));
    kn_scale_step step = {0};
    double done = 0, copied = 0;
    for (int b = 0; b < job->num_buckets; b++) {
        const kn_scale_bucket *bucket = &job->buckets[b];
        copied += copying(&job->link, bucket->bytes);
        const double ready =
            job->no_overlap ? computed + copies : job->forward + bucket->ready * job->backward + copied;
        const double time = kn_scale_all_reduce(&job->link, job->algorithm, bucket->bytes, ranks);
        step.communication += time;
        done = fmax(done, ready) + time;
    }
    step.time = ranks < 2 ? computed : fmax(done, computed + copies) + copies;
    step.exposed = step.time - computed;
    step.efficiency = step.time > 0 ? computed / step.time : 1;
    return step;
}

/* --- buckets ------------------------------------------------------------------------------------------------------ */

typedef struct filling {
    kn_scale_bucket *buckets;
    int count;
    double open; /* bytes of the bucket that is being filled */
    const kn_distributed_params *params;
} filling;

/* As in dist/reducer.c: a bucket is closed when it has reached its size. */
static void add_gradient(filling *f, double bytes, double ready)
{
    f->open += bytes;
    f->buckets[f->count] = (kn_scale_bucket){f->open, ready};
    const size_t limit = f->count == 0 ? f->params->first_bucket_bytes : f->params->bucket_bytes;
    if (f->open >= (double)limit) {
        f->count++;
        f->open = 0;
    }
}

static kn_scale_bucket *finish(filling *f, int *count)
{
    *count = f->count + (f->open > 0);
    return f->buckets;
}

static bool is_weight(const kn_tensor *parameter) { return parameter->ndim > 1; }

/* A layer is a weight of two or more dimensions; what belongs to it besides is ready with it. */
kn_scale_bucket *kn_scale_buckets_of(kn_module *module, const kn_distributed_params *params, size_t element, int *count)
{
    const kn_parameter_list list = kn_module_parameters(module);
    filling f = {.buckets = kn_calloc((size_t)list.count + 1, sizeof *f.buckets), .params = params};
    int layers = 0, done = 0;
    if (!f.buckets)
        return NULL;
    for (int i = 0; i < list.count; i++)
        layers += is_weight(list.tensors[i]);
    for (int i = list.count; i-- > 0;) {
        const kn_tensor *p = list.tensors[i];
        done += is_weight(p);
        add_gradient(&f, (double)kn_numel(p) * (double)(element ? element : kn_dtype_size(p->dtype)),
                     layers ? (double)(done < layers ? done + !is_weight(p) : done) / layers : 1);
    }
    return finish(&f, count);
}

kn_scale_bucket *kn_scale_buckets_of_equal(double parameters, int layers, const kn_distributed_params *params,
                                           size_t element, int *count)
{
    filling f = {.buckets = kn_calloc((size_t)layers + 1, sizeof *f.buckets), .params = params};
    for (int i = 0; f.buckets && i < layers; i++)
        add_gradient(&f, parameters / layers * (double)element, (double)(i + 1) / layers);
    return f.buckets ? finish(&f, count) : NULL;
}
