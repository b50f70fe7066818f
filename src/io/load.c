/* io/load.c - host tensors from stored elements. */
#include "io/load.h"

#include "base/error.h"

kn_status kn_tensor_from_stored(kn_tensor **tensor, const kn_source *source, uint64_t offset, const void *stored,
                                kn_element element, bool swap, int ndim, const int64_t *shape)
{
    kn_tensor *made = NULL;
    KN_TRY(kn_tensor_new(&made, kn_element_dtype(element), ndim, shape, kn_device_host()));
    uint64_t count = (uint64_t)kn_shape_numel(ndim, shape);
    uint64_t converted = count > 0 ? kn_elements_decode(made->storage->host, stored, count, element, swap) : 0;
    if (converted < count) {
        kn_release(made);
        return kn_source_fail(source, offset + converted * kn_element_size(element),
                              "element %llu is a uint64 that no int64 can hold", (unsigned long long)converted);
    }
    *tensor = made;
    return KN_OK;
}

kn_status kn_return_tensor(kn_tensor **result, kn_tensor *owned)
{
    kn_tensor *adopted = kn_scope_adopt(owned);
    if (!adopted)
        return kn_error_status();
    *result = adopted;
    return KN_OK;
}
