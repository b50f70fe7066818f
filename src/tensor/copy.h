/* tensor/copy.h - the parts of kn_tensor_copy. Source and destination have the same shape, at least one element, and
 * different storages. */
#pragma once

#include "tensor/tensor.h"

kn_status kn_copy_on_device(kn_tensor *destination, const kn_tensor *source);
kn_status kn_copy_on_host(kn_tensor *destination, const kn_tensor *source);

/* Host to device, device to host, device to device (through the host). */
kn_status kn_copy_across(kn_tensor *destination, const kn_tensor *source, bool non_blocking);

/* A contiguous tensor of `tensor`'s values in `dtype` on its device: itself if it already is one. */
kn_status kn_tensor_packed(kn_tensor **result, const kn_tensor *tensor, kn_dtype dtype);
