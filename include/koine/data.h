/* koine/data.h - datasets, transforms, and the loader that makes batches of them. */
#ifndef KOINE_DATA_H
#define KOINE_DATA_H

#include <koine/common.h>
#include <koine/sampler.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- datasets --------------------------------------------------------------------------------- *
 * A dataset returns samples by index. A sample has one or more fields: an image and its class, or tokens, a mask, a
 * length and a label. Each field has a number, a name, a dtype and a shape. */

typedef struct kn_field {
    /* NULL: "input" for field 0, "target" for field 1, the number for others ("2"). Names are unique. */
    const char *name;
    kn_dtype dtype;
    int ndim; /* of one sample, without the batch dimension; at most KN_MAX_DIMS - 1 */
    int64_t shape[KN_MAX_DIMS];
    /* default false; true: dimension 0 differs from sample to sample, and shape[0] is the largest. A batch is as long
     * as its longest sample; what others lack is padding_value (torch.nn.utils.rnn.pad_sequence). */
    bool varies;
    double padding_value; /* default 0 */
    /* default NULL; the name of a field that varies: this one, an int64 without dimensions, is that one's length, which
     * the library writes */
    const char *length_of;
} kn_field;

/* A list of fields, which expands to the two arguments `const kn_field *fields, int num_fields` (C only):
 * KN_FIELDS({.dtype = KN_F32, .ndim = 1, .shape = {28}}, {.dtype = KN_I64}). */
#define KN_FIELDS(...) ((const kn_field[]){__VA_ARGS__}), ((int)(sizeof((kn_field[]){__VA_ARGS__}) / sizeof(kn_field)))

/* A list of names that ends with NULL (C only): KN_NAMES("tokens", "mask"). */
#define KN_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct kn_dataset_functions {
    int64_t (*length)(void *self);
    /* Writes sample `index`: the elements of field i, contiguous, to fields[i]. Called by several threads at once.
     * Returns KN_OK, or the status of an error (kn_error_set). */
    kn_status (*get)(void *self, int64_t index, void *const *fields);
    void (*destroy)(void *self); /* NULL allowed; not called if kn_dataset_new fails */
    /* Needed if a field varies, else NULL. Sets lengths[i], for each field i that varies, to the length of the sample's
     * dimension 0: so many rows `get` writes. Called several times per sample, by several threads at once. */
    kn_status (*lengths)(void *self, int64_t index, int64_t *lengths);
} kn_dataset_functions;

/* Copies the functions and the fields with their names. NULL with an error.
 *
 * Datasets made of others (koine/dataset.h) keep these alive: kn_dataset_free gives up one reference. */
KN_API kn_dataset *kn_dataset_new(const kn_dataset_functions *functions, void *self, const kn_field *fields,
                                  int num_fields);
KN_API void kn_dataset_free(kn_dataset *dataset); /* NULL allowed; after the loaders that use it */
KN_API int64_t kn_dataset_length(kn_dataset *dataset);
KN_API kn_status kn_dataset_get(kn_dataset *dataset, int64_t index, void *const *fields); /* as functions.get */
/* As functions.lengths, of any dataset: 1 for fields that do not vary. */
KN_API kn_status kn_dataset_lengths(kn_dataset *dataset, int64_t index, int64_t *lengths);
KN_API int kn_dataset_field_count(const kn_dataset *dataset);
/* The field, with its name; borrowed; NULL if there is none. Fields are stored as an array: kn_dataset_field(dataset,
 * 0) is the list that kn_dataset_new takes. */
KN_API const kn_field *kn_dataset_field(const kn_dataset *dataset, int index);
KN_API int kn_dataset_find_field(const kn_dataset *dataset, const char *name); /* its number; -1 if there is none */
/* The names of the classes by index, NULL-terminated; borrowed. NULL, without an error, if they are not known. */
KN_API const char *const *kn_dataset_classes(const kn_dataset *dataset);

