/* data/images/mixup.c - MixUp and CutMix of a batch, on the device. The random numbers are drawn on the host, from the
 * batch's own, so nothing waits, and a resumed run mixes alike. */
#include <math.h>

#include <koine/autograd.h>
#include <koine/image_data.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/error.h"
#include "data/transforms/draws.h"
#include "tensor/tensor.h"

kn_mixup_params kn_mixup_params_init(void) { return (kn_mixup_params){KN_MIXUP_DEFAULTS}; }

/* Each row is the one before. */
static kn_tensor *rolled(kn_tensor *x) { return kn_roll(x, 1, (const int64_t[]){1}, (const int[]){0}); }

static kn_tensor *mixed(kn_tensor *x, double part) { return kn_lerp_scalar(rolled(x), x, part); }

/* From `begin` to `end`, half of the side's part to each side of a random centre, within the image. */
static void draw_side(kn_draws *draws, int64_t size, double part, int64_t *begin, int64_t *end)
{
    const int64_t center = kn_draw_below(draws, size), half = (int64_t)(0.5 * part * (double)size);
    *begin = center - half > 0 ? center - half : 0;
    *end = center + half < size ? center + half : size;
}

/* Copies a rectangle of area 1 - *part from the images before; *part becomes what is left of the image itself. */
static kn_tensor *cut(kn_tensor *images, kn_draws *draws, double *part)
{
    const int64_t height = kn_size(images, 2), width = kn_size(images, 3);
    int64_t left, right, top, bottom;
    draw_side(draws, width, sqrt(1 - *part), &left, &right);
    draw_side(draws, height, sqrt(1 - *part), &top, &bottom);
    *part = 1 - (double)((right - left) * (bottom - top)) / (double)(width * height);
    kn_tensor *result = kn_clone(images), *from = rolled(images);
    if (right == left || bottom == top || !result || !from)
        return result;
    kn_tensor *place = kn_slice(kn_slice(result, 2, top, bottom, 1), 3, left, right, 1);
    kn_status status = kn_copy(place, kn_slice(kn_slice(from, 2, top, bottom, 1), 3, left, right, 1));
    return status == KN_OK ? result : NULL;
}

static kn_status check(const kn_batch *batch, const kn_mixup_params *params)
{
    char found[KN_DESCRIBE];
    if (params->num_classes < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_collate_mixup: num_classes is %lld; it must be 1 or more",
                       (long long)params->num_classes);
    if (!(params->mixup_alpha >= 0 && params->cutmix_alpha >= 0) || isinf(params->mixup_alpha + params->cutmix_alpha))
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_collate_mixup: mixup_alpha is %g and cutmix_alpha %g; they must be 0 or more",
                       params->mixup_alpha, params->cutmix_alpha);
    if (!batch->input || !batch->target)
        return kn_fail(KN_ERR_ARGUMENT, "kn_collate_mixup: the batch has no field \"%s\"",
                       batch->input ? "target" : "input");
    if (kn_ndim(batch->input) != 4 || !kn_dtype_is_floating(kn_dtype_of(batch->input)))
        return kn_fail(KN_ERR_SHAPE, "kn_collate_mixup: expected floating images [N, C, H, W] as \"input\", found %s",
                       kn_tensor_describe(found, sizeof found, batch->input));
    if (kn_ndim(batch->target) != 1 || kn_dtype_is_floating(kn_dtype_of(batch->target)))
        return kn_fail(KN_ERR_SHAPE, "kn_collate_mixup: expected class indices [N] as \"target\", found %s",
                       kn_tensor_describe(found, sizeof found, batch->target));
    return KN_OK;
}

/* Chooses between the two, and mixes. */
static kn_status mix(kn_tensor **images, kn_tensor **targets, const kn_mixup_params *params, uint64_t random)
{
    kn_draws draws = {.random = random};
    const bool both = params->mixup_alpha > 0 && params->cutmix_alpha > 0;
    const bool cuts = both ? kn_draw(&draws) < 0.5 : params->cutmix_alpha > 0;
    const double alpha = cuts ? params->cutmix_alpha : params->mixup_alpha;
    *targets = kn_to_dtype(kn_one_hot(*targets, params->num_classes), KN_F32);
    if (alpha > 0) {
        double part = kn_draw_beta(&draws, alpha);
        *images = cuts ? cut(*images, &draws, &part) : mixed(*images, part);
        *targets = mixed(*targets, part);
    }
    return *images && *targets ? KN_OK : kn_error_status();
}

kn_status kn_collate_mixup(const kn_batch *batch, void *user)
{
    const kn_mixup_params *params = user;
    if (!batch || !params)
        return kn_fail_argument_null("kn_collate_mixup", batch ? "user" : "batch");
    KN_TRY(check(batch, params));
    KN_NO_GRAD;
    kn_tensor **images = batch->fields, **targets = batch->fields; /* both are found: check */
    for (int i = 0; i < batch->num_fields; i++) {
        images = batch->fields[i] == batch->input ? &batch->fields[i] : images;
        targets = batch->fields[i] == batch->target ? &batch->fields[i] : targets;
    }
    KN_TRY(kn_collate_to_device(batch, NULL));
    return mix(images, targets, params, batch->random);
}
