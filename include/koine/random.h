/* koine/random.h - random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC
 * 2011).
 *
 * Each device has one generator: a 64-bit seed and a 64-bit offset. A draw of n numbers depends on seed, offset and the
 * element's index only, not on the device or the launch shape, so every device gives the same stream (normal deviates
 * to rounding of log and cos). Generators are guarded by a lock; which thread draws first is up to the threads. */
#ifndef KOINE_RANDOM_H
#define KOINE_RANDOM_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_RNG_STATE_SIZE 16 /* bytes: seed, offset, both little-endian */

KN_API void kn_manual_seed(uint64_t seed); /* seeds every device's generator and sets its offset to 0 */
KN_API uint64_t kn_seed(void);             /* seeds them from the operating system; returns the seed */
KN_API uint64_t kn_initial_seed(kn_device *device);
KN_API kn_status kn_get_rng_state(kn_device *device, uint8_t state[KN_RNG_STATE_SIZE]);
KN_API kn_status kn_set_rng_state(kn_device *device, const uint8_t state[KN_RNG_STATE_SIZE]);

/* uniform [0, 1): 24 bits for f32 and f16, 53 for f64 / standard normal (Box-Muller). */
KN_API kn_tensor *kn_rand_with(int ndim, const int64_t *shape, const kn_tensor_options *options);
KN_API kn_tensor *kn_randn_with(int ndim, const int64_t *shape, const kn_tensor_options *options);

/* Whole numbers low .. high - 1 (default dtype int64) / a permutation of 0 .. n - 1. */
KN_API kn_tensor *kn_randint_with(int64_t low, int64_t high, int ndim, const int64_t *shape,
                                  const kn_tensor_options *options);
KN_API kn_tensor *kn_randperm_with(int64_t n, const kn_tensor_options *options);

#define kn_rand(shape, ...) kn_rand_with(shape, &(kn_tensor_options){__VA_ARGS__})
#define kn_randn(shape, ...) kn_randn_with(shape, &(kn_tensor_options){__VA_ARGS__})
#define kn_randint(low, high, shape, ...) kn_randint_with(low, high, shape, &(kn_tensor_options){__VA_ARGS__})
#define kn_randperm(n, ...) kn_randperm_with(n, &(kn_tensor_options){__VA_ARGS__})

/* Fill in place; the tensor's dtype is floating (kn_bernoulli_ takes any). Return their argument, NULL on error. */
KN_API kn_tensor *kn_uniform_(kn_tensor *tensor, double low, double high);
KN_API kn_tensor *kn_normal_(kn_tensor *tensor, double mean, double std);
KN_API kn_tensor *kn_bernoulli_(kn_tensor *tensor, double p);

KN_END_DECLS

#endif
