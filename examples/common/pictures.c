/* common/pictures.c - see pictures.h. */
#include "common/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kn_module *picture_model_network(const picture_model *model)
{
    return kn_models_new(model->name, .num_classes = model->num_classes, .in_channels = model->channels,
                         .small_images = model->small_images);
}

kn_status picture_normalize(kn_transforms *transforms, int64_t channels)
{
    static const float gray_mean[] = {0.286f}, gray_std[] = {0.353f};
    static const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
    kn_transforms_to_tensor(transforms);
    return kn_transforms_normalize(transforms, (int)channels, channels == 1 ? gray_mean : mean,
                                   channels == 1 ? gray_std : std);
}

/* Photographs lose a border, as usual for ImageNet; small pictures have none to lose. */
kn_transforms *picture_transforms(const picture_model *model)
{
    kn_transforms *transforms = kn_transforms_new();
    if (transforms == NULL)
        return NULL;
    kn_transforms_resize(transforms, model->small_images ? model->size : model->size * 8 / 7);
    kn_transforms_center_crop(transforms, model->size, model->size);
    picture_normalize(transforms, model->channels); /* refused steps are reported where the pipeline is used */
    return transforms;
}

/* A name is text of a file, which may command a terminal by control characters, also those of Unicode. */
static void replace_controls(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = '?';
        if (c[0] < 0x20 || c[0] == 0x7f)
            c[0] = '?';
    }
}

void picture_class_name(const picture_model *model, int64_t index, char name[128])
{
    const char *line = model->classes;
    for (int64_t i = 0; i < index && line != NULL; i++)
        line = (line = strchr(line, '\n')) != NULL ? line + 1 : NULL;
    if (line != NULL && line[0] != '\0')
        snprintf(name, 128, "%.*s", (int)strcspn(line, "\n"), line);
    else
        snprintf(name, 128, "class %lld", (long long)index);
    replace_controls(name);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static kn_status set_number(kn_tensor_file *file, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return kn_tensor_file_set_metadata(file, key, text);
}

kn_status picture_model_save(const picture_model *model, const char *from, const char *to)
{
    KN_SCOPE;
    kn_tensor_file *file = kn_load_safetensors(from);
    kn_status status = kn_status_of(file);
    if (status == KN_OK)
        status = kn_tensor_file_set_metadata(file, "model", model->name);
    if (status == KN_OK)
        status = kn_tensor_file_set_metadata(file, "classes", model->classes != NULL ? model->classes : "");
    if (status == KN_OK)
        status = set_number(file, "num_classes", model->num_classes);
    if (status == KN_OK)
        status = set_number(file, "size", model->size);
    if (status == KN_OK)
        status = set_number(file, "channels", model->channels);
    if (status == KN_OK)
        status = set_number(file, "small_images", model->small_images);
    if (status == KN_OK)
        status = kn_save_safetensors(to, file);
    kn_tensor_file_free(file);
    return status;
}

/* The number under the key; an error unless it is from `least` to `most`. */
static kn_status get_number(const kn_tensor_file *file, const char *path, const char *key, int64_t least, int64_t most,
                            int64_t *value)
{
    const char *text = kn_tensor_file_metadata(file, key);
    char *end = NULL;
    *value = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text != NULL && end != text && *end == '\0' && *value >= least && *value <= most)
        return KN_OK;
    return kn_error_set(
        KN_ERR_FORMAT, "'%s': the metadata \"%s\" is %s; it must be a number from %lld to %lld, as train_images writes",
        path, key, text != NULL ? text : "missing", (long long)least, (long long)most);
}

static kn_status read_metadata(picture_model *model, const kn_tensor_file *file, const char *path)
{
    int64_t small = 0;
    const char *name = kn_tensor_file_metadata(file, "model"), *classes = kn_tensor_file_metadata(file, "classes");
    if (name == NULL || strlen(name) >= sizeof model->name)
        return kn_error_set(KN_ERR_FORMAT, "'%s' does not say which model it is for: it is not a file of train_images",
                            path);
    snprintf(model->name, sizeof model->name, "%s", name);
    kn_status status = get_number(file, path, "size", 1, 4096, &model->size);
    if (status == KN_OK)
        status = get_number(file, path, "channels", 1, 3, &model->channels);
    if (status == KN_OK)
        status = get_number(file, path, "num_classes", 1, MOST_CLASSES, &model->num_classes);
    if (status == KN_OK)
        status = get_number(file, path, "small_images", 0, 1, &small);
    model->small_images = small != 0;
    model->classes = classes != NULL ? strdup(classes) : NULL;
    return status;
}

kn_status picture_model_open(picture_model *model, const char *path)
{
    KN_SCOPE;
    kn_tensor_file *file = kn_load_safetensors(path);
    kn_status status = kn_status_of(file);
    if (status == KN_OK)
        status = read_metadata(model, file, path);
    kn_tensor_file_free(file);
    return status;
}
