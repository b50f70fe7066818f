/* tensor/create.c - creates tensors, empty, filled or from host memory, and reads and writes their values. */
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/batched.h"
#include "tensor/element.h"
#include "tensor/hooks.h"
#include "tensor/host_copies.h"
#include "tensor/liveness.h"
#include "tensor/strides.h"
#include "tensor/tensor.h"

/* --- creating --------------------------------------------------------------------------------- */

static kn_status make_pinned(kn_tensor **tensor, kn_dtype dtype, int ndim, const int64_t *shape, kn_device *device)
{
    if (!kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE, "pin_memory is for host tensors; this one would be on %s",
                       kn_device_string(device));
    kn_device *current = kn_device_current();
    return current ? kn_tensor_new_pinned(tensor, dtype, ndim, shape, current) : kn_error_status();
}

kn_tensor_options kn_tensor_options_init(void) { return (kn_tensor_options){KN_TENSOR_DEFAULTS}; }

/* An uninitialised tensor with the caller's options; an owned reference, NULL with an error. */
static kn_tensor *make(int ndim, const int64_t *shape, const kn_tensor_options *options, kn_dtype default_dtype)
{
    options = options ? options : &(kn_tensor_options){KN_TENSOR_DEFAULTS};
    bool pinned = options->pin_memory;
    kn_device *device = options->device ? options->device : pinned ? kn_device_host() : kn_device_current();
    kn_dtype dtype = options->dtype ? options->dtype : default_dtype;
    kn_tensor *tensor = NULL;
    if (!device)
        return NULL;
    kn_status status =
        pinned ? make_pinned(&tensor, dtype, ndim, shape, device) : kn_tensor_new(&tensor, dtype, ndim, shape, device);
    if (status != KN_OK)
        return NULL;
    if (options->requires_grad && kn_tensor_autograd->require(tensor) != KN_OK) {
        kn_release(tensor);
        return NULL;
    }
    return tensor;
}

/* Returns the tensor to the user, or releases it if filling it failed. */
static kn_tensor *finish(kn_tensor *tensor, kn_status status)
{
    if (status != KN_OK) {
        kn_release(tensor);
        return kn_error_make_sticky();
    }
    return kn_scope_adopt(tensor);
}

kn_tensor *kn_empty_with(int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    return kn_scope_adopt(make(ndim, shape, options, KN_F32));
}

kn_tensor *kn_full_with(int ndim, const int64_t *shape, kn_scalar value, const kn_tensor_options *options)
{
    kn_tensor *tensor = make(ndim, shape, options, KN_F32);
    return tensor ? finish(tensor, kn_tensor_fill_with(tensor, value)) : kn_error_make_sticky();
}

kn_tensor *kn_zeros_with(int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    return kn_full_with(ndim, shape, kn_scalar_int(0), options);
}
kn_tensor *kn_ones_with(int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    return kn_full_with(ndim, shape, kn_scalar_int(1), options);
}

kn_tensor *kn_from_data_with(const void *data, int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    kn_tensor *tensor = make(ndim, shape, options, KN_F32);
    if (!tensor)
        return kn_error_make_sticky();
    size_t bytes = (size_t)kn_numel(tensor) * kn_tensor_element_size(tensor);
    if (!data && bytes > 0) {
        kn_fail_argument_null("kn_from_data", "data");
        return finish(tensor, KN_ERR_ARGUMENT);
    }
    return finish(tensor, kn_write(tensor, data, bytes));
}

static kn_tensor_options like_options(const kn_tensor *like)
{
    return (kn_tensor_options){.dtype = like->dtype, .device = like->storage->device};
}

kn_tensor *kn_empty_like(const kn_tensor *like)
{
    if (kn_check_tensor("kn_empty_like", "like", like) != KN_OK)
        return kn_error_make_sticky();
    if (like->whole)
        KN_RETURN_BATCHED(like, kn_empty_like(like->whole));
    kn_tensor_options options = like_options(like);
    return kn_empty_with(like->ndim, like->shape, &options);
}

kn_tensor *kn_full_like_with(const kn_tensor *like, kn_scalar value)
{
    if (kn_check_tensor("kn_full_like", "like", like) != KN_OK)
        return kn_error_make_sticky();
    if (like->whole)
        KN_RETURN_BATCHED(like, kn_full_like_with(like->whole, value));
    kn_tensor_options options = like_options(like);
    return kn_full_with(like->ndim, like->shape, value, &options);
}

kn_tensor *kn_zeros_like(const kn_tensor *like) { return kn_full_like_with(like, kn_scalar_int(0)); }

kn_tensor *kn_ones_like(const kn_tensor *like) { return kn_full_like_with(like, kn_scalar_int(1)); }

