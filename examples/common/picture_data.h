/* common/picture_data.h - the pictures that train_images learns from: a folder of images, CIFAR, MNIST's format. */
#pragma once

#include "common/pictures.h"

typedef struct picture_data {
    kn_dataset *train, *test;
} picture_data;

typedef struct picture_options {
    const char *directory;
    const char *augment; /* "none", "basic", "trivial" */
    int64_t size;        /* 0: of the data set, or 224 */
    int64_t limit;       /* 0: all */
} picture_options;

/* What `directory` holds is found out by looking: train-images-idx3-ubyte (MNIST, Fashion-MNIST), data_batch_1.bin
 * (CIFAR-10), train.bin (CIFAR-100), or the folders train and val with a folder for each class. Sets the model's size,
 * channels and classes. */
kn_status picture_data_open(picture_data *data, picture_model *model, const picture_options *options);
void picture_data_close(picture_data *data);
