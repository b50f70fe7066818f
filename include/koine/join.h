/* koine/join.h - joining a list of tensors. Tensor expressions: koine/tensor.h.
 *
 *     kn_tensor *both = kn_cat(KN_TENSORS(a, b), 1);
 *
 * The list has one tensor or more, of any dtypes: the result has the dtype that kn_promote_types makes of all.
 * Differentiable, gradients of gradients included. */
#ifndef KOINE_JOIN_H
#define KOINE_JOIN_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* The tensors one after the other along `dim`; in the other dimensions they have the same sizes. Tensors of shape [0]
 * are left out, whatever the shape of the others. */
KN_API kn_tensor *kn_cat(kn_tensor *const *tensors, int count, int dim);

/* Tensors of one shape along a new dimension `dim` of size `count`. */
KN_API kn_tensor *kn_stack(kn_tensor *const *tensors, int count, int dim);

KN_END_DECLS

#endif
