/* ops/dispatch/promote.h - dtypes of expressions, as PyTorch promotes them. */
#ifndef KN_OPS_DISPATCH_PROMOTE_H
#define KN_OPS_DISPATCH_PROMOTE_H

#include "autograd/op.h"
#include "base/dtype.h"

/* The dtype of an expression of two tensors. A 0-dimensional tensor does not widen one with dimensions within its
 * category (bool < whole < floating). */
kn_dtype kn_result_type(const kn_tensor *a, const kn_tensor *b);

/* The same of `count` tensors, at least one. */
kn_dtype kn_result_type_of(kn_tensor *const *tensors, int count);

/* The dtype of an expression of a tensor and a number: a floating dtype stays; a whole one stays with a whole number;
 * bool becomes int64; a real number makes whole dtypes float32. */
kn_dtype kn_result_type_scalar(kn_dtype dtype, kn_scalar number);

/* What a function of real numbers computes in: whole dtypes as float32. */
kn_dtype kn_real_type(kn_dtype dtype);

/* Whether `tensor` is there; else the error of a NULL argument, sticky: for functions that look at an argument before
 * kn_op_apply does. */
bool kn_check_argument(const char *function, const char *name, const kn_tensor *tensor);

#endif
