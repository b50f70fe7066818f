/* ops/gemm/pairs.h - products of bf16 in tiles (cl/gemm/pairs.cl), for the implementations based on them. */
#pragma once

#include "gemm/pairs.h"
#include "ops/gemm/tile.h"

/* A product in which all elements are bf16; x->k is of one part. Of `operands` the caller sets parts and segment, and
 * their strides; with several of these there is one matrix (x->batch 1). */
kn_status kn_pairs_multiply(kn_stream *stream, const kn_tile_product *x, kn_gemm_words operands);
