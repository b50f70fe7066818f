/* nn/move.c - kn_module_to: changes device and dtype of parameters and buffers in place.
 *
 * A tensor keeps its identity and gets a new storage, so an optimizer or a tied layer that holds the tensor sees the
 * move. All copies are made before anything changes, so a failure leaves the module unchanged. */
#include <koine/autograd.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/module.h"
#include "tensor/tensor.h"

/* A tensor and the copy whose storage it takes over. */
typedef struct moved {
    kn_tensor *tensor, *copy;
} moved;

typedef struct moving {
    kn_device *device; /* NULL: unchanged */
    kn_dtype dtype;    /* KN_DTYPE_DEFAULT: unchanged */
    moved *pairs;
    int count, capacity;
} moving;

static kn_status add_pair(moving *move, kn_tensor *tensor)
{
    for (int i = 0; i < move->count; i++) {
        if (move->pairs[i].tensor == tensor)
            return KN_OK; /* shared by two layers */
    }
    kn_device *device = move->device != NULL ? move->device : tensor->storage->device;
    bool convert = move->dtype != KN_DTYPE_DEFAULT && kn_dtype_is_floating(tensor->dtype);
    kn_dtype dtype = convert ? move->dtype : tensor->dtype;
    if (device == tensor->storage->device && dtype == tensor->dtype)
        return KN_OK;
    KN_TRY(KN_GROW(move->pairs, move->count, move->capacity));
    kn_tensor *copy = NULL;
    KN_TRY(kn_tensor_cast(&copy, tensor, dtype, device));
    move->pairs[move->count++] = (moved){tensor, copy};
    return KN_OK;
}

static kn_status add_with_gradient(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    moving *move = user;
    kn_tensor *gradient = is_buffer ? NULL : kn_grad(tensor);
    kn_status status = add_pair(move, tensor);
    if (status == KN_OK && gradient != NULL)
        status = add_pair(move, gradient);
    if (status != KN_OK)
        kn_error_prefix("module_to: \"%s\"", name);
    return status;
}

/* Swaps the storages of a pair; releasing the copy then frees the old storage. */
static void exchange(moved *pair)
{
    kn_tensor *tensor = pair->tensor, *copy = pair->copy;
    kn_storage *storage = tensor->storage;
    tensor->storage = copy->storage;
    copy->storage = storage;
    kn_dtype dtype = tensor->dtype;
    tensor->dtype = copy->dtype;
    copy->dtype = dtype;
    int64_t offset = tensor->offset;
    tensor->offset = copy->offset;
    copy->offset = offset;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t stride = tensor->strides[i];
        tensor->strides[i] = copy->strides[i];
        copy->strides[i] = stride;
    }
    /* Tensors saved from the old storage are outdated; the new storage continues its version count. */
    kn_tensor_bump_version(copy);
    atomic_store(&tensor->storage->version, atomic_load(&copy->storage->version));
}

static kn_status convert(kn_module *module, kn_device *device, kn_dtype dtype)
{
    moving move = {.device = device, .dtype = dtype};
    kn_status status = kn_module_each(module, add_with_gradient, &move);
    for (int i = 0; i < move.count; i++) {
        if (status == KN_OK)
            exchange(&move.pairs[i]);
        kn_release(move.pairs[i].copy);
    }
    kn_free(move.pairs);
    return status;
}

kn_status kn_module_to(kn_module *module, kn_device *device)
{
    if (module == NULL)
        return kn_fail_argument_null("module_to", "module");
    return convert(module, device, KN_DTYPE_DEFAULT);
}

kn_status kn_module_to_dtype(kn_module *module, kn_dtype dtype)
{
    if (module == NULL)
        return kn_fail_argument_null("module_to_dtype", "module");
    if (dtype != KN_DTYPE_DEFAULT && !kn_dtype_is_floating(dtype))
        return kn_fail(KN_ERR_DTYPE, "module_to_dtype: %s is not a floating dtype; use float32 or float64",
                       kn_dtype_name(dtype));
    return convert(module, NULL, dtype);
}
