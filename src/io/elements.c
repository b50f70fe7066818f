/* io/elements.c - converts stored bytes to a tensor's elements: byte order and widening. */
#include "io/elements.h"

#include <string.h>

typedef struct element_row {
    const char *safetensors, *npy; /* its names; NULL: the format has none */
    size_t size;
    kn_dtype dtype;
} element_row;

static const element_row rows[] = {
    [KN_ELEMENT_F64] = {"F64", "f8", 8, KN_F64},   [KN_ELEMENT_F32] = {"F32", "f4", 4, KN_F32},
    [KN_ELEMENT_F16] = {"F16", "f2", 2, KN_F16},   [KN_ELEMENT_BF16] = {"BF16", NULL, 2, KN_BF16},
    [KN_ELEMENT_I64] = {"I64", "i8", 8, KN_I64},   [KN_ELEMENT_I32] = {"I32", "i4", 4, KN_I32},
    [KN_ELEMENT_I16] = {"I16", "i2", 2, KN_I16},   [KN_ELEMENT_I8] = {"I8", "i1", 1, KN_I8},
    [KN_ELEMENT_U64] = {"U64", "u8", 8, KN_I64},   [KN_ELEMENT_U32] = {"U32", "u4", 4, KN_I64},
    [KN_ELEMENT_U16] = {"U16", "u2", 2, KN_I32},   [KN_ELEMENT_U8] = {"U8", "u1", 1, KN_U8},
    [KN_ELEMENT_BOOL] = {"BOOL", "b1", 1, KN_BOOL}};
enum { ELEMENTS = sizeof rows / sizeof rows[0] };

size_t kn_element_size(kn_element element) { return rows[element].size; }
kn_dtype kn_element_dtype(kn_element element) { return rows[element].dtype; }
const char *kn_element_safetensors_name(kn_element element) { return rows[element].safetensors; }
const char *kn_element_npy_name(kn_element element) { return rows[element].npy; }

bool kn_element_named(kn_element *element, const char *name, const char *(*name_of)(kn_element))
{
    for (int i = 0; i < ELEMENTS; i++)
        if (name_of((kn_element)i) && strcmp(name_of((kn_element)i), name) == 0) {
            *element = (kn_element)i;
            return true;
        }
    return false;
}

kn_element kn_element_of_dtype(kn_dtype dtype)
{
    int i = 0;
    while (rows[i].dtype != dtype || rows[i].size != kn_dtype_size(dtype))
        i++;
    return (kn_element)i;
}

bool kn_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static uint16_t swapped16(uint16_t x) { return (uint16_t)(x >> 8 | x << 8); }
static uint32_t swapped32(uint32_t x) { return x >> 24 | (x >> 8 & 0xff00u) | (x << 8 & 0xff0000u) | x << 24; }
static uint64_t swapped64(uint64_t x)
{
    return (uint64_t)swapped32((uint32_t)x) << 32 | swapped32((uint32_t)(x >> 32));
}

/* Elements may be unaligned, so they are moved with memcpy, which compilers turn into plain loads and stores. */
#define SWAP_EACH(type, swapped)                                                                                       \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        type x;                                                                                                        \
        memcpy(&x, bytes + i * sizeof(x), sizeof(x));                                                                  \
        x = swapped(x);                                                                                                \
        memcpy(bytes + i * sizeof(x), &x, sizeof(x));                                                                  \
    }

void kn_elements_swap(void *elements, uint64_t count, size_t size)
{
    unsigned char *bytes = elements;
    if (size == 2)
        SWAP_EACH(uint16_t, swapped16)
    else if (size == 4)
        SWAP_EACH(uint32_t, swapped32)
    else if (size == 8)
        SWAP_EACH(uint64_t, swapped64)
}

/* --- widening --------------------------------------------------------------------------------- */

static void widen16_unsigned(unsigned char *to, const unsigned char *from, uint64_t count, bool swap)
{
    for (uint64_t i = 0; i < count; i++) {
        uint16_t x;
        memcpy(&x, from + i * sizeof(x), sizeof(x));
        int32_t wide = swap ? swapped16(x) : x;
        memcpy(to + i * sizeof(wide), &wide, sizeof(wide));
    }
}

static void widen32_unsigned(unsigned char *to, const unsigned char *from, uint64_t count, bool swap)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t x;
        memcpy(&x, from + i * sizeof(x), sizeof(x));
        int64_t wide = swap ? swapped32(x) : x;
        memcpy(to + i * sizeof(wide), &wide, sizeof(wide));
    }
}

static void normalise_bool(unsigned char *to, const unsigned char *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = from[i] != 0;
}

/* Index of the first element with the top bit set, `count` if none: such a uint64 does not fit an int64. */
static uint64_t first_too_large(const unsigned char *elements, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        int64_t x;
        memcpy(&x, elements + i * sizeof(x), sizeof(x));
        if (x < 0)
            return i;
    }
    return count;
}

uint64_t kn_elements_decode(void *destination, const void *source, uint64_t count, kn_element element, bool swap)
{
    size_t size = kn_element_size(element);
    if (count == 0)
        return 0;
    switch (element) {
    case KN_ELEMENT_U16:
        widen16_unsigned(destination, source, count, swap);
        break;
    case KN_ELEMENT_U32:
        widen32_unsigned(destination, source, count, swap);
        break;
    case KN_ELEMENT_BOOL:
        normalise_bool(destination, source, count);
        break;
    default: /* the same format as in memory, except for byte order */
        memcpy(destination, source, (size_t)count * size);
        if (swap)
            kn_elements_swap(destination, count, size);
        break;
    }
    return element == KN_ELEMENT_U64 ? first_too_large(destination, count) : count;
}

bool kn_elements_bytes(uint64_t *bytes, int ndim, const int64_t *shape, size_t element_size)
{
    /* Widening doubles the size of elements; sizes must stay below 2^63 even then, as strides must. */
    uint64_t limit = ((uint64_t)SIZE_MAX >> 1) / 2, product = element_size;
    bool empty = false;
    for (int dim = 0; dim < ndim; dim++) {
        if (shape[dim] < 0)
            return false;
        if (shape[dim] == 0) {
            empty = true;
            continue;
        }
        if ((uint64_t)shape[dim] > limit / product)
            return false;
        product *= (uint64_t)shape[dim];
    }
    *bytes = empty ? 0 : product;
    return true;
}
