/* support/values.h - tensors as plain C numbers, and comparing lists of numbers with tolerances. */
#pragma once

#include <koine/koine.h>

/* All elements in row-major order, as doubles / as 64-bit integers (from integer and bool tensors). The caller frees
 * them with free(). NULL with the thread's error if reading fails. An empty tensor gives a valid block. */
double *read_doubles(const kn_tensor *tensor);
int64_t *read_integers(const kn_tensor *tensor);

/* The bytes of all elements; *size becomes their number. Freed with free(). */
void *read_bytes(const kn_tensor *tensor, size_t *size);

/* Numbers in double, int64, ... converted to the bytes of `dtype` (f16 excepted). Freed with free(). */
void *bytes_of_doubles(const double *values, int64_t count, kn_dtype dtype);

/* A tensor of `dtype` from doubles; owned as a result. */
kn_tensor *tensor_of_doubles(const double *values, int ndim, const int64_t *shape, kn_dtype dtype, bool requires_grad);

/* Numbers from low to 1, or their magnitudes, drawn from the text `seed`: the same for every dtype. NULL
 * on failure. */
kn_tensor *random_tensor(const char *seed, int ndim, const int64_t *shape, double low, bool absolute, kn_dtype dtype);

/* |actual - expected| <= atol + rtol |expected|. */
typedef struct closeness {
    double rtol, atol;
} closeness;

/* The tolerance for a result of `dtype` whose elements are sums of `reduction` terms: f32 rtol 1.3e-6 sqrt(reduction),
 * atol 1e-5; f64 1e-7, 1e-7; f16 1e-3, 1e-3; whole numbers exactly. */
closeness closeness_of(kn_dtype dtype, int64_t reduction);

/* Are all numbers close? NaN matches NaN, infinities must be equal. If not, `message` (`size` bytes) names the first
 * that is not, the worst, and how many there are. */
bool values_close(const double *actual, const double *expected, int64_t count, closeness limit, char *message,
                  size_t size);

/* A small, fixed stream of numbers for test inputs (splitmix64); seeded by text, so that a case's inputs depend on its
 * name only. */
typedef struct test_random {
    uint64_t state;
} test_random;
test_random test_random_from(const char *text);
uint64_t test_random_next(test_random *random);
double test_random_uniform(test_random *random, double low, double high); /* exact in float32 */
