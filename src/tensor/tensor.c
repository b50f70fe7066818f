/* tensor/tensor.c - tensors, views and their properties. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/hooks.h"
#include "tensor/host_copies.h"
#include "tensor/liveness.h"
#include "tensor/strides.h"

const kn_tensor_hooks *kn_tensor_autograd;

/* --- shapes ----------------------------------------------------------------------------------- */

int64_t kn_shape_numel(int ndim, const int64_t *shape)
{
    int64_t numel = 1;
    for (int i = 0; i < ndim; i++)
        numel *= shape[i];
    return numel;
}

kn_status kn_tensor_check_shape(int ndim, const int64_t *shape, kn_dtype dtype)
{
    if (ndim < 0 || ndim > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "a tensor has 0 to %d dimensions, not %d", KN_MAX_DIMS, ndim);
    if (ndim > 0 && !shape)
        return kn_fail_argument_null("tensor", "shape");
    int64_t most = INT64_MAX / (int64_t)kn_dtype_size(dtype), numel = 1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return kn_fail(KN_ERR_SHAPE, "size %" PRId64 " of dimension %d is negative", shape[i], i);
        if (shape[i] > 0 && numel > most / shape[i]) {
            char text[KN_DESCRIBE];
            return kn_fail(KN_ERR_SHAPE, "shape %s is too large to count",
                           kn_format_shape(text, sizeof text, ndim, shape));
        }
        numel *= shape[i] ? shape[i] : 1;
    }
    return KN_OK;
}

kn_status kn_tensor_check_dtype(kn_dtype dtype, kn_device *device)
{
    if (!kn_dtype_is_valid(dtype))
        return kn_fail(KN_ERR_DTYPE, "%d is not a dtype", (int)dtype);
    if (dtype == KN_F64 && !kn_device_is_host(device) && !kn_device_limits(device)->has_f64)
        return kn_fail(KN_ERR_DTYPE, "%s (%s) has no float64 arithmetic: use float32, or another device",
                       kn_device_string(device), kn_device_name(device));
    return KN_OK;
}

kn_status kn_tensor_check_no_overlap(const kn_tensor *tensor)
{
    char text[KN_DESCRIBE];
    if (!kn_strides_may_overlap(tensor->ndim, tensor->shape, tensor->strides))
        return KN_OK;
    return kn_fail(KN_ERR_STATE, "several elements of the view %s share memory; kn_clone it first",
                   kn_tensor_describe(text, sizeof text, tensor));
}

bool kn_same_shape(const kn_tensor *a, const kn_tensor *b)
{
    return a->ndim == b->ndim &&
           (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0);
}

bool kn_tensor_same_place(const kn_tensor *a, const kn_tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype && kn_same_shape(a, b) &&
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof *a->strides) == 0;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static kn_tensor *tensor_shell(kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape)
{
    kn_tensor *tensor = kn_calloc(1, sizeof *tensor);
    if (!tensor)
        return NULL;
    atomic_init(&tensor->references, 1);
    tensor->storage = storage;
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        tensor->shape[i] = shape[i];
    return tensor;
}

static kn_status new_tensor(kn_tensor **tensor, kn_dtype dtype, int ndim, const int64_t *shape, kn_device *device,
                            kn_device *pinned_for)
{
    if (dtype == KN_DTYPE_DEFAULT)
        dtype = KN_F32;
    KN_TRY(kn_tensor_check_shape(ndim, shape, dtype));
    KN_TRY(kn_tensor_check_dtype(dtype, device));
    kn_storage *storage;
    KN_TRY(kn_storage_make(&storage, device, pinned_for, (size_t)kn_shape_numel(ndim, shape) * kn_dtype_size(dtype)));
    kn_tensor *made = tensor_shell(storage, dtype, ndim, shape);
    if (!made) {
        kn_storage_release(storage);
        return KN_ERR_MEMORY;
    }
    kn_strides_contiguous(made->strides, ndim, shape);
    *tensor = made;
    return KN_OK;
}

kn_status kn_tensor_new(kn_tensor **tensor, kn_dtype dtype, int ndim, const int64_t *shape, kn_device *device)
{
    return new_tensor(tensor, dtype, ndim, shape, device, NULL);
}

kn_status kn_tensor_new_pinned(kn_tensor **tensor, kn_dtype dtype, int ndim, const int64_t *shape, kn_device *device)
{
    return new_tensor(tensor, dtype, ndim, shape, kn_device_host(), device);
}

kn_status kn_tensor_on(kn_tensor **tensor, kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                       const int64_t *strides, int64_t offset)
{
    kn_tensor *made = tensor_shell(storage, dtype, ndim, shape);
    if (!made)
        return KN_ERR_MEMORY;
    atomic_fetch_add(&storage->references, 1);
    if (strides)
        memcpy(made->strides, strides, (size_t)ndim * sizeof *strides);
    else
        kn_strides_contiguous(made->strides, ndim, shape);
    made->offset = offset;
    *tensor = made;
    return KN_OK;
}

kn_status kn_tensor_view(kn_tensor **view, kn_tensor *base, int ndim, const int64_t *shape, const int64_t *strides,
                         int64_t offset)
{
    return kn_tensor_on(view, base->storage, base->dtype, ndim, shape, strides, offset);
}

