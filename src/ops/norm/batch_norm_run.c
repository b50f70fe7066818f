/* ops/norm/batch_norm_run.c - batch normalisation on CPU devices: how channels are split, and the launches. See
 * ops/norm/norm.h. */
#include <stdio.h>

#include "ops/norm/launcher.h"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* --- splitting ---------------------------------------------------------------------------------------------------- */

/* Chunks end at run boundaries if possible, because a run's last, partial vector costs as much as a full one. Short
 * enough that plain sums of a chunk lose only a few roundings. */
#define MAX_IN_CHUNK 16384
#define WIDEST_LINE 512
static void cut_for_cpu(const kn_limits *limits, kn_batch_shape *s)
{
    s->tile = 1;
    if (s->inner >= 64) {
        s->length = s->inner <= MAX_IN_CHUNK ? MAX_IN_CHUNK / s->inner * s->inner : MAX_IN_CHUNK;
        s->chunks = ceil_div(s->outer * s->inner, s->length);
        return;
    }
    s->tile = 16 * ceil_div(4, s->inner); /* whole vectors, 64 to 16 * 63 elements */
    const int64_t fitting = WIDEST_LINE / (s->tile * s->inner);
    const int64_t shared = s->channels / (s->tile * 4 * (int64_t)limits->compute_units);
    s->tile *= larger(smaller(fitting, shared), 1); /* does not affect any sum */
    s->length = smaller(s->outer, 256);
    s->chunks = ceil_div(s->outer, s->length);
}

kn_batch_shape kn_batch_shape_of(const kn_limits *limits, int ndim, const int64_t *shape)
{
    kn_batch_shape s = {
        .outer = shape[0], .channels = shape[1], .inner = kn_shape_numel(ndim - 2, shape + 2), .tile = 1, .group = 1};

    if (s.channels == 1) { /* contiguous as a whole */
        s.inner *= s.outer;
        s.outer = 1;
    }
    if (s.outer * s.channels * s.inner == 0)
        return s;
    if (limits->is_cpu)
        cut_for_cpu(limits, &s);
    else
        kn_batch_split_on_gpu(&s);
    return s;
}

/* Channels processed together: as many as stay in the L2 cache between the two passes, but few enough to leave work for
 * all cores. `bytes`: per element, over all tensors read. */
#define CACHE_BYTES (512 * 1024)
#define MAX_IN_GROUP 16
static int64_t group_of(const kn_limits *limits, const kn_batch_shape *s, int64_t bytes)
{
    const int64_t fitting = CACHE_BYTES / larger(s->outer * s->inner * bytes, 1);
    const int64_t shared = s->channels / (4 * (int64_t)limits->compute_units);

    if (s->tile > 1)
        return 1;
    return larger(smaller(smaller(fitting, shared), MAX_IN_GROUP), 1);
}

static int64_t tasks_of(const kn_batch_shape *s) { return ceil_div(s->channels, s->tile > 1 ? s->tile : s->group); }

