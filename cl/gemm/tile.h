/* gemm/tile.h - matrix products on CPU devices, in tiles (gemm/tile.cl). */
#pragma once

#include "common/shared.h"

/* An operand [length, width] as panels [batch][panels][length][panel_width]. */
typedef struct kn_gemm_pack_job {
    kn_long length, width, length_stride, width_stride, batch_stride;
    kn_long panels, block, blocks, items; /* items: batch * blocks * panels, each `block` values of the length */
    kn_long panel_width;
} kn_gemm_pack_job;
KN_SHARED_SIZE(kn_gemm_pack_job, 10 * 8);

typedef struct kn_gemm_tile_plan {
    kn_long m, n, k, k_block, rows_per_unit, row_blocks, panels, panels_per_unit, panel_blocks, blocks_per_group;
    kn_long units, units_per_item;
    kn_long bias_row, bias_column;
    kn_int a_packed, b_packed, b_staged, unused;
} kn_gemm_tile_plan;
KN_SHARED_SIZE(kn_gemm_tile_plan, 14 * 8 + 4 * 4);
