/* ops/dispatch/autocast.h - conversions of an operator's inputs in a region of koine/amp.h. */
#pragma once

#include "autograd/op.h"

/* The dtype that the thread's region converts the operator's floating inputs to; KN_DTYPE_DEFAULT: none. */
kn_dtype kn_autocast_type(const kn_op *op, kn_tensor *const *inputs, int num_inputs);

/* Replaces those inputs that have another dtype. The new tensors belong to the scope. */
kn_status kn_autocast_inputs(kn_tensor **inputs, int num_inputs, kn_dtype dtype);
