/* koine/shape.h - shapes: views and copies. Tensor expressions (koine/tensor.h).
 *
 * Views share memory with their argument. */
#ifndef KOINE_SHAPE_H
#define KOINE_SHAPE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* A view if the strides allow it, else a copy. One size may be -1: it follows from the others. */
KN_API kn_tensor *kn_reshape(kn_tensor *x, int ndim, const int64_t *shape);
/* Joins dimensions start_dim to end_dim: kn_flatten(x, 1, -1) keeps the batch dimension. */
KN_API kn_tensor *kn_flatten(kn_tensor *x, int start_dim, int end_dim);
KN_API kn_tensor *kn_transpose(kn_tensor *x, int dim0, int dim1);          /* a view */
KN_API kn_tensor *kn_t(kn_tensor *x);                                      /* at most 2 dimensions; a view */
KN_API kn_tensor *kn_permute(kn_tensor *x, const int *dims);               /* kn_ndim(x) of them; a view */
KN_API kn_tensor *kn_unsqueeze(kn_tensor *x, int dim);                     /* a view */
KN_API kn_tensor *kn_squeeze(kn_tensor *x, int dim);                       /* a view; no change unless the size is 1 */
KN_API kn_tensor *kn_expand(kn_tensor *x, int ndim, const int64_t *shape); /* a view; -1 keeps a size */
KN_API kn_tensor *kn_narrow(kn_tensor *x, int dim, int64_t start, int64_t length); /* a view */
KN_API kn_tensor *kn_select(kn_tensor *x, int dim, int64_t index);                 /* a view without that dimension */
KN_API kn_tensor *kn_contiguous(kn_tensor *x);                                     /* x itself if it is contiguous */
KN_API kn_tensor *kn_clone(kn_tensor *x);                                          /* a contiguous copy */

KN_END_DECLS

#endif
