/* koine/dtype.h - element types and scalars. Thread-safe. */
#ifndef KOINE_DTYPE_H
#define KOINE_DTYPE_H

#include <koine/common.h>

KN_BEGIN_DECLS

#define KN_MAX_DIMS 8

typedef enum kn_dtype {
    KN_DTYPE_DEFAULT = 0, /* in options: float32, or what the function documents */
    KN_F64,
    KN_F32,
    KN_F16,  /* storage; arithmetic is in float32, and results are rounded to nearest even once, when they are stored */
    KN_BF16, /* likewise: the upper half of a float32 */
    KN_I64,
    KN_I32,
    KN_I16,
    KN_I8,
    KN_U8,
    KN_BOOL /* one byte, 0 or 1 */
} kn_dtype;

KN_API const char *kn_dtype_name(kn_dtype dtype); /* PyTorch's: "float32", "int64", "bool", ... */
KN_API size_t kn_dtype_size(kn_dtype dtype);      /* bytes of one element */
KN_API bool kn_dtype_is_floating(kn_dtype dtype);

/* The dtype of an operation on two tensors, by PyTorch's promotion table (torch.promote_types): int8 and uint8 give
 * int16, float16 and bfloat16 float32. */
KN_API kn_dtype kn_promote_types(kn_dtype a, kn_dtype b);

/* A scalar operand: an integer, exact over all of int64, or a real number. As in PyTorch the kind affects promotion: a
 * real scalar turns an integer tensor into float32, whatever its value. */
typedef struct kn_scalar {
    bool is_whole;
    int64_t whole; /* the value of an integer */
    double real;   /* the value of both kinds; for an integer the nearest double */
} kn_scalar;

static inline kn_scalar kn_scalar_real(double value)
{
    kn_scalar scalar = {false, 0, value};
    return scalar;
}
static inline kn_scalar kn_scalar_int(int64_t value)
{
    kn_scalar scalar = {true, value, (double)value};
    return scalar;
}
static inline kn_scalar kn_scalar_same(kn_scalar value) { return value; }

KN_END_DECLS

/* KN_NUMBER(2) is an integer, KN_NUMBER(2.0) a real number, KN_NUMBER(s) the kn_scalar s itself. Functions that take a
 * kn_scalar are called through macros (templates in C++) that use it: kn_mul_scalar(x, 2). */
#ifdef __cplusplus
inline kn_scalar kn_scalar_of(kn_scalar value) { return value; }
inline kn_scalar kn_scalar_of(double value) { return kn_scalar_real(value); }
inline kn_scalar kn_scalar_of(float value) { return kn_scalar_real(value); }
inline kn_scalar kn_scalar_of(long double value) { return kn_scalar_real((double)value); }
template <class Whole> inline kn_scalar kn_scalar_of(Whole value) { return kn_scalar_int((int64_t)value); }
#define KN_NUMBER(value) kn_scalar_of(value)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define KN_NUMBER(value)                                                                                               \
    _Generic((value), kn_scalar                                                                                        \
             : kn_scalar_same, float                                                                                   \
             : kn_scalar_real, double                                                                                  \
             : kn_scalar_real, long double                                                                             \
             : kn_scalar_real, default                                                                                 \
             : kn_scalar_int)(value)
#else
#define KN_NUMBER(value) kn_scalar_real(value) /* C99 has no _Generic */
#endif

#endif
