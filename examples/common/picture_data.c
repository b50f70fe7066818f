/* common/picture_data.c - see picture_data.h. */
#include "common/picture_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fashion.h"

typedef enum source { FOLDERS, MNIST, CIFAR10, CIFAR100 } source;

static bool holds(const char *directory, const char *name)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path && access(path, R_OK) == 0;
}

static source find_source(const char *directory)
{
    if (holds(directory, "train-images-idx3-ubyte") || holds(directory, "train-images-idx3-ubyte.gz"))
        return MNIST;
    if (holds(directory, "data_batch_1.bin") || holds(directory, "cifar-10-batches-bin"))
        return CIFAR10;
    return holds(directory, "train.bin") || holds(directory, "cifar-100-binary") ? CIFAR100 : FOLDERS;
}

/* --- transforms --------------------------------------------------------------------------------------------------- */

static void augment(kn_transforms *transforms, const picture_model *model, const char *augment)
{
    if (model->small_images) {
        kn_transforms_resize(transforms, model->size, .width = model->size);
        kn_transforms_random_crop(transforms, model->size, model->size, .padding = model->size / 8);
    } else {
        kn_transforms_random_resized_crop(transforms, model->size, model->size, .scale = {0.25, 1});
    }
    kn_transforms_random_horizontal_flip(transforms, 0.5);
    if (strcmp(augment, "trivial") == 0)
        kn_transforms_trivial_augment_wide(transforms);
    picture_normalize(transforms, model->channels);
    if (strcmp(augment, "trivial") == 0)
        kn_transforms_random_erasing(transforms, .p = 0.1);
}

static kn_transforms *transforms_of(const picture_model *model, const picture_options *options, bool train)
{
    if (!train || strcmp(options->augment, "none") == 0)
        return picture_transforms(model);
    kn_transforms *transforms = kn_transforms_new();
    if (transforms != NULL)
        augment(transforms, model, options->augment);
    return transforms;
}

/* --- datasets ----------------------------------------------------------------------------------------------------- */

static kn_dataset *open_folder(const char *directory, bool train, const kn_transforms *transforms)
{
    char path[4096];
    const char *name = train ? "train" : holds(directory, "val") ? "val" : "test";
    if (!holds(directory, "train") || !holds(directory, name)) {
        kn_error_set(
            KN_ERR_IO,
            "'%s' holds neither MNIST nor CIFAR, nor the folders train and val (or test), each with a folder of "
            "images for each class",
            directory);
        return NULL;
    }
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return kn_image_folder(path, transforms);
}

static kn_dataset *open_source(source kind, const char *directory, bool train, const kn_transforms *transforms)
{
    if (kind == FOLDERS)
        return open_folder(directory, train, transforms);
    kn_dataset *base = kind == MNIST     ? kn_mnist_dataset(directory, train)
                       : kind == CIFAR10 ? kn_cifar10_dataset(directory, train)
                                         : kn_cifar100_dataset(directory, train);
    return base != NULL ? kn_transforms_dataset(base, transforms) : NULL;
}

/* The first `limit` samples. */
static kn_dataset *cut(kn_dataset *dataset, int64_t limit)
{
    if (limit == 0 || limit >= kn_dataset_length(dataset))
        return dataset;
    int64_t *indices = malloc((size_t)limit * sizeof *indices);
    for (int64_t i = 0; i < limit && indices != NULL; i++)
        indices[i] = i * kn_dataset_length(dataset) / limit; /* folders are sorted by class: some of each */
    kn_dataset *part = indices != NULL ? kn_subset(dataset, indices, limit) : NULL;
    free(indices);
    kn_dataset_free(dataset); /* kept alive by the part */
    return part;
}

static kn_status open_one(kn_dataset **dataset, source kind, const picture_model *model, const picture_options *options,
                          bool train)
{
    kn_transforms *transforms = transforms_of(model, options, train);
    if (transforms == NULL)
        return kn_error_status();
    *dataset = open_source(kind, options->directory, train, transforms);
    kn_transforms_free(transforms);
    if (*dataset == NULL)
        return kn_error_status();
    return KN_OK;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* The names' lines. */
static char *lines_of(const char *const *names, int64_t count)
{
    size_t length = 1;
    for (int64_t i = 0; i < count; i++)
        length += strlen(names[i]) + 1;
    char *lines = calloc(length, 1);
    for (int64_t i = 0, at = 0; i < count && lines != NULL; i++)
        at += sprintf(lines + at, "%s\n", names[i]);
    return lines;
}

static void set_classes(picture_model *model, source kind, const picture_options *options, const kn_dataset *train)
{
    const char *const *names = kn_dataset_classes(train);
    model->num_classes = kind == CIFAR100 ? 100 : 10;
    if (names != NULL)
        for (model->num_classes = 0; names[model->num_classes] != NULL;)
            model->num_classes++;
    else if (kind == MNIST && strstr(options->directory, "fashion") != NULL)
        names = fashion_classes;
    model->classes = names != NULL ? lines_of(names, model->num_classes) : NULL;
}

kn_status picture_data_open(picture_data *data, picture_model *model, const picture_options *options)
{
    const source kind = find_source(options->directory);
    model->channels = kind == MNIST ? 1 : 3;
    model->size = options->size > 0 ? options->size : kind == MNIST ? 28 : kind == FOLDERS ? 224 : 32;
    model->small_images = model->size <= 64;
    kn_status status = open_one(&data->train, kind, model, options, true);
    if (status == KN_OK)
        status = open_one(&data->test, kind, model, options, false);
    if (status != KN_OK)
        return status;
    set_classes(model, kind, options, data->train);
    data->train = cut(data->train, options->limit);
    data->test = cut(data->test, options->limit);
    return data->train != NULL && data->test != NULL ? KN_OK : kn_error_status();
}

void picture_data_close(picture_data *data)
{
    kn_dataset_free(data->train);
    kn_dataset_free(data->test);
}
