/* ops/norm/batch_norm_run.c - batch normalisation: how channels are split, and the launches. See ops/norm/norm.h. */
#include <stdio.h>

#include "base/integer.h"
#include "loops/rows_plan.h"
#include "ops/norm/norm.h"
#include "ops/pointwise/epilogue.h"

/* --- splitting ---------------------------------------------------------------------------------------------------- */

/* Chunks end at run boundaries if possible, because a run's last, partial vector costs as much as a full one. Short
 * enough that plain sums of a chunk lose only a few roundings. */
#define MAX_IN_CHUNK 16384
#define WIDEST_LINE 512
static void split_on_cpu(const kn_limits *limits, kn_batch_shape *s, int64_t bytes)
{
    if (s->inner >= 64) {
        s->length = s->inner <= MAX_IN_CHUNK ? MAX_IN_CHUNK / s->inner * s->inner : MAX_IN_CHUNK;
        s->chunks = kn_div_up(s->outer * s->inner, s->length);
        return;
    }
    s->tile = 16 * kn_div_up(4, s->inner); /* whole vectors, 64 to 16 * 63 elements */
    s->length = kn_min_i64(s->outer, 256);
    s->chunks = kn_div_up(s->outer, s->length);
    /* Wide lines are read faster. Few channels can be shared out in wide lines if they have several chunks, but then
     * the steps have a launch each, and a narrow tile may stay in the cache between them. No sum depends on this. */
    const int64_t fitting = WIDEST_LINE / (s->tile * s->inner);
    const int64_t shared = s->channels / (s->tile * 4 * (int64_t)limits->compute_units);
    const bool stays = s->tile * s->inner * s->outer * bytes < (int64_t)limits->core_cache / 2;
    s->tile *= kn_max_i64(stays || s->chunks == 1 ? kn_min_i64(fitting, shared) : fitting, 1);
}

/* Channels processed together: as many as stay in the L2 cache between the two passes, but few enough to leave work for
 * all cores. `bytes`: per element, over all tensors read. */
#define CACHE_BYTES (512 * 1024)
#define MAX_IN_GROUP 16
static int64_t group_of(const kn_limits *limits, const kn_batch_shape *s, int64_t bytes)
{
    const int64_t fitting = CACHE_BYTES / kn_max_i64(s->outer * s->inner * bytes, 1);
    const int64_t shared = s->channels / (4 * (int64_t)limits->compute_units);

    return s->tile > 1 ? 1 : kn_max_i64(kn_min_i64(kn_min_i64(fitting, shared), MAX_IN_GROUP), 1);
}

/* Enough work-groups for a large device, at least eight elements per work-item, and chunks short enough that their
 * plain sums lose only a few roundings. A channel that takes no longer than a launch is one chunk. */
#define MAX_IN_WHOLE 8192
static void split_on_gpu(kn_batch_shape *s)
{
    const int64_t n = s->outer * s->inner, wanted = kn_div_up(kn_div_up(n * s->channels, 1024), 1024) * 1024;

    s->length = n <= MAX_IN_WHOLE ? n : kn_min_i64(kn_max_i64(wanted, 2048), MAX_IN_CHUNK);
    s->chunks = kn_div_up(n, s->length);
}

static kn_batch_shape shape_of(const kn_limits *limits, const kn_batch_pass *pass)
{
    const kn_tensor *x = pass->x;
    const bool is_summed = (pass->flags & (KN_NORM_WANTS_WEIGHT | KN_NORM_WANTS_BIAS)) ||
                           ((pass->flags & KN_NORM_TRAINING) && (pass->flags & KN_NORM_WANTS_X));
    const int64_t bytes = (pass->is_backward ? 2 : 1) * (int64_t)kn_dtype_size(x->dtype); /* per element */
    kn_batch_shape s = {.outer = x->shape[0],
                        .channels = x->shape[1],
                        .inner = kn_shape_numel(x->ndim - 2, x->shape + 2),
                        .tile = 1,
                        .flags = pass->flags};

    if (s.channels == 1) { /* contiguous as a whole */
        s.inner *= s.outer;
        s.outer = 1;
    }
    if (limits->is_cpu)
        split_on_cpu(limits, &s, bytes);
    else
        split_on_gpu(&s);
    s.group = group_of(limits, &s, bytes);
    s.summed = is_summed ? s.chunks : 0;
    return s;
}

static int64_t tasks_of(const kn_batch_shape *s) { return kn_div_up(s->channels, s->tile > 1 ? s->tile : s->group); }

