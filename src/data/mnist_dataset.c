/* data/mnist_dataset.c - MNIST and datasets in the same format, such as Fashion-MNIST. */
#include <koine/io.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "tensor/tensor.h"

typedef struct mnist_dataset {
    kn_tensor *images, *labels; /* uint8 [n, rows, columns] and [n] */
    const unsigned char *pixels, *classes;
    int64_t length, image_size;
} mnist_dataset;

static int64_t length(void *self) { return ((mnist_dataset *)self)->length; }

/* torchvision's ToTensor: x / 255 as float32. */
static kn_status get(void *self, int64_t index, void *const *fields)
{
    const mnist_dataset *data = self;
    const int64_t size = data->image_size;
    const unsigned char *restrict pixels = data->pixels + index * size;
    float *restrict values = fields[0];
    for (int64_t i = 0; i < size; i++)
        values[i] = (float)pixels[i] / 255.0f;
    *(int64_t *)fields[1] = data->classes[index];
    return KN_OK;
}

static void destroy(void *self)
{
    mnist_dataset *data = self;
    kn_release(data->images);
    kn_release(data->labels);
    kn_free(data);
}

/* --- finding the files ------------------------------------------------------------------------ */

/* DIRECTORY/NAME or DIRECTORY/NAME.gz, whichever exists; the caller frees it. */
static kn_status find_file(char **path, const char *directory, const char *name)
{
    char *plain = kn_path_join(directory, name);
    if (!plain)
        return KN_ERR_MEMORY;
    if (kn_file_exists(plain)) {
        *path = plain;
        return KN_OK;
    }
    kn_text packed = {0};
    kn_text_format(&packed, "%s.gz", plain);
    char *gzipped = kn_text_finish(&packed);
    kn_status status = gzipped ? KN_OK : KN_ERR_MEMORY;
    if (gzipped && !kn_file_exists(gzipped))
        status = kn_fail(KN_ERR_IO,
                         "there is no file '%s', with or without .gz: install Debian's package dataset-fashion-mnist "
                         "(apt-get install "
                         "dataset-fashion-mnist) or pass --data DIR",
                         plain);
    kn_free(plain);
    if (status == KN_OK)
        *path = gzipped;
    else
        kn_free(gzipped);
    return status;
}

static kn_status check_file(const kn_tensor *tensor, const char *path, int ndim)
{
    if (kn_dtype_of(tensor) == KN_U8 && kn_ndim(tensor) == ndim)
        return KN_OK;
    char found[KN_DESCRIBE];
    return kn_fail(KN_ERR_FORMAT, "'%s', at byte 2: expected uint8 of %d dimension%s, found %s", path, ndim,
                   ndim == 1 ? "" : "s", kn_tensor_describe(found, sizeof(found), tensor));
}

/* Reads one of the two files, which must hold uint8 of `ndim` dimensions. The scope owns the reader's reference, the
 * dataset has its own. */
static kn_status read_file(kn_tensor **tensor, const char *directory, const char *name, int ndim)
{
    char *path = NULL;
    KN_TRY(find_file(&path, directory, name));
    int scope = kn_scope_begin();
    kn_tensor *loaded = NULL;
    kn_status status = scope > 0 ? kn_status_of(loaded = kn_load_idx(path)) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = check_file(loaded, path, ndim);
    if (status == KN_OK)
        *tensor = kn_retain(loaded);
    kn_scope_end(scope);
    kn_free(path);
    return status;
}

static kn_status fill(mnist_dataset *data, const char *directory, bool train)
{
    KN_TRY(read_file(&data->images, directory, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", 3));
    KN_TRY(read_file(&data->labels, directory, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", 1));
    data->length = kn_size(data->images, 0);
    if (kn_size(data->labels, 0) != data->length)
        return kn_fail(KN_ERR_FORMAT, "'%s': the %s files hold %lld images but %lld labels", directory,
                       train ? "train" : "t10k", (long long)data->length, (long long)kn_size(data->labels, 0));
    if (data->length == 0)
        return kn_fail(KN_ERR_FORMAT, "'%s': the %s files hold no images", directory, train ? "train" : "t10k");
    data->image_size = kn_size(data->images, 1) * kn_size(data->images, 2);
    data->pixels = kn_data(data->images);
    data->classes = kn_data(data->labels);
    return data->pixels && data->classes ? KN_OK : kn_error_status();
}

static kn_status make(kn_dataset **dataset, const char *directory, bool train)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    if (!directory)
        return kn_fail_argument_null("kn_mnist_dataset", "directory");
    mnist_dataset *data = kn_calloc(1, sizeof(*data));
    if (!data)
        return KN_ERR_MEMORY;
    kn_status status = fill(data, directory, train);
    if (status != KN_OK) {
        destroy(data);
        return status;
    }
    const int64_t rows = kn_size(data->images, 1), columns = kn_size(data->images, 2);
    return kn_dataset_make(dataset, &functions, data,
                           KN_FIELDS({.dtype = KN_F32, .ndim = 3, .shape = {1, rows, columns}}, {.dtype = KN_I64}));
}

kn_dataset *kn_mnist_dataset(const char *directory, bool train)
{
    kn_dataset *dataset;
    return make(&dataset, directory, train) == KN_OK ? dataset : kn_error_make_sticky();
}
