/* ops/loss/nll.c - negative log-likelihood of log-probabilities. */
#include <koine/functional.h>

#include "ops/loss/class_loss.h"

const kn_op kn_nll_loss_op = {.name = "nll_loss",
                              .inputs = {"log_probabilities", "target", "?weight"},
                              .record_size = sizeof(kn_class_loss_params),
                              .shape = kn_class_loss_shape,
                              .forward = kn_class_loss_forward,
                              .backward = kn_class_loss_backward,
                              .reference = kn_class_loss_reference,
                              .work = kn_class_loss_work,
                              .backward_work = kn_class_loss_backward_work};

kn_tensor *kn_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    kn_class_loss_params own;

    params = params ? params : &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
    if (!kn_class_loss_check("nll_loss", input, target, params))
        return NULL;
    if (kn_dtype_is_floating(target->dtype) || target->dtype == KN_BOOL)
        return kn_fail_null(KN_ERR_DTYPE, "nll_loss: targets are class indices (int64, int32, uint8), not %s",
                            kn_dtype_name(target->dtype));
    own = (kn_class_loss_params){.ignore_index = params->ignore_index, .reduction = params->reduction};
    return kn_class_loss_apply(&kn_nll_loss_op, &own, input, target, params->weight);
}
