/* koine/storage.h - the memory under tensors: for bindings and importers, which view one memory in several ways.
 *
 * A storage is a reference-counted piece of memory of one device, or of the host; a tensor is a dtype, a shape, strides
 * and an offset on one. Views share their storage. Programs need none of this: kn_narrow, kn_transpose and the like
 * make views, and kn_as_strided any other.
 *
 * Reference counts, addresses and all questions are thread-safe. */
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

/* How often what lies in the storage was changed in place (torch.Tensor._version). */
KN_API unsigned kn_storage_version(const kn_storage *storage);

/* Sets that count back after changes that a backward pass need not notice, because the values that it saved are in
 * place again: torch.autograd._unsafe_preserve_version_counter. If they are not, gradients are wrong. */
KN_API kn_status kn_storage_set_version(kn_storage *storage, unsigned version);

/* --- tensors on a storage ----------------------------------------------------------------------------------------- */

/* A tensor on the storage: strides and offset in elements of `dtype`, `strides` NULL: contiguous. It is a leaf that
 * requires no gradient. Negative numbers, and elements beyond the storage's end, are KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_tensor_from_storage(kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                                         const int64_t *strides, int64_t offset);

/* torch.as_strided: a view of x's storage, of x's dtype, whose element (i, j, ...) lies `offset` + i strides[0] + j
 * strides[1] + ... elements after the storage's start (kn_storage_offset(x): x's own). Elements may share memory; the
 * gradient of an element of x is then the sum over those that it appears in. Differentiable, gradients of gradients
 * included, unless elements of x itself share memory. What lies outside the storage is KN_ERR_ARGUMENT. */
KN_API kn_tensor *kn_as_strided(kn_tensor *x, int ndim, const int64_t *shape, const int64_t *strides, int64_t offset);

/* torch.Tensor.view(dtype): the same bytes as elements of another dtype. The last dimension, which must be contiguous,
 * becomes longer or shorter by the ratio of the sizes, which must divide it, the other strides and the offset. Not
 * differentiable. */
KN_API kn_tensor *kn_view_dtype(kn_tensor *x, kn_dtype dtype);

/* --- addresses ----------------------------------------------------------------------------------------------------- *
 * Each storage has an address, as pointers of CUDA are: address + byte offset names a byte, storages alive at a time
 * do not overlap, and the storage is found again from any address in it. On a device it is a number, where no memory of
 * the process lies; it cannot be read through. On the host it is the memory's own. It stays the same until the storage
 * is resized or released; a later storage may get it again. */

KN_API uint64_t kn_storage_address(kn_storage *storage);    /* 0 for NULL */
KN_API uint64_t kn_tensor_address(const kn_tensor *tensor); /* of its first element; 0 for NULL */

/* The living storage that the address lies in, and how many bytes after its start (`byte_offset` may be NULL). Only
 * those that kn_storage_address or kn_tensor_address was called for are found. NULL, without an error, where there is
 * none. */
KN_API kn_storage *kn_storage_at_address(uint64_t address, size_t *byte_offset);

/* --- resizing ----------------------------------------------------------------------------------------------------- */

/* torch.UntypedStorage.resize_: other memory of `bytes` bytes under the same storage, with the old contents as far as
 * they fit; what is new is uninitialised. Tensors on it see the new memory. No other thread may use the storage
 * meanwhile. Graphs that were captured with the old memory fail at their next replay. The version stays.
 *
 * While tensors use a storage on a device, it may be resized to 0 bytes, which frees its memory, and back (to at least
 * the former size): in between, using the tensors' elements is KN_ERR_STATE, and addresses are 0. Otherwise, making a
 * storage smaller is KN_ERR_STATE while any tensor uses it, and so is resizing pinned memory, or memory that the library
 * has divided among tensors. */
KN_API kn_status kn_storage_resize(kn_storage *storage, size_t bytes);

KN_END_DECLS

#endif
