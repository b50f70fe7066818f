/* ops/loss/nll.c - negative log-likelihood of log-probabilities. */
#include <koine/loss.h>

#include "ops/loss/class_loss.h"

static kn_status nll_enter(kn_entry *entry)
{
    const kn_dtype dtype = entry->inputs[1]->dtype;
    kn_class_loss_enter(entry, false);
    if (kn_dtype_is_floating(dtype) || dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "targets must be class indices (int64, int32, uint8), not %s",
                       kn_dtype_name(dtype));
    return KN_OK;
}

const kn_op kn_nll_loss_op = {KN_CLASS_LOSS("nll_loss", nll_enter),
                              .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES | 1u << KN_U8}};

kn_tensor *kn_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    return kn_class_loss(&kn_nll_loss_op, input, target, params);
}
