/* common/pictures.h - what train_images and classify share: how pictures become the network's input, and the file that
 * one writes and the other reads. */
#pragma once

#include <koine/koine.h>

enum { MOST_CLASSES = 10000 };

/* Everything that is needed to use a trained network. In model.safetensors it is the metadata, as text: "model",
 * "classes" (a line each), "size", "channels", "small_images". */
typedef struct picture_model {
    char name[64]; /* kn_models_new */
    int64_t size;  /* of the square input */
    int64_t channels, num_classes;
    bool small_images;
    char *classes; /* the names' lines; freed with free() */
} picture_model;

kn_module *picture_model_network(const picture_model *model);

/* resize, center_crop, to_tensor, normalize. NULL with an error. */
kn_transforms *picture_transforms(const picture_model *model);
/* to_tensor and normalize, with the mean and standard deviation of ImageNet or, of one channel, Fashion-MNIST. */
kn_status picture_normalize(kn_transforms *transforms, int64_t channels);

/* The name of a class, in `name`; its number if it has none. */
void picture_class_name(const picture_model *model, int64_t index, char name[128]);

/* Copies the weights of `from`, adds the metadata and writes `to`. */
kn_status picture_model_save(const picture_model *model, const char *from, const char *to);
/* Reads the metadata. */
kn_status picture_model_open(picture_model *model, const char *path);
