/* ops/blocked.c - the shapes of blocks for GPUs. */
#include "ops/blocked.h"

#include <stdio.h>

/* 128 x 128 results of f32 take 17 KiB of local memory and, on NVIDIA's, 128 registers, so that two groups of 256
 * work-items share a multiprocessor. All are multiples of 4, which vectors of 16 bytes ask for. */
static const kn_block_shape shapes[] = {
    {128, 128, 8, 8, 8, 1.0}, {64, 64, 16, 4, 4, 0.7},  {32, 32, 32, 4, 4, 0.4},
    {16, 64, 16, 4, 4, 0.35}, {64, 16, 16, 4, 4, 0.35},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

int kn_block_items(const kn_block_shape *s) { return s->rows / s->item_rows * (s->columns / s->item_columns); }

/* Two slices of each operand, their rows padded by a vector. */
static size_t local_bytes(const kn_block_shape *s, bool f64)
{
    return (size_t)(2 * s->k_step * (s->rows + s->columns + 2 * kn_block_quantum(f64))) * (f64 ? 8 : 4);
}

static bool fits(const kn_block_shape *s, const kn_limits *limits, bool f64)
{
    return local_bytes(s, f64) <= limits->local_memory && (size_t)kn_block_items(s) <= limits->max_work_group_size;
}

/* The blocks are computed in rounds, one block per compute unit in each, and the last round takes as long as the
 * others: the shape whose rounds take least. */
const kn_block_shape *kn_choose_block(const kn_limits *limits, bool f64, int64_t rows, int64_t columns, int64_t batch)
{
    const kn_block_shape *best = NULL;
    double least = 0;
    for (int i = 0; i < SHAPES; i++) {
        const kn_block_shape *s = &shapes[i];
        if (!fits(s, limits, f64))
            continue;
        int64_t blocks = kn_div_up(rows, s->rows) * kn_div_up(columns, s->columns) * batch;
        int64_t rounds = kn_div_up(blocks, limits->compute_units > 0 ? limits->compute_units : 1);
        double cost = (double)rounds * s->rows * s->columns / s->efficiency;
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
