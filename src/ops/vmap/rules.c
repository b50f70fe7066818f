/* ops/vmap/rules.c - which operator has which rule. Operators marked as elementwise are pointwise unless the list says
 * otherwise; what has no rule is called for each sample. */
#include "ops/vmap/rules.h"

#include "ops/dispatch/operators.h"

/* clang-format off */
/* X(operator, rule), sorted by operator. */
#define KN_VMAP_RULES(X) \
    X(adaptive_avg_pool1d, images) \
    X(adaptive_avg_pool2d, images) \
    X(adaptive_avg_pool3d, images) \
    X(adaptive_max_pool1d, images) \
    X(adaptive_max_pool1d_with_indices, images) \
    X(adaptive_max_pool2d, images) \
    X(adaptive_max_pool2d_with_indices, images) \
    X(adaptive_max_pool3d, images) \
    X(adaptive_max_pool3d_with_indices, images) \
    X(addmm, add_product) \
    X(addmv, add_product) \
    X(addr, add_product) \
    X(all, reduced) \
    X(alpha_dropout, leading) \
    X(amax, reduced) \
    X(amin, reduced) \
    X(any, reduced) \
    X(argmax, along) \
    X(argmin, along) \
    X(argsort, along) \
    X(as_strided, as_strided) \
    X(avg_pool1d, images) \
    X(avg_pool2d, images) \
    X(avg_pool3d, images) \
    X(baddbmm, add_product) \
    X(batch_norm, batch_norm) \
    X(binary_cross_entropy, element_loss) \
    X(binary_cross_entropy_with_logits, element_loss) \
    X(bmm, matmul) \
    X(cat, along) \
    X(cdist, leading) \
    X(cholesky_inverse, leading) \
    X(clone, leading) \
    X(contiguous, leading) \
    X(conv1d, conv) \
    X(conv2d, conv) \
    X(conv3d, conv) \
    X(conv_transpose1d, conv) \
    X(conv_transpose2d, conv) \
    X(conv_transpose3d, conv) \
    X(cosine_similarity, along) \
    X(count_nonzero, reduced) \
    X(cross_entropy, class_loss) \
    X(cummax, along) \
    X(cummin, along) \
    X(cumprod, along) \
    X(cumsum, along) \
    X(diagonal, along) \
    X(dot, matmul) \
    X(dropout, leading) \
    X(dropout1d, images) \
    X(dropout2d, images) \
    X(dropout3d, images) \
    X(embedding, embedding) \
    X(expand, expand_rule) \
    X(fill_, pointwise) \
    X(flatten, along) \
    X(flip, along) \
    X(fold, images) \
    X(gather, along) \
    X(ger, outer) \
    X(glu, along) \
    X(grid_sample, images) \
    X(group_norm, group_norm) \
    X(gumbel_softmax, along) \
    X(hinge_embedding_loss, element_loss) \
    X(huber_loss, element_loss) \
    X(index, index) \
    X(index_add, indexed) \
    X(index_add_, indexed) \
    X(index_copy, indexed) \
    X(index_copy_, indexed) \
    X(index_fill, indexed) \
    X(index_fill_, indexed) \
    X(index_reduce, indexed) \
    X(index_select, indexed) \
    X(interpolate, images) \
    X(kl_div, element_loss) \
    X(kthvalue, along) \
    X(l1_loss, element_loss) \
    X(layer_norm, row_norm) \
    X(linalg_cholesky, leading) \
    X(linalg_cholesky_ex, leading) \
    X(linalg_det, leading) \
    X(linalg_eigh, leading) \
    X(linalg_householder_product, leading) \
    X(linalg_lu_factor, leading) \
    X(linalg_lu_factor_ex, leading) \
    X(linalg_matrix_exp, leading) \
    X(linalg_qr, leading) \
    X(linalg_slogdet, leading) \
    X(linalg_solve, leading) \
    X(linalg_solve_ex, leading) \
    X(linalg_solve_triangular, leading) \
    X(linalg_svd, leading) \
    X(linear, linear) \
    X(local_response_norm, images) \
    X(log_softmax, along) \
    X(logcumsumexp, along) \
    X(logsumexp, reduced) \
    X(masked_fill, pointwise) \
    X(masked_fill_, pointwise) \
    X(matmul, matmul) \
    X(max, whole_extreme) \
    X(max_dim, along) \
    X(max_pool1d, images) \
    X(max_pool1d_with_indices, images) \
    X(max_pool2d, images) \
    X(max_pool2d_with_indices, images) \
    X(max_pool3d, images) \
    X(max_pool3d_with_indices, images) \
    X(max_unpool1d, images) \
    X(max_unpool2d, images) \
    X(max_unpool3d, images) \
    X(mean, reduced) \
    X(median_dim, along) \
    X(min, whole_extreme) \
    X(min_dim, along) \
    X(mm, matmul) \
    X(mode, along) \
    X(mse_loss, element_loss) \
    X(mv, matmul) \
    X(nanmean, reduced) \
    X(nanmedian_dim, along) \
    X(nansum, reduced) \
    X(narrow, along) \
    X(nll_loss, class_loss) \
    X(norm, reduced) \
    X(normalize, along) \
    X(outer, outer) \
    X(pad, leading) \
    X(permute, permute) \
    X(poisson_nll_loss, element_loss) \
    X(prelu, prelu) \
    X(prod, reduced) \
    X(reshape, reshape) \
    X(rms_norm, row_norm) \
    X(roll, roll) \
    X(rrelu, leading) \
    X(scaled_dot_product_attention, pointwise) \
    X(scatter, along) \
    X(scatter_, along) \
    X(scatter_add, along) \
    X(scatter_add_, along) \
    X(scatter_reduce, along) \
    X(select, along) \
    X(select_scatter, along) \
    X(slice, along) \
    X(slice_scatter, along) \
    X(smooth_l1_loss, element_loss) \
    X(soft_margin_loss, element_loss) \
    X(softmax, along) \
    X(softmin, along) \
    X(sort, along) \
    X(squeeze, along) \
    X(stack, along) \
    X(std, reduced) \
    X(sum, reduced) \
    X(t, t) \
    X(tensor_unfold, along) \
    X(to_dtype, leading) \
    X(topk, along) \
    X(transpose, along) \
    X(tril, leading) \
    X(triu, leading) \
    X(unfold, images) \
    X(unsqueeze, along) \
    X(var, reduced) \
    X(vdot, matmul)
/* clang-format on */

#define RULE_ROW(id, rule) {&kn_##id##_op, kn_vmap_##rule},
static const struct {
    const kn_op *op;
    kn_vmap_rule rule;
} rules[] = {KN_VMAP_RULES(RULE_ROW)};

kn_vmap_rule kn_vmap_rule_of(const kn_op *op)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == op)
            return rules[i].rule;
    return op->elementwise ? kn_vmap_pointwise : NULL;
}