/* A single launch for all steps is preferred if whole channels keep all cores busy. */
static bool is_whole(const kn_limits *limits, const kn_batch_shape *s)
{
    return s->chunks == 1 || tasks_of(s) >= 2 * (int64_t)limits->compute_units;
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

static kn_norm_launcher launcher_of(kn_stream *stream, const kn_tensor *x, const char *source)
{
    kn_norm_launcher l = {.stream = stream,
                          .limits = kn_tensor_limits(x),
                          .dtype = x->dtype,
                          .source = source,
                          .operation = "batch_norm"};
    snprintf(l.options, sizeof l.options, "%s", kn_dtype_options(x->dtype));
    return l;
}

static void add_shape(kn_norm_launcher *l, const kn_batch_shape *s)
{
    kn_norm_add(l, kn_arg_i64(s->outer));
    kn_norm_add(l, kn_arg_i64(s->channels));
    kn_norm_add(l, kn_arg_i64(s->inner));
    kn_norm_add(l, kn_arg_i64(s->tile));
    kn_norm_add(l, kn_arg_i64(s->group));
    kn_norm_add(l, kn_arg_i64(s->length));
    kn_norm_add(l, kn_arg_i64(s->chunks));
}

/* Work-items for `tasks` tasks over all elements: few if there is little work. */
static kn_work_size work_of(const kn_norm_launcher *l, const kn_batch_shape *s, int64_t tasks)
{
    const size_t items = kn_work_items(l->limits, 2 * s->outer * s->channels * s->inner, 4096);
    return (kn_work_size){.global = (size_t)smaller(tasks, (int64_t)items)};
}

static kn_work_size work_per_channel(const kn_norm_launcher *l, const kn_batch_shape *s)
{
    return kn_work_for(l->limits, s->channels * 16 * s->chunks);
}

static kn_status new_partial(kn_tensor **partial, const kn_tensor *x, int64_t pairs)
{
    return kn_tensor_new(partial, x->dtype, 1, (const int64_t[]){2 * pairs}, x->storage->device);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

int kn_batch_forward_flags(const kn_batch_forward *f)
{
    return (f->weight ? KN_NORM_HAS_WEIGHT : 0) | (f->bias ? KN_NORM_HAS_BIAS : 0) |
           (f->running_mean ? KN_NORM_HAS_RUNNING : 0) | (f->cumulative ? KN_NORM_CUMULATIVE : 0) |
           (f->counter && !f->cumulative ? KN_NORM_COUNTS : 0);
}

static void add_running(kn_norm_launcher *l, const kn_batch_forward *f)
{
    kn_norm_add_tensor(l, f->running_mean, f->table);
    kn_norm_add_tensor(l, f->running_var, f->table);
    kn_norm_add_tensor(l, f->counter, f->table);
}

static void add_forward_numbers(kn_norm_launcher *l, const kn_batch_forward *f)
{
    kn_norm_add(l, kn_arg_real(l->dtype, f->eps));
    kn_norm_add(l, kn_arg_real(l->dtype, f->momentum));
    kn_norm_add(l, kn_arg_i32(kn_batch_forward_flags(f)));
}

static kn_status launch_apply(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s)
{
    kn_norm_add_tensor(l, f->x, NULL);
    kn_norm_add_tensor(l, f->y, NULL);
    kn_norm_add_tensor(l, f->weight, f->x);
    kn_norm_add_tensor(l, f->bias, f->x);
    kn_norm_add_tensor(l, f->table, NULL);
    add_shape(l, s);
    kn_norm_add(l, kn_arg_i32(kn_batch_forward_flags(f)));
    kn_norm_add_bounds(l, f->activation);
    return kn_norm_launch(l, "batch_apply", work_of(l, s, tasks_of(s) * s->chunks));
}

static kn_status launch_whole(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s,
                              const kn_tensor *partial)
{
    kn_norm_add_tensor(l, f->x, NULL);
    kn_norm_add_tensor(l, f->y, NULL);
    kn_norm_add_tensor(l, f->weight, f->x);
    kn_norm_add_tensor(l, f->bias, f->x);
    add_running(l, f);
    kn_norm_add_tensor(l, partial, NULL);
    kn_norm_add_tensor(l, f->table, NULL);
    add_shape(l, s);
    add_forward_numbers(l, f);
    kn_norm_add_bounds(l, f->activation);
    return kn_norm_launch(l, "batch_forward", work_of(l, s, tasks_of(s)));
}

static kn_status launch_steps(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s,
                              const kn_tensor *partial)
{
    kn_norm_add_tensor(l, f->x, NULL);
    kn_norm_add_tensor(l, partial, NULL);
    add_shape(l, s);
    KN_TRY(kn_norm_launch(l, "batch_moments", work_of(l, s, tasks_of(s) * s->chunks)));
    kn_norm_add_tensor(l, f->x, NULL);
    add_running(l, f);
    kn_norm_add_tensor(l, partial, NULL);
    kn_norm_add_tensor(l, f->table, NULL);
    add_shape(l, s);
    add_forward_numbers(l, f);
    KN_TRY(kn_norm_launch(l, "batch_finish", work_per_channel(l, s)));
    return launch_apply(l, f, s);
}

static kn_status run_evaluation(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s)
{
    kn_norm_add_tensor(l, f->running_mean, NULL);
    kn_norm_add_tensor(l, f->running_var, NULL);
    kn_norm_add_tensor(l, f->table, NULL);
    kn_norm_add(l, kn_arg_i64(s->channels));
    kn_norm_add(l, kn_arg_real(l->dtype, f->eps));
    KN_TRY(kn_norm_launch(l, "batch_running", kn_work_for(l->limits, s->channels)));
    return launch_apply(l, f, s);
}

kn_status kn_batch_norm_run(kn_stream *stream, const kn_batch_forward *f)
{
    kn_norm_launcher l = launcher_of(stream, f->x, "norm/batch.cl");
    kn_batch_shape s = kn_batch_shape_of(l.limits, f->x->ndim, f->x->shape);
    kn_tensor *partial;
    kn_status status;

    if (!l.limits->is_cpu)
        return kn_batch_norm_run_on_gpu(stream, f, &s);
    s.group = group_of(l.limits, &s, (int64_t)kn_dtype_size(l.dtype));
    if (!f->training)
        return run_evaluation(&l, f, &s);
    if (f->cumulative)
        KN_TRY(kn_batch_norm_count(stream, f->counter));
    KN_TRY(new_partial(&partial, f->x, s.chunks * s.channels));
    status = is_whole(l.limits, &s) ? launch_whole(&l, f, &s, partial) : launch_steps(&l, f, &s, partial);
    kn_release(partial);
    return status;
}

kn_status kn_batch_norm_count(kn_stream *stream, const kn_tensor *counter)
{
    return kn_run(stream, .source = "norm/batch_count.cl", .kernel = "batch_count", .operation = "batch_norm",
                  .dims = 1, .global = {1}, KN_ARGS(kn_arg_tensor(counter)));
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

int kn_batch_backward_flags(const kn_batch_backward *b)
{
    return (b->weight ? KN_NORM_HAS_WEIGHT : 0) | (b->bias ? KN_NORM_HAS_BIAS : 0) |
           (b->training ? KN_NORM_TRAINING : 0) | (b->grad_x ? KN_NORM_WANTS_X : 0) |
           (b->grad_weight ? KN_NORM_WANTS_WEIGHT : 0) | (b->grad_bias ? KN_NORM_WANTS_BIAS : 0);
}

static kn_status launch_backward_whole(kn_norm_launcher *l, const kn_batch_backward *b, const kn_batch_shape *s,
                                       const kn_tensor *partial, const kn_tensor *sums)
{
    kn_norm_add_operands(l, b);
    kn_norm_add_tensor(l, b->grad_x, sums);
    kn_norm_add_tensor(l, partial, NULL);
    kn_norm_add_tensor(l, sums, NULL);
    kn_norm_add_tensor(l, b->grad_weight, sums);
    kn_norm_add_tensor(l, b->grad_bias, sums);
    add_shape(l, s);
    return kn_norm_launch(l, "batch_backward", work_of(l, s, tasks_of(s)));
}

static kn_status launch_sums(kn_norm_launcher *l, const kn_batch_backward *b, const kn_batch_shape *s,
                             const kn_tensor *partial, const kn_tensor *sums)
{
    kn_norm_add_operands(l, b);
    kn_norm_add_tensor(l, partial, NULL);
    add_shape(l, s);
    KN_TRY(kn_norm_launch(l, "batch_sums", work_of(l, s, tasks_of(s) * s->chunks)));
    kn_norm_add_tensor(l, partial, NULL);
    kn_norm_add_tensor(l, b->table, NULL);
    kn_norm_add_tensor(l, sums, NULL);
    kn_norm_add_tensor(l, b->grad_weight, sums);
    kn_norm_add_tensor(l, b->grad_bias, sums);
    kn_norm_add(l, kn_arg_i64(s->channels));
    kn_norm_add(l, kn_arg_i64(s->chunks));
    kn_norm_add(l, kn_arg_i32(kn_batch_backward_flags(b)));
    return kn_norm_launch(l, "batch_backward_finish", work_per_channel(l, s));
}

static kn_status launch_backward_apply(kn_norm_launcher *l, const kn_batch_backward *b, const kn_batch_shape *s,
                                       const kn_tensor *sums)
{
    kn_norm_add_operands(l, b);
    kn_norm_add_tensor(l, b->grad_x, NULL);
    kn_norm_add_tensor(l, sums, NULL);
    add_shape(l, s);
    return kn_norm_launch(l, "batch_backward_apply", work_of(l, s, tasks_of(s) * s->chunks));
}

kn_status kn_batch_norm_run_backward(kn_stream *stream, const kn_batch_backward *b)
{
    kn_norm_launcher l = launcher_of(stream, b->x, "norm/batch_backward.cl");
    kn_batch_shape s = kn_batch_shape_of(l.limits, b->x->ndim, b->x->shape);
    const bool needs_sums = b->grad_weight || b->grad_bias || (b->training && b->grad_x);
    kn_tensor *partial, *sums = NULL;
    kn_status status;

    if (!l.limits->is_cpu)
        return kn_batch_norm_backward_on_gpu(stream, b, &s);
    s.group = group_of(l.limits, &s, 2 * (int64_t)kn_dtype_size(l.dtype));
    KN_TRY(new_partial(&partial, b->x, s.chunks * s.channels));
    status = new_partial(&sums, b->x, s.channels);
    if (status == KN_OK && needs_sums && is_whole(l.limits, &s)) {
        status = launch_backward_whole(&l, b, &s, partial, sums);
    } else if (status == KN_OK) {
        if (needs_sums)
            status = launch_sums(&l, b, &s, partial, sums);
        if (status == KN_OK && b->grad_x)
            status = launch_backward_apply(&l, b, &s, sums);
    }
    kn_release(partial);
    kn_release(sums);
    return status;
}
