/* tensor/copy.h - the parts of kn_tensor_copy. Source and destination have the same shape, at least one element, and
 * different storages. */
#pragma once

#include "tensor/tensor.h"

/* Two strided layouts of one shape. */
typedef struct kn_copy_layout {
    int64_t shape[KN_MAX_DIMS];
    int64_t source[KN_MAX_DIMS];
    int64_t destination[KN_MAX_DIMS];
    int32_t ndim, unused;
} kn_copy_layout;

/* If the destination is dense in its last dimension and the source in another one, and the device has a tiled kernel
 * for it, that other dimension; else -1. kn_copy_transposed then copies along these two, without converting the
 * elements. */
int kn_copy_transposed_dim(const kn_limits *limits, const kn_copy_layout *layout, size_t element_size);
kn_status kn_copy_transposed(kn_stream *stream, const kn_copy_layout *layout, int dim, kn_tensor *destination,
                             const kn_tensor *source);

/* OpenCL's unsigned type that is as wide as the dtype: for kernels that only move elements. */
const char *kn_tensor_bits_type(kn_dtype dtype);

kn_status kn_copy_on_device(kn_tensor *destination, const kn_tensor *source);
kn_status kn_copy_on_host(kn_tensor *destination, const kn_tensor *source);

/* Host to device, device to host, device to device (through the host). */
kn_status kn_copy_across(kn_tensor *destination, const kn_tensor *source, bool non_blocking);

/* A contiguous tensor of `tensor`'s values in `dtype` on its device: itself if it already is one. */
kn_status kn_tensor_packed(kn_tensor **result, const kn_tensor *tensor, kn_dtype dtype);