/* torch.utils.data.TensorDataset: samples are the rows (dimension 0) of host tensors of equal length, one per field.
 * Keeps references to the tensors.
 *
 *     kn_dataset *pictures = kn_tensor_dataset(images, classes);
 *     kn_dataset *texts = kn_tensor_dataset_of(KN_TENSORS(tokens, mask, labels), KN_NAMES("tokens", "mask", "target"));
 *
 * `names`: one for each tensor, NULL-terminated; or NULL for the default names (kn_field). */
KN_API kn_dataset *kn_tensor_dataset_of(kn_tensor *const *tensors, int count, const char *const *names);
#define kn_tensor_dataset(...) kn_tensor_dataset_of(KN_TENSORS(__VA_ARGS__), NULL)

/* MNIST or Fashion-MNIST from their original files: DIRECTORY/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz].
 * "input" is float32 [1, rows, columns] in [0, 1] (ToTensor), "target" an int64 scalar. A missing file is KN_ERR_IO;
 * the message says how to get the data. */
KN_API kn_dataset *kn_mnist_dataset(const char *directory, bool train);

/* `base` with a function of your own applied to some fields of each sample, in place; for images, koine/transforms.h
 * has functions. Takes ownership of `base`, also on failure.
 * `random`, for augmentation, is a seed derived from the loader's seed, the epoch and the sample; it is the same for
 * all fields of a sample, so an image and its mask are flipped together. Of a field that varies, field->shape[0] is the
 * sample's own length.
 *
 *     kn_dataset *scaled = kn_transform_dataset(base, scale, &factor);
 *     kn_dataset *blurred = kn_transform_dataset(scaled, blur, NULL, .fields = KN_NAMES("mask")); */
typedef kn_status (*kn_transform)(void *value, const kn_field *field, uint64_t random, void *user);
typedef struct kn_transform_dataset_params {
    const char *const *fields; /* default NULL: the first field; else names, NULL-terminated: KN_NAMES("mask") */
} kn_transform_dataset_params;
#define KN_TRANSFORM_DATASET_DEFAULTS .fields = NULL
KN_API kn_transform_dataset_params kn_transform_dataset_params_init(void);
KN_API kn_dataset *kn_transform_dataset_with(kn_dataset *base, kn_transform transform, void *user,
                                             const kn_transform_dataset_params *params);
#define kn_transform_dataset(base, transform, user, ...)                                                               \
    KN_CALL(kn_transform_dataset_with(base, transform, user,                                                           \
                                      &(kn_transform_dataset_params){KN_TRANSFORM_DATASET_DEFAULTS, __VA_ARGS__}))

/* --- the loader ------------------------------------------------------------------------------- *
 * Worker threads gather batches in host memory. Then a batch is collated: by default it is copied from pinned memory to
 * `device` on a stream of the loader's own, so that the copy overlaps with the step before. The caller's current stream
 * waits for the copy; the host does not. */

/* A batch of samples: a tensor [size, ...] for each field. */
typedef struct kn_batch {
    kn_tensor **fields; /* in the dataset's order */
    int num_fields;
    int64_t size;             /* number of samples: dimension 0 of the first field */
    kn_tensor *input;         /* the field named "input"; NULL if there is none */
    kn_tensor *target;        /* the field named "target"; likewise */
    const char *const *names; /* of the fields */
    uint64_t random;          /* of the loader's seed, the epoch and the batch; for collate functions */
} kn_batch;

/* The field of that name; borrowed. If there is none, NULL with a sticky error that lists the names. */
KN_API kn_tensor *kn_batch_field(const kn_batch *batch, const char *name);

/* PyTorch's collate_fn, applied to the result of default_collate. Each of batch->fields is a host tensor (borrowed;
 * pinned unless the loader's device is the host) that the function may replace by another tensor or leave; the other
 * members are read-only. It is called by the thread that iterates over the loader, in a scope, with the loader's device
 * and a stream of the loader's own current: what it enqueues runs concurrently with the caller's earlier work, and the
 * caller's later work waits for it. It may be called one batch ahead, and again for a batch for which it failed. Its
 * error is reported as the error of that batch. */
typedef kn_status (*kn_collate)(const kn_batch *batch, void *user);

/* Moves all fields to the kn_device that `user` points to (NULL: the current device, which is the loader's if a loader
 * calls this), without waiting if they are pinned. */
