/* ops/loss/nll.c - negative log-likelihood of log-probabilities. */
#include <koine/functional.h>

#include "ops/loss/class_loss.h"

static kn_status nll_enter(kn_entry *entry)
{
    const kn_dtype dtype = entry->inputs[1]->dtype;
    kn_class_loss_enter(entry, false);
    if (kn_dtype_is_floating(dtype) || dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "targets are class indices (int64, int32, uint8), not %s", kn_dtype_name(dtype));
    return KN_OK;
}

static const kn_op_param rows[] = {KN_PARAM(kn_class_loss_args, ignore_index),
                                   KN_PARAM(kn_class_loss_args, label_smoothing, .min = 0, .max = 1),
                                   KN_PARAM(kn_class_loss_args, reduction, .values = kn_reduction_names)};
const kn_op kn_nll_loss_op = {.name = "nll_loss",
                              .inputs = {"input", "target", "?weight"},
                              .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES | 1u << KN_U8},
                              .params = KN_PARAMS(kn_class_loss_args, rows, KN_CROSS_ENTROPY_DEFAULTS),
                              .widens_halves = true,
                              .enter = nll_enter,
                              .record_size = sizeof(kn_class_loss_params),
                              .shape = kn_class_loss_shape,
                              .forward = kn_class_loss_forward,
                              .backward = kn_class_loss_backward,
                              .reference = kn_class_loss_reference,
                              .work = kn_class_loss_work,
                              .backward_work = kn_class_loss_backward_work};

kn_tensor *kn_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    params = params ? params : &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
    const kn_class_loss_args args = {params->ignore_index, params->label_smoothing, params->reduction};
    return kn_invoke(&kn_nll_loss_op, &args, input, target, params->weight);
}
