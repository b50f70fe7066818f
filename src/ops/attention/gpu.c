/* ops/attention/gpu.c - attention on GPUs (cl/attention/forward_gpu.cl, backward_gpu.cl). */
#include <math.h>
#include <stdio.h>

#include "base/integer.h"
#include "ops/attention/attention.h"
#include "ops/pointwise/dropout.h"

enum { SIDE = 16, ITEMS = SIDE * SIDE, MOST_WIDTH = 256 }; /* wider rows do not fit in registers */
enum { LOCAL_MEMORY = 31 << 10 };

static int64_t widest(const kn_attention_problem *problem)
{
    const kn_tensor *key = problem->operands[KN_KEY], *value = problem->operands[KN_VALUE];
    return kn_max_i64(key->shape[key->ndim - 1], value->shape[value->ndim - 1]);
}

bool kn_attention_supports_groups(const kn_limits *limits, const void *problem)
{
    return limits->max_work_group_size >= ITEMS && limits->local_memory >= LOCAL_MEMORY &&
           widest(problem) <= MOST_WIDTH;
}

bool kn_attention_prefers_groups(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return !limits->is_cpu;
}

static kn_dtype dtype_of(const kn_attention_problem *problem) { return problem->operands[KN_QUERY]->dtype; }
static bool is_f64(const kn_attention_problem *problem) { return dtype_of(problem) == KN_F64; }

/* Of the block of queries and keys; in f64 a quarter, so that it fits in local memory. The sums of rows wider than 128
 * would not fit in the 256 registers that a work-item has on many GPUs. */
static int64_t block_of(const kn_attention_problem *problem)
{
    return (is_f64(problem) ? 32 : 64) / (widest(problem) > 128 ? 2 : 1);
}

/* Of a work-group: POOL, the scores, and one part of each row from SIDE work-items. */
static size_t local_bytes(const kn_attention_problem *problem)
{
    const int64_t block = block_of(problem), stride = block + 4;
    return (size_t)(2 * SIDE * stride + block * stride + block * SIDE) * (is_f64(problem) ? 8 : 4);
}

enum { OPTIONS = 112 };
static const char *options_of(char *buffer, const kn_attention_problem *problem)
{
    const kn_dtype dtype = dtype_of(problem);
    int parts = 1;
    while (parts * SIDE < widest(problem))
        parts *= 2;
    snprintf(buffer, OPTIONS, "%s -DS=%s%s -DBLOCK=%d -DPARTS=%d", kn_options_f64_or_f32(is_f64(problem)),
             kn_dtype_cl(dtype),
             dtype == KN_F16    ? " -DKN_HALF"
             : dtype == KN_BF16 ? " -DKN_BFLOAT"
                                : "",
             (int)block_of(problem), parts);
    return buffer;
}

#define COMMON_ARGS(o, problem)                                                                                        \
    kn_arg_struct(&(o)->shape, sizeof(o)->shape), kn_arg_f64_or_f32(is_f64(problem), (problem)->scale),                \
        kn_arg_seed(&(problem)->draw), kn_arg_draw_offset(&(problem)->draw),                                           \
        kn_arg_f64_or_f32(is_f64(problem), kn_dropout_scale((problem)->dropout_p)), kn_arg_local(local_bytes(problem))

/* A group for each block of rows of each head; in one dimension, as others have at most 65535 on some GPUs. */
#define LAUNCH(source_, kernel_, problem, rows, heads)                                                                 \
    .source = source_, .kernel = kernel_, .operation = "attention", .options = options_of(options, problem),           \
    .dims = 1, .global = {(size_t)(kn_div_up(rows, block_of(problem)) * (heads)*ITEMS)}, .local = {ITEMS}

static kn_status run_forward(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o)
{
    char options[OPTIONS];
    if (o->shape.keys == 0) {
        KN_TRY(kn_tensor_fill(problem->result, 0));
        return kn_tensor_fill(problem->lse, INFINITY);
    }
    return kn_run(stream,
                  LAUNCH("attention/forward_gpu.cl", "attention_forward", problem, o->shape.queries,
                         o->shape.outer * o->shape.heads),
                  KN_ARGS(kn_arg_tensor(o->tensors[KN_QUERY]), kn_arg_tensor(o->tensors[KN_KEY]),
                          kn_arg_tensor(o->tensors[KN_VALUE]), kn_arg_tensor(o->mask), kn_arg_tensor(problem->result),
                          kn_arg_tensor(problem->lse), COMMON_ARGS(o, problem)));
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

#define BACKWARD "attention/backward_gpu.cl"
#define OPERANDS(o, problem, delta)                                                                                    \
    kn_arg_tensor((o)->tensors[KN_QUERY]), kn_arg_tensor((o)->tensors[KN_KEY]), kn_arg_tensor((o)->tensors[KN_VALUE]), \
        kn_arg_tensor((o)->mask), kn_arg_tensor((o)->gradient), kn_arg_tensor((problem)->lse), kn_arg_tensor(delta)

static kn_status run_delta(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o,
                           const kn_tensor *delta)
{
    char options[OPTIONS];
    return kn_run(stream, .source = BACKWARD, .kernel = "attention_delta", .operation = "attention",
                  .options = options_of(options, problem), .dims = 1,
                  .global = {(size_t)kn_round_up_i64(kn_numel(delta), ITEMS)}, .local = {ITEMS},
                  KN_ARGS(kn_arg_tensor(o->gradient), kn_arg_tensor(problem->result), kn_arg_tensor(delta),
                          kn_arg_struct(&o->shape, sizeof o->shape)));
}

static kn_status run_gradients(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o,
                               const kn_tensor *delta)
{
    const kn_attention_shape *s = &o->shape;
    char options[OPTIONS];
    KN_TRY(run_delta(stream, problem, o, delta));
    KN_TRY(kn_run(
        stream, LAUNCH(BACKWARD, "attention_backward_query", problem, s->queries, s->outer * s->heads),
        KN_ARGS(OPERANDS(o, problem, delta), kn_arg_tensor(problem->gradients[KN_QUERY]), COMMON_ARGS(o, problem))));
    return kn_run(stream, LAUNCH(BACKWARD, "attention_backward_key", problem, s->keys, s->outer * s->heads / s->group),
                  KN_ARGS(OPERANDS(o, problem, delta), kn_arg_tensor(problem->gradients[KN_KEY]),
                          kn_arg_tensor(problem->gradients[KN_VALUE]), COMMON_ARGS(o, problem)));
}

static kn_status run_backward(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o)
{
    const kn_tensor *lse = problem->lse;
    kn_tensor *delta = NULL;
    KN_TRY(kn_tensor_new(&delta, lse->dtype, lse->ndim, lse->shape, lse->storage->device));
    const kn_status status = run_gradients(stream, problem, o, delta);
    kn_release(delta);
    return status;
}

/* --- as implementations ------------------------------------------------------------------------------------------- */

static kn_status with_operands(kn_stream *stream, const kn_attention_problem *problem,
                               kn_status (*run)(kn_stream *stream, const kn_attention_problem *problem,
                                                const kn_attention_operands *operands))
{
    kn_attention_operands operands;
    kn_status status = kn_attention_operands_of(&operands, problem);
    if (status == KN_OK)
        status = run(stream, problem, &operands);
    kn_attention_release(&operands);
    return status;
}

kn_status kn_attention_groups(kn_stream *stream, const void *problem)
{
    return with_operands(stream, problem, run_forward);
}

kn_status kn_attention_groups_backward(kn_stream *stream, const void *problem)
{
    return with_operands(stream, problem, run_backward);
}
