/* values.c - reading tensors as plain numbers, comparing them, and random numbers for test inputs. */
#include "support/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double half_to_double(uint16_t bits)
{
    int exponent = (bits >> 10) & 0x1f;
    double fraction = bits & 0x3ff;
    double magnitude;
    if (exponent == 0x1f)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, -24);
    else
        magnitude = ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) ? -magnitude : magnitude;
}

static double bfloat_to_double(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double element_as_double(const void *bytes, int64_t i, kn_dtype dtype)
{
    switch (dtype) {
    case KN_F64:
        return ((const double *)bytes)[i];
    case KN_F32:
        return ((const float *)bytes)[i];
    case KN_F16:
        return half_to_double(((const uint16_t *)bytes)[i]);
    case KN_BF16:
        return bfloat_to_double(((const uint16_t *)bytes)[i]);
    case KN_I64:
        return (double)((const int64_t *)bytes)[i];
    case KN_I32:
        return ((const int32_t *)bytes)[i];
    case KN_I16:
        return ((const int16_t *)bytes)[i];
    case KN_I8:
        return ((const int8_t *)bytes)[i];
    default:
        return ((const uint8_t *)bytes)[i];
    }
}

static int64_t element_as_integer(const void *bytes, int64_t i, kn_dtype dtype)
{
    return dtype == KN_I64 ? ((const int64_t *)bytes)[i] : (int64_t)element_as_double(bytes, i, dtype);
}

void *read_bytes(const kn_tensor *tensor, size_t *size)
{
    if (!tensor)
        return NULL;
    *size = (size_t)kn_numel(tensor) * kn_dtype_size(kn_dtype_of(tensor));
    void *bytes = calloc(*size + 1, 1);
    if (bytes && kn_read(tensor, bytes, *size) == KN_OK)
        return bytes;
    free(bytes);
    return NULL;
}

double *read_doubles(const kn_tensor *tensor)
{
    size_t size;
    void *bytes = read_bytes(tensor, &size);
    if (!bytes)
        return NULL;
    int64_t count = kn_numel(tensor);
    double *values = malloc(((size_t)count + 1) * sizeof(double));
    for (int64_t i = 0; values && i < count; i++)
        values[i] = element_as_double(bytes, i, kn_dtype_of(tensor));
    free(bytes);
    return values;
}

int64_t *read_integers(const kn_tensor *tensor)
{
    size_t size;
    void *bytes = read_bytes(tensor, &size);
    if (!bytes)
        return NULL;
    int64_t count = kn_numel(tensor);
    int64_t *values = malloc(((size_t)count + 1) * sizeof(int64_t));
    for (int64_t i = 0; values && i < count; i++)
        values[i] = element_as_integer(bytes, i, kn_dtype_of(tensor));
    free(bytes);
    return values;
}

void *bytes_of_doubles(const double *values, int64_t count, kn_dtype dtype)
{
    void *bytes = calloc((size_t)count + 1, 8);
    for (int64_t i = 0; bytes && i < count; i++) {
        switch (dtype) {
        case KN_F64:
            ((double *)bytes)[i] = values[i];
            break;
        case KN_F32:
            ((float *)bytes)[i] = (float)values[i];
            break;
        case KN_I64:
            ((int64_t *)bytes)[i] = (int64_t)values[i];
            break;
        case KN_I32:
            ((int32_t *)bytes)[i] = (int32_t)values[i];
            break;
        case KN_I16:
            ((int16_t *)bytes)[i] = (int16_t)values[i];
            break;
        case KN_I8:
            ((int8_t *)bytes)[i] = (int8_t)values[i];
            break;
        default:
            ((uint8_t *)bytes)[i] = (uint8_t)values[i];
        }
    }
    return bytes;
}

kn_tensor *tensor_of_doubles(const double *values, int ndim, const int64_t *shape, kn_dtype dtype, bool requires_grad)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    const bool is_reduced = dtype == KN_F16 || dtype == KN_BF16;
    kn_dtype made = is_reduced ? KN_F32 : dtype;
    void *bytes = bytes_of_doubles(values, count, made);
    kn_tensor *tensor = kn_from_data_with(bytes, ndim, shape, &(kn_tensor_options){.dtype = made});
    free(bytes);
    if (is_reduced)
        tensor = kn_to_dtype(tensor, dtype);
    if (tensor && requires_grad && kn_set_requires_grad(tensor, true) != KN_OK)
        return NULL;
    return tensor;
}

closeness closeness_of(kn_dtype dtype, int64_t reduction)
{
    switch (dtype) {
    case KN_F64:
        return (closeness){1e-7, 1e-7};
    case KN_F32:
        return (closeness){1.3e-6 * sqrt(reduction > 1 ? (double)reduction : 1), 1e-5};
    case KN_F16:
        return (closeness){1e-3, 1e-3};
    case KN_BF16:
        return (closeness){8e-3, 8e-3};
    default:
        return (closeness){0, 0};
    }
}

static double excess(double actual, double expected, closeness limit)
{
    if (isnan(actual) || isnan(expected))
        return isnan(actual) && isnan(expected) ? 0 : INFINITY;
    if (isinf(actual) || isinf(expected))
        return actual == expected ? 0 : INFINITY;
    double error = fabs(actual - expected), allowed = limit.atol + limit.rtol * fabs(expected);
    return error <= allowed ? 0 : error - allowed;
}

bool values_close(const double *actual, const double *expected, int64_t count, closeness limit, char *message,
                  size_t size)
{
    int64_t bad = 0, first = 0, worst = 0;
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double beyond = excess(actual[i], expected[i], limit);
        if (beyond <= 0)
            continue;
        if (bad++ == 0)
            first = i;
        if (beyond > largest) {
            largest = beyond;
            worst = i;
        }
    }
    if (bad == 0)
        return true;
    snprintf(message, size,
             "%lld of %lld elements differ (rtol %.2g, atol %.2g): [%lld] is %.9g, should be %.9g; worst [%lld] is "
             "%.9g, should be %.9g",
             (long long)bad, (long long)count, limit.rtol, limit.atol, (long long)first, actual[first], expected[first],
             (long long)worst, actual[worst], expected[worst]);
    return false;
}

test_random test_random_from(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (test_random){hash};
}

uint64_t test_random_next(test_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double test_random_uniform(test_random *random, double low, double high)
{
    double unit = (double)(test_random_next(random) >> 11) / 9007199254740992.0;
    return (float)(low + (high - low) * unit);
}

kn_tensor *random_tensor(const char *seed, int ndim, const int64_t *shape, double low, bool absolute, kn_dtype dtype)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    test_random random = test_random_from(seed);
    double *values = malloc((size_t)count * sizeof *values);
    if (!values)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        values[i] = test_random_uniform(&random, low, 1);
        if (absolute)
            values[i] = fabs(values[i]);
    }
    kn_tensor *tensor = tensor_of_doubles(values, ndim, shape, dtype, false);
    free(values);
    return tensor;
}
