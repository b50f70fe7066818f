/* koine/linalg.h - linear algebra (torch.linalg) of matrices and batches of them, [..., m, n], in float32 and float64;
 * float16 and bfloat16 are computed in float32. Batches of two operands broadcast. Plain, deterministic algorithms, for
 * matrices of up to a few hundred rows: one matrix per work-group on GPUs, one per core on CPU devices. Tensor
 * expressions (koine/tensor.h).
 *
 * Gradients are PyTorch's. A matrix without a factorisation is found on the device: KN_ERR_ARGUMENT, with the matrix's
 * place in the batch, when it is next synchronised or read. The functions called ..._ex report it in `info` instead,
 * int32 of the batch's shape: 0, or where it fails. */
#ifndef KOINE_LINALG_H
#define KOINE_LINALG_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- positive definite matrices ----------------------------------------------------------------------------------- */

/* a = l l^T of a symmetric a, whose lower triangle is read; or with `upper` u of a = u^T u, from its upper one. info:
 * the order of the first leading minor that is not positive. */
KN_API kn_tensor *kn_linalg_cholesky(kn_tensor *a, bool upper);
KN_API kn_tensor *kn_linalg_cholesky_ex(kn_tensor *a, bool upper, kn_tensor **info);
/* a^-1 b of a's Cholesky factor; b [..., n, k] */
KN_API kn_tensor *kn_cholesky_solve(kn_tensor *b, kn_tensor *factor, bool upper);

/* a^-1 of a's Cholesky factor. */
KN_API kn_tensor *kn_cholesky_inverse(kn_tensor *factor, bool upper);

/* --- systems of equations ----------------------------------------------------------------------------------------- */

/* a^-1 b, or b a^-1 unless `left`, of a triangular a, whose other triangle is not read, nor with `unitriangular` its
 * diagonal. b [..., n, k], or [..., k, n]. */
KN_API kn_tensor *kn_linalg_solve_triangular(kn_tensor *a, kn_tensor *b, bool upper, bool left, bool unitriangular);

/* p a = l u: l below the diagonal, where it has ones, and u in one matrix. pivots [..., min(m, n)], int32: the row,
 * from 1, with which each row was exchanged. info: the first pivot that is 0. */
KN_API kn_tensor *kn_linalg_lu_factor(kn_tensor *a, kn_tensor **pivots);
KN_API kn_tensor *kn_linalg_lu_factor_ex(kn_tensor *a, kn_tensor **pivots, kn_tensor **info);

/* The factors themselves, a = p l u: p is the result, and those of l and u that are not NULL are set. */
KN_API kn_tensor *kn_lu_unpack(kn_tensor *lu, kn_tensor *pivots, kn_tensor **l, kn_tensor **u);
KN_API kn_tensor *kn_linalg_lu(kn_tensor *a, kn_tensor **l, kn_tensor **u);
/* a^-1 b, or b a^-1 unless `left`, of a's factors; with `adjoint` of a^T. b [..., n, k], or [..., k, n]. */
KN_API kn_tensor *kn_linalg_lu_solve(kn_tensor *lu, kn_tensor *pivots, kn_tensor *b, bool left, bool adjoint);

