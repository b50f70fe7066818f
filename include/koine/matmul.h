/* koine/matmul.h - matrix products. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_MATMUL_H
#define KOINE_MATMUL_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* torch.matmul: vectors, matrices, and batches of matrices, whose batch dimensions broadcast. Both of the same dtype,
 * not bool; integers wrap around. */
KN_API kn_tensor *kn_matmul(kn_tensor *a, kn_tensor *b);

/* The same for certain ranks: a matrix by a matrix, batches of equal size, a matrix by a vector. */
KN_API kn_tensor *kn_mm(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_bmm(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_mv(kn_tensor *a, kn_tensor *b);

/* Of vectors: the inner product, twice, and the outer product a b^T, twice. */
KN_API kn_tensor *kn_dot(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_vdot(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_outer(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ger(kn_tensor *a, kn_tensor *b);

/* Inner products over the last dimension: [..., k] and [---, k] give [..., ---]; a 0-dimensional operand multiplies. */
KN_API kn_tensor *kn_inner(kn_tensor *a, kn_tensor *b);

/* beta input + alpha a b, where the input broadcasts to the product; with beta 0 it is ignored. a and b: matrices
 * (addmm), a matrix and a vector (addmv), vectors of which the product is the outer one (addr), batches (baddbmm),
 * batches whose products are added up (addbmm). */
typedef struct kn_addmm_params {
    double beta, alpha; /* default 1 */
} kn_addmm_params;
#define KN_ADDMM_DEFAULTS .beta = 1, .alpha = 1
KN_API kn_addmm_params kn_addmm_params_init(void);
KN_API kn_tensor *kn_addmm_with(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_addmv_with(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_addr_with(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_baddbmm_with(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
KN_API kn_tensor *kn_addbmm_with(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params);
#define kn_addmm(input, a, b, ...)                                                                                     \
    KN_CALL(kn_addmm_with(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_addmv(input, a, b, ...)                                                                                     \
    KN_CALL(kn_addmv_with(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_addr(input, a, b, ...) KN_CALL(kn_addr_with(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_baddbmm(input, a, b, ...)                                                                                   \
    KN_CALL(kn_baddbmm_with(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))
#define kn_addbmm(input, a, b, ...)                                                                                    \
    KN_CALL(kn_addbmm_with(input, a, b, &(kn_addmm_params){KN_ADDMM_DEFAULTS, __VA_ARGS__}))

/* The product of matrices in the order that takes the fewest multiplications: kn_linalg_multi_dot(KN_TENSORS(a, b, c)).
 * The first may be a row, the last a column, which then are vectors. kn_chain_matmul: matrices only. */
KN_API kn_tensor *kn_linalg_multi_dot(kn_tensor *const *tensors, int count);
KN_API kn_tensor *kn_chain_matmul(kn_tensor *const *tensors, int count);

/* The sum over dimensions dims_a[i] of a and dims_b[i] of b, `count` of them: the others remain, first those of a.
 * kn_tensordot_last: the last `count` dimensions of a, and the first of b (torch.tensordot with a number). */
KN_API kn_tensor *kn_tensordot(kn_tensor *a, kn_tensor *b, const int *dims_a, const int *dims_b, int count);
KN_API kn_tensor *kn_tensordot_last(kn_tensor *a, kn_tensor *b, int count);

/* torch.einsum: kn_einsum("bij,bjk->bik", KN_TENSORS(a, b)). A letter names a dimension; dimensions of the same name
 * have the same size, or 1, and those that the result does not name are summed over. A letter twice in an operand is
 * its diagonal; "..." are any further dimensions, which broadcast. Without "->" the result has "..." and the letters
 * that occur once, in alphabetical order. Operands are multiplied from left to right. */
KN_API kn_tensor *kn_einsum(const char *equation, kn_tensor *const *operands, int count);

/* The Kronecker product: every element of a times b. Any dtypes, as kn_mul. */
KN_API kn_tensor *kn_kron(kn_tensor *a, kn_tensor *b);

/* The n-th power of square matrices [..., m, m], in about log2(|n|) products; of their inverses where n < 0. */
KN_API kn_tensor *kn_matrix_power(kn_tensor *x, int64_t n);

/* y = x weight^T + bias, with x [..., in], weight [out, in], bias [out] or NULL; y [..., out]. */
KN_API kn_tensor *kn_linear(kn_tensor *x, kn_tensor *weight, kn_tensor *bias);

typedef struct kn_linear_params {
    kn_activation activation; /* of the result, bias included; default none */
} kn_linear_params;
#define KN_LINEAR_DEFAULTS .activation = KN_ACTIVATION_NONE
KN_API kn_linear_params kn_linear_params_init(void);
KN_API kn_tensor *kn_linear_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_linear_params *params);

/* y = x1 A x2 + bias for each row, with x1 [..., in1], x2 [..., in2], weight [out, in1, in2], bias [out] or NULL. */
KN_API kn_tensor *kn_bilinear(kn_tensor *x1, kn_tensor *x2, kn_tensor *weight, kn_tensor *bias);

KN_END_DECLS

#endif
