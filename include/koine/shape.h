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

/* x[start:stop:step] along `dim`, as in Python: negative bounds count from the end, and all are cut to the size; the
 * step is 1 or more. A view: kn_copy_(kn_slice(x, 0, 1, KN_SLICE_END, 2), y) writes every other row. */
#define KN_SLICE_END INT64_MAX
KN_API kn_tensor *kn_slice(kn_tensor *x, int dim, int64_t start, int64_t stop, int64_t step);

/* The diagonal of the planes of two dimensions, as the last dimension: a view. */
typedef struct kn_diagonal_params {
    int64_t offset; /* columns to the right of the main diagonal; negative: rows below; default 0 */
    int dim1, dim2; /* default 0 and 1 */
} kn_diagonal_params;
#define KN_DIAGONAL_DEFAULTS .dim2 = 1
KN_API kn_diagonal_params kn_diagonal_params_init(void);
KN_API kn_tensor *kn_diagonal_with(kn_tensor *x, const kn_diagonal_params *params);
#define kn_diagonal(x, ...) KN_CALL(kn_diagonal_with(x, &(kn_diagonal_params){KN_DIAGONAL_DEFAULTS, __VA_ARGS__}))
/* Zeros with the last dimension of x as that diagonal of two new dimensions. */
typedef struct kn_diag_embed_params {
    int64_t offset; /* default 0 */
    int dim1, dim2; /* of the result; default -2 and -1 */
} kn_diag_embed_params;
#define KN_DIAG_EMBED_DEFAULTS .dim1 = -2, .dim2 = -1
KN_API kn_diag_embed_params kn_diag_embed_params_init(void);
KN_API kn_tensor *kn_diag_embed_with(kn_tensor *x, const kn_diag_embed_params *params);
#define kn_diag_embed(x, ...)                                                                                          \
    KN_CALL(kn_diag_embed_with(x, &(kn_diag_embed_params){KN_DIAG_EMBED_DEFAULTS, __VA_ARGS__}))
KN_API kn_tensor *kn_diag(kn_tensor *x, int64_t diagonal);   /* of a matrix its diagonal, of a vector such a matrix */
KN_API kn_tensor *kn_diagflat(kn_tensor *x, int64_t offset); /* the matrix of all elements */

/* Windows of `size` elements, `step` apart, along a dimension, as a new last dimension: a view. torch.Tensor.unfold. */
KN_API kn_tensor *kn_tensor_unfold(kn_tensor *x, int dimension, int64_t size, int64_t step);

/* Views under PyTorch's other names. kn_view_as and kn_ravel copy where kn_reshape does. */
KN_API kn_tensor *kn_movedim(kn_tensor *x, int source, int destination);
KN_API kn_tensor *kn_swapaxes(kn_tensor *x, int axis0, int axis1);
KN_API kn_tensor *kn_broadcast_to(kn_tensor *x, int ndim, const int64_t *shape);
KN_API kn_tensor *kn_expand_as(kn_tensor *x, const kn_tensor *other);
KN_API kn_tensor *kn_view_as(kn_tensor *x, const kn_tensor *other);
KN_API kn_tensor *kn_ravel(kn_tensor *x);
/* The sum over the dimensions along which x was broadcast from this shape: kn_expand's reverse. */
KN_API kn_tensor *kn_sum_to_size(kn_tensor *x, int ndim, const int64_t *shape);
/* Dimension `dim` as several, of which one size may be -1: kn_unflatten(x, 1, KN_SHAPE(3, -1)). */
KN_API kn_tensor *kn_unflatten(kn_tensor *x, int dim, int ndim, const int64_t *sizes);
/* With dimensions of size 1 in front; kn_atleast_3d adds the third one at the end. */
KN_API kn_tensor *kn_atleast_1d(kn_tensor *x);
KN_API kn_tensor *kn_atleast_2d(kn_tensor *x);
KN_API kn_tensor *kn_atleast_3d(kn_tensor *x);

/* --- into several ------------------------------------------------------------------------------------------------- *
 * The parts are views, written to `parts`. On failure its values are undefined. */

KN_API kn_status kn_unbind(kn_tensor *x, int dim, kn_tensor **parts); /* as many as the dimension's size */
/* Parts of split_size, the last one smaller; returns how many, 0 with an error if there are more than `capacity`. */
KN_API int kn_split(kn_tensor *x, int64_t split_size, int dim, kn_tensor **parts, int capacity);
KN_API kn_status kn_split_with_sizes(kn_tensor *x, const int64_t *sizes, int count, int dim, kn_tensor **parts);
/* At most `chunks` parts of equal size, the last one smaller; returns how many, 0 with an error. */
KN_API int kn_chunk(kn_tensor *x, int chunks, int dim, kn_tensor **parts);
/* Exactly `sections` parts, the first ones larger by one; or count + 1 parts, cut before the given indices. */
KN_API kn_status kn_tensor_split(kn_tensor *x, int sections, int dim, kn_tensor **parts);
KN_API kn_status kn_tensor_split_at(kn_tensor *x, const int64_t *indices, int count, int dim, kn_tensor **parts);

/* The tensors expanded to their joint shape. */
KN_API kn_status kn_broadcast_tensors(kn_tensor *const *tensors, int count, kn_tensor **results);
/* Vectors as coordinates of a grid, each expanded to its shape: dimension i is that of tensor i, or with `xy`
 * dimensions 0 and 1 are exchanged. */
KN_API kn_status kn_meshgrid(kn_tensor *const *tensors, int count, bool xy, kn_tensor **results);

/* --- copies ------------------------------------------------------------------------------------------------------- */

KN_API kn_tensor *kn_contiguous(kn_tensor *x); /* x itself if it is contiguous */
KN_API kn_tensor *kn_clone(kn_tensor *x);      /* a copy, its dimensions in memory in the order of x's */

KN_API kn_tensor *kn_flip(kn_tensor *x, const int *dims, int num_dims); /* in reverse order along these */
KN_API kn_tensor *kn_fliplr(kn_tensor *x);                              /* along dimension 1 */
KN_API kn_tensor *kn_flipud(kn_tensor *x);                              /* along dimension 0 */
KN_API kn_tensor *kn_rot90(kn_tensor *x, int k, int dim0, int dim1);    /* k quarter turns from dim0 towards dim1 */

/* Elements shifted along `dims`, those beyond the end to the front; dims NULL: one shift of all elements in a row. */
KN_API kn_tensor *kn_roll(kn_tensor *x, int num_shifts, const int64_t *shifts, const int *dims);

/* x repeated along each dimension; kn_repeat needs at least as many numbers as x has dimensions, kn_tile fills up with
 * 1 in front. */
KN_API kn_tensor *kn_repeat(kn_tensor *x, int ndim, const int64_t *repeats);
KN_API kn_tensor *kn_tile(kn_tensor *x, int ndim, const int64_t *repeats);
/* Each slice along `dim` so many times; as many as the tensor `repeats` says, for which the call waits. A repeats of
 * another length than the dimension is KN_ERR_SHAPE; of length 1 it is for all. */
KN_API kn_tensor *kn_repeat_interleave(kn_tensor *x, int64_t repeats, int dim);
KN_API kn_tensor *kn_repeat_interleave_each(kn_tensor *x, kn_tensor *repeats, int dim);

/* The lower or upper triangle of the matrices of the last two dimensions, up to or from the diagonal that starts so
 * many columns to the right; the others are 0. */
KN_API kn_tensor *kn_tril(kn_tensor *x, int64_t diagonal);
KN_API kn_tensor *kn_triu(kn_tensor *x, int64_t diagonal);

KN_END_DECLS

#endif
