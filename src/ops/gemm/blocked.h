/* ops/gemm/blocked.h - the shapes of the blocks that products and convolutions on GPUs are computed in
 * (cl/gemm/blocked.clh), and the choice among them. */
#ifndef KN_OPS_GEMM_BLOCKED_H
#define KN_OPS_GEMM_BLOCKED_H

#include "base/integer.h"
#include "rt/rt.h"

/* What multiplies: the work-items, in f32 or f64, or tensor cores, f32 data in TF32, or data that is f16
 * (cl/gemm/halves.cl). */
typedef enum kn_block_arithmetic { KN_BLOCK_F32, KN_BLOCK_F64, KN_BLOCK_TF32, KN_BLOCK_F16 } kn_block_arithmetic;

static inline bool kn_block_by_tensor_cores(kn_block_arithmetic arithmetic) { return arithmetic >= KN_BLOCK_TF32; }

static inline kn_block_arithmetic kn_block_plain(bool f64) { return f64 ? KN_BLOCK_F64 : KN_BLOCK_F32; }

/* A block of rows x columns of the result, in steps of k_step; item_rows x item_columns of it per work-item, or, for
 * tensor cores, per warp of 32. k_step counts words of 32 bits: two steps in f16. */
typedef struct kn_block_shape {
    int rows, columns, k_step, item_rows, item_columns;
    double efficiency; /* of the multiplication, against the largest's: small blocks read local memory more often; 0:
                        * not known, not chosen */
    bool tensor_cores;
} kn_block_shape;

/* The shape that computes `batch` results of rows x columns soonest; NULL where none fits the device, or it has no such
 * arithmetic. */
const kn_block_shape *kn_choose_block(const kn_limits *limits, kn_block_arithmetic arithmetic, int64_t rows,
                                      int64_t columns, int64_t batch);

int kn_block_items(const kn_block_shape *block); /* work-items of a group */

/* All shapes there are, NULL beyond the last; and whether one is made for the arithmetic, and the device has that and
 * can hold it in local memory and in a work-group. */
#define KN_BLOCK_SHAPES 32
#define KN_BLOCK_MOST 256 /* rows or columns of one */
const kn_block_shape *kn_block_shape_at(int index);
bool kn_block_fits(const kn_block_shape *block, const kn_limits *limits, kn_block_arithmetic arithmetic);

/* The calling thread chooses this shape, and none where it does not fit; NULL ends it. Returns the one before. For
 * tests and for tuning. */
const kn_block_shape *kn_block_force(const kn_block_shape *shape);

/* block_rates.c: how fast each shape multiplies on the device, against the fastest: what `koine tune` measured, else
 * `efficiency`. A shape of rate 0 is not chosen. */
void kn_block_rates(double rates[KN_BLOCK_SHAPES], const kn_limits *limits, kn_block_arithmetic arithmetic);

/* What the measurement is kept under (rt/tuning/tuning.h), and what it calls a shape: "128x128x8 8x8". */
#define KN_BLOCK_NAME 48
const char *kn_block_question(kn_block_arithmetic arithmetic);
const char *kn_block_name(char buffer[KN_BLOCK_NAME], const kn_block_shape *shape);

/* Bytes of local memory that one slice of both operands takes; two are there at least. */
int64_t kn_block_slice_bytes(const kn_block_shape *block, kn_block_arithmetic arithmetic);

/* Elements of 16 bytes, the vectors that the kernels read. */
static inline int kn_block_quantum(kn_block_arithmetic arithmetic)
{
    return arithmetic == KN_BLOCK_F64 ? 2 : arithmetic == KN_BLOCK_F16 ? 8 : 4;
}

/* The options "-DT=float -DBM=128 ..." of cl/gemm/blocked.clh; of cl/gemm/halves.cl (gemm_halves.c). `buffer` is
 * KN_BLOCK_OPTIONS long. Returns buffer. */
#define KN_BLOCK_OPTIONS 256
const char *kn_block_options(char *buffer, const kn_block_shape *block, kn_block_arithmetic arithmetic, bool a_along_k,
                             bool b_along_k, const char *more);
const char *kn_gemm_halves_options(char *buffer, const kn_limits *limits, const kn_block_shape *block, bool a_along_k,
                                   bool b_along_k);

/* Whether the device is one that blocks are made for, and a result of rows x columns fills at least half of the rows
 * and of the columns of the smallest block. How many blocks there are to fill the device with does not matter: where
 * they are too few, other ways to multiply, in blocks too, have no more. */
bool kn_block_pays(const kn_limits *limits, int64_t rows, int64_t columns);

/* tensor_cores.c: whether the tensor cores of the stream's device compute what they should in TF32, in f16. Found out
 * at the first call for the device, which waits, by products that are compared to those of the work-items. Where they
 * do not, the log says so, once. */
bool kn_tensor_cores_work(kn_stream *stream);
bool kn_tensor_cores_work_in_f16(kn_stream *stream);

#endif
