/* ops/dispatch/promote.h - dtypes of expressions, as PyTorch promotes them, and f16 as the storage type it is. */
#ifndef KN_OPS_DISPATCH_PROMOTE_H
#define KN_OPS_DISPATCH_PROMOTE_H

#include "autograd/op.h"

/* The dtype of an expression of two tensors. A 0-dimensional tensor does not widen one with dimensions within its
 * category (bool < whole < floating). */
kn_dtype kn_result_type(const kn_tensor *a, const kn_tensor *b);

/* The same of `count` tensors, at least one. */
kn_dtype kn_result_type_of(kn_tensor *const *tensors, int count);

/* The dtype of an expression of a tensor and a number: a floating dtype stays; a whole one stays with a whole number;
 * bool becomes int64; a real number makes whole dtypes float32. */
kn_dtype kn_result_type_scalar(kn_dtype dtype, kn_scalar number);

/* The dtype that kernels compute `dtype` in: f32 for f16, else itself. */
kn_dtype kn_compute_type(kn_dtype dtype);

/* What a function of real numbers computes in: whole dtypes as float32. */
kn_dtype kn_real_type(kn_dtype dtype);

/* The usual body of a public function: converts the inputs to `compute`, applies the op, converts output 0 to `result`.
 * Gradients flow through all of it. NULL inputs stay NULL. Conversions that change nothing cost nothing. */
kn_tensor *kn_apply_as(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params, kn_dtype compute,
                       kn_dtype result);

/* An operand of an expression of dtype `joint` (kn_result_type), in the dtype that it is computed in. What float16
 * cannot hold is rounded before the operation, as in PyTorch, though that is done in float32. */
kn_tensor *kn_operand_as(kn_tensor *operand, kn_dtype joint);

/* kn_apply_as for operands of such an expression. */
kn_tensor *kn_apply_jointly(const kn_op *op, kn_tensor *const *operands, int num_operands, const void *params,
                            kn_dtype joint, kn_dtype result);

/* Whether `tensor` is there; else the error of a NULL argument, sticky: for functions that look at an argument before
 * kn_op_apply does. */
bool kn_argument_given(const char *function, const char *name, const kn_tensor *tensor);

#endif
