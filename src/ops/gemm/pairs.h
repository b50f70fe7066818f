/* ops/gemm/pairs.h - products of bf16 in tiles (cl/gemm/pairs.cl), for the implementations based on them. */
#pragma once

#include <string.h>

#include "gemm/pairs.h"
#include "ops/gemm/matmul.h"
#include "ops/gemm/tile.h"

/* A product of bf16, also in C and the bias, unless these are f32 (keeps_f32); x->k is of one part. Of `operands` the
 * caller sets parts and segment, and their strides; with several of these there is one matrix (x->batch 1). */
kn_status kn_pairs_multiply(kn_stream *stream, const kn_tile_product *x, kn_gemm_words operands);

/* Do other operators multiply bf16 as such, as products do that are long enough? What is forced for those is so for
 * these, too. */
static inline bool kn_pairs_are_preferred(const kn_limits *limits)
{
    const char *forced = kn_forced_implementation(kn_matmul_f16_implementations.operation);
    return forced ? limits->is_cpu && strcmp(forced, "pairs") == 0 : limits->multiplies_pairs;
}
