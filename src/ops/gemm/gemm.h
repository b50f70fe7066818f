/* ops/gemm/gemm.h - matrix multiplication on buffers, used by kn_matmul, kn_linear and the convolutions.
 *
 * Row-major C[m,n] = activation(alpha op(A) op(B) + beta C (+ bias)), `batch` times, as kn_gemm_params (rt/rt.h)
 * describes; f32 or f64. Any size may be 0: with k = 0 the product is 0. C is not read when beta is 0, so it may be
 * uninitialised then. A batch stride of 0 in A or B repeats that matrix. C overlaps neither A nor B.
 *
 * The implementation is chosen from the table "gemm" (ops/dispatch/choice.h). */
#pragma once

#include "base/dtype.h"
#include "base/integer.h"
#include "gemm/layout.h"
#include "ops/dispatch/choice.h"
#include "ops/pointwise/epilogue.h"
#include "rt/rt.h"

/* Where to write the sums over k of op(A)'s rows, [m], or of op(B)'s columns, [n], for the gradient of a bias. An
 * implementation that reads all of them anyway may do so, for a single matrix, and sets `done`; otherwise it is left to
 * the caller. */
typedef struct kn_gemm_sums {
    kn_buffer *buffer;
    int64_t offset; /* elements */
    bool of_b, done;
} kn_gemm_sums;

typedef struct kn_gemm_problem {
    kn_gemm_params product;
    kn_buffer *bias;          /* [n], added to every row of C, once; NULL: none */
    int64_t bias_offset;      /* elements */
    kn_activation activation; /* applied to the sum including bias */
    bool full_precision;      /* forbids TF32, whatever the flags allow */
    bool keeps_f32;           /* of operands of halves: C and the bias are f32, not rounded (pairs.c) */
    kn_gemm_sums *sums;       /* NULL: unwanted */
} kn_gemm_problem;

extern const kn_implementation_table kn_gemm_implementations;

/* Is there an implementation for these devices that computes such sums? */
static inline bool kn_gemm_computes_sums(const kn_limits *limits) { return limits->is_cpu; }

/* Chooses an implementation and enqueues it. */
kn_status kn_gemm(kn_stream *stream, const kn_gemm_problem *problem);

/* --- between the files of this op --------------------------------------------------------------------------------- */

kn_gemm_layout kn_gemm_operand_layout(const kn_gemm_operand *operand);

/* Bytes of an element; of f16 and bf16, which a problem does not tell, KN_GEMM_HALF. */
enum { KN_GEMM_HALF = 2 };
static inline int64_t kn_gemm_element(const kn_gemm_params *p) { return p->f64 ? 8 : 4; }

/* Operands of elements of `size` bytes as kernel arguments; the bias, or some buffer if there is none. */
static inline kn_arg kn_gemm_sized_arg(const kn_gemm_operand *x, int64_t size)
{
    return kn_arg_buffer(x->buffer, x->offset * size);
}
static inline kn_arg kn_gemm_sized_bias_arg(const kn_gemm_problem *problem, int64_t size)
{
    return problem->bias ? kn_arg_buffer(problem->bias, problem->bias_offset * size)
                         : kn_gemm_sized_arg(&problem->product.b, size);
}
static inline kn_arg kn_gemm_arg(const kn_gemm_params *p, const kn_gemm_operand *x)
{
    return kn_gemm_sized_arg(x, kn_gemm_element(p));
}
static inline kn_arg kn_gemm_bias_arg(const kn_gemm_problem *problem)
{
    return kn_gemm_sized_bias_arg(problem, kn_gemm_element(&problem->product));
}

/* The kernel argument that says whether vectors of `quantum` elements are aligned. */
static inline kn_arg kn_gemm_aligned(const kn_gemm_operand *x, int quantum)
{
    return kn_arg_i32(x->offset % quantum == 0 && x->ld % quantum == 0 && x->batch_stride % quantum == 0);
}

/* The epilogue; the argument points to `storage`. */
KN_GEMM_FINISH(kn_gemm_finish_f32, float);
KN_GEMM_FINISH(kn_gemm_finish_f64, double);
typedef union kn_gemm_finish {
    kn_gemm_finish_f32 f32;
    kn_gemm_finish_f64 f64;
} kn_gemm_finish;
kn_arg kn_gemm_finish_arg(kn_gemm_finish *storage, const kn_gemm_problem *problem);

