/* data/images/cifar.c - CIFAR-10 and CIFAR-100, the binary version: records of labels, of which the last is the class,
 * and 3072 bytes, the planes red, green and blue. https://www.cs.toronto.edu/~kriz/cifar.html */
#include <stdio.h>
#include <string.h>

#include <koine/image_data.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/dataset.h"

enum { PIXELS = 3 * 32 * 32, MOST_FILES = 5, MOST_CLASSES = 100 };

typedef struct variant {
    const char *function, *name, *folder;
    const char *train[MOST_FILES + 1], *test[2]; /* NULL-terminated */
    const char *names;                           /* the file with the classes' names */
    int labels, classes;
} variant;

static const variant cifar10 = {
    .function = "kn_cifar10_dataset",
    .name = "CIFAR-10",
    .folder = "cifar-10-batches-bin",
    .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
    .test = {"test_batch.bin"},
    .names = "batches.meta.txt",
    .labels = 1,
    .classes = 10};
static const variant cifar100 = {.function = "kn_cifar100_dataset",
                                 .name = "CIFAR-100",
                                 .folder = "cifar-100-binary",
                                 .train = {"train.bin"},
                                 .test = {"test.bin"},
                                 .names = "fine_label_names.txt",
                                 .labels = 2,
                                 .classes = 100};

typedef struct cifar {
    const variant *variant;
    char *files[MOST_FILES];
    int64_t records[MOST_FILES], length;
    char *names;                           /* the file's text, cut into lines */
    const char *classes[MOST_CLASSES + 1]; /* in it */
} cifar;

static int64_t length(void *self) { return ((cifar *)self)->length; }

static void destroy(void *self)
{
    cifar *data = self;
    for (int i = 0; i < MOST_FILES; i++)
        kn_free(data->files[i]);
    kn_free(data->names);
    kn_free(data);
}

static kn_status get(void *self, int64_t index, void *const *fields)
{
    const cifar *data = self;
    const int labels = data->variant->labels;
    int file = 0;
    for (; index >= data->records[file]; file++)
        index -= data->records[file];
    const unsigned char *record = (const unsigned char *)data->files[file] + index * (labels + PIXELS);
    const unsigned char *restrict pixels = record + labels;
    float *restrict values = fields[0];
    for (int i = 0; i < PIXELS; i++)
        values[i] = (float)pixels[i] / 255.0f;
    *(int64_t *)fields[1] = record[labels - 1];
    return KN_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static kn_status check_records(const cifar *data, int file, size_t size, const char *path)
{
    const variant *v = data->variant;
    const size_t record = (size_t)(v->labels + PIXELS);
    if (size == 0 || size % record != 0)
        return kn_fail(KN_ERR_FORMAT, "'%s' has %zu bytes; expected records of %zu bytes, of %s's binary version", path,
                       size, record, v->name);
    for (size_t i = 0; i < size / record; i++) {
        const int label = ((const unsigned char *)data->files[file])[i * record + (size_t)v->labels - 1];
        if (label >= v->classes)
            return kn_fail(KN_ERR_FORMAT, "'%s': record %zu has the class %d; %s has %d", path, i, label, v->name,
                           v->classes);
    }
    return KN_OK;
}

static kn_status read_file(cifar *data, int file, const char *path)
{
    const variant *v = data->variant;
    size_t size = 0;
    if (!kn_file_exists(path))
        return kn_fail(
            KN_ERR_IO,
            "there is no file '%s': get %s's binary version from https://www.cs.toronto.edu/~kriz/cifar.html "
            "and unpack it there",
            path, v->name);
    KN_TRY(kn_file_read_all(&data->files[file], &size, path, (size_t)1 << 30));
    KN_TRY(check_records(data, file, size, path));
    data->records[file] = (int64_t)(size / (size_t)(v->labels + PIXELS));
    data->length += data->records[file];
    return KN_OK;
}

/* The names are a convenience: without the file, or with another number of lines in it, there are none. */
static void read_names(cifar *data, const char *directory)
{
    KN_PRESERVE_ERROR;
    char *path = kn_path_join(directory, data->variant->names), *rest;
    size_t size = 0;
    int count = 0;
    if (path && kn_file_exists(path) && kn_file_read_all(&data->names, &size, path, 65536) == KN_OK)
        for (char *line = strtok_r(data->names, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest), count++)
            if (count < data->variant->classes)
                data->classes[count] = line;
    if (count != data->variant->classes)
        data->classes[0] = NULL;
    kn_free(path);
}

static kn_status read_files(cifar *data, const char *directory, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        char *path = kn_path_join(directory, names[i]);
        kn_status status = path ? read_file(data, i, path) : KN_ERR_MEMORY;
        kn_free(path);
        KN_TRY(status);
    }
    read_names(data, directory);
    return KN_OK;
}

/* From the folder that the archive unpacks to, if it is there. */
static kn_status fill(cifar *data, const char *directory, bool train)
{
    const char *const *names = train ? data->variant->train : data->variant->test;
    char *inner = kn_path_join(directory, data->variant->folder);
    char *first = inner ? kn_path_join(inner, names[0]) : NULL;
    kn_status status = KN_ERR_MEMORY;
    if (first)
        status = read_files(data, kn_file_exists(first) ? inner : directory, names);
    kn_free(first);
    kn_free(inner);
    return status;
}

static kn_status make(kn_dataset **dataset, const variant *v, const char *directory, bool train)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    if (!directory)
        return kn_fail_argument_null(v->function, "directory");
    cifar *data = kn_calloc(1, sizeof(*data));
    if (!data)
        return KN_ERR_MEMORY;
    data->variant = v;
    kn_status status = fill(data, directory, train);
    if (status != KN_OK) {
        destroy(data);
        return status;
    }
    KN_TRY(kn_dataset_make(dataset, &functions, data,
                           KN_FIELDS({.dtype = KN_F32, .ndim = 3, .shape = {3, 32, 32}}, {.dtype = KN_I64})));
    (*dataset)->classes = data->classes[0] ? data->classes : NULL;
    return KN_OK;
}

kn_dataset *kn_cifar10_dataset(const char *directory, bool train)
{
    kn_dataset *dataset;
    return make(&dataset, &cifar10, directory, train) == KN_OK ? dataset : kn_error_make_sticky();
}

kn_dataset *kn_cifar100_dataset(const char *directory, bool train)
{
    kn_dataset *dataset;
    return make(&dataset, &cifar100, directory, train) == KN_OK ? dataset : kn_error_make_sticky();
}
