/* tensor/tensor.h - the tensor's internals.
 *
 * Ownership inside the library: functions named kn_tensor_... return an owned reference (release it, or pass it to a
 * scope with kn_scope_adopt); for public functions see koine/tensor.h. */
#pragma once

#include <koine/storage.h>
#include <koine/tensor.h>
#include <stdatomic.h>

#include "base/dtype.h"
#include "base/treap.h"
#include "rt/rt.h"

typedef struct kn_host_copies kn_host_copies;

/* Memory shared by a tensor and its views. */
struct kn_storage {
    atomic_int references;
    atomic_uint version; /* counts in-place changes; autograd compares it */
    kn_device *device;
    kn_buffer *buffer;        /* on a device */
    void *host;               /* on the host; accessed only after kn_storage_wait (tensor/host_copies.h) */
    kn_host_copies *copies;   /* of pinned host memory; NULL: pageable */
    struct kn_storage *whole; /* for a part: the storage that owns the memory, one reference; else NULL */
    atomic_bool is_divided;   /* it is the `whole` of others */
    size_t bytes;
    size_t needed;       /* resized to 0 bytes while tensors used this many: `buffer` is NULL. 0: it has its memory */
    bool is_batch;       /* of a tensor that stands for the samples of a batch: it never has memory */
    uint64_t address;    /* tensor/storage_address.c; 0: not requested yet */
    kn_treap_node place; /* in the tree of addresses */
};

struct kn_autograd; /* the autograd layer's part of a tensor (autograd/tape.h) */

struct kn_tensor {
    atomic_int references;
    kn_storage *storage;
    kn_dtype dtype;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_MAX_DIMS]; /* elements */
    int64_t offset;               /* in elements, from the start of the storage */
    struct kn_autograd *autograd; /* NULL: requires no gradient, and none is recorded */
    kn_tensor *whole;             /* the batch for whose samples it stands (tensor/batched.h); NULL: for itself */
    int batch_level;              /* the vmap that did that, counted from the outermost, 1; 0 if `whole` is NULL */
    bool scope_released;          /* guard mode: the last reference was a scope's */
};

/* --- creating; owned references --------------------------------------------------------------- */

/* contiguous, uninitialised */
kn_status kn_tensor_new(kn_tensor **tensor, kn_dtype dtype, int ndim, const int64_t *shape, kn_device *device);
/* the same on the host, in pinned memory suited for transfers with `device` */
kn_status kn_tensor_new_pinned(kn_tensor **tensor, kn_dtype dtype, int ndim, const int64_t *shape, kn_device *device);
/* Any layout on a storage, which the caller has checked (kn_storage_check_layout); `strides` NULL: contiguous. */
kn_status kn_tensor_on(kn_tensor **tensor, kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                       const int64_t *strides, int64_t offset);
kn_status kn_tensor_view(kn_tensor **view, kn_tensor *base, int ndim, const int64_t *shape, const int64_t *strides,
                         int64_t offset);
/* The order in memory of a new elementwise result: that of the operands (broadcast; NULL: omitted), of which the first
 * one that tells two dimensions apart decides. */
void kn_tensor_arrange(kn_tensor *result, kn_tensor *const *operands, int count);
/* A contiguous piece of `whole`'s memory, from element `start` on, with its own version counter: unlike a view's, its
 * in-place changes do not count as changes of the whole or of other parts. Parts must not overlap. */
kn_status kn_tensor_part(kn_tensor **part, kn_tensor *whole, int ndim, const int64_t *shape, int64_t start);
/* itself (one more reference) or a contiguous copy; no gradient */
kn_status kn_tensor_contiguous(kn_tensor **result, kn_tensor *tensor);
/* ndim, signs, overflow of the byte count */
kn_status kn_tensor_check_shape(int ndim, const int64_t *shape, kn_dtype dtype);
/* Is it a dtype, and one that the device has? */
kn_status kn_tensor_check_dtype(kn_dtype dtype, kn_device *device);
int64_t kn_shape_numel(int ndim, const int64_t *shape);
/* KN_ERR_STATE if several elements share memory, as after kn_expand: an in-place change would change all of them */
kn_status kn_tensor_check_no_overlap(const kn_tensor *tensor);
bool kn_same_shape(const kn_tensor *a, const kn_tensor *b);
bool kn_tensor_same_place(const kn_tensor *a, const kn_tensor *b); /* of one storage: each element at the same place? */
/* KN_ERR_STATE if the storage was resized to 0 bytes */
kn_status kn_storage_fail_emptied(const kn_storage *storage);
static inline kn_status kn_tensor_check_memory(const kn_tensor *t)
{
    return t->storage->needed == 0 ? KN_OK : kn_storage_fail_emptied(t->storage);
}

/* Registers an owned reference with the innermost scope, if any, and returns it: the last step of every public function
 * that creates a tensor. If the registration fails, releases the tensor and returns NULL (sticky error). For NULL
 * returns NULL and makes the error sticky. */
