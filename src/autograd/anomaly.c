/* autograd/anomaly.c - see anomaly.h. */
#include "autograd/anomaly.h"

#include "base/dtype.h"
#include "tensor/tensor.h"

static kn_nan_search search;

void kn_anomaly_set_search(kn_nan_search search_) { search = search_; }

/* Nothing is computed on the host, where only the gradients of copies are. */
static bool may_have_nan(const kn_tensor *gradient)
{
    return gradient && kn_dtype_is_floating(gradient->dtype) && !kn_device_is_host(gradient->storage->device) &&
           kn_numel(gradient) > 0;
}

kn_status kn_anomaly_check(const kn_node *node, kn_tensor *const *gradients)
{
    for (int i = 0; i < node->num_inputs; i++) {
        char text[KN_DESCRIBE];
        bool has_nan;
        if (!may_have_nan(gradients[i]))
            continue;
        KN_TRY(search(&has_nan, gradients[i]));
        if (has_nan)
            return kn_fail(KN_ERR_NUMERIC,
                           "NaN in the gradient of its input %d (%s): where it has no derivative, as sqrt at 0, or "
                           "numbers are too large for the dtype",
                           i, kn_tensor_describe(text, sizeof text, gradients[i]));
    }
    return KN_OK;
}
