/* data/transforms/pipeline.c - pipelines: adding steps, checking, applying. */
#include "data/transforms/pipeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor.h"

kn_transforms *kn_transforms_new(void)
{
    kn_transforms *made = kn_calloc(1, sizeof(*made));
    return made ? made : kn_error_make_sticky();
}

void kn_transforms_free(kn_transforms *transforms)
{
    if (!transforms)
        return;
    kn_free(transforms->steps);
    kn_free(transforms);
}

/* --- adding steps ------------------------------------------------------------------------------------------------- */

static kn_status remember(kn_transforms *transforms, kn_status status)
{
    if (transforms->status == KN_OK) {
        transforms->status = status;
        snprintf(transforms->message, sizeof transforms->message, "%s", kn_error_message());
    }
    return status;
}

kn_status kn_transforms_refuse(kn_transforms *transforms, const kn_step_kind *kind, const char *format, ...)
{
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return remember(transforms, kn_fail(KN_ERR_ARGUMENT, "kn_transforms_%s: %s", kind->name, reason));
}

kn_status kn_transforms_add(kn_transforms *transforms, const kn_step_kind *kind, const void *params, size_t size)
{
    kn_status status = KN_GROW(transforms->steps, transforms->count, transforms->capacity);
    if (status != KN_OK)
        return remember(transforms, status);
    kn_step *step = &transforms->steps[transforms->count++];
    *step = (kn_step){.kind = kind};
    memcpy(step->params, params, size);
    return KN_OK;
}

kn_status kn_transforms_check_range(kn_transforms *transforms, const kn_step_kind *kind, const char *name,
                                    const double range[2], double least, double most)
{
    if (range[0] >= least && range[0] <= range[1] && range[1] <= most)
        return KN_OK;
    return kn_transforms_refuse(transforms, kind, "%s is from %g to %g; it must rise, within %g and %g", name, range[0],
                                range[1], least, most);
}

kn_status kn_transforms_check_chance(kn_transforms *transforms, const kn_step_kind *kind, double p)
{
    return p >= 0 && p <= 1 ? KN_OK : kn_transforms_refuse(transforms, kind, "p is %g; it must be from 0 to 1", p);
}

kn_status kn_transforms_check_interpolation(kn_transforms *transforms, const kn_step_kind *kind, int interpolation,
                                            bool bicubic)
{
    if (interpolation == KN_INTERPOLATE_NEAREST || interpolation == KN_INTERPOLATE_BILINEAR ||
        (interpolation == KN_INTERPOLATE_BICUBIC && bicubic))
        return KN_OK;
    return kn_transforms_refuse(transforms, kind,
                                "interpolation is %d; it must be KN_INTERPOLATE_NEAREST%s KN_INTERPOLATE_BILINEAR%s",
                                interpolation, bicubic ? "," : " or", bicubic ? " or KN_INTERPOLATE_BICUBIC" : "");
}

/* --- checking and applying ---------------------------------------------------------------------------------------- */

kn_status kn_rule_of_colors(const void *params, kn_picture_kind *kind)
{
    (void)params;
    if (kind->channels == 1 || kind->channels == 3)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "expected images of 1 or 3 channels, not %lld", (long long)kind->channels);
}

static kn_status check_usable(const kn_transforms *transforms)
{
    return transforms->status == KN_OK ? KN_OK : kn_fail(transforms->status, "%s", transforms->message);
}

kn_status kn_transforms_rule(const kn_transforms *transforms, kn_picture_kind *kind)
{
    KN_TRY(check_usable(transforms));
    for (int i = 0; i < transforms->count; i++) {
        const kn_step *step = &transforms->steps[i];
        kn_status status = step->kind->rule ? step->kind->rule(step->params, kind) : KN_OK;
        if (status != KN_OK) {
            kn_error_prefix("kn_transforms_%s", step->kind->name);
            return status;
        }
    }
    return KN_OK;
}

kn_status kn_transforms_run(const kn_transforms *transforms, kn_picture *picture, uint64_t random)
{
    for (int i = 0; i < transforms->count; i++) {
        const kn_step *step = &transforms->steps[i];
        kn_draws draws = {.random = random, .step = (uint32_t)i};
        kn_status status = step->kind->apply(step->params, picture, &draws);
        if (status != KN_OK) {
            kn_error_prefix("kn_transforms_%s", step->kind->name);
            return status;
        }
    }
    return KN_OK;
}

