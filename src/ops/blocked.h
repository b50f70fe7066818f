/* ops/blocked.h - the shapes of the blocks that products and convolutions on GPUs are computed in
 * (cl/gemm/blocked.clh), and the choice among them. */
#ifndef KN_OPS_BLOCKED_H
#define KN_OPS_BLOCKED_H

#include "base/integer.h"
#include "rt/rt.h"

/* A block of rows x columns of the result, in steps of k_step; item_rows x item_columns of it per work-item. */
typedef struct kn_block_shape {
    int rows, columns, k_step, item_rows, item_columns;
    double efficiency; /* of the multiplication, against the largest's: small blocks read local memory more often; 0:
                        * not known, not chosen */
} kn_block_shape;

/* The shape that computes `batch` results of rows x columns soonest; NULL where none fits the device. */
const kn_block_shape *kn_choose_block(const kn_limits *limits, bool f64, int64_t rows, int64_t columns, int64_t batch);

int kn_block_items(const kn_block_shape *block); /* work-items of a group */

/* All shapes there are, NULL beyond the last; and whether the device's local memory and work-groups can hold one. */
#define KN_BLOCK_SHAPES 32
const kn_block_shape *kn_block_shape_at(int index);
bool kn_block_fits(const kn_block_shape *block, const kn_limits *limits, bool f64);

/* The calling thread chooses this shape, and none where it does not fit; NULL ends it. For tests and for tuning. */
void kn_block_force(const kn_block_shape *shape);

/* block_rates.c: how fast each shape multiplies on the device, against the fastest: what `koine tune` measured, else
 * `efficiency`. A shape of rate 0 is not chosen. */
void kn_block_rates(double rates[KN_BLOCK_SHAPES], const kn_limits *limits, bool f64);

/* What the measurement is kept under (rt/tuning.h), and what it calls a shape: "128x128x8 8x8". */
#define KN_BLOCK_NAME 48
const char *kn_block_question(bool f64);
const char *kn_block_name(char buffer[KN_BLOCK_NAME], const kn_block_shape *shape);

/* Elements of 16 bytes, the vectors that the kernels read. */
static inline int kn_block_quantum(bool f64) { return f64 ? 2 : 4; }

/* The options "-DT=float -DBM=128 ..."; `buffer` is KN_BLOCK_OPTIONS long. Returns buffer. */
#define KN_BLOCK_OPTIONS 192
const char *kn_block_options(char *buffer, const kn_block_shape *block, bool f64, bool a_along_k, bool b_along_k,
                             const char *more);

#endif
