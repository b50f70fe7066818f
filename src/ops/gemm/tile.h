/* ops/gemm/tile.h - products in tiles (cl/gemm/tile.cl), for the implementations based on them. */
#pragma once

#include "gemm/tile.h"
#include "ops/gemm/gemm.h"

typedef struct kn_tile_operand {
    kn_buffer *buffer;
    int64_t offset; /* elements */
    kn_gemm_layout layout;
} kn_tile_operand;

/* A problem, plain or transposed: C^T = op(B)^T op(A)^T, stored transposed. */
typedef struct kn_tile_product {
    const kn_gemm_problem *problem;
    bool turned, f64;
    int64_t m, n, k, batch;
    kn_tile_operand a, b; /* op(A) [m, k], op(B) [k, n] */
    kn_gemm_layout c;
} kn_tile_product;

kn_tile_product kn_tile_product_of(const kn_gemm_problem *problem, bool turned);

static inline double kn_tile_multiplications(const kn_tile_product *x)
{
    return (double)x->m * (double)x->n * (double)x->k * (double)x->batch;
}

/* Takes hardly longer than its launch: not worth a kernel of its own. */
static inline bool kn_tile_is_small(const kn_tile_product *x) { return kn_tile_multiplications(x) <= 1 << 18; }

/* A tile of `rows` by `vectors` vectors. */
typedef struct kn_tile_shape {
    int vector_width, vectors, rows;
} kn_tile_shape;

static inline int64_t kn_tile_columns(kn_tile_shape tile) { return (int64_t)tile.vectors * tile.vector_width; }

/* The shape that costs least, with whole tiles; a_staged: as in kn_tile_blocking. */
kn_tile_shape kn_tile_choose(const kn_limits *limits, const kn_tile_product *x, bool a_staged);

/* What the multiplications cost with A in place, in multiplications at the full rate; staging comes on top. */
double kn_tile_cost(const kn_limits *limits, const kn_tile_product *x);

/* The options of gemm/tile.cl; `buffer` has KN_GEMM_OPTIONS bytes and is returned. */
const char *kn_tile_options(char *buffer, kn_tile_shape tile, bool f64);

/* Are rows of a B in place fetched ahead of the sums? With vectors of 16 in halves there is room for it among the
 * multiply-adds; next to those taken whole it takes 4 to 8 % longer. */
static inline bool kn_tile_fetches_ahead(const kn_limits *limits) { return kn_limits_halves_vectors(limits); }

/* How the work is divided; see gemm/tile.cl. */
typedef struct kn_tile_blocking {
    int64_t k_block, row_block, panel_block, rows_per_unit, panels_per_unit, units_per_item;
    bool a_staged, b_staged;
} kn_tile_blocking;

/* In units of nearly equal size (cpu.c). */
kn_tile_blocking kn_tile_divide(const kn_limits *limits, const kn_tile_product *x, kn_tile_shape tile, bool a_staged,
                                bool b_staged);
kn_gemm_tile_plan kn_tile_plan_of(const kn_tile_product *x, kn_tile_shape tile, kn_tile_blocking cut);

kn_status kn_tile_multiply(kn_stream *stream, const kn_tile_product *x, kn_tile_shape tile, kn_tile_blocking cut);

/* Divides the work and multiplies (cpu.c). */
kn_status kn_tile_run(kn_stream *stream, const kn_tile_product *x);
