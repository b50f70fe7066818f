/* io/elements.h - element types as files store them, and their conversion to the dtypes that tensors have. */
#ifndef KN_IO_ELEMENTS_H
#define KN_IO_ELEMENTS_H

#include <koine/common.h>
#include <koine/dtype.h>
#include <koine/status.h>

typedef enum kn_element {
    KN_ELEMENT_F64,
    KN_ELEMENT_F32,
    KN_ELEMENT_F16,
    KN_ELEMENT_BF16, /* the upper half of a float32 */
    KN_ELEMENT_I64,
    KN_ELEMENT_I32,
    KN_ELEMENT_I16,
    KN_ELEMENT_I8,
    KN_ELEMENT_U64,
    KN_ELEMENT_U32,
    KN_ELEMENT_U16,
    KN_ELEMENT_U8,
    KN_ELEMENT_BOOL
} kn_element;

size_t kn_element_size(kn_element element); /* bytes in the file */
kn_dtype
kn_element_dtype(kn_element element); /* the dtype that holds every value of it; uint64 goes to int64 and may not fit */
kn_element kn_element_of_dtype(kn_dtype dtype); /* how the dtype is written */

/* Whether this machine stores numbers with the lowest byte first. */
bool kn_little_endian(void);

/* Converts `count` elements. `swap`: the file's byte order is not this machine's. `destination` and `source` do not
 * overlap. A bool is true where its byte is not 0. Returns `count`, or the index of the first value that does not fit
 * (uint64 above the largest int64). */
uint64_t kn_elements_decode(void *destination, const void *source, uint64_t count, kn_element element, bool swap);

/* Reverses the bytes of each element in place. */
void kn_elements_swap(void *elements, uint64_t count, size_t size);

/* Bytes of an array of this shape, elements counted as stored; false when that, or the product of the sizes other than
 * 0, is beyond what memory can address. */
bool kn_elements_bytes(uint64_t *bytes, int ndim, const int64_t *shape, size_t element_size);

#endif
