/* tensor/copy.h - the parts of kn_tensor_copy. Source and destination have one shape, at least one element, and do not
 * share a storage. */
#ifndef KN_TENSOR_COPY_H
#define KN_TENSOR_COPY_H

#include "tensor/tensor.h"

kn_status kn_copy_on_device(kn_tensor *destination, const kn_tensor *source);
kn_status kn_copy_on_host(kn_tensor *destination, const kn_tensor *source);

/* Host to device, device to host, device to device (by way of the host). */
kn_status kn_copy_across(kn_tensor *destination, const kn_tensor *source, bool non_blocking);

/* A contiguous tensor of `tensor`'s values in `dtype` on its own device: itself where it is so already. */
kn_status kn_tensor_packed(kn_tensor **result, const kn_tensor *tensor, kn_dtype dtype);

#endif
