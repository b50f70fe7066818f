/* io/elements.c - converts stored bytes to a tensor's elements: byte order and widening. */
#include "io/elements.h"

#include <string.h>

size_t kn_element_size(kn_element element)
{
    static const unsigned char sizes[] = {
        [KN_ELEMENT_F64] = 8, [KN_ELEMENT_F32] = 4, [KN_ELEMENT_F16] = 2, [KN_ELEMENT_BF16] = 2, [KN_ELEMENT_I64] = 8,
        [KN_ELEMENT_I32] = 4, [KN_ELEMENT_I16] = 2, [KN_ELEMENT_I8] = 1,  [KN_ELEMENT_U64] = 8,  [KN_ELEMENT_U32] = 4,
        [KN_ELEMENT_U16] = 2, [KN_ELEMENT_U8] = 1,  [KN_ELEMENT_BOOL] = 1};
    return sizes[element];
}

kn_dtype kn_element_dtype(kn_element element)
{
    static const kn_dtype dtypes[] = {
        [KN_ELEMENT_F64] = KN_F64,  [KN_ELEMENT_F32] = KN_F32, [KN_ELEMENT_F16] = KN_F16, [KN_ELEMENT_BF16] = KN_F32,
        [KN_ELEMENT_I64] = KN_I64,  [KN_ELEMENT_I32] = KN_I32, [KN_ELEMENT_I16] = KN_I32, [KN_ELEMENT_I8] = KN_I32,
        [KN_ELEMENT_U64] = KN_I64,  [KN_ELEMENT_U32] = KN_I64, [KN_ELEMENT_U16] = KN_I32, [KN_ELEMENT_U8] = KN_U8,
        [KN_ELEMENT_BOOL] = KN_BOOL};
    return dtypes[element];
}

kn_element kn_element_of_dtype(kn_dtype dtype)
{
    switch (dtype) {
    case KN_F64:
        return KN_ELEMENT_F64;
    case KN_F16:
        return KN_ELEMENT_F16;
    case KN_I64:
        return KN_ELEMENT_I64;
    case KN_I32:
        return KN_ELEMENT_I32;
    case KN_U8:
        return KN_ELEMENT_U8;
    case KN_BOOL:
        return KN_ELEMENT_BOOL;
    case KN_F32:
    case KN_DTYPE_DEFAULT:
        break;
    }
    return KN_ELEMENT_F32;
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

static uint16_t load16(const unsigned char *bytes, bool swap)
{
    uint16_t x;
    memcpy(&x, bytes, sizeof(x));
    return swap ? swapped16(x) : x;
}

static void widen8_signed(unsigned char *to, const unsigned char *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        int32_t wide = from[i] < 128 ? from[i] : (int32_t)from[i] - 256;
        memcpy(to + i * sizeof(wide), &wide, sizeof(wide));
    }
}

static void widen16(unsigned char *to, const unsigned char *from, uint64_t count, bool swap, bool is_signed)
{
    for (uint64_t i = 0; i < count; i++) {
        uint16_t x = load16(from + 2 * i, swap);
        int32_t wide = is_signed && x >= 32768 ? (int32_t)x - 65536 : (int32_t)x;
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

static void widen_bf16(unsigned char *to, const unsigned char *from, uint64_t count, bool swap)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)load16(from + 2 * i, swap) << 16;
        memcpy(to + i * sizeof(bits), &bits, sizeof(bits));
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
    case KN_ELEMENT_I8:
        widen8_signed(destination, source, count);
        break;
    case KN_ELEMENT_I16:
    case KN_ELEMENT_U16:
        widen16(destination, source, count, swap, element == KN_ELEMENT_I16);
        break;
    case KN_ELEMENT_U32:
        widen32_unsigned(destination, source, count, swap);
        break;
    case KN_ELEMENT_BF16:
        widen_bf16(destination, source, count, swap);
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
    /* Widening enlarges elements at most fourfold; sizes must stay below 2^63 even then, as strides must. */
    uint64_t limit = ((uint64_t)SIZE_MAX >> 1) / 4, product = element_size;
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
