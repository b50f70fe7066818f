/* koine/reduce.h - reductions: sums, means, extremes, products, conditions, variances, norms; cumulative operators,
 * differences and integrals. Tensor expressions (koine/tensor.h).
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

/* The minima; the maxima in `max` if that is not NULL, owned as the result is. */
KN_API kn_tensor *kn_aminmax(kn_tensor *x, kn_tensor **max);
KN_API kn_tensor *kn_aminmax_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim, kn_tensor **max);

/* Is any element, are all elements not 0? NaN is not 0. bool; uint8 gives uint8. */
KN_API kn_tensor *kn_any(kn_tensor *x);
KN_API kn_tensor *kn_all(kn_tensor *x);
KN_API kn_tensor *kn_any_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
KN_API kn_tensor *kn_all_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
/* How many are not 0: int64. */
KN_API kn_tensor *kn_count_nonzero(kn_tensor *x);
KN_API kn_tensor *kn_count_nonzero_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* Without the elements that are NaN; the mean is of floating dtypes and NaN if all are. */
KN_API kn_tensor *kn_nansum(kn_tensor *x);
KN_API kn_tensor *kn_nanmean(kn_tensor *x);
KN_API kn_tensor *kn_nansum_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
KN_API kn_tensor *kn_nanmean_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* Products; int64 wraps around; 1 for no elements. */
KN_API kn_tensor *kn_prod(kn_tensor *x);
KN_API kn_tensor *kn_prod_dim(kn_tensor *x, int dim, bool keepdim);

/* log(sum(exp(x))) without overflow; -infinity for no elements. Integers and bools give float32. */
KN_API kn_tensor *kn_logsumexp(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* Cumulative along `dim`: element k is of elements 0 to k. Sums and products of integers and bools are int64. Second
 * gradients of products and of logcumsumexp, log(cumsum(exp(x))) without overflow, take memory for n^2 elements per row
 * of n. */
KN_API kn_tensor *kn_cumsum(kn_tensor *x, int dim);
KN_API kn_tensor *kn_cumprod(kn_tensor *x, int dim);
KN_API kn_tensor *kn_logcumsumexp(kn_tensor *x, int dim);
/* With the index of the last of equal extremes, int64, if `indices` is not NULL; NaN propagates. */
KN_API kn_tensor *kn_cummax(kn_tensor *x, int dim, kn_tensor **indices);
KN_API kn_tensor *kn_cummin(kn_tensor *x, int dim, kn_tensor **indices);

/* n times the differences of neighbours along a dimension; of bools whether they differ. */
typedef struct kn_diff_params {
    int64_t n;                   /* default 1 */
    int dim;                     /* default -1 */
    kn_tensor *prepend, *append; /* joined to x along the dimension before; default NULL */
} kn_diff_params;
#define KN_DIFF_DEFAULTS .n = 1, .dim = -1
KN_API kn_diff_params kn_diff_params_init(void);
KN_API kn_tensor *kn_diff_with(kn_tensor *x, const kn_diff_params *params);
#define KN_DIFF_PARAMS(...)                                                                                            \
    &(kn_diff_params) { KN_DIFF_DEFAULTS, __VA_ARGS__ }
#define kn_diff(x, ...) KN_CALL(kn_diff_with(x, KN_DIFF_PARAMS(__VA_ARGS__)))

/* The integral along a dimension by the trapezoidal rule, and that up to each element after the first. */
typedef struct kn_trapezoid_params {
    kn_tensor *x; /* the places of y's elements: of y's shape, or [n]; default NULL: `dx` apart */
    double dx;    /* default 1 */
    int dim;      /* default -1 */
} kn_trapezoid_params;
#define KN_TRAPEZOID_DEFAULTS .dx = 1, .dim = -1
KN_API kn_trapezoid_params kn_trapezoid_params_init(void);
KN_API kn_tensor *kn_trapezoid_with(kn_tensor *y, const kn_trapezoid_params *params);
KN_API kn_tensor *kn_cumulative_trapezoid_with(kn_tensor *y, const kn_trapezoid_params *params);
#define KN_TRAPEZOID_PARAMS(...)                                                                                       \
    &(kn_trapezoid_params) { KN_TRAPEZOID_DEFAULTS, __VA_ARGS__ }
#define kn_trapezoid(y, ...) KN_CALL(kn_trapezoid_with(y, KN_TRAPEZOID_PARAMS(__VA_ARGS__)))
#define kn_cumulative_trapezoid(y, ...) KN_CALL(kn_cumulative_trapezoid_with(y, KN_TRAPEZOID_PARAMS(__VA_ARGS__)))

/* The derivative along a dimension of values at places `spacing` apart, or at `places` [n]: by the parabola through
 * each element and its neighbours, at the ends by a line (edge_order 1) or a parabola (2). Floating dtypes.
 * torch.gradient, which takes several dimensions, is one call for each. */
typedef struct kn_gradient_params {
    int dim;           /* default -1 */
    double spacing;    /* default 1 */
    kn_tensor *places; /* default NULL */
    int edge_order;    /* default 1 */
} kn_gradient_params;
#define KN_GRADIENT_DEFAULTS .dim = -1, .spacing = 1, .edge_order = 1
KN_API kn_gradient_params kn_gradient_params_init(void);
KN_API kn_tensor *kn_gradient_with(kn_tensor *x, const kn_gradient_params *params);
#define kn_gradient(x, ...) KN_CALL(kn_gradient_with(x, &(kn_gradient_params){KN_GRADIENT_DEFAULTS, __VA_ARGS__}))

/* The following take floating dtypes. */

/* Variance and standard deviation: the sum of squared deviations divided by max(n - correction, 0); kn_var and kn_std
 * use a correction of 1. */
KN_API kn_tensor *kn_var(kn_tensor *x);
KN_API kn_tensor *kn_std(kn_tensor *x);
KN_API kn_tensor *kn_var_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim);
KN_API kn_tensor *kn_std_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim);
/* With the mean, if `mean` is not NULL, owned as the result is. */
KN_API kn_tensor *kn_var_mean(kn_tensor *x, kn_tensor **mean);
KN_API kn_tensor *kn_std_mean(kn_tensor *x, kn_tensor **mean);
KN_API kn_tensor *kn_var_mean_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim,
                                   kn_tensor **mean);
