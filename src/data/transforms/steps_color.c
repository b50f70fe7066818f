/* data/transforms/steps_color.c - color_jitter, and what happens with a probability: gray, inverted, ... */
#include "data/transforms/step.h"

/* --- color_jitter ------------------------------------------------------------------------------------------------- */

kn_transforms_color_jitter_params kn_transforms_color_jitter_params_init(void)
{
    return (kn_transforms_color_jitter_params){KN_TRANSFORMS_COLOR_JITTER_DEFAULTS};
}

static bool is_set(const double range[2]) { return range[0] != 0 || range[1] != 0; }

static kn_status jitter(const void *params, kn_picture *picture, kn_draws *draws)
{
    static kn_status (*const changes[4])(kn_picture *, double) = {kn_picture_brightness, kn_picture_contrast,
                                                                  kn_picture_saturation, kn_picture_hue};
    const kn_transforms_color_jitter_params *p = params;
    const double *ranges[4] = {p->brightness, p->contrast, p->saturation, p->hue};
    int order[4] = {0, 1, 2, 3};
    double factors[4];
    for (int i = 0; i < 4; i++)
        factors[i] = kn_draw_between(draws, ranges[i][0], ranges[i][1]);
    for (int i = 3; i > 0; i--) {
        const int other = (int)kn_draw_below(draws, i + 1), held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
    for (int i = 0; i < 4; i++)
        if (is_set(ranges[order[i]]))
            KN_TRY(changes[order[i]](picture, factors[order[i]]));
    return KN_OK;
}

kn_status kn_transforms_color_jitter_with(kn_transforms *transforms, const kn_transforms_color_jitter_params *params)
{
    static const kn_step_kind kind = {.name = "color_jitter", .rule = kn_rule_of_colors, .apply = jitter};
    KN_CHECK_TRANSFORMS(transforms);
    const kn_transforms_color_jitter_params p = params ? *params : kn_transforms_color_jitter_params_init();
    KN_TRY(kn_transforms_check_range(transforms, &kind, "brightness", p.brightness, 0, 1e6));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "contrast", p.contrast, 0, 1e6));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "saturation", p.saturation, 0, 1e6));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "hue", p.hue, -0.5, 0.5));
    return KN_ADD_STEP(transforms, kind, p);
}

/* --- changes with a probability ----------------------------------------------------------------------------------- */

typedef struct chance {
    double p, parameter;
    kn_status (*change)(kn_picture *picture, double parameter);
} chance;

static kn_status maybe(const void *params, kn_picture *picture, kn_draws *draws)
{
    const chance *c = params;
    return kn_happens(draws, c->p) ? c->change(picture, c->parameter) : KN_OK;
}

static kn_status add_chance(kn_transforms *transforms, const kn_step_kind *kind, chance c)
{
    KN_TRY(kn_transforms_check_chance(transforms, kind, c.p));
    return KN_ADD_STEP(transforms, *kind, c);
}

static kn_status grayscale(kn_picture *picture, double parameter)
{
    (void)parameter;
    return kn_picture_grayscale(picture);
}

