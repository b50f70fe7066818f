/* koine/ops.h - operations on tensors: elementwise, reductions, matrix products, shapes.
 *
 * All are tensor expressions (see koine/status.h): they return a new tensor, owned as koine/tensor.h tells, or NULL
 * with an error; NULL in gives NULL out. All inputs are on one device. They are enqueued on the calling thread's
 * current stream of that device and return before the work is done. Differentiable unless stated otherwise. Semantics,
 * names and dtype rules are PyTorch's.
 *
 * Functions whose name ends in "_" change their first argument in place and return it, without a new reference. They
 * are recorded: see koine/autograd.h. Where several elements share one place in memory (kn_expand), only kn_fill_ and
 * kn_zero_ do; the others are KN_ERR_STATE. */
#ifndef KOINE_OPS_H
#define KOINE_OPS_H

#include <koine/common.h>
#include <koine/tensor.h>
#include <math.h>

KN_BEGIN_DECLS

/* --- elementwise, broadcast by the NumPy rule, promoted by kn_promote_types ------------------- *
 * A tensor without dimensions does not widen one that has some within its kind (bool < whole < floating). Operands are
 * converted to the joint dtype before the operation, so float16 rounds whole numbers above 2048 first; only a factor or
 * divisor b without dimensions is not rounded. */