KN_API kn_status kn_collate_to_device(const kn_batch *batch, void *user);

typedef struct kn_loader_params {
    int64_t batch_size;  /* default 1 */
    bool shuffle;        /* default false; the order depends on seed and epoch only */
    kn_sampler *sampler; /* default NULL; other orders (koine/sampler.h), borrowed. Not together with shuffle */
    bool drop_last;      /* default false: the last batch may be smaller */
    int num_workers;     /* threads; default 0: the caller's thread prepares batches */
    int prefetch_factor; /* batches ahead per worker, default 2 */
    uint64_t seed;       /* default 0 */
    kn_device *device;   /* of the batches; default: the current device. With the host they are not copied */
    bool pin_memory;     /* default false; true: pinned batches even if `device` is the host (else they always are) */
    kn_collate collate;  /* default NULL: kn_collate_to_device, or nothing if `device` is the host */
    void *collate_user;  /* passed to collate */
} kn_loader_params;
#define KN_LOADER_DEFAULTS .batch_size = 1, .prefetch_factor = 2
KN_API kn_loader_params kn_loader_params_init(void);
KN_API kn_loader *kn_loader_new_with(kn_dataset *dataset, const kn_loader_params *params);
#define kn_loader_new(dataset, ...)                                                                                    \
    KN_CALL(kn_loader_new_with(dataset, &(kn_loader_params){KN_LOADER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_loader_free(kn_loader *loader); /* NULL allowed; stops the workers */

KN_API int64_t kn_loader_batches(const kn_loader *loader); /* per epoch */
KN_API int64_t kn_loader_samples(const kn_loader *loader); /* per epoch */

/* A loop over the batches of an epoch (0 or more; seed and epoch determine the order of the samples):
 *
 *     KN_FOR_BATCHES (batch, loader, epoch) {
 *         kn_tensor *loss = kn_cross_entropy(kn_forward(net, batch->input), batch->target);
 *         if (kn_backward(loss) != KN_OK || kn_optim_step(optim) != KN_OK)
 *             break;
 *         kn_optim_zero_grad(optim);
 *     }
 *     if (kn_error_status() != KN_OK) ...
 *
 * `batch` is a const kn_batch *, valid for one iteration. Each iteration is a scope: the batch's tensors and all others
 * created in it are released when it ends, also by break, continue, return or goto (kn_retain keeps a tensor). An error
 * in preparing a batch is sticky and ends the loop; kn_loader_status returns it. A loader runs one loop at a time:
 * starting another inside it ends the outer one with KN_ERR_STATE. Like all guards (koine/common.h) the loop needs gcc
 * or clang, in C or C++; elsewhere use kn_loader_start and kn_loader_next. */
#if defined(__GNUC__)
#define KN_FOR_BATCHES(batch, loader, epoch)                                                                           \
    for (KN_CLEANUP(kn_batches_leave) const kn_batch *batch = kn_batches_begin(loader, epoch); batch != NULL;          \
         batch = kn_batches_next(batch))
#endif

/* KN_OK, or the status of the error that ended the last loop over the loader's batches. */
KN_API kn_status kn_loader_status(const kn_loader *loader);

/* The loop's functions: begin starts the epoch, opens a scope and returns the first batch; next ends that scope, opens
 * another and returns the next batch; end leaves the loop early. At the end of the epoch, and with a sticky error on
 * failure, they return NULL with no scope open. */
KN_API const kn_batch *kn_batches_begin(kn_loader *loader, int64_t epoch);
KN_API const kn_batch *kn_batches_next(const kn_batch *batch);
KN_API void kn_batches_end(const kn_batch *batch); /* NULL allowed */
static inline void kn_batches_leave(const kn_batch **batch) { kn_batches_end(*batch); }

/* The same without scopes, for other languages: start an epoch; get its next batch, NULL at the end. The struct belongs
 * to the loader and is valid until the next call; its tensors are owned as results are. */
KN_API kn_status kn_loader_start(kn_loader *loader, int64_t epoch);
KN_API kn_status kn_loader_next(kn_loader *loader, const kn_batch **batch);

KN_END_DECLS

#endif