KN_API kn_tensor *kn_std_mean_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim,
                                   kn_tensor **mean);

/* The covariances of the rows of x [variables, observations], [variables, variables]; of one row, or a vector, its
 * variance, 0-dimensional.
 * fweights: how often each observation counts, integers; aweights: its weight; each [observations]. */
typedef struct kn_cov_params {
    double correction;   /* default 1; 0: divides by the number of observations */
    kn_tensor *fweights; /* default NULL */
    kn_tensor *aweights; /* default NULL */
} kn_cov_params;
#define KN_COV_DEFAULTS .correction = 1
KN_API kn_cov_params kn_cov_params_init(void);
KN_API kn_tensor *kn_cov_with(kn_tensor *x, const kn_cov_params *params);
#define kn_cov(x, ...) KN_CALL(kn_cov_with(x, &(kn_cov_params){KN_COV_DEFAULTS, __VA_ARGS__}))
/* The same divided by the standard deviations: from -1 to 1. */
KN_API kn_tensor *kn_corrcoef(kn_tensor *x);

/* (sum |x|^p)^(1/p), as torch.linalg.vector_norm: p = 0 counts the elements that are not 0, p = infinity is the
 * largest |x|, -infinity the smallest. NaN for p is KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_norm(kn_tensor *x, double p);
KN_API kn_tensor *kn_norm_dims(kn_tensor *x, double p, const int *dims, int num_dims, bool keepdim);
/* The norm of a - b, which are broadcast. */
KN_API kn_tensor *kn_dist(kn_tensor *a, kn_tensor *b, double p);
/* Each slice of `dim` whose norm is greater than maxnorm is scaled down to it. p > 0. */
KN_API kn_tensor *kn_renorm(kn_tensor *x, double p, int dim, double maxnorm);

KN_END_DECLS

#endif
