/* ops/loss/cross_entropy.c - log-softmax and negative log-likelihood in one: of class indices by a fused op, of class
 * probabilities by ops that there are. */
#include <koine/functional.h>
#include <koine/ops.h>

#include "base/text.h"
#include "ops/dispatch/promote.h"
#include "ops/loss/class_loss.h"

const kn_op kn_cross_entropy_op = {.name = "cross_entropy",
                                   .inputs = {"logits", "target", "?weight"},
                                   .record_size = sizeof(kn_class_loss_params),
                                   .shape = kn_class_loss_shape,
                                   .forward = kn_class_loss_forward,
                                   .backward = kn_class_loss_backward,
                                   .reference = kn_class_loss_reference,
                                   .work = kn_class_loss_work,
                                   .backward_work = kn_class_loss_backward_work};

/* - sum_c w[c] q[c] log p[c] with q = (1 - e) target + e / C; the mean is over the positions. */
static kn_tensor *of_probabilities(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    const int dim = input->ndim == 1 ? 0 : 1;
    const double classes = (double)input->shape[dim];
    const int64_t positions = kn_numel(input) / (input->shape[dim] ? input->shape[dim] : 1);
    kn_tensor *terms = kn_log_softmax(input, dim), *loss;

    if (params->label_smoothing != 0)
        target = kn_add_scalar(kn_mul_scalar(target, 1 - params->label_smoothing), params->label_smoothing / classes);
    terms = kn_mul(terms, target);
    if (params->weight) {
        int64_t shape[KN_MAX_DIMS];
        for (int d = 0; d < input->ndim; d++)
            shape[d] = d == dim ? input->shape[dim] : 1;
        terms = kn_mul(terms, kn_reshape(params->weight, input->ndim, shape));
    }
    if (params->reduction == KN_REDUCTION_NONE)
        return kn_neg(kn_sum_dims(terms, &dim, 1, false));
    loss = kn_neg(kn_sum(terms));
    return params->reduction == KN_REDUCTION_SUM ? loss : kn_mul_scalar(loss, 1.0 / (double)positions);
}

static kn_tensor *with_probabilities(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    int depth;

    if (!kn_same_shape(input, target) || input->dtype != target->dtype)
        return kn_fail_null(
            KN_ERR_SHAPE, "cross_entropy: class probabilities %s do not fit input %s: shape and dtype must be the same",
            kn_tensor_describe(b, sizeof b, target), kn_tensor_describe(a, sizeof a, input));
    if (input->ndim == 0)
        return kn_fail_null(KN_ERR_SHAPE, "cross_entropy: the input has no dimension of classes");
    depth = kn_scope_begin();
    return depth == 0 ? kn_stick() : kn_scope_return(depth, of_probabilities(input, target, params));
}

kn_cross_entropy_params kn_cross_entropy_params_init(void)
{
    return (kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
}

kn_tensor *kn_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    kn_class_loss_params own;

    params = params ? params : &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
    if (!kn_class_loss_check("cross_entropy", input, target, params))
        return NULL;
    if (kn_dtype_is_floating(target->dtype))
        return with_probabilities(input, target, params);
    if (target->dtype == KN_BOOL)
        return kn_fail_null(
            KN_ERR_DTYPE, "cross_entropy: targets are class indices (int64, int32, uint8) or probabilities, not bool");
    own = (kn_class_loss_params){.ignore_index = params->ignore_index,
                                 .label_smoothing = params->label_smoothing,
                                 .reduction = params->reduction,
                                 .logits = true};
    return kn_class_loss_apply(&kn_cross_entropy_op, &own, input, target, params->weight);
}
