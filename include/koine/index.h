/* koine/index.h - selecting, writing and adding by index. Tensor expressions (koine/tensor.h).
 *
 * Indices are int64 or int32. One that is out of range is reported when the device is next synchronised or read; of
 * gathers the element is then 0, of scatters nothing is changed. Negative indices count from the end only where stated.
 *
 * Scatters write or add values at places that may repeat. The values of one place are taken in the order of the index:
 * the last of several written values stays, and sums are the same bits each time. Their gradients are gathers, those of
 * gathers sums of scattered gradients, and both are differentiable any number of times; as in PyTorch, the gradient of
 * written values is right only where no place repeats. The forms in place, named ..._, change x.
 *
 * Values have x's dtype; float16 and bfloat16 are added in float32 and rounded once. */
#ifndef KOINE_INDEX_H
#define KOINE_INDEX_H

#include <koine/common.h>
#include <koine/shape.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- gathers ------------------------------------------------------------------------------------------------------ */

/* The slices of x along `dim` with the given indices, a vector. */
KN_API kn_tensor *kn_index_select(kn_tensor *x, int dim, kn_tensor *index);

/* The index has as many dimensions as x, and is no larger except along `dim`: result[i, j, k] = x[i, index[i, j, k], k]
 * for dim 1. */
KN_API kn_tensor *kn_gather(kn_tensor *x, int dim, kn_tensor *index);

/* The same, where x and the index broadcast against each other in the other dimensions. */
KN_API kn_tensor *kn_take_along_dim(kn_tensor *x, kn_tensor *index, int dim);

/* The elements of x, counted in row-major order; an index of any shape, which the result has. Negative indices count
 * from the end. */
KN_API kn_tensor *kn_take(kn_tensor *x, kn_tensor *index);

/* x[a, :, b] as kn_index(x, KN_TENSORS(a, NULL, b)): one index for each of the first dimensions, NULL for all of it.
 * The indices broadcast, negative ones count from the end, and a tensor of bool selects where it is true, in as many
 * dimensions as it has (the call then waits for the device). The dimensions of the broadcast indices take the place of
 * those indexed, if these are neighbours, else they come first, as in PyTorch. */
KN_API kn_tensor *kn_index(kn_tensor *x, kn_tensor *const *indices, int count);

/* All choices of r of the elements of a vector, in the order of their places: [count, r]. */
typedef struct kn_combinations_params {
    int64_t r;             /* default 2 */
    bool with_replacement; /* default false; true: an element may be chosen several times */
} kn_combinations_params;
#define KN_COMBINATIONS_DEFAULTS .r = 2
KN_API kn_combinations_params kn_combinations_params_init(void);
KN_API kn_tensor *kn_combinations_with(kn_tensor *x, const kn_combinations_params *params);
#define kn_combinations(x, ...)                                                                                        \
    KN_CALL(kn_combinations_with(x, &(kn_combinations_params){KN_COMBINATIONS_DEFAULTS, __VA_ARGS__}))

/* --- scatters ----------------------------------------------------------------------------------------------------- */

/* Index and dim as of kn_gather: y = x but y[i, index[i, j, k], k] = src[i, j, k], for dim 1 and each element of the
 * index; src may be larger. */
KN_API kn_tensor *kn_scatter(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src);
KN_API kn_tensor *kn_scatter_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src);
KN_API kn_tensor *kn_scatter_value_with(kn_tensor *x, int dim, kn_tensor *index, kn_scalar value);
KN_API kn_tensor *kn_scatter_value_with_(kn_tensor *x, int dim, kn_tensor *index, kn_scalar value);
#define kn_scatter_value(x, dim, index, value) kn_scatter_value_with(x, dim, index, KN_NUMBER(value))
#define kn_scatter_value_(x, dim, index, value) kn_scatter_value_with_(x, dim, index, KN_NUMBER(value))
/* The same with += */
KN_API kn_tensor *kn_scatter_add(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src);
KN_API kn_tensor *kn_scatter_add_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src);

