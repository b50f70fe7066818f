/* common/fashion.h - shared by the Fashion-MNIST examples: the network, the data, and a truncated data set. */
#pragma once

#include <koine/koine.h>

#define FASHION_DATA "/usr/share/datasets/fashion-mnist"

#define FASHION_CLASSES 10
extern const char *const fashion_classes[FASHION_CLASSES]; /* their names */

/* The convolutional network of the examples, with named layers. NULL with an error. */
kn_module *fashion_network(void);

/* The first `length` samples of `base`. */
typedef struct first_samples {
    kn_dataset *base;
    int64_t length;
} first_samples;

/* Training or test images; with `limit` above 0 only the first `limit`, through `cut`, which must outlive the data set.
 * fashion_close frees both. */
kn_status fashion_open(kn_dataset **dataset, first_samples *cut, const char *directory, bool train, int64_t limit);
void fashion_close(kn_dataset *dataset, first_samples *cut);
