/* ops/gemm/blocked.c - block shapes for GPUs. */
#include "ops/gemm/blocked.h"

#include <stdio.h>

#include "base/dtype.h"

/* 128 x 128 results in f32 take 17 KiB of local memory and, on NVIDIA GPUs from capability 8.6 on, 125 to 129 registers
 * (tools/gpu-code.py): with at most 128, two groups of 256 work-items fit on a multiprocessor. On tensor cores
 * they take 40 KiB and 125 to 164 registers, in f16 48 KiB and 125. All sizes are multiples of 4, in f16 of 16, as
 * required by 16-byte vectors. Shapes without an efficiency are used only if `koine tune` finds that they pay. */
#define ITEMS(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__, .tensor_cores = false                                                                             \
    }
#define WARPS(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__, .tensor_cores = true                                                                              \
    }
static const kn_block_shape shapes[] = {
    ITEMS(128, 128, 8, 8, 8, 1.0),  ITEMS(64, 64, 16, 4, 4, 0.7),   ITEMS(32, 32, 32, 4, 4, 0.4),
    ITEMS(16, 64, 16, 4, 4, 0.35),  ITEMS(64, 16, 16, 4, 4, 0.35),  ITEMS(128, 128, 16, 8, 8, 0),
    ITEMS(128, 128, 8, 8, 16, 0),   ITEMS(256, 128, 8, 16, 8, 0),   ITEMS(128, 256, 8, 8, 16, 0),
    ITEMS(256, 64, 8, 8, 8, 0),     ITEMS(64, 256, 8, 8, 8, 0),     ITEMS(128, 64, 8, 8, 4, 0),
    ITEMS(64, 128, 8, 4, 8, 0),     ITEMS(128, 64, 16, 8, 8, 0),    ITEMS(64, 128, 16, 8, 8, 0),
    ITEMS(96, 96, 8, 8, 8, 0),      ITEMS(64, 64, 8, 8, 8, 0),      ITEMS(64, 64, 16, 8, 8, 0),
    ITEMS(64, 64, 8, 4, 4, 0),      ITEMS(64, 64, 16, 8, 4, 0),     ITEMS(64, 32, 16, 4, 4, 0),
    ITEMS(32, 64, 16, 4, 4, 0),     ITEMS(32, 32, 16, 4, 4, 0),     WARPS(128, 128, 16, 64, 32, 1.0),
    WARPS(64, 64, 16, 32, 32, 0.6), WARPS(32, 32, 16, 16, 16, 0.3), WARPS(16, 64, 16, 16, 16, 0.3),
    WARPS(64, 16, 16, 16, 16, 0.3), WARPS(128, 256, 16, 64, 64, 0),
};
_Static_assert(sizeof shapes / sizeof shapes[0] <= KN_BLOCK_SHAPES, "more shapes than KN_BLOCK_SHAPES");
enum { SHAPES = sizeof shapes / sizeof shapes[0], WARP = 32, SMALLEST = 16 };

const kn_block_shape *kn_block_shape_at(int index) { return index >= 0 && index < SHAPES ? &shapes[index] : NULL; }

int kn_block_items(const kn_block_shape *s)
{
    return s->rows / s->item_rows * (s->columns / s->item_columns) * (s->tensor_cores ? WARP : 1);
}

/* A slice of one operand: its rows are padded by a vector; for tensor cores in TF32 by 4 or 8 elements, in either
 * orientation; in f16 not at all. */
static int64_t slice_elements(const kn_block_shape *s, kn_block_arithmetic arithmetic, int width)
{
    if (arithmetic == KN_BLOCK_F16)
        return width * s->k_step;
    if (s->tensor_cores)
        return width * s->k_step + kn_max_i64(4 * width, 8 * s->k_step);
    return s->k_step * (width + kn_block_quantum(arithmetic));
}

int64_t kn_block_slice_bytes(const kn_block_shape *s, kn_block_arithmetic arithmetic)
{
    return (slice_elements(s, arithmetic, s->rows) + slice_elements(s, arithmetic, s->columns)) *
           (arithmetic == KN_BLOCK_F64 ? 8 : 4);
}

/* The least compute capability, times 10, with the instructions. */
static int least_capability(kn_block_arithmetic arithmetic)
{
    return arithmetic == KN_BLOCK_F16 ? 75 : arithmetic == KN_BLOCK_TF32 ? 80 : 0;
}

bool kn_block_fits(const kn_block_shape *s, const kn_limits *limits, kn_block_arithmetic arithmetic)
{
    return s->tensor_cores == kn_block_by_tensor_cores(arithmetic) &&
           limits->ptx_capability >= least_capability(arithmetic) &&
           2 * (size_t)kn_block_slice_bytes(s, arithmetic) <= limits->local_memory &&
           (size_t)kn_block_items(s) <= limits->max_work_group_size;
}

static _Thread_local const kn_block_shape *forced;

const kn_block_shape *kn_block_force(const kn_block_shape *shape)
{
    const kn_block_shape *before = forced;
    forced = shape;
    return before;
}

/* Blocks run in waves, one block per compute unit, and the last wave takes as long as the others: chooses the shape
 * with the shortest total time. */
const kn_block_shape *kn_choose_block(const kn_limits *limits, kn_block_arithmetic arithmetic, int64_t rows,
                                      int64_t columns, int64_t batch)
{
    const kn_block_shape *best = NULL;
    double least = 0, rates[KN_BLOCK_SHAPES];
    if (forced)
        return kn_block_fits(forced, limits, arithmetic) ? forced : NULL;
    kn_block_rates(rates, limits, arithmetic);
    for (int i = 0; i < SHAPES; i++) {
        const kn_block_shape *s = &shapes[i];
        if (!(rates[i] > 0) || !kn_block_fits(s, limits, arithmetic))
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

const char *kn_block_options(char *buffer, const kn_block_shape *s, kn_block_arithmetic arithmetic, bool a_along_k,
                             bool b_along_k, const char *more)
{
    const bool warps = s->tensor_cores;
    snprintf(buffer, KN_BLOCK_OPTIONS,
             "%s -DQ=%d -DBM=%d -DBN=%d -DBK=%d -D%s=%d -D%s=%d -DA_ALONG_K=%d -DB_ALONG_K=%d -DTENSOR_CORES=%d%s",
             kn_options_f64_or_f32(arithmetic == KN_BLOCK_F64), kn_block_quantum(arithmetic), s->rows, s->columns,
             s->k_step, warps ? "WARP_M" : "TM", s->item_rows, warps ? "WARP_N" : "TN", s->item_columns, a_along_k,
             b_along_k, warps, more);
    return buffer;
}

bool kn_block_pays(const kn_limits *limits, int64_t rows, int64_t columns)
{
    return !limits->is_cpu && rows >= SMALLEST / 2 && columns >= SMALLEST / 2;
}