/* How several values become one. The mean of integers is rounded down; NaN is the largest and the smallest. */
typedef enum kn_scatter_reduction {
    KN_SCATTER_SUM,
    KN_SCATTER_PROD,
    KN_SCATTER_MEAN,
    KN_SCATTER_AMAX,
    KN_SCATTER_AMIN
} kn_scatter_reduction;
typedef struct kn_scatter_reduce_params {
    bool include_self; /* default true: x's element is one of the values; false: only where there is no other */
} kn_scatter_reduce_params;
#define KN_SCATTER_REDUCE_DEFAULTS .include_self = true
KN_API kn_scatter_reduce_params kn_scatter_reduce_params_init(void);
/* The same with a reduction. Gradients of extremes are divided evenly among equal elements. */
KN_API kn_tensor *kn_scatter_reduce_with(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src,
                                         kn_scatter_reduction reduce, const kn_scatter_reduce_params *params);
#define kn_scatter_reduce(x, dim, index, src, reduce, ...)                                                             \
    KN_CALL(kn_scatter_reduce_with(x, dim, index, src, reduce,                                                         \
                                   &(kn_scatter_reduce_params){KN_SCATTER_REDUCE_DEFAULTS, __VA_ARGS__}))
/* The same for slices: index and source as of kn_index_add. */
KN_API kn_tensor *kn_index_reduce_with(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source,
                                       kn_scatter_reduction reduce, const kn_scatter_reduce_params *params);
#define kn_index_reduce(x, dim, index, source, reduce, ...)                                                            \
    KN_CALL(kn_index_reduce_with(x, dim, index, source, reduce,                                                        \
                                 &(kn_scatter_reduce_params){KN_SCATTER_REDUCE_DEFAULTS, __VA_ARGS__}))

/* Adds alpha times the slices of `source` along `dim` to those of x with the given indices, a vector. The source has
 * x's shape but for `dim`, where it is as long as the index. */
typedef struct kn_index_add_params {
    double alpha; /* default 1 */
} kn_index_add_params;
#define KN_INDEX_ADD_DEFAULTS .alpha = 1
KN_API kn_index_add_params kn_index_add_params_init(void);
KN_API kn_tensor *kn_index_add_with(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source,
                                    const kn_index_add_params *params);
KN_API kn_tensor *kn_index_add_with_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source,
                                     const kn_index_add_params *params);
#define KN_INDEX_ADD_PARAMS(...)                                                                                       \
    &(kn_index_add_params) { KN_INDEX_ADD_DEFAULTS, __VA_ARGS__ }
#define kn_index_add(x, dim, index, source, ...)                                                                       \
    KN_CALL(kn_index_add_with(x, dim, index, source, KN_INDEX_ADD_PARAMS(__VA_ARGS__)))
#define kn_index_add_(x, dim, index, source, ...)                                                                      \
    KN_CALL(kn_index_add_with_(x, dim, index, source, KN_INDEX_ADD_PARAMS(__VA_ARGS__)))

/* Writes those slices, or a number into the slices of x, where negative indices count from the end. */
KN_API kn_tensor *kn_index_copy(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source);
KN_API kn_tensor *kn_index_copy_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source);
KN_API kn_tensor *kn_index_fill_with(kn_tensor *x, int dim, kn_tensor *index, kn_scalar value);
KN_API kn_tensor *kn_index_fill_with_(kn_tensor *x, int dim, kn_tensor *index, kn_scalar value);
#define kn_index_fill(x, dim, index, value) kn_index_fill_with(x, dim, index, KN_NUMBER(value))
#define kn_index_fill_(x, dim, index, value) kn_index_fill_with_(x, dim, index, KN_NUMBER(value))

/* Writes the elements of `source` to those of x that kn_take would take, or adds them. */
typedef struct kn_put_params {
    bool accumulate; /* default false */
} kn_put_params;
#define KN_PUT_DEFAULTS .accumulate = false
KN_API kn_put_params kn_put_params_init(void);
KN_API kn_tensor *kn_put_with(kn_tensor *x, kn_tensor *index, kn_tensor *source, const kn_put_params *params);
KN_API kn_tensor *kn_put_with_(kn_tensor *x, kn_tensor *index, kn_tensor *source, const kn_put_params *params);
#define kn_put(x, index, source, ...)                                                                                  \
    KN_CALL(kn_put_with(x, index, source, &(kn_put_params){KN_PUT_DEFAULTS, __VA_ARGS__}))
#define kn_put_(x, index, source, ...)                                                                                 \
    KN_CALL(kn_put_with_(x, index, source, &(kn_put_params){KN_PUT_DEFAULTS, __VA_ARGS__}))

