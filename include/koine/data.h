/* koine/data.h - datasets, transforms, and the loader that makes batches of them. */
#ifndef KOINE_DATA_H
#define KOINE_DATA_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- datasets --------------------------------------------------------------------------------- *
 * A dataset gives samples by index. A sample has one field or several: an image and its class, or tokens, a mask, a
 * length and a label. Each has a number, a name, a dtype and a shape of its own. */

typedef struct kn_field {
    /* NULL: "input" for field 0, "target" for field 1, the number for any other ("2"). Names are unique. */
    const char *name;
    kn_dtype dtype;
    int ndim; /* of one sample, without the batch dimension; at most KN_MAX_DIMS - 1 */
    int64_t shape[KN_MAX_DIMS];
} kn_field;

/* A list of fields, which expands to the two arguments `const kn_field *fields, int num_fields` (C only):
 * KN_FIELDS({.dtype = KN_F32, .ndim = 1, .shape = {28}}, {.dtype = KN_I64}). */
#define KN_FIELDS(...) ((const kn_field[]){__VA_ARGS__}), ((int)(sizeof((kn_field[]){__VA_ARGS__}) / sizeof(kn_field)))

/* A list of names that ends with NULL (C only): KN_NAMES("tokens", "mask"). */
#define KN_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct kn_dataset_functions {
    int64_t (*length)(void *self);
    /* Writes sample `index`: the elements of field i, contiguous, to fields[i]. Called from several threads at once.
     * Returns KN_OK, or the status of an error (kn_error_set). */
    kn_status (*get)(void *self, int64_t index, void *const *fields);
    void (*destroy)(void *self); /* NULL allowed */
} kn_dataset_functions;

/* Copies the functions and the fields, names included. NULL with an error. */
KN_API kn_dataset *kn_dataset_new(const kn_dataset_functions *functions, void *self, const kn_field *fields,
                                  int num_fields);
KN_API void kn_dataset_free(kn_dataset *dataset); /* NULL allowed; after the loaders that use it */
KN_API int64_t kn_dataset_length(kn_dataset *dataset);
KN_API kn_status kn_dataset_get(kn_dataset *dataset, int64_t index, void *const *fields); /* as functions.get */
KN_API int kn_dataset_field_count(const kn_dataset *dataset);
/* The field, with its name; borrowed; NULL outside. Fields lie one after the other: kn_dataset_field(dataset, 0) is the
 * list that kn_dataset_new takes. */
KN_API const kn_field *kn_dataset_field(const kn_dataset *dataset, int index);
KN_API int kn_dataset_find_field(const kn_dataset *dataset, const char *name); /* its number; -1: there is none */

/* Samples are the rows (dimension 0) of host tensors of equal length, one per field; keeps references.
 * torch.utils.data.TensorDataset.
 *
 *     kn_dataset *pictures = kn_tensor_dataset(images, classes);
 *     kn_dataset *texts = kn_tensor_dataset_of(KN_TENSORS(tokens, mask, labels), KN_NAMES("tokens", "mask", "target"));
 *
 * `names`: one for each tensor and a final NULL; or NULL for the default names (kn_field). */
KN_API kn_dataset *kn_tensor_dataset_of(kn_tensor *const *tensors, int count, const char *const *names);
#define kn_tensor_dataset(...) kn_tensor_dataset_of(KN_TENSORS(__VA_ARGS__), NULL)

/* Images as MNIST and Fashion-MNIST distribute them: DIRECTORY/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz].
 * "input" is float32 [1, rows, columns] in [0, 1] (ToTensor); "target" an int64 scalar. A missing file is KN_ERR_IO,
 * whose message tells how to get the data. */
KN_API kn_dataset *kn_mnist_dataset(const char *directory, bool train);

/* A dataset of which some fields pass through `transform`, one after the other, in place on the sample's bytes; takes
 * ownership of `base`, also on failure. `random` is a seed that depends on the loader's seed, epoch and sample, for
 * augmentation; it is the same for all fields of a sample, so that an image and its mask are flipped together.
 *
 *     kn_dataset *normalized = kn_transform_dataset(base, kn_transform_normalize, &normalize);
 *     kn_dataset *blurred = kn_transform_dataset(normalized, blur, NULL, .fields = KN_NAMES("mask")); */
typedef kn_status (*kn_transform)(void *value, const kn_field *field, uint64_t random, void *user);
typedef struct kn_transform_dataset_params {
    const char *const *fields; /* default NULL: the first field; else their names and a final NULL: KN_NAMES("mask") */
} kn_transform_dataset_params;
#define KN_TRANSFORM_DATASET_DEFAULTS .fields = NULL
KN_API kn_transform_dataset_params kn_transform_dataset_params_init(void);
KN_API kn_dataset *kn_transform_dataset_with(kn_dataset *base, kn_transform transform, void *user,
                                             const kn_transform_dataset_params *params);
#define kn_transform_dataset(base, transform, user, ...)                                                               \
    KN_CALL(kn_transform_dataset_with(base, transform, user,                                                           \
                                      &(kn_transform_dataset_params){KN_TRANSFORM_DATASET_DEFAULTS, __VA_ARGS__}))

