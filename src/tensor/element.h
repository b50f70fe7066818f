/* tensor/element.h - single elements of host memory, of any dtype. */
#pragma once

#include <koine/dtype.h>
#include <string.h>

#include "base/half.h"

/* An element as a double and, for integer dtypes, exactly. */
typedef struct kn_element {
    double real;
    int64_t whole;
} kn_element;

static inline kn_element kn_element_whole(int64_t value) { return (kn_element){(double)value, value}; }

/* A real number as an int64, converted as on devices: truncated towards zero and clamped; NaN becomes 0. */
static inline int64_t kn_whole_of(double real)
{
    if (!(real > -0x1p63))
        return real != real ? 0 : INT64_MIN;
    return real < 0x1p63 ? (int64_t)real : INT64_MAX;
}

static inline kn_element kn_element_get(const void *data, kn_dtype dtype, int64_t index)
{
    switch (dtype) {
    case KN_F64:
        return (kn_element){.real = ((const double *)data)[index]};
    case KN_F16:
        return (kn_element){.real = kn_half_to_float(((const uint16_t *)data)[index])};
    case KN_BF16:
        return (kn_element){.real = kn_bfloat_to_float(((const uint16_t *)data)[index])};
    case KN_I64:
        return kn_element_whole(((const int64_t *)data)[index]);
    case KN_I32:
        return kn_element_whole(((const int32_t *)data)[index]);
    case KN_I16:
        return kn_element_whole(((const int16_t *)data)[index]);
    case KN_I8:
        return kn_element_whole(((const int8_t *)data)[index]);
    case KN_U8:
    case KN_BOOL:
        return kn_element_whole(((const uint8_t *)data)[index]);
    case KN_F32:
    case KN_DTYPE_DEFAULT:
        break;
    }
    return (kn_element){.real = ((const float *)data)[index]};
}

/* Stores an element read as dtype `from`. Values out of range of a narrower integer dtype wrap around. */
static inline void kn_element_set(void *data, kn_dtype dtype, int64_t index, kn_element value, kn_dtype from)
{
    const bool is_real = kn_dtype_is_floating(from);
    const int64_t whole = is_real ? kn_whole_of(value.real) : value.whole;
    const float single = is_real ? (float)value.real : (float)value.whole;
    switch (dtype) {
    case KN_F64:
        ((double *)data)[index] = value.real;
        break;
    case KN_F32:
    case KN_DTYPE_DEFAULT:
        ((float *)data)[index] = single;
        break;
    case KN_F16:
        ((uint16_t *)data)[index] = kn_float_to_half(single);
        break;
    case KN_BF16:
        ((uint16_t *)data)[index] = kn_float_to_bfloat(single);
        break;
    case KN_I64:
        ((int64_t *)data)[index] = whole;
        break;
    case KN_I32:
        ((int32_t *)data)[index] = (int32_t)whole;
        break;
    case KN_I16:
        ((int16_t *)data)[index] = (int16_t)whole;
        break;
    case KN_I8:
        ((int8_t *)data)[index] = (int8_t)whole;
        break;
    case KN_U8:
        ((uint8_t *)data)[index] = (uint8_t)whole;
        break;
    case KN_BOOL:
        ((uint8_t *)data)[index] = is_real ? value.real != 0 : whole != 0;
        break;
    }
}
