/* common/fashion.h - shared by the Fashion-MNIST examples: the network and the data. */
#pragma once

#include <koine/koine.h>

#define FASHION_DATA "/usr/share/datasets/fashion-mnist"

#define FASHION_CLASSES 10
extern const char *const fashion_classes[FASHION_CLASSES]; /* their names */

/* The convolutional network of the examples, with named layers. NULL with an error. */
kn_module *fashion_network(void);

typedef struct fashion_options {
    const char *directory;
    int64_t batch_size, workers, seed;
    int64_t limit; /* only the first so many images of each set; 0: all */
} fashion_options;

typedef struct fashion_data {
    kn_dataset *train_images, *test_images;
    kn_loader *train, *test; /* shuffled; in order */
} fashion_data;

/* fashion_close frees what is there, also after a failure. */
kn_status fashion_open(fashion_data *data, const fashion_options *options);
void fashion_close(fashion_data *data);
