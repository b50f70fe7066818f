/* koine/data.h - datasets, transforms, and the loader that makes batches of them. */
#ifndef KOINE_DATA_H
#define KOINE_DATA_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- datasets --------------------------------------------------------------------------------- *
 * A dataset gives samples by index; a sample is an input and a target. `get` writes both as contiguous bytes and is
 * called from several threads at once. */

typedef struct kn_sample_spec {
    kn_dtype dtype;
    int ndim; /* of one sample, without the batch dimension */
    int64_t shape[KN_MAX_DIMS];
} kn_sample_spec;

typedef struct kn_dataset_functions {
    int64_t (*length)(void *self);
    kn_status (*get)(void *self, int64_t index, void *input, void *target);
    void (*destroy)(void *self); /* NULL allowed */
} kn_dataset_functions;

KN_API kn_dataset *kn_dataset_new(const kn_dataset_functions *functions, void *self, const kn_sample_spec *input,
                                  const kn_sample_spec *target);
KN_API void kn_dataset_free(kn_dataset *dataset); /* NULL allowed; after the loaders that use it */
KN_API int64_t kn_dataset_length(kn_dataset *dataset);
KN_API kn_status kn_dataset_get(kn_dataset *dataset, int64_t index, void *input, void *target);
KN_API const kn_sample_spec *kn_dataset_input_spec(const kn_dataset *dataset);
KN_API const kn_sample_spec *kn_dataset_target_spec(const kn_dataset *dataset);

/* Samples are the rows (dimension 0) of two host tensors of equal length; keeps references.
 * torch.utils.data.TensorDataset. */
KN_API kn_status kn_tensor_dataset(kn_dataset **dataset, kn_tensor *inputs, kn_tensor *targets);

/* Images as MNIST and Fashion-MNIST distribute them: DIRECTORY/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz].
 * Inputs are float32 [1, rows, columns] in [0, 1] (ToTensor); targets int64 scalars. A missing file is KN_ERR_IO whose
 * message tells how to get the data. */
KN_API kn_status kn_mnist_dataset(kn_dataset **dataset, const char *directory, bool train);

/* A dataset whose inputs pass through `transform` (in place on the sample's bytes, of spec `spec`); takes ownership of
 * `base`, also on failure. `random` is a seed that depends on the loader's seed, epoch and sample, for augmentation. */
typedef kn_status (*kn_transform)(void *input, const kn_sample_spec *spec, uint64_t random, void *user);
KN_API kn_status kn_transform_dataset(kn_dataset **dataset, kn_dataset *base, kn_transform transform, void *user);

/* Transforms for float32 images [C, H, W]: (x - mean) / std with `user` pointing to a kn_normalize; a flip left to
 * right with probability 1/2 (user unused). */
typedef struct kn_normalize {
    int channels;
    const float *mean, *std;
} kn_normalize;
KN_API kn_status kn_transform_normalize(void *input, const kn_sample_spec *spec, uint64_t random, void *user);
KN_API kn_status kn_transform_random_horizontal_flip(void *input, const kn_sample_spec *spec, uint64_t random,
                                                     void *user);

/* --- the loader ------------------------------------------------------------------------------- *
 * Batches are gathered in host memory by worker threads, then collated: by default they are moved to `device`, on a
 * stream of the loader's own and from pinned memory, so that the copy of a batch runs beside the step before. The
 * caller's current stream waits for it; the host does not. */

/* A batch of n samples: input [n, ...], target [n, ...]. */
typedef struct kn_batch {
    kn_tensor *input, *target;
} kn_batch;

/* PyTorch's collate_fn, applied to what its default_collate has made: `batch` comes as host tensors (borrowed; pinned
 * unless the loader's device is the host) and leaves as the tensors that kn_loader_next gives. It is called by the
 * thread that calls kn_loader_next, in a scope, with the loader's device current and a stream of the loader's own as
 * current stream: what it enqueues runs beside the caller's work, which waits for it. It may be called one batch ahead,
 * and again for a batch for which it failed. Host tensors may be given on as they are. An error is returned by the call
 * whose batch it spoils, and names the batch. */
typedef kn_status (*kn_collate)(kn_batch *batch, void *user);

/* Moves both to the device that `user` points to (a kn_device *; NULL: the current one, which in a loader is its own),
 * without a wait where they are pinned. */
KN_API kn_status kn_collate_to_device(kn_batch *batch, void *user);

typedef struct kn_loader_params {
    int64_t batch_size;  /* default 1 */
    bool shuffle;        /* default false; the order depends on seed and epoch only */
    bool drop_last;      /* default false: the last batch may be smaller */
    int num_workers;     /* threads; default 0: batches are made by the caller's thread */
    int prefetch_factor; /* batches ahead per worker, default 2 */
    uint64_t seed;       /* default 0 */
    kn_device *device;  /* where batches go; default: the current device. The host: they stay where they are gathered */
    bool pin_memory;    /* default false; true: pinned batches also where `device` is the host (others always are) */
    kn_collate collate; /* default NULL: kn_collate_to_device, or nothing where `device` is the host */
    void *collate_user; /* given to collate */
} kn_loader_params;
#define KN_LOADER_DEFAULTS .batch_size = 1, .prefetch_factor = 2
KN_API kn_loader_params kn_loader_params_init(void);
KN_API kn_status kn_loader_new_with(kn_loader **loader, kn_dataset *dataset, const kn_loader_params *params);
#define kn_loader_new(loader, dataset, ...)                                                                            \
    KN_CALL(kn_loader_new_with(loader, dataset, &(kn_loader_params){KN_LOADER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_loader_free(kn_loader *loader); /* NULL allowed; stops the workers */

KN_API int64_t kn_loader_batches(const kn_loader *loader); /* per epoch */
KN_API int64_t kn_loader_samples(const kn_loader *loader); /* per epoch */

/* Starts epoch `epoch` (its order: seed and epoch). kn_loader_next makes the next batch: *input [n, ...], *target [n,
 * ...], owned as results (by the scope or the caller); both NULL at the end of the epoch. An error of a dataset is
 * returned by the call whose batch it spoils. */
KN_API kn_status kn_loader_start(kn_loader *loader, int64_t epoch);
KN_API kn_status kn_loader_next(kn_loader *loader, kn_tensor **input, kn_tensor **target);

KN_END_DECLS

#endif
