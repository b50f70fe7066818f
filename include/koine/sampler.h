/* koine/sampler.h - which samples an epoch has, in which order: torch.utils.data.Sampler and its kinds.
 *
 *     kn_sampler *sampler = kn_weighted_random_sampler(weights, count, count);
 *     kn_loader *loader = kn_loader_new(dataset, .batch_size = 32, .sampler = sampler);
 *
 * The order of an epoch depends on the sampler's parameters, the loader's seed and the epoch's number alone: no state
 * passes from one epoch to the next, so a resumed run continues with the same order. A sampler may serve several
 * loaders and threads at once, and is freed after the loaders that use it. Constructors return NULL with a sticky
 * error; arrays are copied; `dataset` is asked for its length and not kept. */
#ifndef KOINE_SAMPLER_H
#define KOINE_SAMPLER_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef struct kn_sampler kn_sampler;

KN_API void kn_sampler_free(kn_sampler *sampler);            /* NULL allowed */
KN_API int64_t kn_sampler_length(const kn_sampler *sampler); /* samples per epoch; 0 for NULL */
/* Writes the indices of an epoch (0 or more), kn_sampler_length of them, in their order. */
KN_API kn_status kn_sampler_order(const kn_sampler *sampler, uint64_t seed, int64_t epoch, int64_t *indices);

/* SequentialSampler: 0, 1, 2, ...: what a loader does by default. */
KN_API kn_sampler *kn_sequential_sampler(kn_dataset *dataset);

/* RandomSampler: a permutation of the samples, which is a loader's .shuffle; or draws with replacement. */
typedef struct kn_random_sampler_params {
    bool replacement; /* default false */
    /* default 0: the dataset's length. More without replacement: one permutation after another */
    int64_t num_samples;
} kn_random_sampler_params;
#define KN_RANDOM_SAMPLER_DEFAULTS .replacement = false
KN_API kn_random_sampler_params kn_random_sampler_params_init(void);
KN_API kn_sampler *kn_random_sampler_with(kn_dataset *dataset, const kn_random_sampler_params *params);
#define kn_random_sampler(dataset, ...)                                                                                \
    KN_CALL(kn_random_sampler_with(dataset, &(kn_random_sampler_params){KN_RANDOM_SAMPLER_DEFAULTS, __VA_ARGS__}))

/* SubsetRandomSampler: a permutation of these samples. */
KN_API kn_sampler *kn_subset_random_sampler(const int64_t *indices, int64_t count);

/* WeightedRandomSampler: `num_samples` draws of sample i with a probability in proportion to weights[i], which is 0 or
 * more. Without replacement each is drawn at most once, and there must be at least that many weights above 0. */
typedef struct kn_weighted_random_sampler_params {
    bool replacement; /* default true */
} kn_weighted_random_sampler_params;
#define KN_WEIGHTED_RANDOM_SAMPLER_DEFAULTS .replacement = true
KN_API kn_weighted_random_sampler_params kn_weighted_random_sampler_params_init(void);
KN_API kn_sampler *kn_weighted_random_sampler_with(const double *weights, int64_t count, int64_t num_samples,
                                                   const kn_weighted_random_sampler_params *params);
#define kn_weighted_random_sampler(weights, count, num_samples, ...)                                                   \
    KN_CALL(kn_weighted_random_sampler_with(                                                                           \
        weights, count, num_samples,                                                                                   \
        &(kn_weighted_random_sampler_params){KN_WEIGHTED_RANDOM_SAMPLER_DEFAULTS, __VA_ARGS__}))

/* DistributedSampler: the part of one of `num_replicas` programs, every num_replicas-th sample of one order that all of
 * them share. Unless drop_last, that order is lengthened with its own beginning so that all parts are equally long;
 * drop_last shortens it instead. */
typedef struct kn_distributed_sampler_params {
    int64_t num_replicas; /* default 1 */
    int64_t rank;         /* default 0; below num_replicas */
    bool shuffle;         /* default true */
    uint64_t seed;        /* default 0; the same in all programs. The loader's seed does not matter */
    bool drop_last;       /* default false */
} kn_distributed_sampler_params;
#define KN_DISTRIBUTED_SAMPLER_DEFAULTS .num_replicas = 1, .shuffle = true
KN_API kn_distributed_sampler_params kn_distributed_sampler_params_init(void);
KN_API kn_sampler *kn_distributed_sampler_with(kn_dataset *dataset, const kn_distributed_sampler_params *params);
#define kn_distributed_sampler(dataset, ...)                                                                           \
    KN_CALL(kn_distributed_sampler_with(                                                                               \
        dataset, &(kn_distributed_sampler_params){KN_DISTRIBUTED_SAMPLER_DEFAULTS, __VA_ARGS__}))

/* A program's own sampler. */
typedef struct kn_sampler_functions {
    int64_t (*length)(void *self); /* samples per epoch; asked once, by kn_sampler_new */
    /* Writes the indices of an epoch. For the loader's promises the same seed and epoch must give the same order.
     * Returns KN_OK, or the status of an error (kn_error_set). Called by several threads at once if several loaders
     * share the sampler. */
    kn_status (*order)(void *self, uint64_t seed, int64_t epoch, int64_t *indices);
    void (*destroy)(void *self); /* NULL allowed; not called if kn_sampler_new fails */
} kn_sampler_functions;
KN_API kn_sampler *kn_sampler_new(const kn_sampler_functions *functions, void *self); /* copies the functions */

KN_END_DECLS

#endif
