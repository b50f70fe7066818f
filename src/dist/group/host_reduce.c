/* dist/group/host_reduce.c - elementwise reductions of host memory. */
#include "base/half.h"
#include "dist/group/transport.h"

/* The result may be one of the operands, but no element depends on an earlier one. */
#if defined __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined __GNUC__
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* Loops that compilers make vectors of. `load` and `store` convert between the element T and the type C that is
 * computed in. Integers wrap around: they are computed as unsigned. */
#define LOOP(T, C, load, store, expression)                                                                            \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x = first, *y = second;                                                                               \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                                 \
        {                                                                                                              \
            const C a = load(x[i]), b = load(y[i]);                                                                    \
            result[i] = (T)store(expression);                                                                          \
        }                                                                                                              \
        break;                                                                                                         \
    }

#define SAME(value) (value)

/* NaN propagates: all comparisons with it are false. */
#define FLOATING(T, C, load, store)                                                                                    \
    switch (op) {                                                                                                      \
    case KN_REDUCE_SUM:                                                                                                \
        LOOP(T, C, load, store, a + b)                                                                                 \
    case KN_REDUCE_PRODUCT:                                                                                            \
        LOOP(T, C, load, store, a *b)                                                                                  \
    case KN_REDUCE_MAX:                                                                                                \
        LOOP(T, C, load, store, (a >= b || a != a) ? a : b)                                                            \
    case KN_REDUCE_MIN:                                                                                                \
        LOOP(T, C, load, store, (a <= b || a != a) ? a : b)                                                            \
    default:                                                                                                           \
        break;                                                                                                         \
    }

#define WHOLE(T, U)                                                                                                    \
    switch (op) {                                                                                                      \
    case KN_REDUCE_SUM:                                                                                                \
        LOOP(T, U, (U), SAME, a + b)                                                                                   \
    case KN_REDUCE_PRODUCT:                                                                                            \
        LOOP(T, U, (U), SAME, a *b)                                                                                    \
    case KN_REDUCE_MAX:                                                                                                \
        LOOP(T, T, SAME, SAME, a >= b ? a : b)                                                                         \
    case KN_REDUCE_MIN:                                                                                                \
        LOOP(T, T, SAME, SAME, a <= b ? a : b)                                                                         \
    case KN_REDUCE_AND:                                                                                                \
        LOOP(T, U, (U), SAME, a &b)                                                                                    \
    case KN_REDUCE_OR:                                                                                                 \
        LOOP(T, U, (U), SAME, a | b)                                                                                   \
    case KN_REDUCE_XOR:                                                                                                \
        LOOP(T, U, (U), SAME, a ^ b)                                                                                   \
    default:                                                                                                           \
        break;                                                                                                         \
    }

/* bool: a sum is "or", a product "and". */
static kn_reduce_op of_bool(kn_reduce_op op)
{
    switch (op) {
    case KN_REDUCE_SUM:
    case KN_REDUCE_MAX:
        return KN_REDUCE_OR;
    case KN_REDUCE_PRODUCT:
    case KN_REDUCE_MIN:
        return KN_REDUCE_AND;
    default:
        return op;
    }
}

void kn_host_reduce(kn_dtype dtype, kn_reduce_op op, void *out, const void *first, const void *second, size_t count)
{
    if (dtype == KN_BOOL)
        op = of_bool(op);
    switch (dtype) {
    case KN_F64:
        FLOATING(double, double, SAME, SAME) break;
    case KN_F32:
        FLOATING(float, float, SAME, SAME) break;
    case KN_F16:
        FLOATING(uint16_t, float, kn_half_to_float, kn_float_to_half) break;
    case KN_BF16:
        FLOATING(uint16_t, float, kn_bfloat_to_float, kn_float_to_bfloat) break;
    case KN_I64:
        WHOLE(int64_t, uint64_t) break;
    case KN_I32:
        WHOLE(int32_t, uint32_t) break;
    case KN_I16:
        WHOLE(int16_t, uint32_t) break;
    case KN_I8:
        WHOLE(int8_t, uint32_t) break;
    case KN_U8:
    case KN_BOOL:
        WHOLE(uint8_t, uint32_t) break;
    default:
        break;
    }
}

#define DIVIDE(T, C, load, store)                                                                                      \
    {                                                                                                                  \
        T *x = data;                                                                                                   \
        for (size_t i = 0; i < count; i++)                                                                             \
            x[i] = store(load(x[i]) / (C)divisor);                                                                     \
        break;                                                                                                         \
    }

void kn_host_divide(kn_dtype dtype, void *data, size_t count, double divisor)
{
    switch (dtype) {
    case KN_F64:
        DIVIDE(double, double, SAME, SAME)
    case KN_F32:
        DIVIDE(float, float, SAME, SAME)
    case KN_F16:
        DIVIDE(uint16_t, float, kn_half_to_float, kn_float_to_half)
    case KN_BF16:
        DIVIDE(uint16_t, float, kn_bfloat_to_float, kn_float_to_bfloat)
    default:
        break;
    }
}
