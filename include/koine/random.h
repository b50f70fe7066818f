/* koine/random.h - random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC
 * 2011).
 *
 * Each device has a default generator: a 64-bit seed and a 64-bit offset. More are made by koine/generator.h and given
 * as `.generator`: kn_rand(KN_SHAPE(2, 3), .generator = g). A drawn number depends only on seed, offset and the
 * element's index, not on the device or the launch, so every device gives the same numbers (normal deviates up to the
 * rounding of log and cos). Generators are thread-safe; the order of draws from several threads is not defined. */
#ifndef KOINE_RANDOM_H
#define KOINE_RANDOM_H

#include <koine/common.h>
#include <koine/generator.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* The host has a generator too: "every device" below includes it; kn_device_host() names it. All of these functions are
 * thread-safe. */
KN_API void kn_manual_seed(uint64_t seed); /* seeds every device's generator and sets its offset to 0 */
KN_API uint64_t kn_seed(void);             /* seeds all of them with a random seed from the system; returns it */

/* The same for one device. KN_ERR_ARGUMENT if `device` is NULL. */
KN_API kn_status kn_manual_seed_device(kn_device *device, uint64_t seed);
KN_API kn_status kn_seed_device(kn_device *device, uint64_t *seed); /* `seed` may be NULL */

/* The seed in use; 0 with an error if `device` is NULL. */
KN_API uint64_t kn_initial_seed(kn_device *device);

/* A state is the seed and the offset: kn_rand after kn_set_rng_state gives the same numbers as after the
 * kn_get_rng_state. */
KN_API kn_status kn_get_rng_state(kn_device *device, uint8_t state[KN_RNG_STATE_SIZE]);
KN_API kn_status kn_set_rng_state(kn_device *device, const uint8_t state[KN_RNG_STATE_SIZE]);

/* The states of the OpenCL devices, one after the other in the order of kn_device_at: `count` of KN_RNG_STATE_SIZE
 * bytes each. KN_ERR_ARGUMENT unless `count` is kn_device_count(). */
KN_API kn_status kn_get_rng_state_all(uint8_t *states, int count);
KN_API kn_status kn_set_rng_state_all(const uint8_t *states, int count);

/* Restores every generator at the end of the enclosing block, as torch.random.fork_rng() does (a guard:
 * koine/common.h).
 *
 *     {
 *         KN_FORK_RNG;
 *         kn_manual_seed(0);
 *         noise = kn_retain(kn_randn(KN_SHAPE(8, 8)));
 *     }
 *
 * If host memory is short, sets a sticky error, and to the end of the block the thread does no work on any device
 * (kn_refuse_work). Draws by other threads in the meantime are undone too. */
#define KN_FORK_RNG KN_GUARD(kn_rng_fork *, kn_rng_fork_, kn_fork_rng_enter(), kn_fork_rng_leave)

/* The guard's functions. kn_fork_rng_end frees the fork; NULL allowed. */
typedef struct kn_rng_fork kn_rng_fork;
KN_API kn_rng_fork *kn_fork_rng_begin(void); /* NULL with an error */
KN_API kn_status kn_fork_rng_end(kn_rng_fork *fork);

static inline kn_rng_fork *kn_fork_rng_enter(void)
{
    kn_rng_fork *fork = kn_fork_rng_begin();
    if (!fork)
        kn_refuse_work();
    return fork;
}
static inline void kn_fork_rng_leave(kn_rng_fork **fork)
{
    if (!*fork)
        kn_accept_work();
    kn_fork_rng_end(*fork);
}

/* uniform [0, 1): 24 bits for f32, 11 for f16, 8 for bf16, 53 for f64 / standard normal (Box-Muller). */
KN_API kn_tensor *kn_rand_with(int ndim, const int64_t *shape, const kn_tensor_options *options);
KN_API kn_tensor *kn_randn_with(int ndim, const int64_t *shape, const kn_tensor_options *options);

/* Integers low .. high - 1 (default dtype int64) / a permutation of 0 .. n - 1. KN_ERR_ARGUMENT if an integer dtype, or
 * any dtype of a permutation, does not have all of them. */
KN_API kn_tensor *kn_randint_with(int64_t low, int64_t high, int ndim, const int64_t *shape,
                                  const kn_tensor_options *options);
KN_API kn_tensor *kn_randperm_with(int64_t n, const kn_tensor_options *options);

