/* ops/gemm/blocked.h - block shapes of products and convolutions on GPUs (cl/gemm/blocked.clh), and their choice. */
#pragma once

#include "base/integer.h"
#include "rt/rt.h"

/* How to multiply: in f32 or f64, or on tensor cores: f32 data in TF32, or f16 data (cl/gemm/halves.cl). */
typedef enum kn_block_arithmetic { KN_BLOCK_F32, KN_BLOCK_F64, KN_BLOCK_TF32, KN_BLOCK_F16 } kn_block_arithmetic;

static inline bool kn_block_by_tensor_cores(kn_block_arithmetic arithmetic) { return arithmetic >= KN_BLOCK_TF32; }

static inline kn_block_arithmetic kn_block_plain(bool f64) { return f64 ? KN_BLOCK_F64 : KN_BLOCK_F32; }

/* A block of rows x columns of the result, in steps of k_step; item_rows x item_columns per work-item or, on tensor
 * cores, per warp of 32. k_step counts 32-bit words: two steps each in f16. */
typedef struct kn_block_shape {
    int rows, columns, k_step, item_rows, item_columns;
    double efficiency; /* of the multiplication, relative to the largest block: small blocks read local memory more
                        * often; 0: unknown, not chosen */
    bool tensor_cores;
} kn_block_shape;

/* The fastest shape for `batch` results of rows x columns; NULL if none fits the device, or it does not support the
 * arithmetic. */
const kn_block_shape *kn_choose_block(const kn_limits *limits, kn_block_arithmetic arithmetic, int64_t rows,
                                      int64_t columns, int64_t batch);

int kn_block_items(const kn_block_shape *block); /* work-items per group */

/* All shapes, NULL beyond the last; and whether a shape is for the arithmetic, which the device must support, and fits
 * in local memory and in a work-group. */
#define KN_BLOCK_SHAPES 32
#define KN_BLOCK_MOST 256 /* rows or columns of a block */
const kn_block_shape *kn_block_shape_at(int index);
bool kn_block_fits(const kn_block_shape *block, const kn_limits *limits, kn_block_arithmetic arithmetic);

/* Makes the calling thread choose this shape, or none if it does not fit; NULL ends that. Returns the previous one. For
 * tests and tuning. */
const kn_block_shape *kn_block_force(const kn_block_shape *shape);

/* block_rates.c: the speed of each shape on the device, relative to the fastest: as measured by `koine tune`, else
 * `efficiency`. A shape of rate 0 is not chosen. */
void kn_block_rates(double rates[KN_BLOCK_SHAPES], const kn_limits *limits, kn_block_arithmetic arithmetic);

/* The measurement's key (rt/tuning/tuning.h), and its name of a shape: "128x128x8 8x8". */
#define KN_BLOCK_NAME 48
const char *kn_block_question(kn_block_arithmetic arithmetic);
const char *kn_block_name(char buffer[KN_BLOCK_NAME], const kn_block_shape *shape);

/* Bytes of local memory for one slice of both operands; there are at least two. */
int64_t kn_block_slice_bytes(const kn_block_shape *block, kn_block_arithmetic arithmetic);

/* The number of elements in the 16-byte vectors that the kernels read. */
static inline int kn_block_quantum(kn_block_arithmetic arithmetic)
{
    return arithmetic == KN_BLOCK_F64 ? 2 : arithmetic == KN_BLOCK_F16 ? 8 : 4;
}

/* The options "-DT=float -DBM=128 ..." of cl/gemm/blocked.clh; and of cl/gemm/halves.cl (halves.c). `buffer` has
 * KN_BLOCK_OPTIONS bytes. Returns buffer. */
#define KN_BLOCK_OPTIONS 256
const char *kn_block_options(char *buffer, const kn_block_shape *block, kn_block_arithmetic arithmetic, bool a_along_k,
                             bool b_along_k, const char *more);
const char *kn_gemm_halves_options(char *buffer, const kn_limits *limits, const kn_block_shape *block, bool a_along_k,
                                   bool b_along_k);

/* Whether blocks suit the device, and a result of rows x columns fills at least half of the smallest block's rows and
 * columns. The number of blocks does not matter: if there are too few to fill the device, other implementations, which
 * also use blocks, have no more. */
bool kn_block_pays(const kn_limits *limits, int64_t rows, int64_t columns);
