/* ops/blocked.c - the shapes of blocks for GPUs. */
#include "ops/blocked.h"

#include <stdio.h>

/* 128 x 128 results of f32 take 17 KiB of local memory and, on NVIDIA's, 128 registers, so that two groups of 256
 * work-items share a multiprocessor. All are multiples of 4, which vectors of 16 bytes ask for. Those without an
 * efficiency wait for `koine tune` to find that they pay. */
static const kn_block_shape shapes[] = {
    {128, 128, 8, 8, 8, 1.0}, {64, 64, 16, 4, 4, 0.7}, {32, 32, 32, 4, 4, 0.4}, {16, 64, 16, 4, 4, 0.35},
    {64, 16, 16, 4, 4, 0.35}, {128, 128, 16, 8, 8, 0}, {128, 128, 8, 8, 16, 0}, {256, 128, 8, 16, 8, 0},
    {128, 256, 8, 8, 16, 0},  {256, 64, 8, 8, 8, 0},   {64, 256, 8, 8, 8, 0},   {128, 64, 8, 8, 4, 0},
    {64, 128, 8, 4, 8, 0},    {128, 64, 16, 8, 8, 0},  {64, 128, 16, 8, 8, 0},  {96, 96, 8, 8, 8, 0},
    {64, 64, 8, 8, 8, 0},     {64, 64, 16, 8, 8, 0},   {64, 64, 8, 4, 4, 0},    {64, 64, 16, 8, 4, 0},
    {64, 32, 16, 4, 4, 0},    {32, 64, 16, 4, 4, 0},   {32, 32, 16, 4, 4, 0},
};
_Static_assert(sizeof shapes / sizeof shapes[0] <= KN_BLOCK_SHAPES, "more shapes than KN_BLOCK_SHAPES");
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

const kn_block_shape *kn_block_shape_at(int index) { return index >= 0 && index < SHAPES ? &shapes[index] : NULL; }

int kn_block_items(const kn_block_shape *s) { return s->rows / s->item_rows * (s->columns / s->item_columns); }

/* Two slices of each operand, their rows padded by a vector. */
static size_t local_bytes(const kn_block_shape *s, bool f64)
{
    return (size_t)(2 * s->k_step * (s->rows + s->columns + 2 * kn_block_quantum(f64))) * (f64 ? 8 : 4);
}

bool kn_block_fits(const kn_block_shape *s, const kn_limits *limits, bool f64)
{
    return local_bytes(s, f64) <= limits->local_memory && (size_t)kn_block_items(s) <= limits->max_work_group_size;
}

static _Thread_local const kn_block_shape *forced;

void kn_block_force(const kn_block_shape *shape) { forced = shape; }

/* The blocks are computed in rounds, one block per compute unit in each, and the last round takes as long as the
 * others: the shape whose rounds take least. */
const kn_block_shape *kn_choose_block(const kn_limits *limits, bool f64, int64_t rows, int64_t columns, int64_t batch)
{
    const kn_block_shape *best = NULL;
    double least = 0, rates[KN_BLOCK_SHAPES];
    if (forced)
        return kn_block_fits(forced, limits, f64) ? forced : NULL;
    kn_block_rates(rates, limits, f64);
    for (int i = 0; i < SHAPES; i++) {
        const kn_block_shape *s = &shapes[i];
        if (!(rates[i] > 0) || !kn_block_fits(s, limits, f64))
            continue;
        int64_t blocks = kn_div_up(rows, s->rows) * kn_div_up(columns, s->columns) * batch;
        int64_t rounds = kn_div_up(blocks, limits->compute_units > 0 ? limits->compute_units : 1);
        double cost = (double)rounds * s->rows * s->columns / rates[i];
        if (!best || cost < least) {
            best = s;
            least = cost;
        }
    }
    return best;
}

const char *kn_block_options(char *buffer, const kn_block_shape *s, bool f64, bool a_along_k, bool b_along_k,
                             const char *more)
{
    snprintf(buffer, KN_BLOCK_OPTIONS,
             "%s -DQ=%d -DBM=%d -DBN=%d -DBK=%d -DTM=%d -DTN=%d -DA_ALONG_K=%d -DB_ALONG_K=%d%s",
             f64 ? "-DT=double -DKN_USE_F64" : "-DT=float", kn_block_quantum(f64), s->rows, s->columns, s->k_step,
             s->item_rows, s->item_columns, a_along_k, b_along_k, more);
    return buffer;
}
