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

kn_tensor *kn_load_tensor(const char *function, const char *path, bool may_be_gzipped,
                          kn_status (*read)(kn_tensor **tensor, kn_source *source))
{
    kn_source *source = NULL;
    kn_tensor *tensor = NULL;
    if (!path)
        return kn_fail_argument_null(function, "path"), kn_error_make_sticky();
    if (kn_source_open(&source, path, may_be_gzipped) != KN_OK)
        return kn_error_make_sticky();
    kn_status status = read(&tensor, source);
    kn_source_close(source);
    return status == KN_OK ? kn_scope_adopt(tensor) : kn_error_make_sticky();
}