kn_status kn_transforms_random_grayscale(kn_transforms *transforms, double p)
{
    static const kn_step_kind kind = {.name = "random_grayscale", .rule = kn_rule_of_colors, .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    return add_chance(transforms, &kind, (chance){.p = p, .change = grayscale});
}

static kn_status invert(kn_picture *picture, double parameter)
{
    (void)parameter;
    return kn_picture_invert(picture);
}

kn_status kn_transforms_random_invert(kn_transforms *transforms, double p)
{
    static const kn_step_kind kind = {.name = "random_invert", .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    return add_chance(transforms, &kind, (chance){.p = p, .change = invert});
}

static kn_status autocontrast(kn_picture *picture, double parameter)
{
    (void)parameter;
    return kn_picture_autocontrast(picture);
}

kn_status kn_transforms_random_autocontrast(kn_transforms *transforms, double p)
{
    static const kn_step_kind kind = {.name = "random_autocontrast", .rule = kn_rule_of_colors, .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    return add_chance(transforms, &kind, (chance){.p = p, .change = autocontrast});
}

static kn_status equalize(kn_picture *picture, double parameter)
{
    (void)parameter;
    return kn_picture_equalize(picture);
}

kn_status kn_transforms_random_equalize(kn_transforms *transforms, double p)
{
    static const kn_step_kind kind = {.name = "random_equalize", .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    return add_chance(transforms, &kind, (chance){.p = p, .change = equalize});
}

static kn_status posterize(kn_picture *picture, double bits) { return kn_picture_posterize(picture, (int)bits); }

kn_status kn_transforms_random_posterize(kn_transforms *transforms, int bits, double p)
{
    static const kn_step_kind kind = {.name = "random_posterize", .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    if (bits < 0 || bits > 8)
        return kn_transforms_refuse(transforms, &kind, "bits is %d; it must be from 0 to 8", bits);
    return add_chance(transforms, &kind, (chance){.p = p, .parameter = bits, .change = posterize});
}

kn_status kn_transforms_random_solarize(kn_transforms *transforms, double threshold, double p)
{
    static const kn_step_kind kind = {.name = "random_solarize", .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    if (!(threshold <= 255))
        return kn_transforms_refuse(transforms, &kind, "threshold is %g; it must be at most 255, for float32 at most 1",
                                    threshold);
    return add_chance(transforms, &kind, (chance){.p = p, .parameter = threshold, .change = kn_picture_solarize});
}

kn_status kn_transforms_random_adjust_sharpness(kn_transforms *transforms, double factor, double p)
{
    static const kn_step_kind kind = {.name = "random_adjust_sharpness", .rule = kn_rule_of_colors, .apply = maybe};
    KN_CHECK_TRANSFORMS(transforms);
    if (!(factor >= 0))
        return kn_transforms_refuse(transforms, &kind, "factor is %g; it must be 0 or more", factor);
    return add_chance(transforms, &kind, (chance){.p = p, .parameter = factor, .change = kn_picture_sharpness});
}

/* --- gaussian_blur ------------------------------------------------------------------------------------------------ */

typedef struct blur {
    int kernel_size;
    double sigma[2];
} blur;

kn_transforms_gaussian_blur_params kn_transforms_gaussian_blur_params_init(void)
{
    return (kn_transforms_gaussian_blur_params){KN_TRANSFORMS_GAUSSIAN_BLUR_DEFAULTS};
}

static kn_status check_border(const blur *b, int64_t height, int64_t width)
{
    if (height > b->kernel_size / 2 && width > b->kernel_size / 2)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE,
                   "the border of %d pixels of a kernel of size %d must be smaller than the image, of "
                   "%lld x %lld pixels",
                   b->kernel_size / 2, b->kernel_size, (long long)width, (long long)height);
}

static kn_status blur_rule(const void *params, kn_picture_kind *kind)
{
    return kind->height < 0 || kind->width < 0 ? KN_OK : check_border(params, kind->height, kind->width);
}

static kn_status blur_picture(const void *params, kn_picture *picture, kn_draws *draws)
{
    const blur *b = params;
    KN_TRY(check_border(b, picture->height, picture->width));
    return kn_picture_blur(picture, b->kernel_size, kn_draw_between(draws, b->sigma[0], b->sigma[1]));
}

kn_status kn_transforms_gaussian_blur_with(kn_transforms *transforms, int kernel_size,
                                           const kn_transforms_gaussian_blur_params *params)
{
    static const kn_step_kind kind = {.name = "gaussian_blur", .rule = blur_rule, .apply = blur_picture};
    KN_CHECK_TRANSFORMS(transforms);
    const kn_transforms_gaussian_blur_params p = params ? *params : kn_transforms_gaussian_blur_params_init();
    const blur b = {.kernel_size = kernel_size, .sigma = {p.sigma[0], p.sigma[1]}};
    if (kernel_size < 1 || kernel_size > KN_BLUR_LARGEST || kernel_size % 2 == 0)
        return kn_transforms_refuse(transforms, &kind, "kernel_size is %d; it must be odd, from 1 to %d", kernel_size,
                                    KN_BLUR_LARGEST);
    KN_TRY(kn_transforms_check_range(transforms, &kind, "sigma", p.sigma, 1e-6, 1e6));
    return KN_ADD_STEP(transforms, kind, b);
}