/* a^-1 b by LU factorisation, for b [..., n, k], or vectors [..., n]: one vector, or as many as a has matrices. */
KN_API kn_tensor *kn_linalg_solve(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_linalg_solve_ex(kn_tensor *a, kn_tensor *b, kn_tensor **info);
KN_API kn_tensor *kn_linalg_inv(kn_tensor *a);
KN_API kn_tensor *kn_linalg_inv_ex(kn_tensor *a, kn_tensor **info);

/* The tensor b for which kn_tensordot of a and b is the identity: the first `ind` dimensions of a are rows. The x for
 * which kn_tensordot of a and x is b: a has b's shape, then that of x. */
KN_API kn_tensor *kn_linalg_tensorinv(kn_tensor *a, int ind);
KN_API kn_tensor *kn_linalg_tensorsolve(kn_tensor *a, kn_tensor *b);

/* The x that minimises |a x - b|, and |x| if there are several, of an a of full rank; b [..., m, k]. */
KN_API kn_tensor *kn_linalg_lstsq(kn_tensor *a, kn_tensor *b);

/* --- determinants: gradients of logarithms, and second gradients, are of matrices with an inverse ----------------- */

KN_API kn_tensor *kn_linalg_det(kn_tensor *a);
/* the sign, and the logarithm of the magnitude; 0 and -inf for a singular matrix */
KN_API kn_tensor *kn_linalg_slogdet(kn_tensor *a, kn_tensor **logabsdet);
KN_API kn_tensor *kn_logdet(kn_tensor *a); /* NaN if the determinant is negative */

/* --- factorisations ----------------------------------------------------------------------------------------------- */

/* a = q r with orthonormal columns of q and an upper triangular r, whose signs are LAPACK's. REDUCED: q [m, k], r [k,
 * n] with k = min(m, n); COMPLETE: q [m, m], r [m, n]; R: r as with REDUCED, and a q without elements. */
typedef enum kn_qr_mode { KN_QR_REDUCED, KN_QR_COMPLETE, KN_QR_R } kn_qr_mode;
KN_API kn_tensor *kn_linalg_qr(kn_tensor *a, kn_qr_mode mode, kn_tensor **r);

/* The first n columns of the product of k reflections 1 - tau_i v_i v_i^T, k <= n: a [..., m, n], tau [..., k]; v_i is
 * 0 above row i, 1 there and a's column i below. Float32 or float64. */
KN_API kn_tensor *kn_linalg_householder_product(kn_tensor *a, kn_tensor *tau);

/* The eigenvalues of a symmetric a, ascending, [..., n], and unit eigenvectors, the columns of `vectors` [..., n, n],
 * each with the sign that makes its largest element positive. Reads the lower triangle, or the `upper` one. The
 * gradient of the vectors needs distinct eigenvalues. */
KN_API kn_tensor *kn_linalg_eigh(kn_tensor *a, bool upper, kn_tensor **vectors);
KN_API kn_tensor *kn_linalg_eigvalsh(kn_tensor *a, bool upper);

/* a = u diag(s) vh: u [..., m, k], the singular values s [..., k], descending, vh [..., k, n] with k = min(m, n); with
 * full_matrices u [..., m, m] and vh [..., n, n]. The precision of all values is that of the largest. The gradients of
 * u and vh need distinct singular values. */
KN_API kn_tensor *kn_linalg_svd(kn_tensor *a, bool full_matrices, kn_tensor **s, kn_tensor **vh);
KN_API kn_tensor *kn_linalg_svdvals(kn_tensor *a);

/* The pseudoinverse, and the rank, int64, without the singular values of at most max(m, n) eps times the largest. The
 * rank of a matrix with an element that is infinite or NaN is an error, at the next synchronisation or read. */
KN_API kn_tensor *kn_linalg_pinv(kn_tensor *a);
KN_API kn_tensor *kn_linalg_matrix_rank(kn_tensor *a);

/* --- norms and products ------------------------------------------------------------------------------------------- */

/* Of the last two dimensions: the root of the sum of squares; the sum of the singular values; the largest and the
 * smallest of them; those of the sums of magnitudes of columns (1) and of rows (inf). */
typedef enum kn_matrix_norm {
    KN_MATRIX_NORM_FRO,
    KN_MATRIX_NORM_NUC,
    KN_MATRIX_NORM_2,
    KN_MATRIX_NORM_MINUS_2,
    KN_MATRIX_NORM_1,
    KN_MATRIX_NORM_MINUS_1,
    KN_MATRIX_NORM_INF,
    KN_MATRIX_NORM_MINUS_INF
} kn_matrix_norm;
KN_API kn_tensor *kn_linalg_matrix_norm(kn_tensor *a, kn_matrix_norm norm, bool keepdim);

/* torch.linalg.norm. KN_NORM_DEFAULT: the root of the sum of squares. KN_NORM_ORD: of vectors kn_norm with p = ord; of
 * matrices those above for ord 1, -1, 2, -2, inf, -inf. FRO and NUC: of matrices. One dimension in `dims` is that of
 * vectors, two are those of matrices; none (NULL): x is a vector or a matrix; by default of any shape. */
typedef enum kn_norm_kind { KN_NORM_DEFAULT, KN_NORM_ORD, KN_NORM_FRO, KN_NORM_NUC } kn_norm_kind;
KN_API kn_tensor *kn_linalg_norm(kn_tensor *x, kn_norm_kind kind, double ord, const int *dims, int num_dims,
                                 bool keepdim);
/* The norm of a times that of a^-1: infinite for a singular a. Other than 2 and -2 of square matrices. */
KN_API kn_tensor *kn_linalg_cond(kn_tensor *a, kn_matrix_norm norm);

/* The powers n - 1 to 0 of the elements of x [..., m], or 0 to n - 1 if `increasing`: [..., m, n]; integers give
 * int64. */
typedef struct kn_vander_params {
    int64_t n;       /* default -1: m */
    bool increasing; /* default false, as of torch.vander; torch.linalg.vander: true */
} kn_vander_params;
#define KN_VANDER_DEFAULTS .n = -1
KN_API kn_vander_params kn_vander_params_init(void);
KN_API kn_tensor *kn_vander_with(kn_tensor *x, const kn_vander_params *params);
#define kn_vander(x, ...) KN_CALL(kn_vander_with(x, &(kn_vander_params){KN_VANDER_DEFAULTS, __VA_ARGS__}))

/* 1 + a + a^2 / 2 + ..., of batches of square matrices in float32 or float64. Waits for the largest norm. */
KN_API kn_tensor *kn_linalg_matrix_exp(kn_tensor *a);
KN_API kn_tensor *kn_trace(kn_tensor *a); /* of one matrix */
/* Of vectors of 3 elements along `dim`; other dimensions broadcast. */
KN_API kn_tensor *kn_linalg_cross(kn_tensor *a, kn_tensor *b, int dim);
/* The products of vectors along `dim`; other dimensions broadcast. */
KN_API kn_tensor *kn_linalg_vecdot(kn_tensor *a, kn_tensor *b, int dim);

KN_END_DECLS

#endif