kn_tensor *kn_scope_adopt(kn_tensor *tensor);
void kn_tensor_scope_release(kn_tensor *tensor); /* called when a scope ends */

/* --- primitives without gradient, in stream order --------------------------------------------- */

/* same shape; converts dtype, strides, device. `non_blocking`: a copy between a device and pinned host memory, both
 * contiguous, may still be pending on return; for any other copy it has no effect */
kn_status kn_tensor_copy(kn_tensor *destination, const kn_tensor *source);
kn_status kn_tensor_copy_with(kn_tensor *destination, const kn_tensor *source, bool non_blocking);
/* To contiguous tensors of the source's shape and dtype on other devices: the source is read once, without waiting. */
kn_status kn_tensor_copy_to_many(kn_tensor *const *destinations, int count, kn_tensor *source);
/* with NumPy broadcasting */
kn_status kn_tensor_copy_broadcast(kn_tensor *destination, kn_tensor *source, bool non_blocking);
kn_status kn_tensor_fill(kn_tensor *tensor, double value);
kn_status kn_tensor_fill_with(kn_tensor *tensor, kn_scalar value);
/* zeros by the driver, which compiles nothing for it */
kn_status kn_tensor_clear(kn_tensor *tensor);
/* sum += addend; same shape, dtype and device, floating */
kn_status kn_tensor_accumulate(kn_tensor *sum, const kn_tensor *addend);
/* a contiguous copy */
kn_status kn_tensor_cast(kn_tensor **result, kn_tensor *tensor, kn_dtype dtype, kn_device *device);

/* --- for kernels ------------------------------------------------------------------------------ */

static inline size_t kn_tensor_element_size(const kn_tensor *t) { return kn_dtype_size(t->dtype); }
static inline kn_arg kn_arg_tensor(const kn_tensor *t)
{
    return kn_arg_buffer(t->storage->buffer, t->offset * (int64_t)kn_dtype_size(t->dtype));
}
/* A number as the kernel's `real`: float for f32 and f16, double for f64. */
static inline kn_arg kn_arg_real(kn_dtype dtype, double value) { return kn_arg_f64_or_f32(dtype == KN_F64, value); }

/* The calling thread's current stream of the tensor's device; NULL with an error for the host. */
kn_stream *kn_tensor_stream(const kn_tensor *tensor);
static inline const kn_limits *kn_tensor_limits(const kn_tensor *t) { return kn_device_limits(t->storage->device); }

/* "float32 [2, 3] on gpu:0" into `buffer`, for messages; returns buffer. */
const char *kn_tensor_describe(char *buffer, size_t size, const kn_tensor *tensor);
#define KN_DESCRIBE 160

/* --- storages ----------------------------------------------------------------------------------------------------- */

/* Memory on `device`; with `pinned_for` on the host, pinned for transfers with that device. */
kn_status kn_storage_make(kn_storage **storage, kn_device *device, kn_device *pinned_for, size_t bytes);

/* Checks that all elements are within the storage, and that nothing is negative or overflows. `strides` NULL:
 * contiguous. */
kn_status kn_storage_check_layout(const kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, int64_t offset);

/* storage_address.c: removes a storage that is about to be freed from the tree / swaps the memory of two storages; a
 * keeps its entry in the tree, at its new address. */
void kn_storage_forget_address(kn_storage *storage);
void kn_storage_exchange_memory(kn_storage *a, kn_storage *b);

/* Marks the storage as changed in place. */
void kn_tensor_bump_version(kn_tensor *tensor);

/* --- generator -------------------------------------------------------------------------------- *
 * Takes `count` 32-bit words of the generator's (NULL: the device's default) stream, rounded up to a multiple of 4:
 * word i is lane i % 4 of Philox4x32-10 at counter offset + i / 4. */
typedef struct kn_philox {
    uint64_t seed, offset;        /* offset in blocks of four words */
    const struct kn_philox *live; /* in a recording: the variable that each replay sets to both; else NULL */
} kn_philox;
kn_philox kn_generator_reserve(kn_generator *generator, kn_device *device, uint64_t count);

/* KN_ERR_DEVICE for a generator of another device; NULL is the device's own. */
kn_status kn_generator_check(const kn_generator *generator, const kn_device *device);

kn_philox kn_generator_state(const kn_generator *generator);
void kn_generator_assign(kn_generator *generator, kn_philox state);

/* Seed and offset as kernels take them. In a captured graph each replay continues from the generator's state. */
static inline kn_arg kn_arg_seed(const kn_philox *draw)
{
    return draw->live ? kn_arg_variable(draw->live, offsetof(kn_philox, seed), sizeof(uint64_t))
                      : kn_arg_i64((int64_t)draw->seed);
}
static inline kn_arg kn_arg_draw_offset(const kn_philox *draw)
{
    return draw->live ? kn_arg_variable(draw->live, offsetof(kn_philox, offset), sizeof(uint64_t))
                      : kn_arg_i64((int64_t)draw->offset);
}
