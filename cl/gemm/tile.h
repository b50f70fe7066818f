/* gemm/tile.h - matrix products on CPU devices, in tiles (gemm/tile.cl). */
#pragma once

#include "common/shared.h"

enum { STAGED_GAP = 16 }; /* elements between staged panels: else those of 2^n bytes share sets of the cache */

typedef struct kn_gemm_tile_plan {
    kn_long m, n, k, k_block, row_block, panel_block;
    kn_long rows_per_unit, row_units, panels, panels_per_unit, panel_units;
    kn_long units, units_per_item;
    kn_long scratch; /* elements per work-item */
    kn_long bias_row, bias_column;
    kn_int a_staged, b_staged;
} kn_gemm_tile_plan;
KN_SHARED_SIZE(kn_gemm_tile_plan, 16 * 8 + 2 * 4);
