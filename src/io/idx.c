/* io/idx.c - the idx format of the MNIST files: two zero bytes, an element type, the number of dimensions, a 32-bit
 * size for each, the elements; all big-endian. http://yann.lecun.com/exdb/mnist/ */
#include "base/error.h"
#include "io/load.h"

#include <koine/io.h>

static bool element_of_code(unsigned char code, kn_element *element)
{
    switch (code) {
    case 0x08:
        *element = KN_ELEMENT_U8;
        return true;
    case 0x09:
        *element = KN_ELEMENT_I8;
        return true;
    case 0x0b:
        *element = KN_ELEMENT_I16;
        return true;
    case 0x0c:
        *element = KN_ELEMENT_I32;
        return true;
    case 0x0d:
        *element = KN_ELEMENT_F32;
        return true;
    case 0x0e:
        *element = KN_ELEMENT_F64;
        return true;
    default:
        return false;
    }
}

static kn_status read_magic(kn_source *source, kn_element *element, int *ndim)
{
    unsigned char magic[4];
    KN_TRY(kn_source_read_exactly(source, magic, sizeof(magic), "the idx magic number"));
    if (magic[0] != 0 || magic[1] != 0)
        return kn_source_fail(source, 0, "expected two zero bytes, the start of an idx file, found %02x %02x", magic[0],
                              magic[1]);
    if (!element_of_code(magic[2], element))
        return kn_source_fail(source, 2, "expected an idx element type (08, 09, 0b, 0c, 0d or 0e), found %02x",
                              magic[2]);
    if (magic[3] > KN_MAX_DIMS)
        return kn_source_fail(source, 3, "expected at most %d dimensions, found %d", KN_MAX_DIMS, magic[3]);
    *ndim = magic[3];
    return KN_OK;
}

static kn_status read_shape(kn_source *source, int ndim, int64_t shape[KN_MAX_DIMS])
{
    unsigned char sizes[4 * KN_MAX_DIMS];
    KN_TRY(kn_source_read_exactly(source, sizes, 4 * (size_t)ndim, "dimension sizes"));
    for (int dim = 0; dim < ndim; dim++) {
        const unsigned char *at = sizes + 4 * dim;
        shape[dim] = (int64_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
    }
    return KN_OK;
}

static kn_status read_tensor(kn_tensor **tensor, kn_source *source)
{
    kn_element element = KN_ELEMENT_U8;
    int ndim = 0;
    int64_t shape[KN_MAX_DIMS];
    uint64_t bytes = 0;
    KN_TRY(read_magic(source, &element, &ndim));
    KN_TRY(read_shape(source, ndim, shape));
    if (!kn_elements_bytes(&bytes, ndim, shape, kn_element_size(element)))
        return kn_source_fail(source, 4, "expected dimension sizes whose product fits in memory");
    uint64_t start = kn_source_offset(source);
    unsigned char *stored = NULL;
    KN_TRY(kn_source_read_block(source, &stored, bytes, "elements, as given by the dimensions"));
    kn_status status = kn_source_expect_end(source, "the elements");
    if (status == KN_OK)
        status = kn_tensor_from_stored(tensor, source, start, stored, element, kn_little_endian(), ndim, shape);
    kn_free(stored);
    return status;
}

kn_tensor *kn_load_idx(const char *path) { return kn_load_tensor("kn_load_idx", path, true, read_tensor); }
