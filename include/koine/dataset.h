/* koine/dataset.h - datasets made of others: torch.utils.data's Subset, random_split and ConcatDataset. They have the
 * fields of those that they are made of, and keep these alive: any of them may be freed first. NULL with a sticky error
 * on failure. */
#ifndef KOINE_DATASET_H
#define KOINE_DATASET_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* Subset: sample i is sample indices[i] of `dataset`. Copies the indices. */
KN_API kn_dataset *kn_subset(kn_dataset *dataset, const int64_t *indices, int64_t count);

/* random_split: parts of a dataset without common samples, drawn at random:
 *
 *     kn_dataset *parts[2];
 *     if (kn_random_split(dataset, KN_LENGTHS(0.9, 0.1), parts, .seed = 42) != KN_OK) ...
 *
 * `lengths` are numbers of samples, whose sum is the dataset's length; or fractions, whose sum is 1: then each part has
 * floor(fraction length) samples, and the first parts get one each of those left over. The caller frees the parts,
 * which are all NULL on failure. The seed alone decides which samples a part has; the dataset itself keeps its
 * samples. */
typedef struct kn_random_split_params {
    uint64_t seed; /* default 0 */
} kn_random_split_params;
#define KN_RANDOM_SPLIT_DEFAULTS .seed = 0
KN_API kn_random_split_params kn_random_split_params_init(void);
KN_API kn_status kn_random_split_with(kn_dataset *dataset, const double *lengths, int count, kn_dataset **parts,
                                      const kn_random_split_params *params);
#define kn_random_split(dataset, lengths, parts, ...)                                                                  \
    KN_CALL(kn_random_split_with(dataset, lengths, parts,                                                              \
                                 &(kn_random_split_params){KN_RANDOM_SPLIT_DEFAULTS, __VA_ARGS__}))
#define KN_LENGTHS(...) ((const double[]){__VA_ARGS__}), ((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

/* ConcatDataset: the samples of one dataset after those of the other. All have the same fields: names, dtypes, shapes.
 * kn_concat_dataset(KN_DATASETS(one, other)) */
KN_API kn_dataset *kn_concat_dataset(kn_dataset *const *datasets, int count);
#define KN_DATASETS(...)                                                                                               \
    ((kn_dataset *const[]){__VA_ARGS__}), ((int)(sizeof((kn_dataset *const[]){__VA_ARGS__}) / sizeof(kn_dataset *)))

KN_END_DECLS

#endif
