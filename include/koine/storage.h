/* koine/storage.h - the memory of tensors, for bindings and importers that view the same memory in several ways.
 *
 * A storage is a reference-counted block of memory of one device or of the host; a tensor is a dtype, a shape, strides
 * and an offset on a storage. Views share their storage. Most programs only need kn_narrow, kn_transpose and so on, and
 * kn_as_strided for other views.
 *
 * Reference counts, addresses and properties are thread-safe. */
#ifndef KOINE_STORAGE_H
#define KOINE_STORAGE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_storage kn_storage;

/* --- references --------------------------------------------------------------------------------------------------- *
 * Functions that return a storage give the caller a reference; NULL with a sticky error on failure. */

/* Uninitialised memory of `bytes` bytes, 0 allowed; `device` NULL: the calling thread's current device. */
KN_API kn_storage *kn_storage_new(size_t bytes, kn_device *device);
KN_API kn_storage *kn_storage_of(const kn_tensor *tensor);
KN_API kn_storage *kn_storage_retain(kn_storage *storage); /* one more reference; returns its argument, NULL allowed */
KN_API void kn_storage_release(kn_storage *storage);       /* drops one; NULL allowed */

/* --- properties; 0 or NULL for NULL ------------------------------------------------------------------------------- */

KN_API size_t kn_storage_bytes(const kn_storage *storage);
KN_API kn_device *kn_storage_device(const kn_storage *storage);
KN_API int64_t kn_storage_offset(const kn_tensor *tensor); /* the tensor's first element, in elements */

/* The number of in-place changes to the storage's contents (torch.Tensor._version). */
KN_API unsigned kn_storage_version(const kn_storage *storage);

/* Resets that number after changes that do not matter to a backward pass, because the values it needs have been
 * restored: torch.autograd._unsafe_preserve_version_counter. If they have not, gradients are wrong. */
KN_API kn_status kn_storage_set_version(kn_storage *storage, unsigned version);

/* --- tensors on a storage ----------------------------------------------------------------------------------------- */

/* A tensor on the storage; strides and offset are in elements of `dtype`, and `strides` NULL means contiguous. It is a
 * leaf that does not require a gradient. Negative values, and elements beyond the storage's end, are
 * KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_tensor_from_storage(kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                                         const int64_t *strides, int64_t offset);

/* torch.as_strided: a view of x's storage and dtype, whose element (i, j, ...) is `offset` + i strides[0] + j
 * strides[1] + ... elements after the storage's start (kn_storage_offset(x) is x's own offset). Elements may share
 * memory; the gradient of an element of x is then the sum over the elements that share its memory. Differentiable any
 * number of times, unless elements of x itself share memory. Elements outside the storage are KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_as_strided(kn_tensor *x, int ndim, const int64_t *shape, const int64_t *strides, int64_t offset);

/* torch.Tensor.view(dtype): the same bytes as elements of another dtype. If the element sizes differ, the last
 * dimension must be contiguous, and its size changes by their ratio; if the new elements are larger, the ratio must
 * divide that size, the other strides and the offset. Not differentiable. */
KN_API kn_tensor *kn_view_dtype(kn_tensor *x, kn_dtype dtype);

/* --- addresses ----------------------------------------------------------------------------------------------------- *
 * Each storage has an address that can be used like a CUDA pointer: address + byte offset identifies a byte, live
 * storages do not overlap, and the storage can be found from any address in it. On the host it is the address of the
 * memory; on a device it is only a number, outside the memory of the process, and cannot be dereferenced. It stays the
 * same until the storage is resized or freed; a later storage may reuse it. */

KN_API uint64_t kn_storage_address(kn_storage *storage);    /* 0 for NULL */
KN_API uint64_t kn_tensor_address(const kn_tensor *tensor); /* of its first element; 0 for NULL */

/* The live storage that contains the address, and the address's offset in it (`byte_offset` may be NULL). Finds only
 * storages for which kn_storage_address or kn_tensor_address was called. NULL, without an error, if there is none. */
KN_API kn_storage *kn_storage_at_address(uint64_t address, size_t *byte_offset);

/* --- resizing ----------------------------------------------------------------------------------------------------- */

/* torch.UntypedStorage.resize_: replaces the storage's memory by `bytes` bytes and copies as much of the contents as
 * fits; the rest is uninitialised. Tensors on the storage use the new memory. The version does not change. No other
 * thread may use the storage meanwhile. Graphs captured with the old memory fail at their next replay.
 *
 * While tensors use a storage on a device, it may be resized to 0 bytes, which frees its memory, and back, to at least
 * the former size: in between, using the tensors' elements is KN_ERR_STATE, and addresses are 0. Otherwise, shrinking
 * is KN_ERR_STATE while a tensor uses the storage; resizing pinned memory, or that of flattened parts, always is. */
KN_API kn_status kn_storage_resize(kn_storage *storage, size_t bytes);

KN_END_DECLS

#endif