kn_status kn_transforms_copy(kn_transforms **copy, const kn_transforms *transforms)
{
    kn_transforms *made = kn_calloc(1, sizeof(*made));
    const int count = transforms ? transforms->count : 0;
    kn_status status = transforms ? check_usable(transforms) : KN_OK;
    if (made && status == KN_OK && count > 0)
        made->steps = kn_malloc((size_t)count * sizeof *made->steps);
    if (!made || status != KN_OK || (count > 0 && !made->steps)) {
        kn_transforms_free(made);
        return status != KN_OK ? status : KN_ERR_MEMORY;
    }
    if (count > 0)
        memcpy(made->steps, transforms->steps, (size_t)count * sizeof *made->steps);
    made->count = made->capacity = count;
    *copy = made;
    return KN_OK;
}

kn_status kn_transforms_field(const kn_picture_kind *kind, kn_field *field)
{
    if (kind->height == KN_UNKNOWN_SIZE || kind->width == KN_UNKNOWN_SIZE)
        return kn_fail(KN_ERR_SHAPE,
                       "the transforms leave images of different sizes, of which no batch can be made: add "
                       "kn_transforms_center_crop, _random_resized_crop, or _resize with .width");
    field->dtype = kind->dtype;
    field->ndim = 3;
    field->shape[0] = kind->channels;
    field->shape[1] = kind->height;
    field->shape[2] = kind->width;
    return KN_OK;
}

/* --- one tensor --------------------------------------------------------------------------------------------------- */

static kn_status check_image(const kn_tensor *image)
{
    char found[KN_DESCRIBE];
    const bool host = kn_device_is_host(kn_device_of(image));
    if (host && kn_ndim(image) == 3 && kn_numel(image) > 0 && (image->dtype == KN_U8 || image->dtype == KN_F32))
        return KN_OK;
    return kn_fail(host ? KN_ERR_SHAPE : KN_ERR_DEVICE,
                   "kn_transforms_apply: expected a host tensor [C, H, W], uint8 or float32, found %s",
                   kn_tensor_describe(found, sizeof found, image));
}

/* As a tensor of its own; a pipeline without steps has left the source's memory in the picture. */
static kn_status tensor_of(kn_tensor **result, const kn_picture *picture)
{
    const int64_t shape[] = {picture->channels, picture->height, picture->width};
    KN_TRY(kn_tensor_new(result, picture->dtype, 3, shape, kn_device_host()));
    memcpy((*result)->storage->host, picture->data,
           (size_t)(picture->channels * kn_picture_size(picture)) * kn_picture_element(picture));
    return KN_OK;
}

static kn_status apply(kn_tensor **result, const kn_transforms *transforms, kn_tensor *image, uint64_t random)
{
    KN_TRY(check_image(image));
    kn_picture_kind kind = {
        .dtype = image->dtype, .channels = kn_size(image, 0), .height = kn_size(image, 1), .width = kn_size(image, 2)};
    kn_picture picture = {.dtype = kind.dtype, .channels = kind.channels, .height = kind.height, .width = kind.width};
    KN_TRY(kn_transforms_rule(transforms, &kind));
    kn_tensor *copy = NULL; /* steps may work in place */
    KN_TRY(kn_tensor_cast(&copy, image, image->dtype, kn_device_host()));
    picture.data = copy->storage->host;
    kn_status status = kn_transforms_run(transforms, &picture, random);
    if (status == KN_OK)
        status = tensor_of(result, &picture);
    kn_picture_free(&picture);
    kn_release(copy);
    return status;
}

kn_tensor *kn_transforms_apply(const kn_transforms *transforms, kn_tensor *image, uint64_t random)
{
    kn_tensor *result = NULL;
    if (!transforms || !image)
        return kn_fail_argument_null("kn_transforms_apply", transforms ? "image" : "transforms"),
               kn_error_make_sticky();
    return apply(&result, transforms, image, random) == KN_OK ? kn_scope_adopt(result) : kn_error_make_sticky();
}