/* The options "-DT=float -DVW=16 -DREGISTERS=32" for kernels with vectors of the device's width; `buffer` has
 * KN_GEMM_OPTIONS bytes. Returns buffer. */
#define KN_GEMM_OPTIONS 160
const char *kn_gemm_vector_options(char *buffer, const kn_limits *limits, bool f64);

/* C = the finished sum, in order, of `count` products [m, n] in `products` (split.c). bf16: C and the bias are. */
kn_status kn_gemm_total(kn_stream *stream, const kn_gemm_problem *problem, kn_buffer *products, int64_t count,
                        bool bf16);

/* Rows of the table, each with its predicates (ops/dispatch/choice.h); none: always true. */

/* cpu.c: tiles whose sums stay in registers; operands in place, or staged in blocks. */
kn_implementation_predicate kn_gemm_prefers_tiles;
kn_implementation_run kn_gemm_tiles;

/* inner_products.c: batches of short inner products. */
kn_implementation_predicate kn_gemm_supports_inner, kn_gemm_prefers_inner;
kn_implementation_run kn_gemm_inner;

/* skinny.c: one row times a tall matrix; tiny results of long sums. */
kn_implementation_predicate kn_gemm_supports_skinny, kn_gemm_prefers_skinny;
kn_implementation_run kn_gemm_skinny;

/* row.c: one row, or one column, times a matrix that is contiguous along the result. */
kn_implementation_predicate kn_gemm_supports_row, kn_gemm_prefers_row;
kn_implementation_run kn_gemm_row;

/* dots.c: few rows, or few results, times a transposed matrix, in place. */
kn_implementation_predicate kn_gemm_supports_dots, kn_gemm_prefers_dots;
kn_implementation_run kn_gemm_dots;

/* update.c: very short sums. */
kn_implementation_predicate kn_gemm_supports_update, kn_gemm_prefers_update;
kn_implementation_run kn_gemm_update;

/* small.c: batches of small matrices. */
kn_implementation_predicate kn_gemm_prefers_small;
kn_implementation_run kn_gemm_small;

/* split.c: k in parts that run in parallel. */
kn_implementation_predicate kn_gemm_supports_split, kn_gemm_prefers_split;
kn_implementation_run kn_gemm_split;

/* thin.c: GPUs; few columns, or few rows. */
kn_implementation_predicate kn_gemm_supports_thin, kn_gemm_prefers_thin;
kn_implementation_run kn_gemm_thin;

/* blocked_gemm.c: GPUs; work-groups compute blocks of C through local memory; the same on tensor cores, in TF32. */
kn_implementation_predicate kn_gemm_supports_blocked, kn_gemm_supports_tensor, kn_gemm_prefers_blocked;
kn_implementation_run kn_gemm_blocked, kn_gemm_tensor;

/* any.c: any device. The reference computes one sum per element. */
kn_implementation_predicate kn_gemm_supports_clblast;
kn_implementation_run kn_gemm_clblast, kn_gemm_reference;

/* halves.c, of the table "matmul_f16" (ops/gemm/matmul.h): A, B, C and the bias in f16, sums in f32; GPUs with tensor
 * cores. */
bool kn_gemm_supports_halves(const kn_limits *limits, int64_t m, int64_t n, int64_t k);
kn_status kn_gemm_halves(kn_stream *stream, const kn_gemm_problem *problem);

/* row.c, of the same table: A, B, C and the bias in bf16; CPU devices. */
kn_status kn_gemm_bf16_row(kn_stream *stream, const kn_gemm_problem *problem);
bool kn_gemm_row_pays(int64_t n, int64_t k); /* a row of n results, sums of k */

/* pairs.c, dots.c, of the same table: A, B, C and the bias in bf16, sums in f32, to which two products at a time are
 * added; CPU devices. Of pairs C and the bias may be f32. Of dots alpha is 1, beta 0; they read A and B in place, which
 * are contiguous along k; do they pay? */
kn_status kn_gemm_pairs(kn_stream *stream, const kn_gemm_problem *problem);
kn_status kn_gemm_pair_dots(kn_stream *stream, const kn_gemm_problem *problem);
bool kn_gemm_pair_dots_pay(const kn_limits *limits, int64_t m, int64_t n, int64_t k, int64_t batch);
