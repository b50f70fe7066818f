/* tensor/element.h - single elements of host memory, of any dtype. */
#ifndef KN_TENSOR_ELEMENT_H
#define KN_TENSOR_ELEMENT_H

#include <koine/dtype.h>
#include <string.h>

#include "base/half.h"

/* An element as a double and, for integer dtypes, exactly. */
typedef struct kn_element {
    double real;
    int64_t whole;
} kn_element;

static inline kn_element kn_element_whole(int64_t value) { return (kn_element){(double)value, value}; }

static inline kn_element kn_element_get(const void *data, kn_dtype dtype, int64_t index)
{
    switch (dtype) {
    case KN_F64:
        return (kn_element){.real = ((const double *)data)[index]};
    case KN_F16:
        return (kn_element){.real = kn_half_to_float(((const uint16_t *)data)[index])};
    case KN_I64:
        return kn_element_whole(((const int64_t *)data)[index]);
    case KN_I32:
        return kn_element_whole(((const int32_t *)data)[index]);
    case KN_U8:
    case KN_BOOL:
        return kn_element_whole(((const uint8_t *)data)[index]);
    case KN_F32:
    case KN_DTYPE_DEFAULT:
        break;
    }
    return (kn_element){.real = ((const float *)data)[index]};
}

/* Stores an element read as dtype `from`; fractions are truncated, as in PyTorch. */
static inline void kn_element_set(void *data, kn_dtype dtype, int64_t index, kn_element value, kn_dtype from)
{
    int64_t whole = kn_dtype_is_floating(from) && dtype != KN_BOOL
                        ? (kn_dtype_is_floating(dtype) ? 0 : (int64_t)value.real)
                        : value.whole;
    switch (dtype) {
    case KN_F64:
        ((double *)data)[index] = value.real;
        break;
    case KN_F32:
    case KN_DTYPE_DEFAULT:
        ((float *)data)[index] = (float)value.real;
        break;
    case KN_F16:
        ((uint16_t *)data)[index] = kn_float_to_half((float)value.real);
        break;
    case KN_I64:
        ((int64_t *)data)[index] = whole;
        break;
    case KN_I32:
        ((int32_t *)data)[index] = (int32_t)whole;
        break;
    case KN_U8:
        ((uint8_t *)data)[index] = (uint8_t)whole;
        break;
    case KN_BOOL:
        ((uint8_t *)data)[index] = kn_dtype_is_floating(from) ? value.real != 0 : value.whole != 0;
        break;
    }
}

#endif
