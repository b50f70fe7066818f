/* koine/join.h - joining a list of tensors. Tensor expressions (koine/tensor.h).
 *
 *     kn_tensor *both = kn_cat(KN_TENSORS(a, b), 1);
 *
 * The list has at least one tensor. Dtypes may differ: the result has their promoted dtype (kn_promote_types).
 * Differentiable any number of times. */
#ifndef KOINE_JOIN_H
#define KOINE_JOIN_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* The tensors one after another along `dim`; their other sizes must be equal. Tensors of shape [0] are skipped,
 * whatever the shape of the others. */
KN_API kn_tensor *kn_cat(kn_tensor *const *tensors, int count, int dim);

/* Tensors of the same shape along a new dimension `dim` of size `count`. */
KN_API kn_tensor *kn_stack(kn_tensor *const *tensors, int count, int dim);

/* Along dimension 1 (vectors: 0), 0 and 2, after kn_atleast_1d, _2d and _3d; vectors as columns. At most 64 tensors. */
KN_API kn_tensor *kn_hstack(kn_tensor *const *tensors, int count);
KN_API kn_tensor *kn_vstack(kn_tensor *const *tensors, int count);
KN_API kn_tensor *kn_dstack(kn_tensor *const *tensors, int count);
KN_API kn_tensor *kn_column_stack(kn_tensor *const *tensors, int count);

/* The matrices along the diagonal of one, with zeros elsewhere. At most 64. */
KN_API kn_tensor *kn_block_diag(kn_tensor *const *tensors, int count);

/* All combinations of the elements of vectors, as rows. */
KN_API kn_tensor *kn_cartesian_prod(kn_tensor *const *tensors, int count);

KN_END_DECLS

#endif
