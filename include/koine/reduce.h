/* koine/reduce.h - reductions: sums, means, extremes, products, variances, norms, cumulative sums. Tensor expressions
 * (koine/tensor.h).
 *
 * Over all elements, or over the dimensions `dims` (num_dims of them; negative ones count from the end), which remain
 * with size 1 if keepdim. Sums are added block-wise with compensation: the error grows with the logarithm of the
 * length, and the sum of 10^8 ones is exact. The order is fixed: equal inputs give equal bits. Sums and products of
 * integers and bools are int64. */
#ifndef KOINE_REDUCE_H
#define KOINE_REDUCE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

KN_API kn_tensor *kn_sum(kn_tensor *x);
KN_API kn_tensor *kn_mean(kn_tensor *x); /* floating dtypes; NaN for no elements */
KN_API kn_tensor *kn_max(kn_tensor *x);  /* NaN propagates; equal maxima share the gradient evenly */
KN_API kn_tensor *kn_min(kn_tensor *x);  /* likewise */
KN_API kn_tensor *kn_sum_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
KN_API kn_tensor *kn_mean_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* The maxima or minima along `dim` and, if `indices` is not NULL, their indices (int64, the first among equals, owned
 * as the result is). NaN propagates. */
KN_API kn_tensor *kn_max_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices);
KN_API kn_tensor *kn_min_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices);
/* The indices alone: int64, the first among equals; not differentiable. */
KN_API kn_tensor *kn_argmax(kn_tensor *x, int dim, bool keepdim);
KN_API kn_tensor *kn_argmin(kn_tensor *x, int dim, bool keepdim);
/* Over several dimensions, without indices; equal extremes share the gradient evenly. */
KN_API kn_tensor *kn_amax(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
KN_API kn_tensor *kn_amin(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* Products; int64 wraps around; 1 for no elements. */
KN_API kn_tensor *kn_prod(kn_tensor *x);
KN_API kn_tensor *kn_prod_dim(kn_tensor *x, int dim, bool keepdim);

/* log(sum(exp(x))) without overflow; -infinity for no elements. Integers and bools give float32. */
KN_API kn_tensor *kn_logsumexp(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* The following take floating dtypes. */

/* Variance and standard deviation: the sum of squared deviations divided by max(n - correction, 0); kn_var and kn_std
 * use a correction of 1. */
KN_API kn_tensor *kn_var(kn_tensor *x);
KN_API kn_tensor *kn_std(kn_tensor *x);
KN_API kn_tensor *kn_var_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim);
KN_API kn_tensor *kn_std_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim);

/* (sum |x|^p)^(1/p), as torch.linalg.vector_norm: p = 0 counts the elements that are not 0, p = infinity is the
 * largest |x|, -infinity the smallest. NaN for p is KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_norm(kn_tensor *x, double p);
KN_API kn_tensor *kn_norm_dims(kn_tensor *x, double p, const int *dims, int num_dims, bool keepdim);

/* Cumulative sums along `dim`: element k is the sum of elements 0 to k. */
KN_API kn_tensor *kn_cumsum(kn_tensor *x, int dim);

KN_END_DECLS

#endif
