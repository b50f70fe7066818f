/* koine/image_data.h - datasets of images, and mixing the images of a batch. Decoders are in koine/image.h, transforms
 * in koine/transforms.h. */
#ifndef KOINE_IMAGE_DATA_H
#define KOINE_IMAGE_DATA_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/image.h>
#include <koine/transforms.h>

KN_BEGIN_DECLS

/* --- datasets ------------------------------------------------------------------------------------------------------ *
 * "input" is the image, "target" an int64 scalar; kn_dataset_classes returns the classes' names. */

typedef struct kn_image_folder_params {
    kn_image_mode mode;          /* default RGB; not unchanged */
    bool apply_exif_orientation; /* default false */
} kn_image_folder_params;
#define KN_IMAGE_FOLDER_DEFAULTS .mode = KN_IMAGE_RGB
KN_API kn_image_folder_params kn_image_folder_params_init(void);

/* torchvision.datasets.ImageFolder: DIRECTORY/CLASS/ANY/NAME.png, .jpg or .jpeg. The classes are the folders' names,
 * sorted; names that begin with a dot and other files are ignored. A class without an image is an error. The pipeline
 * (copied) starts with uint8 images and must end in a fixed size; images are decoded when they are asked for, in the
 * loader's workers. */
KN_API kn_dataset *kn_image_folder_with(const char *directory, const kn_transforms *transforms,
                                        const kn_image_folder_params *params);
#define kn_image_folder(directory, transforms, ...)                                                                    \
    KN_CALL(                                                                                                           \
        kn_image_folder_with(directory, transforms, &(kn_image_folder_params){KN_IMAGE_FOLDER_DEFAULTS, __VA_ARGS__}))

/* CIFAR-10 or CIFAR-100 (fine classes), the binary version: the .bin files in DIRECTORY, or in its folder
 * cifar-10-batches-bin or cifar-100-binary. Images are float32 [3, 32, 32] from 0 to 1, as kn_mnist_dataset's. A
 * missing file is KN_ERR_IO; the message says how to get the data. */
KN_API kn_dataset *kn_cifar10_dataset(const char *directory, bool train);
KN_API kn_dataset *kn_cifar100_dataset(const char *directory, bool train);

/* --- mixing -------------------------------------------------------------------------------------------------------- *
 * For .collate of a loader, with .collate_user = a kn_mixup_params that stays while the loader does: the batch is moved
 * to the current device (kn_collate_to_device), then each image is mixed with the one before it in the batch, and
 * "target", class indices, becomes probabilities [N, num_classes], float32. The loader should shuffle.
 *
 *     kn_mixup_params mix = kn_mixup_params_init();
 *     mix.num_classes = 10;
 *     loader = kn_loader_new(images, .batch_size = 128, .shuffle = true, .collate = kn_collate_mixup,
 *                            .collate_user = &mix);
 *
 * torchvision.transforms.v2.MixUp: l x + (1 - l) x_before, with l from Beta(mixup_alpha, mixup_alpha), one per batch.
 * CutMix: a rectangle of the area 1 - l, at a random place, comes from the image before; targets are mixed by the area.
 * If both alphas are above 0, each batch gets one of the two, equally often; with neither, targets are only
 * converted. */
typedef struct kn_mixup_params {
    int64_t num_classes; /* required */
    double mixup_alpha;  /* default 1; 0: no MixUp */
    double cutmix_alpha; /* default 0: no CutMix */
} kn_mixup_params;
#define KN_MIXUP_DEFAULTS .mixup_alpha = 1
KN_API kn_mixup_params kn_mixup_params_init(void);
KN_API kn_status kn_collate_mixup(const kn_batch *batch, void *user);

KN_END_DECLS

#endif
