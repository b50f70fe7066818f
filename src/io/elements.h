/* io/elements.h - element types as stored in files, and their conversion to tensor dtypes. */
#pragma once

#include <koine/common.h>
#include <koine/dtype.h>
#include <koine/status.h>

typedef enum kn_element {
    KN_ELEMENT_F64,
    KN_ELEMENT_F32,
    KN_ELEMENT_F16,
    KN_ELEMENT_BF16,
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
/* The dtype that can hold every value of it; uint64 becomes int64 and may not fit. */
kn_dtype kn_element_dtype(kn_element element);
kn_element kn_element_of_dtype(kn_dtype dtype); /* the element type a dtype is written as */

/* What the formats call it, NumPy without the byte order ("f4"); NULL: the format has none. */
const char *kn_element_safetensors_name(kn_element element);
const char *kn_element_npy_name(kn_element element);
/* Finds what is called so by one of these functions; false if nothing is. */
bool kn_element_named(kn_element *element, const char *name, const char *(*name_of)(kn_element));

/* Is this machine little-endian? */
bool kn_little_endian(void);

/* Converts `count` elements. `swap`: the file's byte order differs from this machine's. `destination` and `source` must
 * not overlap. A bool is true if its byte is not 0. Returns `count`, or the index of the first value that does not fit
 * (a uint64 above the largest int64). */
uint64_t kn_elements_decode(void *destination, const void *source, uint64_t count, kn_element element, bool swap);

/* Reverses the bytes of each element in place. */
void kn_elements_swap(void *elements, uint64_t count, size_t size);

/* The size in bytes of an array of this shape as stored. False if that, or the product of the nonzero sizes, exceeds
 * the address space. */
bool kn_elements_bytes(uint64_t *bytes, int ndim, const int64_t *shape, size_t element_size);