/* x[a, :, b] = values, or += values, with indices as of kn_index. The values broadcast to what kn_index would give. */
KN_API kn_tensor *kn_index_put_with(kn_tensor *x, kn_tensor *const *indices, int count, kn_tensor *values,
                                    const kn_put_params *params);
KN_API kn_tensor *kn_index_put_with_(kn_tensor *x, kn_tensor *const *indices, int count, kn_tensor *values,
                                     const kn_put_params *params);
#define kn_index_put(x, indices, values, ...)                                                                          \
    KN_CALL(kn_index_put_with(x, indices, values, &(kn_put_params){KN_PUT_DEFAULTS, __VA_ARGS__}))
#define kn_index_put_(x, indices, values, ...)                                                                         \
    KN_CALL(kn_index_put_with_(x, indices, values, &(kn_put_params){KN_PUT_DEFAULTS, __VA_ARGS__}))

/* --- masks -------------------------------------------------------------------------------------------------------- */

/* `value` where the mask, of bool, is true, else x; both broadcast (in place only the mask). The value is converted to
 * x's dtype. */
KN_API kn_tensor *kn_masked_fill_with(kn_tensor *x, kn_tensor *mask, kn_scalar value);
KN_API kn_tensor *kn_masked_fill_with_(kn_tensor *x, kn_tensor *mask, kn_scalar value);
#define kn_masked_fill(x, mask, value) kn_masked_fill_with(x, mask, KN_NUMBER(value))
#define kn_masked_fill_(x, mask, value) kn_masked_fill_with_(x, mask, KN_NUMBER(value))

/* The elements of x where the mask is true, as a vector; both broadcast. Waits for the device: the shape depends on the
 * mask. */
KN_API kn_tensor *kn_masked_select(kn_tensor *x, kn_tensor *mask);
/* x, but where the mask is true the elements of `source` in turn. The mask broadcasts to x. */
KN_API kn_tensor *kn_masked_scatter(kn_tensor *x, kn_tensor *mask, kn_tensor *source);

/* The indices of the elements that are not 0: int64 [count, dimensions of x], in row-major order. Waits for the device.
 * kn_nonzero_as_tuple sets `indices`, one vector for each dimension, instead. */
KN_API kn_tensor *kn_nonzero(kn_tensor *x);
KN_API kn_tensor *kn_argwhere(kn_tensor *x);
KN_API kn_status kn_nonzero_as_tuple(kn_tensor *x, kn_tensor **indices);

/* The first `size` of those rows, without waiting: where there are fewer, rows of fill_value. */
KN_API kn_tensor *kn_nonzero_static(kn_tensor *x, int64_t size, int64_t fill_value);
/* The coordinates in a tensor of this shape of the elements with these indices in row-major order: ndim results. */
KN_API kn_status kn_unravel_index(kn_tensor *indices, int ndim, const int64_t *shape, kn_tensor **results);

/* int64 of the shape of x, which is whole, and a last dimension of `num_classes`: 1 at the class, else 0. With
 * num_classes -1 it is the largest class and one more, for which the call waits for the device. */
KN_API kn_tensor *kn_one_hot(kn_tensor *x, int64_t num_classes);

/* --- views, replaced ---------------------------------------------------------------------------------------------- */

/* A copy of x in which the elements that kn_select(x, dim, index) and so on show are those of source, which has that
 * shape and x's dtype. */
KN_API kn_tensor *kn_select_scatter(kn_tensor *x, kn_tensor *source, int dim, int64_t index);
KN_API kn_tensor *kn_slice_scatter(kn_tensor *x, kn_tensor *source, int dim, int64_t start, int64_t stop, int64_t step);
KN_API kn_tensor *kn_diagonal_scatter_with(kn_tensor *x, kn_tensor *source, const kn_diagonal_params *params);
#define kn_diagonal_scatter(x, source, ...)                                                                            \
    KN_CALL(kn_diagonal_scatter_with(x, source, &(kn_diagonal_params){KN_DIAGONAL_DEFAULTS, __VA_ARGS__}))
/* As if x were contiguous; offset from its first element. */
KN_API kn_tensor *kn_as_strided_scatter(kn_tensor *x, kn_tensor *source, int ndim, const int64_t *shape,
                                        const int64_t *strides, int64_t offset);

KN_END_DECLS

#endif