/* --- pinned memory ---------------------------------------------------------------------------- */

bool kn_is_pinned(const kn_tensor *tensor) { return tensor && kn_storage_pinned(tensor->storage); }

kn_tensor *kn_pin_memory(kn_tensor *tensor)
{
    if (kn_check_tensor("kn_pin_memory", "tensor", tensor) != KN_OK)
        return kn_error_make_sticky();
    if (kn_is_pinned(tensor))
        return kn_scope_adopt(kn_retain(tensor));
    if (!kn_device_is_host(tensor->storage->device))
        return kn_fail_null(KN_ERR_DEVICE, "kn_pin_memory: the tensor is on %s; only host tensors can be pinned",
                            kn_device_string(tensor->storage->device));
    kn_tensor *pinned = NULL;
    kn_status status = make_pinned(&pinned, tensor->dtype, tensor->ndim, tensor->shape, kn_device_host());
    return finish(pinned, status == KN_OK ? kn_tensor_copy(pinned, tensor) : status);
}

/* --- values in and out ------------------------------------------------------------------------ */

static kn_status check_bytes(const char *function, const kn_tensor *tensor, size_t bytes)
{
    size_t exact = (size_t)kn_numel(tensor) * kn_tensor_element_size(tensor);
    char text[KN_DESCRIBE];
    if (bytes == exact)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: the tensor (%s) has %zu bytes, the caller passed %zu", function,
                   kn_tensor_describe(text, sizeof text, tensor), exact, bytes);
}

/* `memory` as a host tensor of `like`'s shape and dtype, without owning the memory; release it with forget_wrapped. */
static kn_status wrap(kn_tensor *view, kn_storage *storage, const kn_tensor *like, void *memory)
{
    *storage = (kn_storage){.device = kn_device_host(), .host = memory};
    *view = (kn_tensor){.storage = storage, .dtype = like->dtype, .ndim = like->ndim};
    memcpy(view->shape, like->shape, sizeof view->shape);
    kn_strides_contiguous(view->strides, like->ndim, like->shape);
    atomic_init(&view->references, 1);
    atomic_init(&storage->references, 1);
    return KN_OK;
}

kn_status kn_read(const kn_tensor *tensor, void *destination, size_t bytes)
{
    KN_TRY(kn_check_tensor("kn_read", "tensor", tensor));
    if (!destination && bytes > 0)
        return kn_fail_argument_null("kn_read", "destination");
    KN_TRY(check_bytes("kn_read", tensor, bytes));
    kn_tensor view;
    kn_storage storage;
    KN_TRY(wrap(&view, &storage, tensor, destination));
    return kn_tensor_copy(&view, tensor);
}

kn_status kn_write(kn_tensor *tensor, const void *source, size_t bytes)
{
    KN_TRY(kn_check_tensor("kn_write", "tensor", tensor));
    if (!source && bytes > 0)
        return kn_fail_argument_null("kn_write", "source");
    KN_TRY(check_bytes("kn_write", tensor, bytes));
    if (kn_tensor_check_no_overlap(tensor) != KN_OK) {
        kn_error_prefix("kn_write");
        return kn_error_status();
    }
    kn_tensor view;
    kn_storage storage;
    KN_TRY(wrap(&view, &storage, tensor, (void *)(uintptr_t)source));
    kn_tensor_bump_version(tensor);
    return kn_tensor_copy(tensor, &view);
}

static kn_status read_one(const char *function, const kn_tensor *tensor, const void *result, kn_element *element)
{
    char bytes[8];
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (!result)
        return kn_fail_argument_null(function, "value");
    if (kn_numel(tensor) != 1) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "%s takes a tensor of one element, not %s", function,
                       kn_tensor_describe(text, sizeof text, tensor));
    }
    KN_TRY(kn_read(tensor, bytes, kn_tensor_element_size(tensor)));
    union {
        double aligned;
        char bytes[8];
    } value;
    memcpy(value.bytes, bytes, sizeof bytes);
    *element = kn_element_get(&value, tensor->dtype, 0);
    return KN_OK;
}

kn_status kn_item(const kn_tensor *tensor, double *value)
{
    kn_element element;
    KN_TRY(read_one("kn_item", tensor, value, &element));
    *value = element.real;
    return KN_OK;
}

kn_status kn_item_i64(const kn_tensor *tensor, int64_t *value)
{
    kn_element element;
    KN_TRY(read_one("kn_item_i64", tensor, value, &element));
    *value = kn_dtype_is_floating(tensor->dtype) ? kn_whole_of(element.real) : element.whole;
    return KN_OK;
}
