/* data/images/folder.c - images in folders named after their classes. */
#include <string.h>

#include <koine/image_data.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/order.h"
#include "data/transforms/pipeline.h"
#include "io/image/read.h"
#include "tensor/tensor.h"

enum { DEEPEST = 32 }; /* of folders in folders: symbolic links may form a circle */

typedef struct sample {
    char *path;
    int class_index;
} sample;

typedef struct folder {
    char **classes; /* NULL-terminated once complete */
    int num_classes, class_capacity;
    sample *samples;
    int num_samples, sample_capacity;
    kn_transforms *transforms;
    kn_image_params decoding;
    kn_field field;
} folder;

static int64_t length(void *self) { return ((folder *)self)->num_samples; }

static void destroy(void *self)
{
    folder *data = self;
    for (int i = 0; i < data->num_classes; i++)
        kn_free(data->classes[i]);
    for (int i = 0; i < data->num_samples; i++)
        kn_free(data->samples[i].path);
    kn_free(data->classes);
    kn_free(data->samples);
    kn_transforms_free(data->transforms);
    kn_free(data);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

static kn_status transform(const folder *data, kn_tensor *image, uint64_t random, void *to)
{
    kn_picture picture = {.dtype = KN_U8,
                          .channels = image->shape[0],
                          .height = image->shape[1],
                          .width = image->shape[2],
                          .data = image->storage->host};
    kn_status status = kn_transforms_run(data->transforms, &picture, random);
    if (status == KN_OK)
        memcpy(to, picture.data, kn_field_bytes(&data->field));
    kn_picture_free(&picture);
    return status;
}

static kn_status get_random(void *self, int64_t index, uint64_t random, void *const *fields)
{
    const folder *data = self;
    const sample *s = &data->samples[index];
    kn_tensor *image = NULL;
    KN_TRY(kn_image_read(&image, s->path, &data->decoding));
    kn_status status = transform(data, image, random, fields[0]);
    kn_release(image);
    if (status != KN_OK)
        kn_error_prefix("'%s'", s->path);
    *(int64_t *)fields[1] = s->class_index;
    return status;
}

static kn_status get(void *self, int64_t index, void *const *fields)
{
    return get_random(self, index, kn_sample_random(0, 0, index), fields);
}

/* --- finding the files -------------------------------------------------------------------------------------------- */

/* The state of a walk through one folder. Functions called for names cannot fail: `status` remembers. */
typedef struct walk {
    folder *data;
    const char *path;
    int depth;
    bool into_folders; /* else files */
    kn_status status;
} walk;

static bool is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (kn_text_equals_nocase(dot, ".png") || kn_text_equals_nocase(dot, ".jpg") ||
                   kn_text_equals_nocase(dot, ".jpeg"));
}

static kn_status add_sample(folder *data, char *path)
{
    kn_status status = KN_GROW(data->samples, data->num_samples, data->sample_capacity);
    if (status == KN_OK)
        data->samples[data->num_samples++] = (sample){.path = path, .class_index = data->num_classes - 1};
    else
        kn_free(path);
    return status;
}

static kn_status add_images(folder *data, const char *path, int depth);

static void visit_entry(const char *name, void *user)
{
    walk *w = user;
    if (w->status != KN_OK || name[0] == '.' || is_image(name) == w->into_folders)
        return;
    char *path = kn_path_join(w->path, name);
    if (!path) {
        w->status = KN_ERR_MEMORY;
    } else if (w->into_folders) {
        w->status = add_images(w->data, path, w->depth + 1);
        kn_free(path);
    } else {
        w->status = add_sample(w->data, path);
    }
}

/* The images of a folder, then those of the folders in it. What cannot be read as a folder has none. */
static kn_status add_images(folder *data, const char *path, int depth)
{
    walk w = {.data = data, .path = path, .depth = depth};
    if (depth > DEEPEST)
        return kn_fail(KN_ERR_IO, "kn_image_folder: '%s' is more than %d folders deep", path, DEEPEST);
    kn_visit_directory(path, visit_entry, &w);
    w.into_folders = true;
    if (w.status == KN_OK)
        kn_visit_directory(path, visit_entry, &w);
    return w.status;
}

