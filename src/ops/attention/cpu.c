/* ops/attention/cpu.c - attention on CPU devices (cl/attention/forward_cpu.cl, backward_cpu.cl). */
#include <koine/reduce.h>
#include <koine/shape.h>
#include <stdio.h>

#include "base/integer.h"
#include "ops/attention/attention.h"
#include "ops/gemm/tile.h"
#include "ops/pointwise/dropout.h"

enum { FORWARD_KEYS = 128 };                     /* KEYS of the kernel */
enum { BACKWARD_KEYS = 96, BACKWARD_TILES = 3 }; /* the most keys, and tiles of queries, in a block */
enum { ITEMS_PER_CORE = 8 }; /* few: each has its own memory, which should stay in cache from unit to unit */
enum { UNITS_PER_CORE = 8 }; /* backward: of fewer, some cores would be idle at the end */
enum { LEAST_CHUNK = 256, MOST_CHUNK = 2048 }; /* keys: their sums stay in the level-2 cache */

bool kn_attention_prefers_tiles(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* Two vectors, and all the rows for which there are registers: there are fewer loads than multiplications. */
typedef struct cpu_tile {
    int rows, cost; /* in percent, per multiplication */
} cpu_tile;
static const cpu_tile tiles_of_32[] = {{8, 100}, {13, 99}};
static const cpu_tile tiles_of_16[] = {{6, 100}, {4, 120}};
enum { TILES = 2, TILE_VECTORS = 2 };

/* The least work for `products` with the rows of a block of keys, at most `most`, and one with as many as m. */
static kn_tile_shape choose_tile(const kn_limits *limits, bool f64, int products, int64_t keys, int64_t most, int64_t m)
{
    const cpu_tile *tiles = limits->vector_registers >= 32 ? tiles_of_32 : tiles_of_16, *best = NULL;
    int64_t least = 0;
    for (int i = 0; i < TILES; i++) {
        const int64_t work = tiles[i].cost * (products * kn_round_up_i64(kn_min_i64(keys, most), tiles[i].rows) +
                                              kn_round_up_i64(m, tiles[i].rows));
        if (!best || work < least) {
            best = &tiles[i];
            least = work;
        }
    }
    return (kn_tile_shape){kn_limits_vector_width(limits, f64), TILE_VECTORS, best->rows};
}

static bool is_f64(const kn_attention_problem *problem) { return problem->operands[KN_QUERY]->dtype == KN_F64; }

static const kn_limits *limits_of(const kn_attention_problem *problem)
{
    return kn_tensor_limits(problem->operands[KN_QUERY]);
}

/* Divides the units among work-items, whose scratch memory is allocated. */
static kn_status divide(kn_attention_cut *cut, kn_buffer **scratch, kn_stream *stream,
                        const kn_attention_problem *problem)
{
    const int64_t items = kn_min_i64(cut->units, ITEMS_PER_CORE * limits_of(problem)->compute_units);
    cut->units_per_item = kn_div_up(cut->units, items);
    return kn_buffer_alloc(
        scratch, stream,
        (size_t)(kn_div_up(cut->units, cut->units_per_item) * cut->scratch * (is_f64(problem) ? 8 : 4)));
}

/* The last arguments of both kernels. */
#define COMMON_ARGS(o, cut, problem)                                                                                   \
    kn_arg_struct(&(o)->shape, sizeof(o)->shape), kn_arg_struct(cut, sizeof *(cut)),                                   \
        kn_arg_f64_or_f32(is_f64(problem), (problem)->scale), kn_arg_seed(&(problem)->draw),                           \
        kn_arg_draw_offset(&(problem)->draw),                                                                          \
        kn_arg_f64_or_f32(is_f64(problem), kn_dropout_scale((problem)->dropout_p))

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status run_forward(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o)
{
    const kn_attention_shape *s = &o->shape;
    const kn_tile_shape tile =
        choose_tile(limits_of(problem), is_f64(problem), 1, s->keys, FORWARD_KEYS, s->value_width);
    const int64_t columns = kn_tile_columns(tile);
    kn_attention_cut cut = {.units = s->outer * s->heads * kn_div_up(s->queries, columns),
                            .scratch = columns * (s->width + FORWARD_KEYS * (s->has_mask ? 2 : 1) + s->value_width)};
    char options[KN_GEMM_OPTIONS];
    kn_buffer *scratch = NULL;
    KN_TRY(divide(&cut, &scratch, stream, problem));
    const kn_status status =
        kn_run(stream, .source = "attention/forward_cpu.cl", .kernel = "attention_forward", .operation = "attention",
               .options = kn_tile_options(options, tile, is_f64(problem)), .dims = 1,
               .global = {(size_t)kn_div_up(cut.units, cut.units_per_item)}, .local = {1},
               KN_ARGS(kn_arg_tensor(o->tensors[KN_QUERY]), kn_arg_tensor(o->tensors[KN_KEY]),
                       kn_arg_tensor(o->tensors[KN_VALUE]), kn_arg_tensor(o->mask), kn_arg_tensor(problem->result),
                       kn_arg_tensor(problem->lse), kn_arg_buffer(scratch, 0), COMMON_ARGS(o, &cut, problem)));
    kn_buffer_free(scratch);
    return status;
}

kn_status kn_attention_tiles(kn_stream *stream, const void *problem_)
{
    const kn_attention_problem *problem = problem_;
    kn_attention_operands operands;
    if (kn_dtype_is_reduced(problem->operands[KN_QUERY]->dtype))
        return kn_attention_in_f32(stream, problem, kn_attention_tiles);
    kn_status status = kn_attention_operands_of(&operands, problem);
    if (status == KN_OK)
        status = run_forward(stream, problem, &operands);
    kn_attention_release(&operands);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* n as parts of equal size, rounded up to `unit`, at most `most`. */
static int64_t equal_parts(int64_t n, int64_t most, int64_t unit)
{
    return kn_round_up_i64(kn_div_up(n, kn_max_i64(1, kn_div_up(n, most))), unit);
}

/* Keys in chunks, if there are fewer heads than make enough units. */
static int64_t choose_chunk(const kn_limits *limits, const kn_attention_shape *s)
{
    const int64_t heads = s->outer * s->heads / s->group;
    const int64_t wanted = kn_div_up(UNITS_PER_CORE * limits->compute_units, kn_max_i64(1, heads));
    return equal_parts(s->keys, kn_max_i64(LEAST_CHUNK, kn_min_i64(MOST_CHUNK, kn_div_up(s->keys, wanted))), 4);
}

/* In elements: see `memory` in the kernel. */
static int64_t backward_scratch(const kn_attention_shape *s, const kn_attention_cut *cut, int vector)
{
    const int64_t e = s->width, f = s->value_width, keys = (int64_t)cut->keys * (s->has_mask ? 3 : 2);
    const int64_t e_padded = kn_round_up_i64(e, vector), f_padded = kn_round_up_i64(f, vector);
    return cut->columns * (2 * e + f + (e < e_padded ? e_padded : 0) + (f < f_padded ? f_padded : 0) + keys) +
           cut->chunk * (e_padded + f_padded);
}

static kn_status run_backward(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o,
                              const kn_tensor *query_gradient, int64_t chunk)
{
    const kn_attention_shape *s = &o->shape;
    const int64_t chunks = kn_div_up(s->keys, chunk), keys = equal_parts(chunk, BACKWARD_KEYS, 4);
    const kn_tile_shape tile = choose_tile(limits_of(problem), is_f64(problem), 4, s->keys, keys, s->width);
    const int64_t unit = kn_tile_columns(tile);
    const int64_t most = s->causal ? unit : BACKWARD_TILES * unit; /* of small blocks fewer scores are hidden */
    kn_attention_cut cut = {.units = s->outer * s->heads / s->group * chunks,
                            .chunk = chunk,
                            .chunks = chunks,
                            .part = chunks > 1 ? query_gradient->strides[0] : 0,
                            .columns = (kn_int)equal_parts(s->queries, most, unit),
                            .keys = (kn_int)keys};
    cut.scratch = backward_scratch(s, &cut, tile.vector_width);
    char options[KN_GEMM_OPTIONS];
    kn_buffer *scratch = NULL;
    KN_TRY(divide(&cut, &scratch, stream, problem));
    const kn_status status =
        kn_run(stream, .source = "attention/backward_cpu.cl", .kernel = "attention_backward", .operation = "attention",
               .options = kn_tile_options(options, tile, is_f64(problem)), .dims = 1,
               .global = {(size_t)kn_div_up(cut.units, cut.units_per_item)}, .local = {1},
               KN_ARGS(kn_arg_tensor(o->tensors[KN_QUERY]), kn_arg_tensor(o->tensors[KN_KEY]),
                       kn_arg_tensor(o->tensors[KN_VALUE]), kn_arg_tensor(o->mask), kn_arg_tensor(o->gradient),
                       kn_arg_tensor(problem->result), kn_arg_tensor(problem->lse), kn_arg_tensor(query_gradient),
                       kn_arg_tensor(problem->gradients[KN_KEY]), kn_arg_tensor(problem->gradients[KN_VALUE]),
                       kn_arg_buffer(scratch, 0), COMMON_ARGS(o, &cut, problem)));
    kn_buffer_free(scratch);
    return status;
}

/* The query's gradient is the sum of those by chunks. */
static kn_status run_chunks(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o)
{
    const int64_t chunk = choose_chunk(limits_of(problem), &o->shape), chunks = kn_div_up(o->shape.keys, chunk);
    const kn_attention_shape *s = &o->shape;
    kn_tensor *whole = problem->gradients[KN_QUERY], *parts = NULL;
    if (chunks == 1)
        return run_backward(stream, problem, o, whole, chunk);
    kn_attention_operands of_parts = *o;
    of_parts.shape.to_query =
        (kn_attention_strides){s->heads * s->queries * s->width, s->queries * s->width, s->width, 1};
    KN_TRY(kn_tensor_new(&parts, whole->dtype, 2, (const int64_t[]){chunks, kn_numel(whole)}, whole->storage->device));
    kn_status status = run_backward(stream, problem, &of_parts, parts, chunk);
    if (status == KN_OK) {
        kn_tensor *sum = kn_reshape(kn_sum_dims(parts, (const int[]){0}, 1, false), whole->ndim, whole->shape);
        status = sum ? kn_tensor_copy(whole, sum) : kn_error_status();
    }
    kn_release(parts);
    return status;
}

kn_status kn_attention_tiles_backward(kn_stream *stream, const void *problem_)
{
    const kn_attention_problem *problem = problem_;
    kn_attention_operands operands;
    if (kn_dtype_is_reduced(problem->operands[KN_QUERY]->dtype))
        return kn_attention_in_f32(stream, problem, kn_attention_tiles_backward);
    kn_status status = kn_attention_operands_of(&operands, problem);
    if (status == KN_OK)
        status = run_chunks(stream, problem, &operands);
    kn_attention_release(&operands);
    return status;
}
