/* ops/norm/batch_norm_gpu.c - batch normalisation by work-groups (cl/norm/batch_gpu.cl): how channels are split, and
 * the launches: two if a channel has several chunks. See ops/norm/norm.h. */
#include <stdio.h>

#include "ops/norm/launcher.h"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Enough work-groups for a large device, at least eight elements per work-item, and chunks short enough that their
 * plain sums lose only a few roundings. A channel that takes no longer than a launch is one chunk. */
#define MAX_IN_WHOLE 8192
#define MAX_IN_CHUNK 16384
void kn_batch_split_on_gpu(kn_batch_shape *s)
{
    const int64_t n = s->outer * s->inner, wanted = ceil_div(ceil_div(n * s->channels, 1024), 1024) * 1024;

    s->length = wanted < 2048 ? 2048 : wanted > MAX_IN_CHUNK ? MAX_IN_CHUNK : wanted;
    if (n <= MAX_IN_WHOLE)
        s->length = n;
    s->chunks = ceil_div(n, s->length);
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

/* Vectors if the shape permits, loaded by elements if a tensor is not aligned. */
static void write_options(kn_norm_launcher *l, const kn_batch_shape *s, bool aligned)
{
    const bool wide = s->inner % 4 == 0;
    snprintf(l->options, sizeof l->options, "%s -DWIDTH=%d%s", kn_dtype_options(l->dtype), wide ? 4 : 1,
             wide && !aligned ? " -DUNALIGNED" : "");
}

static void add_shape(kn_norm_launcher *l, const kn_batch_shape *s)
{
    kn_norm_add(l, kn_arg_i64(s->outer));
    kn_norm_add(l, kn_arg_i64(s->channels));
    kn_norm_add(l, kn_arg_i64(s->inner));
    kn_norm_add(l, kn_arg_i64(s->length));
    kn_norm_add(l, kn_arg_i64(s->chunks));
}

static bool is_aligned(const kn_tensor *tensor) { return !tensor || tensor->offset % 4 == 0; }

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void add_forward(kn_norm_launcher *l, const kn_batch_forward *f)
{
    kn_norm_add_tensor(l, f->x, NULL);
    kn_norm_add_tensor(l, f->y, NULL);
    kn_norm_add_tensor(l, f->weight, f->x);
    kn_norm_add_tensor(l, f->bias, f->x);
    kn_norm_add_tensor(l, f->running_mean, f->table);
    kn_norm_add_tensor(l, f->running_var, f->table);
    kn_norm_add_tensor(l, f->counter, f->table);
    kn_norm_add_tensor(l, f->table, NULL);
}

static void add_forward_numbers(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s)
{
    /* In evaluation the running estimates are only read. */
    const int flags = f->training ? kn_batch_forward_flags(f) | KN_NORM_TRAINING
                                  : kn_batch_forward_flags(f) & (KN_NORM_HAS_WEIGHT | KN_NORM_HAS_BIAS);
    add_shape(l, s);
    kn_norm_add(l, kn_arg_real(l->dtype, f->eps));
    kn_norm_add(l, kn_arg_real(l->dtype, f->momentum));
    kn_norm_add(l, kn_arg_i32(flags));
    kn_norm_add_bounds(l, f->activation);
}

static kn_status launch_apply(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s,
                              const kn_tensor *partial)
{
    add_forward(l, f);
    kn_norm_add_tensor(l, partial, f->table);
    add_forward_numbers(l, f, s);
    return kn_norm_launch(l, "batch_apply", kn_work_for_groups(l->limits, s->channels * s->chunks));
}

static kn_status launch_training(kn_norm_launcher *l, const kn_batch_forward *f, const kn_batch_shape *s)
{
    kn_tensor *partial;

    if (f->cumulative)
        KN_TRY(kn_batch_norm_count(l->stream, f->counter));
    if (s->chunks == 1) {
        add_forward(l, f);
        add_forward_numbers(l, f, s);
        return kn_norm_launch(l, "batch_whole", kn_work_for_groups(l->limits, s->channels));
    }
    KN_TRY(kn_tensor_new(&partial, l->dtype, 1, (const int64_t[]){2 * s->chunks * s->channels}, f->x->storage->device));
    kn_norm_add_tensor(l, f->x, NULL);
    kn_norm_add_tensor(l, partial, NULL);
    add_shape(l, s);
    kn_status status = kn_norm_launch(l, "batch_moments", kn_work_for_groups(l->limits, s->channels * s->chunks));
    if (status == KN_OK)
        status = launch_apply(l, f, s, partial);
    kn_release(partial);
    return status;
}

kn_status kn_batch_norm_run_on_gpu(kn_stream *stream, const kn_batch_forward *f, const kn_batch_shape *s)
{
    kn_norm_launcher l = {.stream = stream,
                          .operation = "batch_norm",
                          .limits = kn_tensor_limits(f->x),
                          .dtype = f->x->dtype,
                          .source = "norm/batch_gpu.cl"};

    write_options(&l, s, is_aligned(f->x) && is_aligned(f->y));
    return f->training ? launch_training(&l, f, s) : launch_apply(&l, f, s, NULL);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static void add_results(kn_norm_launcher *l, const kn_batch_backward *b, const kn_tensor *other)
{
    kn_norm_add_tensor(l, b->grad_x, other);
    kn_norm_add_tensor(l, b->grad_weight, other);
    kn_norm_add_tensor(l, b->grad_bias, other);
}

static kn_status launch_backward(kn_norm_launcher *l, const kn_batch_backward *b, const kn_batch_shape *s,
                                 bool needs_sums, const kn_tensor *partial)
{
    if (needs_sums) {
        kn_norm_add_operands(l, b);
        kn_norm_add_tensor(l, partial, NULL);
        add_shape(l, s);
        KN_TRY(kn_norm_launch(l, "batch_sums", kn_work_for_groups(l->limits, s->channels * s->chunks)));
    }
    kn_norm_add_operands(l, b);
    kn_norm_add_tensor(l, partial, NULL);
    add_results(l, b, partial);
    add_shape(l, s);
    kn_norm_add(l, kn_arg_i64(needs_sums ? s->chunks : 0));
    return kn_norm_launch(l, "batch_backward_apply",
                          kn_work_for_groups(l->limits, s->channels * (b->grad_x ? s->chunks : 1)));
}

kn_status kn_batch_norm_backward_on_gpu(kn_stream *stream, const kn_batch_backward *b, const kn_batch_shape *s)
{
    kn_norm_launcher l = {.stream = stream,
                          .operation = "batch_norm",
                          .limits = kn_tensor_limits(b->x),
                          .dtype = b->x->dtype,
                          .source = "norm/batch_gpu_backward.cl"};
    const bool needs_sums = b->grad_weight || b->grad_bias || (b->training && b->grad_x);
    kn_tensor *partial;

    write_options(&l, s, is_aligned(b->gradient) && is_aligned(b->x) && is_aligned(b->grad_x));
    KN_TRY(kn_tensor_new(&partial, l.dtype, 1, (const int64_t[]){2 * s->chunks * s->channels}, b->x->storage->device));
    kn_status status;
    if (needs_sums && s->chunks == 1) {
        kn_norm_add_operands(&l, b);
        add_results(&l, b, partial);
        add_shape(&l, s);
        status = kn_norm_launch(&l, "batch_backward_whole", kn_work_for_groups(l.limits, s->channels));
    } else {
        status = launch_backward(&l, b, s, needs_sums, partial);
    }
    kn_release(partial);
    return status;
}
