/* ops/linalg/linalg.h - what the files of linear algebra share. */
#pragma once

#include <koine/linalg.h>

#include "autograd/op.h"
#include "ops/dispatch/invoke.h"

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static inline int64_t kn_rows(const kn_tensor *t) { return t->shape[t->ndim - 2]; }
static inline int64_t kn_columns(const kn_tensor *t) { return t->shape[t->ndim - 1]; }
static inline int64_t kn_matrices(const kn_tensor *t) { return kn_shape_numel(t->ndim - 2, t->shape); }

/* For shape rules: input `index` is a batch of matrices, of square ones. */
kn_status kn_check_matrices(const kn_call *call, int index);
kn_status kn_check_square(const kn_call *call, int index);

/* The shape rule of a x = b: a square, x like b. */
kn_status kn_linalg_system_shape(kn_call *call);

/* Declares an output of input 0's batch shape and these further sizes: count of them. */
kn_status kn_linalg_output(kn_call *call, kn_dtype dtype, int count, int64_t first, int64_t second);

/* For `enter` of two operands, matrices: expands their batches to a common shape. */
kn_status kn_linalg_broadcast(kn_entry *entry);

/* Is `a` a tensor of matrices? If not, an error that names the function, unless it is NULL. */
bool kn_has_matrices(const char *function, const kn_tensor *a);

/* --- launches: one work-group per matrix, or `count` independent elements ----------------------------------------- */

typedef struct kn_linalg_launch {
    const char *source, *kernel, *operation;
    kn_dtype dtype;
    int64_t matrices, count; /* one of them */
} kn_linalg_launch;
kn_status kn_linalg_run(kn_stream *stream, const kn_linalg_launch *launch, const kn_arg *args, int num_args);
#define KN_LINALG_RUN(stream, launch, ...)                                                                             \
    kn_linalg_run(stream, launch, (const kn_arg[]){__VA_ARGS__},                                                       \
                  (int)(sizeof((kn_arg[]){__VA_ARGS__}) / sizeof(kn_arg)))

/* --- LU factors --------------------------------------------------------------------------------------------------- */

/* New factors of input 0. info may be NULL; then `reports` says whether a singular matrix is a fault. */
kn_status kn_lu_factored(kn_call *call, kn_tensor **lu, kn_tensor **pivots, kn_tensor *info, bool reports);

/* x = a^-1 x of a's factors; all contiguous. */
kn_status kn_lu_solve_run(kn_stream *stream, const char *operation, const kn_tensor *lu, const kn_tensor *pivots,
                          const kn_tensor *x);

/* Factors of matrices in `lu`, which become them. `reports`: a singular matrix is a fault. */
typedef struct kn_lu_factors {
    const kn_tensor *lu, *pivots, *info;
    bool reports;
} kn_lu_factors;

/* Large ones, block by block (blocks.c): factors; x = a^-1 x of triangular a; x with rows exchanged by its pivots. */
bool kn_linalg_factors_in_blocks(const kn_tensor *a);
kn_status kn_linalg_factor_blocks(kn_stream *stream, const char *operation, const kn_lu_factors *factors);
bool kn_linalg_solves_in_blocks(const kn_tensor *x);
kn_status kn_linalg_solve_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *x,
                                 bool upper, bool unit);
kn_status kn_linalg_exchange_rows(kn_stream *stream, const char *operation, const kn_tensor *pivots,
                                  const kn_tensor *x);

/* Of a, which becomes its lower factor, on CPU devices. */
bool kn_linalg_has_cholesky_blocks(const kn_tensor *a);
kn_status kn_linalg_cholesky_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *info,
                                    bool reports);

/* a = q r of large matrices (qr_blocks.c): a, contiguous, becomes r above the diagonal; q may have no columns. */
bool kn_linalg_qr_in_blocks(const kn_tensor *a);
kn_status kn_linalg_qr_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *q);

/* p [..., m, m] of the factors' pivots [..., count], of m rows: p l u = a. Not recorded. */
kn_tensor *kn_lu_permutation(kn_tensor *pivots, int64_t m, kn_dtype dtype);

/* --- for gradients: recorded operations on batches of matrices ---------------------------------------------------- */

kn_tensor *kn_matrix_transpose(kn_tensor *x);
/* The part of x below the diagonal, with it or `strict`ly without, or above it; else 0. */
kn_tensor *kn_lower_part(kn_tensor *x, bool strict);
kn_tensor *kn_upper_part(kn_tensor *x, bool strict);
/* [..., n] as diagonal matrices; the identity, [n, n]. */
kn_tensor *kn_diagonal_matrix(kn_tensor *x);
kn_tensor *kn_identity(int64_t n, kn_dtype dtype, kn_device *device);

/* Invokes an operator; further results go to second and third, NULL for those that are not wanted. */
kn_tensor *kn_linalg_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                            kn_tensor **second, kn_tensor **third);

/* --- eigenvalues and singular values ------------------------------------------------------------------------------ */

/* Off-diagonal elements this small, relative to the others, are 0. */
double kn_linalg_tolerance(kn_dtype dtype);

/* Are a's computed by reflections, not Jacobi's rotations? Those are faster for large matrices on CPU devices; of
 * smaller ones the rotations have a few times smaller errors. */
bool kn_linalg_reflects(const kn_tensor *a);
int64_t kn_linalg_row_size(int64_t n); /* of linalg/reflections.clh, for rows of n elements */

/* An output that the caller does not want, but the method or the backward pass does. */
kn_status kn_linalg_make_skipped(kn_call *call, int i);

/* 1 / (x_j - x_i) for x [..., n], 0 on the diagonal; x - x^T. */
kn_tensor *kn_inverse_gaps(kn_tensor *x);
kn_tensor *kn_antisymmetric(kn_tensor *x);

/* The plain C references (reference.c). */
kn_status kn_cholesky_reference(const kn_call *call);
kn_status kn_solve_triangular_reference(const kn_call *call);
kn_status kn_lu_reference(const kn_call *call);
kn_status kn_solve_reference(const kn_call *call);
kn_status kn_det_reference(const kn_call *call);
kn_status kn_qr_reference(const kn_call *call);
kn_status kn_eigh_reference(const kn_call *call);
kn_status kn_svd_reference(const kn_call *call);
