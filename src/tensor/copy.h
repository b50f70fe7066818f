/* tensor/copy.h - the parts of kn_tensor_copy. Source and destination have one shape, at least one element, and do not
 * share a storage. */
#ifndef KN_TENSOR_COPY_H
#define KN_TENSOR_COPY_H

#include "tensor/tensor.h"

/* Two strided layouts of one shape. As `layout` in cl/tensor/copy.cl. */
typedef struct kn_copy_layout {
    int64_t shape[KN_MAX_DIMS];
    int64_t source[KN_MAX_DIMS];
    int64_t destination[KN_MAX_DIMS];
    int32_t ndim, unused;
} kn_copy_layout;

/* The dimension that is dense in the source where the last one is dense in the destination and tiles of both suit the
 * device, or -1; and the copy along these two, of elements that are not converted. */
int kn_copy_transposed_dim(const kn_limits *limits, const kn_copy_layout *layout, size_t element_size);
kn_status kn_copy_transposed(kn_stream *stream, const kn_copy_layout *layout, int dim, kn_tensor *destination,
                             const kn_tensor *source);

kn_status kn_copy_on_device(kn_tensor *destination, const kn_tensor *source);
kn_status kn_copy_on_host(kn_tensor *destination, const kn_tensor *source);

/* Host to device, device to host, device to device (by way of the host). */
kn_status kn_copy_across(kn_tensor *destination, const kn_tensor *source, bool non_blocking);

/* A contiguous tensor of `tensor`'s values in `dtype` on its own device: itself where it is so already. */
kn_status kn_tensor_packed(kn_tensor **result, const kn_tensor *tensor, kn_dtype dtype);

#endif