static void ignore_name(const char *name, void *user)
{
    (void)name;
    (void)user;
}

/* One more class than there are, so that the list ends with NULL. */
static kn_status add_class(folder *data, const char *name)
{
    KN_TRY(kn_grow(&data->classes, data->num_classes + 1, &data->class_capacity, sizeof *data->classes));
    if (!(data->classes[data->num_classes] = kn_strdup(name)))
        return KN_ERR_MEMORY;
    data->classes[++data->num_classes] = NULL;
    return KN_OK;
}

static kn_status add_class_folder(folder *data, const char *name, const char *path)
{
    const int before = data->num_samples;
    if (!kn_visit_directory(path, ignore_name, NULL))
        return KN_OK; /* a file */
    KN_TRY(add_class(data, name));
    KN_TRY(add_images(data, path, 1));
    if (data->num_samples == before)
        return kn_fail(KN_ERR_IO, "kn_image_folder: the class '%s' has no image (.png, .jpg, .jpeg)", path);
    return KN_OK;
}

static void visit_class(const char *name, void *user)
{
    walk *w = user;
    if (w->status != KN_OK || name[0] == '.')
        return;
    char *path = kn_path_join(w->path, name);
    w->status = path ? add_class_folder(w->data, name, path) : KN_ERR_MEMORY;
    kn_free(path);
}

static kn_status find_samples(folder *data, const char *directory)
{
    walk w = {.data = data, .path = directory};
    if (!kn_visit_directory(directory, visit_class, &w))
        return kn_fail(KN_ERR_IO, "kn_image_folder: there is no folder '%s' that can be read", directory);
    if (w.status == KN_OK && data->num_classes == 0)
        return kn_fail(KN_ERR_IO,
                       "kn_image_folder: '%s' has no folders; it should have one for each class, with the "
                       "images in it",
                       directory);
    return w.status;
}

/* --- the dataset -------------------------------------------------------------------------------------------------- */

kn_image_folder_params kn_image_folder_params_init(void) { return (kn_image_folder_params){KN_IMAGE_FOLDER_DEFAULTS}; }

static kn_status fill(folder *data, const char *directory, const kn_transforms *transforms,
                      const kn_image_folder_params *params)
{
    if (params->mode < KN_IMAGE_GRAY || params->mode > KN_IMAGE_RGB_ALPHA)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_image_folder: mode is %d; it must be a kn_image_mode, and not "
                       "KN_IMAGE_UNCHANGED, as batches need equal channels",
                       (int)params->mode);
    data->decoding = (kn_image_params){.mode = params->mode, .apply_exif_orientation = params->apply_exif_orientation};
    kn_picture_kind kind = {
        .dtype = KN_U8, .channels = (int)params->mode, .height = KN_UNKNOWN_SIZE, .width = KN_UNKNOWN_SIZE};
    KN_TRY(kn_transforms_copy(&data->transforms, transforms));
    KN_TRY(kn_transforms_rule(data->transforms, &kind));
    KN_TRY(kn_transforms_field(&kind, &data->field));
    return find_samples(data, directory);
}

static kn_status make(kn_dataset **dataset, const char *directory, const kn_transforms *transforms,
                      const kn_image_folder_params *params)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    if (!directory)
        return kn_fail_argument_null("kn_image_folder", "directory");
    folder *data = kn_calloc(1, sizeof(*data));
    if (!data)
        return KN_ERR_MEMORY;
    kn_status status = fill(data, directory, transforms, params);
    if (status != KN_OK) {
        destroy(data);
        return status;
    }
    KN_TRY(kn_dataset_make(dataset, &functions, data, (kn_field[]){data->field, {.dtype = KN_I64}}, 2));
    (*dataset)->get_random = get_random;
    (*dataset)->classes = (const char *const *)data->classes;
    return KN_OK;
}

kn_dataset *kn_image_folder_with(const char *directory, const kn_transforms *transforms,
                                 const kn_image_folder_params *params)
{
    kn_dataset *dataset = NULL;
    params = params ? params : &(kn_image_folder_params){KN_IMAGE_FOLDER_DEFAULTS};
    return make(&dataset, directory, transforms, params) == KN_OK ? dataset : kn_error_make_sticky();
}
