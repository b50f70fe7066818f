/* koine/shape.h - shapes: views, copies, selection by index.
 *
 * Tensor expressions: koine/tensor.h. */
#ifndef KOINE_SHAPE_H
#define KOINE_SHAPE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- shapes ----------------------------------------------------------------------------------- *
 * Views share storage with their argument. */

/* one size may be -1; a view where strides allow, else a copy */
KN_API kn_tensor *kn_reshape(kn_tensor *x, int ndim, const int64_t *shape);
/* kn_flatten(x, 1, -1) keeps the batch; one dimension: x itself */
KN_API kn_tensor *kn_flatten(kn_tensor *x, int start_dim, int end_dim);
KN_API kn_tensor *kn_transpose(kn_tensor *x, int dim0, int dim1);          /* a view */
KN_API kn_tensor *kn_t(kn_tensor *x);                                      /* at most 2 dimensions; a view */
KN_API kn_tensor *kn_permute(kn_tensor *x, const int *dims);               /* kn_ndim(x) of them; a view */
KN_API kn_tensor *kn_unsqueeze(kn_tensor *x, int dim);                     /* a view */
KN_API kn_tensor *kn_squeeze(kn_tensor *x, int dim);                       /* a view; no change unless the size is 1 */
KN_API kn_tensor *kn_expand(kn_tensor *x, int ndim, const int64_t *shape); /* a view; -1 keeps a size */
KN_API kn_tensor *kn_narrow(kn_tensor *x, int dim, int64_t start, int64_t length); /* a view */
KN_API kn_tensor *kn_select(kn_tensor *x, int dim, int64_t index);                 /* a view without that dimension */
KN_API kn_tensor *kn_contiguous(kn_tensor *x);                                     /* x itself when it is contiguous */
KN_API kn_tensor *kn_clone(kn_tensor *x);                                          /* a contiguous copy */

/* Rows of x along `dim` by int64 or int32 indices (1-D). An index out of range is reported at the next synchronise or
 * read. */
KN_API kn_tensor *kn_index_select(kn_tensor *x, int dim, kn_tensor *index);

KN_END_DECLS

#endif
