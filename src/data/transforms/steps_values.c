/* data/transforms/steps_values.c - to_tensor, normalize, random_erasing, and the user's own. */
#include "data/transforms/step.h"

/* --- to_tensor ---------------------------------------------------------------------------------------------------- */

static kn_status floats_rule(const void *params, kn_picture_kind *kind)
{
    (void)params;
    kind->dtype = KN_F32;
    return KN_OK;
}

static kn_status to_floats(const void *params, kn_picture *picture, kn_draws *draws)
{
    (void)params;
    (void)draws;
    if (picture->dtype == KN_F32)
        return KN_OK;
    kn_picture made = *picture;
    made.dtype = KN_F32;
    KN_TRY(kn_picture_new(&made, &made, picture->height, picture->width));
    const int64_t size = picture->channels * kn_picture_size(picture);
    const uint8_t *restrict from = picture->data;
    float *restrict to = made.data;
    for (int64_t i = 0; i < size; i++)
        to[i] = (float)from[i] / 255.0f;
    kn_picture_replace(picture, &made);
    return KN_OK;
}

kn_status kn_transforms_to_tensor(kn_transforms *transforms)
{
    static const kn_step_kind kind = {.name = "to_tensor", .rule = floats_rule, .apply = to_floats};
    KN_CHECK_TRANSFORMS(transforms);
    return kn_transforms_add(transforms, &kind, "", 0);
}

/* --- normalize ---------------------------------------------------------------------------------------------------- */

typedef struct normalize {
    int channels;
    float mean[4], std[4];
} normalize;

static kn_status normalize_rule(const void *params, kn_picture_kind *kind)
{
    const normalize *n = params;
    if (kind->dtype != KN_F32)
        return kn_fail(KN_ERR_DTYPE, "expected float32 images, not %s: kn_transforms_to_tensor converts them",
                       kn_dtype_name(kind->dtype));
    if (kind->channels != n->channels)
        return kn_fail(KN_ERR_SHAPE, "mean and std are for %d channel%s, but the image has %lld", n->channels,
                       n->channels == 1 ? "" : "s", (long long)kind->channels);
    return KN_OK;
}

static kn_status normalize_values(const void *params, kn_picture *picture, kn_draws *draws)
{
    (void)draws;
    const normalize *n = params;
    const int64_t size = kn_picture_size(picture);
    float *values = picture->data;
    for (int c = 0; c < n->channels; c++, values += size)
        for (int64_t i = 0; i < size; i++)
            values[i] = (values[i] - n->mean[c]) / n->std[c];
    return KN_OK;
}

kn_status kn_transforms_normalize(kn_transforms *transforms, int channels, const float *mean, const float *std)
{
    static const kn_step_kind kind = {.name = "normalize", .rule = normalize_rule, .apply = normalize_values};
    KN_CHECK_TRANSFORMS(transforms);
    if (!mean || !std)
        return kn_transforms_refuse(transforms, &kind, "argument `%s` is NULL", mean ? "std" : "mean");
    if (channels < 1 || channels > 4)
        return kn_transforms_refuse(transforms, &kind, "channels is %d; it must be from 1 to 4", channels);
    normalize params = {.channels = channels};
    for (int c = 0; c < channels; c++) {
        if (!(std[c] > 0))
            return kn_transforms_refuse(transforms, &kind, "std of channel %d is %g; it must be above 0", c,
                                        (double)std[c]);
        params.mean[c] = mean[c];
        params.std[c] = std[c];
    }
    return KN_ADD_STEP(transforms, kind, params);
}

/* --- random_erasing ----------------------------------------------------------------------------------------------- */

kn_transforms_random_erasing_params kn_transforms_random_erasing_params_init(void)
{
    return (kn_transforms_random_erasing_params){KN_TRANSFORMS_RANDOM_ERASING_DEFAULTS};
}

static kn_status erasing_rule(const void *params, kn_picture_kind *kind)
{
    const kn_transforms_random_erasing_params *p = params;
    return !p->random || kind->dtype == KN_F32 ? KN_OK
                                               : kn_fail(KN_ERR_DTYPE,
                                                         "random values need float32 images, not %s: put it after "
                                                         "kn_transforms_to_tensor",
                                                         kn_dtype_name(kind->dtype));
}

static void erase(kn_picture *picture, kn_box box, const kn_transforms_random_erasing_params *p, kn_draws *draws)
{
    for (int64_t c = 0; c < picture->channels; c++)
        for (int64_t y = 0; y < box.height; y++)
            for (int64_t x = 0; x < box.width; x++) {
                const float value = (float)(p->random ? kn_draw_normal(draws) : p->value);
                const int64_t row = c * picture->height + box.top + y;
                kn_picture_store_cut(picture, row * picture->width + box.left + x, 1, &value);
            }
}

static kn_status maybe_erase(const void *params, kn_picture *picture, kn_draws *draws)
{
    const kn_transforms_random_erasing_params *p = params;
    if (!kn_happens(draws, p->p))
        return KN_OK;
    for (int attempt = 0; attempt < 10; attempt++) {
        const double area = (double)kn_picture_size(picture) * kn_draw_between(draws, p->scale[0], p->scale[1]);
        const double ratio = kn_draw_log_between(draws, p->ratio);
        kn_box box = {.height = (int64_t)rint(sqrt(area * ratio)), .width = (int64_t)rint(sqrt(area / ratio))};
        if (box.height >= picture->height || box.width >= picture->width)
            continue;
        box.top = kn_draw_below(draws, picture->height - box.height + 1);
        box.left = kn_draw_below(draws, picture->width - box.width + 1);
        erase(picture, box, p, draws);
        break;
    }
    return KN_OK;
}

kn_status kn_transforms_random_erasing_with(kn_transforms *transforms,
                                            const kn_transforms_random_erasing_params *params)
{
    static const kn_step_kind kind = {.name = "random_erasing", .rule = erasing_rule, .apply = maybe_erase};
    KN_CHECK_TRANSFORMS(transforms);
    const kn_transforms_random_erasing_params p = params ? *params : kn_transforms_random_erasing_params_init();
    KN_TRY(kn_transforms_check_chance(transforms, &kind, p.p));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "scale", p.scale, 0, 1));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "ratio", p.ratio, 1e-6, 1e6));
    return KN_ADD_STEP(transforms, kind, p);
}

/* --- lambda ------------------------------------------------------------------------------------------------------- */

typedef struct lambda {
    kn_transform function;
    void *user;
} lambda;

static kn_status call(const void *params, kn_picture *picture, kn_draws *draws)
{
    const lambda *own = params;
    const kn_picture_kind kind = {
        .dtype = picture->dtype, .channels = picture->channels, .height = picture->height, .width = picture->width};
    kn_field field = {.name = "input"};
    KN_TRY(kn_transforms_field(&kind, &field));
    return own->function(picture->data, &field, (uint64_t)(kn_draw(draws) * 0x1p53) << 11, own->user);
}

kn_status kn_transforms_lambda(kn_transforms *transforms, kn_transform function, void *user)
{
    static const kn_step_kind kind = {.name = "lambda", .apply = call};
    KN_CHECK_TRANSFORMS(transforms);
    if (!function)
        return kn_transforms_refuse(transforms, &kind, "argument `function` is NULL");
    const lambda params = {.function = function, .user = user};
    return KN_ADD_STEP(transforms, kind, params);
}
