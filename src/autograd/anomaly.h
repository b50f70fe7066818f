/* autograd/anomaly.h - kn_set_detect_anomaly: does an operation's backward make NaN? */
#pragma once

#include "autograd/tape.h"
#include "base/flags.h"

static inline bool kn_anomaly_is_wanted(void) { return kn_flags() & KN_FLAG_DETECT_ANOMALY; }

/* What says whether a floating tensor on a device has NaN in it; it waits. The ops layer registers it when the library
 * is loaded. */
typedef kn_status (*kn_nan_search)(bool *has_nan, kn_tensor *tensor);
void kn_anomaly_set_search(kn_nan_search search);

/* KN_ERR_NUMERIC if one of the gradients of the node's inputs (NULL: none) has NaN in it. Waits for the device. In a
 * scope. */
kn_status kn_anomaly_check(const kn_node *node, kn_tensor *const *gradients);