#define kn_rand(shape, ...) KN_CALL(kn_rand_with(shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_randn(shape, ...) KN_CALL(kn_randn_with(shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_randint(low, high, shape, ...)                                                                              \
    KN_CALL(kn_randint_with(low, high, shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_randperm(n, ...) KN_CALL(kn_randperm_with(n, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))

typedef struct kn_random_params {
    kn_generator *generator; /* default NULL: that of the tensor's device */
} kn_random_params;
#define KN_RANDOM_DEFAULTS .generator = NULL
KN_API kn_random_params kn_random_params_init(void);

/* kn_rand and kn_randn with the shape, dtype (floating) and device of `like`. */
KN_API kn_tensor *kn_rand_like_with(const kn_tensor *like, const kn_random_params *params);
KN_API kn_tensor *kn_randn_like_with(const kn_tensor *like, const kn_random_params *params);
#define kn_rand_like(like, ...) KN_CALL(kn_rand_like_with(like, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_randn_like(like, ...) KN_CALL(kn_randn_like_with(like, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

/* Fill in place; the dtype must be floating (any for kn_bernoulli_). Return their argument, NULL on error. Not
 * recorded: fill a tensor that requires a gradient inside KN_NO_GRAD. */
KN_API kn_tensor *kn_uniform_with_(kn_tensor *tensor, double low, double high, const kn_random_params *params);
KN_API kn_tensor *kn_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params);
KN_API kn_tensor *kn_bernoulli_with_(kn_tensor *tensor, double p, const kn_random_params *params);
#define kn_uniform_(tensor, low, high, ...)                                                                            \
    KN_CALL(kn_uniform_with_(tensor, low, high, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_normal_(tensor, mean, std, ...)                                                                             \
    KN_CALL(kn_normal_with_(tensor, mean, std, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_bernoulli_(tensor, p, ...)                                                                                  \
    KN_CALL(kn_bernoulli_with_(tensor, p, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

/* exp of a normal deviate / density lambd exp(-lambd x), x > 0 / the number of trials up to the first success, 1, 2,
 * ... (any dtype) / median + sigma tan(pi (u - 1/2)) / normal, but only from a to b / integers low .. high - 1 (any
 * dtype). */
KN_API kn_tensor *kn_log_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params);
KN_API kn_tensor *kn_exponential_with_(kn_tensor *tensor, double lambd, const kn_random_params *params);
KN_API kn_tensor *kn_geometric_with_(kn_tensor *tensor, double p, const kn_random_params *params);
KN_API kn_tensor *kn_cauchy_with_(kn_tensor *tensor, double median, double sigma, const kn_random_params *params);
KN_API kn_tensor *kn_truncated_normal_with_(kn_tensor *tensor, double mean, double std, double a, double b,
                                            const kn_random_params *params);
KN_API kn_tensor *kn_random_with_(kn_tensor *tensor, int64_t low, int64_t high, const kn_random_params *params);
#define kn_log_normal_(tensor, mean, std, ...)                                                                         \
    KN_CALL(kn_log_normal_with_(tensor, mean, std, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_exponential_(tensor, lambd, ...)                                                                            \
    KN_CALL(kn_exponential_with_(tensor, lambd, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_geometric_(tensor, p, ...)                                                                                  \
    KN_CALL(kn_geometric_with_(tensor, p, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_cauchy_(tensor, median, sigma, ...)                                                                         \
    KN_CALL(kn_cauchy_with_(tensor, median, sigma, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_truncated_normal_(tensor, mean, std, a, b, ...)                                                             \
    KN_CALL(kn_truncated_normal_with_(tensor, mean, std, a, b, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_random_(tensor, low, high, ...)                                                                             \
    KN_CALL(kn_random_with_(tensor, low, high, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

/* Integers low .. high - 1 with the shape, dtype and device of `like`. */
KN_API kn_tensor *kn_randint_like_with(const kn_tensor *like, int64_t low, int64_t high,
                                       const kn_random_params *params);
#define kn_randint_like(like, low, high, ...)                                                                          \
    KN_CALL(kn_randint_like_with(like, low, high, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

/* --- with parameters in tensors, on a device ---------------------------------------------------------------------- *
 * The results have the shape, dtype and device of the parameters; nothing is recorded. */

/* torch.normal: mean and std are broadcast against each other / torch.bernoulli: 1 with probability p, else 0 /
 * torch.poisson: counts with these rates, 0 or more (a NaN for others) / torch.binomial: the successes of `count`
 * trials with probability `prob`, of equal dtypes, broadcast. */
KN_API kn_tensor *kn_normal_with(kn_tensor *mean, kn_tensor *std, const kn_random_params *params);
KN_API kn_tensor *kn_bernoulli_with(kn_tensor *p, const kn_random_params *params);
KN_API kn_tensor *kn_poisson_with(kn_tensor *rates, const kn_random_params *params);
KN_API kn_tensor *kn_binomial_with(kn_tensor *count, kn_tensor *prob, const kn_random_params *params);
#define kn_normal(mean, std, ...)                                                                                      \
    KN_CALL(kn_normal_with(mean, std, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_bernoulli(p, ...) KN_CALL(kn_bernoulli_with(p, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_poisson(rates, ...) KN_CALL(kn_poisson_with(rates, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

#define kn_binomial(count, prob, ...)                                                                                  \
    KN_CALL(kn_binomial_with(count, prob, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_multinomial_params {
    bool replacement;        /* default false */
    kn_generator *generator; /* default NULL: that of the tensor's device */
} kn_multinomial_params;
#define KN_MULTINOMIAL_DEFAULTS .replacement = false
KN_API kn_multinomial_params kn_multinomial_params_init(void);
/* torch.multinomial: `num_samples` indices (int64) of each row of weights [C] or [N, C], which are 0 or more and need
 * not sum to 1. Without replacement an index is drawn once only; num_samples is then at most C, and indices of weight
 * 0 come last. A row whose weights are not finite or have no positive one gives index 0. */
KN_API kn_tensor *kn_multinomial_with(kn_tensor *weights, int64_t num_samples, const kn_multinomial_params *params);
#define kn_multinomial(weights, num_samples, ...)                                                                      \
    KN_CALL(kn_multinomial_with(weights, num_samples, &(kn_multinomial_params){KN_MULTINOMIAL_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