kn_status kn_tensor_part(kn_tensor **part, kn_tensor *whole, int ndim, const int64_t *shape, int64_t start)
{
    kn_storage *memory = whole->storage, *storage = kn_calloc(1, sizeof *storage);
    kn_tensor *made = storage ? tensor_shell(storage, whole->dtype, ndim, shape) : NULL;
    if (!made) {
        kn_free(storage);
        return KN_ERR_MEMORY;
    }
    atomic_init(&storage->references, 1);
    storage->device = memory->device;
    storage->buffer = memory->buffer;
    storage->host = memory->host;
    storage->copies = memory->copies;
    storage->bytes = memory->bytes;
    storage->whole = memory;
    atomic_store(&memory->is_divided, true);
    atomic_fetch_add(&memory->references, 1);
    kn_strides_contiguous(made->strides, ndim, shape);
    made->offset = whole->offset + start;
    *part = made;
    return KN_OK;
}

kn_tensor *kn_retain(kn_tensor *tensor)
{
    if (!tensor)
        return NULL;
    if (kn_tensor_check_live(tensor, "tensor") != KN_OK) {
        kn_error_prefix("kn_retain");
        return kn_error_make_sticky();
    }
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void kn_release(kn_tensor *tensor)
{
    if (!tensor)
        return;
    if (kn_tensor_check_live(tensor, "tensor") != KN_OK) {
        kn_error_prefix("kn_release");
        return;
    }
    if (atomic_fetch_sub(&tensor->references, 1) != 1)
        return;
    if (tensor->autograd)
        kn_tensor_autograd->free(tensor->autograd);
    kn_device *device = tensor->storage->device;
    kn_storage_release(tensor->storage);
    kn_release(tensor->whole);
    tensor->whole = NULL;
    if (kn_tensors_are_guarded())
        kn_tensor_keep_released(tensor, device);
    else
        kn_free(tensor);
}

void kn_tensor_scope_release(kn_tensor *tensor)
{
    if (kn_tensors_are_guarded() && atomic_load(&tensor->references) == 1)
        tensor->scope_released = true;
    kn_release(tensor);
}

void kn_tensor_bump_version(kn_tensor *tensor) { atomic_fetch_add(&tensor->storage->version, 1); }

kn_stream *kn_tensor_stream(const kn_tensor *tensor) { return kn_stream_current(tensor->storage->device); }

/* --- properties ------------------------------------------------------------------------------- */

int kn_ndim(const kn_tensor *tensor) { return tensor ? tensor->ndim : 0; }
const int64_t *kn_shape(const kn_tensor *tensor) { return tensor ? tensor->shape : NULL; }
int64_t kn_numel(const kn_tensor *tensor) { return tensor ? kn_shape_numel(tensor->ndim, tensor->shape) : 0; }
kn_dtype kn_dtype_of(const kn_tensor *tensor) { return tensor ? tensor->dtype : KN_DTYPE_DEFAULT; }
kn_device *kn_device_of(const kn_tensor *tensor) { return tensor ? tensor->storage->device : NULL; }

static int wrap_dim(const kn_tensor *tensor, int dim)
{
    int wrapped = dim < 0 ? dim + tensor->ndim : dim;
    return wrapped >= 0 && wrapped < tensor->ndim ? wrapped : -1;
}

int64_t kn_size(const kn_tensor *tensor, int dim)
{
    int at = tensor ? wrap_dim(tensor, dim) : -1;
    return at < 0 ? -1 : tensor->shape[at];
}

int64_t kn_stride(const kn_tensor *tensor, int dim)
{
    int at = tensor ? wrap_dim(tensor, dim) : -1;
    return at < 0 ? -1 : tensor->strides[at];
}

bool kn_is_contiguous(const kn_tensor *tensor)
{
    int64_t step = 1;
    if (!tensor)
        return false;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] == 0)
            return true;
        if (tensor->shape[i] != 1 && tensor->strides[i] != step)
            return false;
        step *= tensor->shape[i];
    }
    return true;
}

void *kn_data(kn_tensor *tensor)
{
    if (kn_check_tensor("kn_data", "tensor", tensor) != KN_OK)
        return kn_error_make_sticky();
    if (!kn_device_is_host(tensor->storage->device))
        return kn_fail_null(
            KN_ERR_DEVICE,
            "kn_data: the tensor is on %s; read it with kn_read, or move it with kn_to(tensor, kn_device_host())",
            kn_device_string(tensor->storage->device));
    if (kn_storage_wait(tensor->storage, KN_HOST_WRITE) != KN_OK) /* the caller may write */
        return kn_error_make_sticky();
    return (char *)tensor->storage->host + tensor->offset * (int64_t)kn_dtype_size(tensor->dtype);
}

const char *kn_tensor_describe(char *buffer, size_t size, const kn_tensor *tensor)
{
    if (!tensor) {
        snprintf(buffer, size, "NULL");
        return buffer;
    }
    char shape[KN_DESCRIBE / 2];
    snprintf(buffer, size, "%s %s on %s", kn_dtype_name(tensor->dtype),
             kn_format_shape(shape, sizeof shape, tensor->ndim, tensor->shape),
             kn_device_string(tensor->storage->device));
    return buffer;
}