/* Transforms for float32 images [C, H, W]: (x - mean) / std with `user` pointing to a kn_normalize; a flip left to
 * right with probability 1/2 (user unused). */
typedef struct kn_normalize {
    int channels;
    const float *mean, *std;
} kn_normalize;
KN_API kn_status kn_transform_normalize(void *value, const kn_field *field, uint64_t random, void *user);
KN_API kn_status kn_transform_random_horizontal_flip(void *value, const kn_field *field, uint64_t random, void *user);

/* --- the loader ------------------------------------------------------------------------------- *
 * Batches are gathered in host memory by worker threads, then collated: by default they are moved to `device`, on a
 * stream of the loader's own and from pinned memory, so that the copy of a batch runs beside the step before. The
 * caller's current stream waits for it; the host does not. */

/* A batch of samples: a tensor [size, ...] for each field. */
typedef struct kn_batch {
    kn_tensor **fields; /* in the dataset's order */
    int num_fields;
    int64_t size;             /* number of samples: dimension 0 of the first field */
    kn_tensor *input;         /* the field called "input"; NULL where there is none */
    kn_tensor *target;        /* the field called "target"; likewise */
    const char *const *names; /* of the fields */
} kn_batch;

/* The field of that name; borrowed. NULL with a sticky error, which lists the names, where there is none. */
KN_API kn_tensor *kn_batch_field(const kn_batch *batch, const char *name);

/* PyTorch's collate_fn, applied to what its default_collate has made. Each of batch->fields is a host tensor (borrowed;
 * pinned unless the loader's device is the host); what the function stores there instead is what the batch will hold.
 * Host tensors may stay. The other members are read-only. It is called by the thread that loops over the loader, in a
 * scope, with the loader's device current and a stream of the loader's own as current stream: what it enqueues runs
 * beside the caller's work, which waits for it. It may be called one batch ahead, and again for a batch for which it
 * failed. Its error becomes that of the batch, which it names. */
typedef kn_status (*kn_collate)(const kn_batch *batch, void *user);

/* Moves all fields to the device that `user` points to (a kn_device *; NULL: the current one, which in a loader is its
 * own), without a wait where they are pinned. */
KN_API kn_status kn_collate_to_device(const kn_batch *batch, void *user);

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
KN_API kn_loader *kn_loader_new_with(kn_dataset *dataset, const kn_loader_params *params);
#define kn_loader_new(dataset, ...)                                                                                    \
    KN_CALL(kn_loader_new_with(dataset, &(kn_loader_params){KN_LOADER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_loader_free(kn_loader *loader); /* NULL allowed; stops the workers */

KN_API int64_t kn_loader_batches(const kn_loader *loader); /* per epoch */
KN_API int64_t kn_loader_samples(const kn_loader *loader); /* per epoch */

/* A loop over the batches of an epoch (0 or more; seed and epoch decide the order of the samples):
 *
 *     KN_FOR_BATCHES (batch, loader, epoch) {
 *         kn_tensor *loss = kn_cross_entropy(kn_forward(net, batch->input), batch->target);
 *         if (kn_backward(loss) != KN_OK || kn_optim_step(optim) != KN_OK)
 *             break;
 *         kn_optim_zero_grad(optim);
 *     }
 *     if (kn_error_status() != KN_OK) ...
 *
 * `batch` is a const kn_batch *, valid for one round. Each round is a scope: the batch's tensors and everything made in
 * the round are released when it ends, and by break, continue, return and goto (kn_retain keeps a tensor for longer). A
 * batch that cannot be made ends the loop with a sticky error, which kn_loader_status returns. A loader runs one loop
 * at a time: starting another one inside it ends the outer loop with KN_ERR_STATE. Like all guards (koine/common.h) the
 * loop needs gcc or clang, in C or C++; elsewhere use kn_loader_start and kn_loader_next. */
#if defined(__GNUC__)
#define KN_FOR_BATCHES(batch, loader, epoch)                                                                           \
    for (KN_CLEANUP(kn_batches_leave) const kn_batch *batch = kn_batches_begin(loader, epoch); batch != NULL;          \
         batch = kn_batches_next(batch))
#endif

/* KN_OK, or the status of the error that ended the last loop over the loader's batches. */
KN_API kn_status kn_loader_status(const kn_loader *loader);

/* What the loop is made of: begin starts the epoch, opens a scope and returns the first batch; next ends that scope and
 * does the same for the next batch; end leaves the loop early. NULL, with no scope open, at the end of the epoch and
 * with a sticky error. */
KN_API const kn_batch *kn_batches_begin(kn_loader *loader, int64_t epoch);
KN_API const kn_batch *kn_batches_next(const kn_batch *batch);
KN_API void kn_batches_end(const kn_batch *batch); /* NULL allowed */
static inline void kn_batches_leave(const kn_batch **batch) { kn_batches_end(*batch); }

/* The same without scopes, for other languages: starts an epoch; makes its next batch, NULL at the end. The struct
 * belongs to the loader and is valid until the next call; its tensors are owned as results are, by the scope or the
 * caller. */
KN_API kn_status kn_loader_start(kn_loader *loader, int64_t epoch);
KN_API kn_status kn_loader_next(kn_loader *loader, const kn_batch **batch);

KN_END_DECLS

#endif
