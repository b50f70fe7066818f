/* ops/reduce/taken.h - the gradient of operators along a dimension whose results are elements of their input, given
 * back with int64 indices: maxima, cumulative ones, sorted elements. */
#pragma once

#include "ops/dispatch/backward.h"

/* The gradient of outputs whose elements were taken from input 0 along a dimension, at int64 `indices` of the
 * gradient's shape: all different in each row, so that each gradient goes to one place, the other places are 0. */
kn_status kn_taken_backward(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim);
