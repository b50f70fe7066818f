/* ops/dispatch/operators.h - the list of operators by name: every op applied with kn_op_apply. An op that is not listed
 * cannot be called by name (koine/operators.h) and has no tests. */
#pragma once

#include "autograd/op.h"

/* clang-format off */
/* Sorted by name. */
#define KN_OPERATORS(X) \
    X(abs) X(acos) X(acosh) X(adaptive_avg_pool1d) X(adaptive_avg_pool1d_backward) X(adaptive_avg_pool2d) \
    X(adaptive_avg_pool2d_backward) X(adaptive_avg_pool3d) X(adaptive_avg_pool3d_backward) X(adaptive_max_pool1d) \
    X(adaptive_max_pool1d_with_indices) X(adaptive_max_pool1d_with_indices_backward) X(adaptive_max_pool2d) \
    X(adaptive_max_pool2d_with_indices) X(adaptive_max_pool2d_with_indices_backward) X(adaptive_max_pool3d) \
    X(adaptive_max_pool3d_with_indices) X(adaptive_max_pool3d_with_indices_backward) X(add) X(add_) X(add_activated) \
    X(add_scalar) X(amax) X(amax_backward) X(amin) X(amin_backward) X(argmax) X(argmin) X(as_strided) \
    X(as_strided_backward) X(asin) X(asinh) X(atan) X(atanh) X(avg_pool1d) X(avg_pool1d_backward) X(avg_pool2d) \
    X(avg_pool2d_backward) X(avg_pool3d) X(avg_pool3d_backward) X(batch_norm) X(batch_norm_backward) \
    X(binary_cross_entropy_with_logits) X(binary_cross_entropy_with_logits_backward) X(cat) X(clamp) X(clone) \
    X(contiguous) X(conv1d) X(conv1d_backward) X(conv2d) X(conv2d_backward) X(conv3d) X(conv3d_backward) \
    X(conv_transpose1d) X(conv_transpose1d_backward) X(conv_transpose2d) X(conv_transpose2d_backward) \
    X(conv_transpose3d) X(conv_transpose3d_backward) X(cos) X(cosh) X(cross_entropy) X(cross_entropy_backward) \
    X(cumsum) X(cumsum_backward) X(div) X(dropout) X(dropout2d) X(eq) X(erf) X(erfc) X(exp) X(exp2) X(expand) X(expm1) \
    X(fill_) X(flatten) X(ge) X(gt) X(hardsigmoid) X(hardswish) X(hardtanh) X(hardtanh_backward) X(index_select) \
    X(index_select_backward) X(layer_norm) X(layer_norm_backward) X(le) X(linear) X(linear_backward) X(log) X(log10) \
    X(log1p) X(log2) X(log_softmax) X(log_softmax_backward) X(logsigmoid) X(logsumexp) X(logsumexp_backward) X(lt) \
    X(matmul) X(max) X(max_backward) X(max_dim) X(max_dim_backward) X(max_pool1d) X(max_pool1d_with_indices) \
    X(max_pool1d_with_indices_backward) X(max_pool2d) X(max_pool2d_with_indices) X(max_pool2d_with_indices_backward) \
    X(max_pool3d) X(max_pool3d_with_indices) X(max_pool3d_with_indices_backward) X(maximum) X(mean) X(min) \
    X(min_backward) X(min_dim) X(min_dim_backward) X(mse_loss) X(mse_loss_backward) X(mul) X(mul_) X(mul_scalar) \
    X(mul_scalar_) X(narrow) X(narrow_backward) X(ne) X(neg) X(nll_loss) X(nll_loss_backward) X(norm) X(norm_backward) \
    X(permute) X(pow) X(pow_scalar) X(prod) X(prod_backward) X(reciprocal) X(relu) X(relu6) X(reshape) X(rsqrt) \
    X(select) X(sigmoid) X(sigmoid_backward) X(sign) X(silu) X(sin) X(sinh) X(softmax) X(softmax_backward) X(softsign) \
    X(sqrt) X(square) X(squeeze) X(stack) X(std) X(std_backward) X(sub) X(sub_) X(sum) X(t) X(tan) X(tanh) \
    X(tanh_backward) X(tanhshrink) X(threshold_backward) X(to_dtype) X(transpose) X(unsqueeze) X(var) X(var_backward) \
    X(view_dtype) X(where)
/* clang-format on */

#define KN_DECLARE_OPERATOR(name) extern const kn_op kn_##name##_op;
KN_OPERATORS(KN_DECLARE_OPERATOR)
#undef KN_DECLARE_OPERATOR
