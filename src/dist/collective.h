/* dist/collective.h - shared by the collectives: argument checks, and packing of tensors into few buffers. References
 * are owned unless stated otherwise. */
#pragma once

#include <koine/autograd.h>
#include <koine/dist.h>

#include "autograd/tape.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/scope.h"

#define KN_COALESCED_BYTES ((size_t)10 << 20) /* PyTorch's default */

/* --- checks (check.c); `function` is for the messages ----------------------------------------------------------- */

bool kn_device_is_known(const kn_device *device); /* is it one of this process's devices? compares only the pointer */

/* At least one device; none NULL, unknown or the host; no duplicates unless `repeats`. */
kn_status kn_check_device_list(const char *function, kn_device *const *devices, int count, bool repeats);
/* `device`, or the current one for NULL; an error for the host unless `host` */
kn_status kn_check_destination(const char *function, kn_device **device, bool host);
/* At least one tensor, none NULL; none on the host. */
kn_status kn_check_tensor_list(const char *function, kn_tensor *const *tensors, int count);
/* All tensors have the first one's dtype and shape (except for dimension `dim`, unless that is negative). */
kn_status kn_check_alike(const char *function, kn_tensor *const *tensors, int count, int stride, int dim);
/* A dimension of the tensor; negative ones count from the end. */
kn_status kn_check_dim(const char *function, const kn_tensor *tensor, int *dim);

/* Is it an operation, and one for the dtype? */
kn_status kn_check_reduce_op(const char *function, kn_reduce_op op, kn_dtype dtype);

/* Is an operation on the tensor recorded? */
static inline bool kn_is_recorded(const kn_tensor *tensor) { return kn_grad_enabled() && kn_autograd_wants(tensor); }

/* --- lists of tensors ------------------------------------------------------------------------------------------- */

void kn_release_all(kn_tensor **tensors, int count); /* and sets the entries to NULL */

/* --- packing (coalesce.c) --------------------------------------------------------------------------------------- *
 * The position of each tensor of a list in a few flat buffers of one dtype each. */

typedef struct kn_coalesced_place {
    int buffer;
    int64_t start; /* elements */
} kn_coalesced_place;

typedef struct kn_coalesced_buffer {
    kn_dtype dtype;
    int64_t elements;
    int tensors; /* number of tensors in it */
} kn_coalesced_buffer;

typedef struct kn_packing {
    kn_coalesced_place *places; /* per tensor */
    kn_coalesced_buffer *buffers;
    int count, num_buffers;
} kn_packing;

/* `buffer_size` in bytes; 0: the default */
kn_status kn_packing_make(kn_packing *layout, kn_tensor *const *tensors, int count, size_t buffer_size);
void kn_packing_free(kn_packing *layout);

/* Buffer b with the values of its tensors, on `device`, where they are. It may be the memory of its only tensor, so do
 * not modify it. */
kn_status kn_packing_pack(const kn_packing *layout, int b, kn_tensor *const *tensors, kn_device *device,
                          kn_tensor **packed);
kn_status kn_packing_new_buffer(const kn_packing *layout, int b, kn_device *device, kn_tensor **buffer);
/* Views of `buffer` for the tensors in buffer b, in the shapes of `like`; parts[t] for each such tensor t. */
kn_status kn_packing_unpack(const kn_packing *layout, int b, kn_tensor *buffer, kn_tensor *const *like,
                            kn_tensor **parts);

/* --- the collectives on lists, without gradient, owned results ------------------------------------------------- */

/* copies[i * count + t]: tensor t on devices[i], none of which is the tensors' own device. */
kn_status kn_broadcast_list(kn_tensor *const *tensors, int count, kn_device *const *devices, int num_devices,
                            size_t buffer_size, kn_tensor **copies);

/* sums[t] = inputs[t] + inputs[count + t] + ... on `destination`; inputs[i * count + ...] share a device. */
kn_status kn_reduce_list(kn_tensor *const *inputs, int num_inputs, int count, kn_device *destination,
                         size_t buffer_size, kn_tensor **sums);

/* The recorded form of kn_broadcast_list, for tensors of which all or none require gradients. */
kn_status kn_broadcast_recorded(kn_tensor *const *tensors, int count, kn_device *const *devices, int num_devices,
                                size_t buffer_size, kn_tensor **copies);
