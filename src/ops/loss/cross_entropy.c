/* ops/loss/cross_entropy.c - log-softmax and negative log-likelihood combined: a fused op for class indices, a
 * composition of other ops for class probabilities. */
#include <koine/loss.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "ops/loss/class_loss.h"

/* - sum_c w[c] q[c] log p[c] with q = (1 - e) target + e / C; the mean is over the positions. */
static kn_tensor *of_probabilities(kn_tensor *input, kn_tensor *target, kn_tensor *weight,
                                   const kn_class_loss_args *params)
{
    const int dim = input->ndim == 1 ? 0 : 1;
    const double classes = (double)input->shape[dim];
    const int64_t positions = kn_numel(input) / (input->shape[dim] ? input->shape[dim] : 1);
    kn_tensor *terms = kn_log_softmax(input, dim), *loss;

    if (params->label_smoothing != 0)
        target = kn_add_scalar(kn_mul_scalar(target, 1 - params->label_smoothing), params->label_smoothing / classes);
    terms = kn_mul(terms, target);
    if (weight) {
        int64_t shape[KN_MAX_DIMS];
        for (int d = 0; d < input->ndim; d++)
            shape[d] = d == dim ? input->shape[dim] : 1;
        terms = kn_mul(terms, kn_reshape(weight, input->ndim, shape));
    }
    if (params->reduction == KN_REDUCTION_NONE)
        return kn_neg(kn_sum_dims(terms, &dim, 1, false));
    loss = kn_neg(kn_sum(terms));
    if (params->reduction == KN_REDUCTION_SUM)
        return loss;
    /* The mean of nothing is NaN, and as in PyTorch no gradient is. */
    return positions > 0 ? kn_mul_scalar(loss, 1.0 / (double)positions) : kn_add_scalar(loss, NAN);
}

static kn_status with_probabilities(kn_entry *entry)
{
    kn_tensor *input = entry->inputs[0], *target = entry->inputs[1];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (!kn_same_shape(input, target) || input->dtype != target->dtype)
        return kn_fail(KN_ERR_SHAPE, "class probabilities %s do not fit input %s: shape and dtype must be the same",
                       kn_tensor_describe(b, sizeof b, target), kn_tensor_describe(a, sizeof a, input));
    if (input->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "the input has no class dimension");
    entry->result = of_probabilities(input, target, entry->inputs[2], entry->params);
    return entry->result ? KN_OK : kn_error_status();
}

static kn_status cross_entropy_enter(kn_entry *entry)
{
    const kn_dtype dtype = entry->inputs[1]->dtype;
    if (kn_dtype_is_floating(dtype))
        return with_probabilities(entry);
    if (dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "targets must be class indices (int64, int32, uint8) or probabilities, not bool");
    kn_class_loss_enter(entry, true);
    return KN_OK;
}

const kn_op kn_cross_entropy_op = {KN_CLASS_LOSS("cross_entropy", cross_entropy_enter),
                                   .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_NUMBERS}, .composes = true};

const kn_op kn_cross_entropy_backward_op = KN_CLASS_LOSS_BACKWARD(cross_entropy);

kn_cross_entropy_params kn_cross_entropy_params_init(void)
{
    return (kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
}

kn_tensor *kn_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    return kn_class_loss(&kn_cross_entropy_op, input, target, params);
}