/* A single launch for all steps is preferred if whole channels keep all cores busy. */
static bool is_whole(const kn_limits *limits, const kn_batch_shape *s)
{
    return s->summed > 0 && (s->chunks == 1 || (limits->is_cpu && tasks_of(s) >= 2 * (int64_t)limits->compute_units));
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

#define MAX_ARGS (KN_BATCH_TENSORS + 7)

/* The kernels of a pass have the same arguments: tensors, the shape, and numbers. */
typedef struct batch_launcher {
    kn_stream *stream;
    const kn_limits *limits;
    const kn_batch_shape *shape;
    const char *source;
    char options[80];
    kn_arg args[MAX_ARGS];
} batch_launcher;

static void add_args(batch_launcher *l, const kn_batch_pass *pass, const kn_tensor *scratch)
{
    const kn_bounds bounds = kn_bounds_of(pass->activation);
    const double numbers[] = {pass->eps, pass->momentum, bounds.low, bounds.high};
    int n = 0;

    l->args[n++] = kn_arg_tensor(pass->x);
    for (int i = 0; i < KN_BATCH_TENSORS; i++) /* a missing tensor may be any buffer: the kernel does not read it */
        l->args[n++] = kn_arg_tensor(pass->tensors[i] ? pass->tensors[i] : pass->x);
    l->args[n++] = kn_arg_tensor(scratch ? scratch : pass->x);
    l->args[n++] = kn_arg_struct(l->shape, sizeof *l->shape);
    for (int i = 0; i < 4; i++)
        l->args[n++] = kn_arg_real(kn_compute_type(pass->x->dtype), numbers[i]);
}

static kn_status launch(const batch_launcher *l, const char *kernel, kn_work_size work)
{
    return kn_run(l->stream, .source = l->source, .options = l->options, .kernel = kernel, .operation = "batch_norm",
                  .dims = 1, .global = {work.global}, .local = {work.local}, .args = l->args, .num_args = MAX_ARGS);
}

/* CPU devices: work-items for `tasks` tasks over all elements, few if there is little work. */
static kn_work_size work_of(const batch_launcher *l, int64_t tasks)
{
    const kn_batch_shape *s = l->shape;
    const size_t items = kn_work_items(l->limits, 2 * s->outer * s->channels * s->inner, 4096);
    return (kn_work_size){.global = (size_t)kn_min_i64(tasks, (int64_t)items)};
}

static kn_status launch_on_cpu(const batch_launcher *l, bool is_backward)
{
    const kn_batch_shape *s = l->shape;
    const kn_work_size by_chunk = work_of(l, tasks_of(s) * s->chunks);

    if (is_whole(l->limits, s))
        return launch(l, "batch_whole", work_of(l, tasks_of(s)));
    if (s->summed > 0)
        KN_TRY(launch(l, "batch_sums", by_chunk));
    if (s->summed > 0 || !is_backward) /* in evaluation the statistics follow from the running estimates */
        KN_TRY(launch(l, "batch_finish", kn_work_for(l->limits, s->channels * 16 * kn_max_i64(s->summed, 1))));
    return s->flags & KN_NORM_WANTS_X ? launch(l, "batch_apply", by_chunk) : KN_OK;
}

static kn_status launch_on_gpu(const batch_launcher *l)
{
    const kn_batch_shape *s = l->shape;
    const kn_work_size by_channel = kn_work_for_groups(l->limits, s->channels);
    const kn_work_size by_chunk = kn_work_for_groups(l->limits, s->channels * s->chunks);

    if (is_whole(l->limits, s))
        return launch(l, "batch_whole", by_channel);
    if (s->summed > 0)
        KN_TRY(launch(l, "batch_sums", by_chunk));
    return launch(l, "batch_apply", s->flags & KN_NORM_WANTS_X ? by_chunk : by_channel);
}

/* GPUs load vectors if the shape permits, by elements if a tensor is not aligned. */
static void write_options(batch_launcher *l, const kn_batch_pass *pass)
{
    const bool wide = l->shape->inner % 4 == 0;
    int64_t offsets = pass->x->offset;

    for (int i = 0; i < KN_BATCH_TENSORS; i++)
        if (pass->tensors[i] && pass->tensors[i]->ndim == pass->x->ndim)
            offsets |= pass->tensors[i]->offset;
    snprintf(l->options, sizeof l->options, "%s -DWIDTH=%d%s", kn_dtype_options(pass->x->dtype), wide ? 4 : 1,
             wide && offsets % 4 != 0 ? " -DUNALIGNED" : "");
}

kn_status kn_batch_norm_run(kn_stream *stream, const kn_batch_pass *pass)
{
    static const char *const sources[2][2] = {{"norm/batch_gpu.cl", "norm/batch_gpu_backward.cl"},
                                              {"norm/batch.cl", "norm/batch_backward.cl"}};
    const kn_limits *limits = kn_tensor_limits(pass->x);
    const kn_dtype compute = kn_compute_type(pass->x->dtype); /* another one: of bf16 */
    const kn_batch_shape shape = shape_of(limits, pass);
    const size_t bytes = (pass->is_backward ? 3 : 2) * kn_dtype_size(pass->x->dtype); /* per element, with the result */
    batch_launcher l = {
        .stream = stream, .limits = limits, .shape = &shape, .source = sources[limits->is_cpu][pass->is_backward]};
    kn_tensor *scratch = NULL;

    if (pass->flags & KN_NORM_CUMULATIVE)
        KN_TRY(kn_batch_norm_count(stream, pass->tensors[KN_BATCH_COUNTER]));
    if (shape.summed > 0 && (limits->is_cpu || shape.chunks > 1))
        KN_TRY(kn_tensor_new(&scratch, compute, 1, (const int64_t[]){2 * (shape.chunks + 1) * shape.channels},
                             pass->x->storage->device));
    add_args(&l, pass, scratch);
    if (limits->is_cpu)
        snprintf(l.options, sizeof l.options, "%s%s%s", kn_dtype_options(compute),
                 compute != pass->x->dtype ? " -DBFLOAT" : "",
                 kn_bypasses_caches(limits, (uint64_t)kn_numel(pass->x) * bytes) ? " -DKN_BYPASS" : "");
    else
        write_options(&l, pass);
    const kn_status status = limits->is_cpu ? launch_on_cpu(&l, pass->is_backward) : launch_on_gpu(&l);
    kn_release(scratch);
    return status;
}

kn_status kn_batch_norm_count(kn_stream *stream, const kn_tensor *counter)
{
    return kn_run(stream, .source = "norm/batch_count.cl", .kernel = "batch_count", .operation = "batch_norm",
                  .dims = 1, .global = {1}, KN_ARGS(kn_arg_tensor(counter)));
}
