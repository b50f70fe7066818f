/* ops/attention/cpu.c - attention on CPU devices (cl/attention/forward_cpu.cl, backward_cpu.cl). */
#include <koine/reduce.h>
#include <stdio.h>

#include "base/integer.h"
#include "ops/attention/attention.h"
#include "ops/gemm/tile.h"
#include "ops/pointwise/dropout.h"

enum { FORWARD_KEYS = 128, BACKWARD_KEYS = 64 }; /* KEYS of the kernels */
enum { ITEMS_PER_CORE = 16 }; /* few: each has its own memory, which should stay in cache from unit to unit */
enum { UNITS_PER_CORE = 8 };  /* backward: of fewer, some cores would be idle at the end */
enum { LEAST_CHUNK = 256, MOST_CHUNK = 2048 }; /* keys: their sums stay in the level-2 cache */

bool kn_attention_prefers_tiles(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* Tiles of as many registers as there are sums in gemm's; `rows` divides the keys of a block. */
typedef struct cpu_tile {
    int vectors, rows, cost; /* in percent, per multiplication */
} cpu_tile;
static const cpu_tile tiles_of_32[] = {{2, 8, 100}, {3, 8, 99}, {1, 16, 110}};
static const cpu_tile tiles_of_16[] = {{3, 4, 100}, {2, 4, 120}, {1, 8, 130}};
enum { TILES = 3 };

/* The least work for these numbers of columns, all multiplied equally often; 0: none. */
static kn_tile_shape choose_tile(const kn_limits *limits, bool f64, int64_t n, int64_t m, int64_t l)
{
    const cpu_tile *tiles = limits->vector_registers >= 32 ? tiles_of_32 : tiles_of_16, *best = NULL;
    const int width = kn_limits_vector_width(limits, f64);
    int64_t least = 0;
    for (int i = 0; i < TILES; i++) {
        const int64_t columns = (int64_t)tiles[i].vectors * width;
        const int64_t waste =
            kn_round_up_i64(n, columns) * (m ? kn_round_up_i64(m, columns) + kn_round_up_i64(l, columns) : 1);
        if (!best || waste * tiles[i].cost < least) {
            best = &tiles[i];
            least = waste * tiles[i].cost;
        }
    }
    return (kn_tile_shape){width, best->vectors, best->rows};
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
    const kn_tile_shape tile = choose_tile(limits_of(problem), is_f64(problem), s->queries, 0, 0);
    const int64_t columns = kn_tile_columns(tile);
    kn_attention_cut cut = {.units = s->outer * s->heads * kn_div_up(s->queries, columns),
                            .scratch = columns * (s->width + FORWARD_KEYS * (s->has_mask ? 2 : 1) +
                                                  kn_round_up_i64(s->value_width, tile.rows))};
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

/* Keys in chunks, if there are fewer heads than make enough units. */
static int64_t choose_chunk(const kn_limits *limits, const kn_attention_shape *s)
{
    const int64_t heads = s->outer * s->heads / s->group;
    const int64_t wanted = kn_div_up(UNITS_PER_CORE * limits->compute_units, kn_max_i64(1, heads));
    const int64_t chunk = kn_max_i64(LEAST_CHUNK, kn_min_i64(MOST_CHUNK, kn_div_up(s->keys, wanted)));
    return kn_round_up_i64(kn_div_up(s->keys, kn_max_i64(1, kn_div_up(s->keys, chunk))), BACKWARD_KEYS);
}

static int64_t backward_scratch(const kn_attention_shape *s, kn_tile_shape tile, int64_t chunk)
{
    const int64_t unit = kn_tile_columns(tile), columns = 2 * unit; /* COLUMNS of the kernel */
    const int64_t padded = kn_round_up_i64(s->width, unit) + kn_round_up_i64(s->value_width, unit);
    return columns * (s->width + s->value_width + padded + kn_round_up_i64(s->width, tile.rows) +
                      BACKWARD_KEYS * (s->has_mask ? 3 : 2)) +
           chunk * padded;
}

static kn_status run_backward(kn_stream *stream, const kn_attention_problem *problem, const kn_attention_operands *o,
                              const kn_tensor *query_gradient, int64_t chunk)
{
    const kn_attention_shape *s = &o->shape;
    const kn_tile_shape tile = choose_tile(limits_of(problem), is_f64(problem), s->queries, s->width, s->value_width);
    const int64_t chunks = kn_div_up(s->keys, chunk);
    kn_attention_cut cut = {.units = s->outer * s->heads / s->group * chunks,
                            .scratch = backward_scratch(s, tile, chunk),
                            .chunk = chunk,
                            .chunks = chunks};
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
    kn_tensor *whole = problem->gradients[KN_QUERY], *parts = NULL;
    if (chunks == 1)
        return run_backward(stream, problem, o, whole, chunk);
    KN_TRY(kn_tensor_new(&parts, whole->dtype, 2, (const int64_t[]){chunks, kn_numel(whole)}, whole->storage->device));
    kn_status status = run_backward(stream, problem, o, parts, chunk);
    if (status == KN_OK) {
        kn_tensor *sum = kn_sum_dims(parts, (const int[]){0}, 1, false), *flat = NULL;
        status = sum ? kn_tensor_view(&flat, whole, 1, (const int64_t[]){kn_numel(whole)}, (const int64_t[]){1},
                                      whole->offset)
                     : kn_error_status();
        if (status == KN_OK)
            status = kn_tensor_copy(flat, sum);
        kn_release(flat);
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
