/* cli/warm_models.h - the networks whose kernels `koine warm` compiles. */
#pragma once

#include <koine/koine.h>

typedef struct kn_warm_model {
    const char *name;
    bool usual; /* without names on the command line */
    int64_t batch_size, classes;
    int64_t shape[4], ndim; /* of a sample; text: the number of tokens */
    bool text;
    kn_module *(*make)(const struct kn_warm_model *model);
} kn_warm_model;

/* NULL: none of this name. `index` 0, 1, ...: the common ones; NULL after the last. Besides these, there are the image
 * networks of kn_models_new. */
const kn_warm_model *kn_warm_model_at(int index);
bool kn_warm_model_find(kn_warm_model *model, const char *name);

/* Trains it for an epoch of a few batches with the trainer, and evaluates it, on the current device. */
kn_status kn_warm_model_train(const kn_warm_model *model);