KN_API kn_tensor *kn_add(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_sub(kn_tensor *a, kn_tensor *b); /* not of bool tensors */
KN_API kn_tensor *kn_mul(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_div(kn_tensor *a, kn_tensor *b); /* whole-number operands give float32 */
KN_API kn_tensor *kn_pow(kn_tensor *a, kn_tensor *b);
/* NaN propagates; equal elements share the gradient by halves */
KN_API kn_tensor *kn_maximum(kn_tensor *a, kn_tensor *b);

/* The same with a number for b: kn_add_scalar(x, 2). As in PyTorch a whole number keeps whole dtypes, exactly for
 * int64, a real one (2.0) makes them float32, and neither widens a floating dtype. The functions with _with take the
 * number as a kn_scalar (koine/dtype.h). */
KN_API kn_tensor *kn_add_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_mul_scalar_with(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_pow_scalar_with(kn_tensor *a, kn_scalar b);
#define kn_add_scalar(a, b) kn_add_scalar_with(a, KN_NUMBER(b))
#define kn_mul_scalar(a, b) kn_mul_scalar_with(a, KN_NUMBER(b))
#define kn_pow_scalar(a, b) kn_pow_scalar_with(a, KN_NUMBER(b))

/* b broadcasts to a's shape; computed in the joint dtype and rounded to a's */
KN_API kn_tensor *kn_add_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_sub_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_mul_(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_mul_scalar_with_(kn_tensor *a, kn_scalar b);
KN_API kn_tensor *kn_fill_with_(kn_tensor *a, kn_scalar value);
#define kn_mul_scalar_(a, b) kn_mul_scalar_with_(a, KN_NUMBER(b))
#define kn_fill_(a, value) kn_fill_with_(a, KN_NUMBER(value))
KN_API kn_tensor *kn_zero_(kn_tensor *a);

KN_API kn_tensor *kn_neg(kn_tensor *x);
KN_API kn_tensor *kn_exp(kn_tensor *x);
KN_API kn_tensor *kn_log(kn_tensor *x);
KN_API kn_tensor *kn_sqrt(kn_tensor *x);
KN_API kn_tensor *kn_abs(kn_tensor *x);  /* gradient 0 at 0 */
KN_API kn_tensor *kn_relu(kn_tensor *x); /* NaN propagates; gradient 0 at 0 */
KN_API kn_tensor *kn_sigmoid(kn_tensor *x);
KN_API kn_tensor *kn_tanh(kn_tensor *x);

/* min(max(x, min), max); with min > max everything is max. A bound that is left out is none; one that is not whole
 * makes whole dtypes float32; NaN is KN_ERR_ARGUMENT. NaN propagates. The gradient passes where min <= x <= max.
 * kn_clamp(x, .min = 0) */
typedef struct kn_clamp_params {
    double min; /* default -infinity */
    double max; /* default infinity */
} kn_clamp_params;
#define KN_CLAMP_DEFAULTS .min = -(double)INFINITY, .max = (double)INFINITY
KN_API kn_clamp_params kn_clamp_params_init(void);
KN_API kn_tensor *kn_clamp_with(kn_tensor *x, const kn_clamp_params *params);
#define kn_clamp(x, ...) KN_CALL(kn_clamp_with(x, &(kn_clamp_params){KN_CLAMP_DEFAULTS, __VA_ARGS__}))

/* Comparisons: bool results, not differentiable. */
KN_API kn_tensor *kn_eq(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ne(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_lt(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_le(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_gt(kn_tensor *a, kn_tensor *b);
KN_API kn_tensor *kn_ge(kn_tensor *a, kn_tensor *b);

/* a where the condition, a bool tensor, holds, else b; all three broadcast. */
KN_API kn_tensor *kn_where(kn_tensor *condition, kn_tensor *a, kn_tensor *b);

/* --- reductions ------------------------------------------------------------------------------- *
 * Over all elements, or over the dimensions `dims` (num_dims of them; negative ones count from the end), which stay as
 * size 1 if keepdim. Sums accumulate block-wise: the error grows with the logarithm of the length, and the sum of 10^8
 * ones is exact. sum of whole numbers and bools is int64; mean takes floating dtypes. The order is fixed: equal inputs
 * give equal bits. */

KN_API kn_tensor *kn_sum(kn_tensor *x);
KN_API kn_tensor *kn_mean(kn_tensor *x); /* of nothing: NaN */
KN_API kn_tensor *kn_max(kn_tensor *x);  /* NaN propagates; the gradient is shared evenly by equal maxima */
KN_API kn_tensor *kn_min(kn_tensor *x);  /* likewise */
KN_API kn_tensor *kn_sum_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
KN_API kn_tensor *kn_mean_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* The maxima or minima along `dim` and, if `indices` is not NULL, where they are (int64, the first among equals, owned
 * as a result). NaN propagates. */
KN_API kn_tensor *kn_max_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices);
KN_API kn_tensor *kn_min_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices);
/* int64, the first among equals; not differentiable */
KN_API kn_tensor *kn_argmax(kn_tensor *x, int dim, bool keepdim);
KN_API kn_tensor *kn_argmin(kn_tensor *x, int dim, bool keepdim);
/* Over several dimensions, without places: the gradient is shared evenly by equal extremes. */
KN_API kn_tensor *kn_amax(kn_tensor *x, const int *dims, int num_dims, bool keepdim);
KN_API kn_tensor *kn_amin(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* Products: of whole numbers and bools int64, which wraps around; of nothing 1. */
KN_API kn_tensor *kn_prod(kn_tensor *x);
KN_API kn_tensor *kn_prod_dim(kn_tensor *x, int dim, bool keepdim);

/* The following take floating dtypes. log sum exp(x) without overflow; of nothing -infinity */
KN_API kn_tensor *kn_logsumexp(kn_tensor *x, const int *dims, int num_dims, bool keepdim);

/* Variance and standard deviation: squared deviations divided by n - correction, or by 0 where that is negative;
 * without `correction` it is 1. */
KN_API kn_tensor *kn_var(kn_tensor *x);
KN_API kn_tensor *kn_std(kn_tensor *x);
KN_API kn_tensor *kn_var_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim);
KN_API kn_tensor *kn_std_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim);

/* (sum |x|^p)^(1/p), as torch.linalg.vector_norm: p = 0 counts what is not zero, p = infinity is the largest |x|,
 * -infinity the smallest. NaN for p is KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_norm(kn_tensor *x, double p);
KN_API kn_tensor *kn_norm_dims(kn_tensor *x, double p, const int *dims, int num_dims, bool keepdim);

/* Running sums along `dim`: element k is the sum of elements 0 to k; of whole numbers and bools int64. */
KN_API kn_tensor *kn_cumsum(kn_tensor *x, int dim);

/* --- matrix products -------------------------------------------------------------------------- */

/* torch.matmul: vectors, matrices, and batches of matrices whose batch dimensions broadcast. Floating dtypes, both the
 * same. */
KN_API kn_tensor *kn_matmul(kn_tensor *a, kn_tensor *b);

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
