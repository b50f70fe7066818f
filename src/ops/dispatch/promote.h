/* ops/dispatch/promote.h - dtypes of expressions, with PyTorch's promotion rules. */
#pragma once

#include "autograd/op.h"
#include "base/dtype.h"

/* The dtype of an expression of two tensors. A 0-dimensional tensor does not widen one with dimensions within its
 * category (bool < whole < floating). */
kn_dtype kn_result_type(const kn_tensor *a, const kn_tensor *b);

/* The same of `count` tensors, at least one. */
kn_dtype kn_result_type_of(kn_tensor *const *tensors, int count);

/* The dtype of an expression of a tensor and a number. Floating dtypes stay; integer dtypes stay with an integer and
 * become float32 with a real number; bool with an integer becomes int64. */
kn_dtype kn_result_type_scalar(kn_dtype dtype, kn_scalar number);

/* The dtype that real functions compute in: float32 for integers. */
kn_dtype kn_real_type(kn_dtype dtype);

/* Is `tensor` non-NULL? If not, sets the sticky error of a NULL argument; for functions that read an argument before
 * kn_op_apply. */
bool kn_check_argument(const char *function, const char *name, const kn_tensor *tensor);
