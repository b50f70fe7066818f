/* dist/check.c - argument checks of the collectives. */
#include "dist/collective.h"

bool kn_device_is_known(const kn_device *device)
{
    if (device == kn_device_host())
        return true;
    for (int i = 0; i < kn_device_count(); i++)
        if (kn_device_at(i) == device)
            return true;
    return false;
}

static kn_status check_device(const char *function, const kn_device *device, int index)
{
    if (!device)
        return kn_fail(KN_ERR_ARGUMENT, "%s: device %d is NULL", function, index);
    if (!kn_device_is_known(device))
        return kn_fail(KN_ERR_DEVICE, "%s: device %d is not a device returned by kn_device_open or kn_device_at",
                       function, index);
    if (kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE, "%s: device %d is the host, which runs no operations", function, index);
    return KN_OK;
}

kn_status kn_check_device_list(const char *function, kn_device *const *devices, int count, bool repeats)
{
    if (!devices || count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: needs at least one device, not %d", function, devices ? count : 0);
    if (count > KN_MAX_DEVICES)
        return kn_fail(KN_ERR_ARGUMENT, "%s: takes at most %d devices, not %d", function, KN_MAX_DEVICES, count);
    for (int i = 0; i < count; i++) {
        KN_TRY(check_device(function, devices[i], i));
        for (int j = 0; j < i && !repeats; j++)
            if (devices[j] == devices[i])
                return kn_fail(KN_ERR_ARGUMENT, "%s: devices %d and %d are both %s; each may be given once", function,
                               j, i, kn_device_string(devices[i]));
    }
    return KN_OK;
}

kn_status kn_check_destination(const char *function, kn_device **device, bool host)
{
    if (!*device && !(*device = kn_device_current()))
        return kn_error_status();
    if (!kn_device_is_known(*device))
        return kn_fail(KN_ERR_DEVICE, "%s: the destination is not a device returned by kn_device_open or kn_device_at",
                       function);
    if (kn_device_is_host(*device) && !host)
        return kn_fail(KN_ERR_DEVICE, "%s: the destination is the host, which runs no operations", function);
    return KN_OK;
}

kn_status kn_check_tensor_list(const char *function, kn_tensor *const *tensors, int count)
{
    if (!tensors || count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: needs at least one tensor, not %d", function, tensors ? count : 0);
    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            return kn_fail_argument_null(function, "tensor");
        if (kn_device_is_host(kn_device_of(tensors[i])))
            return kn_fail(KN_ERR_DEVICE,
                           "%s: tensor %d is on the host: move it to a device with kn_to(tensor, device)", function, i);
    }
    return KN_OK;
}

static bool alike(const kn_tensor *a, const kn_tensor *b, int dim)
{
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++)
        same = d == dim || a->shape[d] == b->shape[d];
    return same;
}

kn_status kn_check_alike(const char *function, kn_tensor *const *tensors, int count, int stride, int dim)
{
    for (int i = stride; i < count; i++) {
        const kn_tensor *first = tensors[i % stride], *other = tensors[i];
        if (alike(first, other, dim))
            continue;
        char a[KN_DESCRIBE], b[KN_DESCRIBE];
        return kn_fail(first->dtype == other->dtype ? KN_ERR_SHAPE : KN_ERR_DTYPE,
                       "%s: tensor %d is %s, but tensor %d is %s; dtypes and sizes%s must be the same", function,
                       i % stride, kn_tensor_describe(a, sizeof a, first), i, kn_tensor_describe(b, sizeof b, other),
                       dim >= 0 ? " of the other dimensions" : "");
    }
    return KN_OK;
}

kn_status kn_check_dim(const char *function, const kn_tensor *tensor, int *dim)
{
    int wrapped = *dim < 0 ? *dim + tensor->ndim : *dim;
    char text[KN_DESCRIBE];
    if (wrapped < 0 || wrapped >= tensor->ndim)
        return kn_fail(KN_ERR_SHAPE, "%s: %s has no dimension %d", function,
                       kn_tensor_describe(text, sizeof text, tensor), *dim);
    *dim = wrapped;
    return KN_OK;
}

kn_status kn_check_reduce_op(const char *function, kn_reduce_op op, kn_dtype dtype)
{
    if (op < KN_REDUCE_SUM || op > KN_REDUCE_XOR)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d is not a kn_reduce_op", function, (int)op);
    const bool floating = kn_dtype_is_floating(dtype);
    if (op == KN_REDUCE_MEAN && !floating)
        return kn_fail(KN_ERR_DTYPE, "%s: the mean needs a floating dtype, not %s", function, kn_dtype_name(dtype));
    if (op >= KN_REDUCE_AND && floating)
        return kn_fail(KN_ERR_DTYPE, "%s: operations on bits need integers or bool, not %s", function,
                       kn_dtype_name(dtype));
    return KN_OK;
}

/* --- lists ------------------------------------------------------------------------------------------------------ */

void kn_release_all(kn_tensor **tensors, int count)
{
    for (int i = 0; i < count; i++) {
        kn_release(tensors[i]);
        tensors[i] = NULL;
    }
}
