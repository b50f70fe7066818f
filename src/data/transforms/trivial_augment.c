/* data/transforms/trivial_augment.c - TrivialAugmentWide: one of fourteen changes, of random strength. */
#include "data/transforms/step.h"

kn_transforms_trivial_augment_params kn_transforms_trivial_augment_params_init(void)
{
    return (kn_transforms_trivial_augment_params){KN_TRANSFORMS_TRIVIAL_AUGMENT_DEFAULTS};
}

typedef enum change {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    CHANGES
} change;

/* The greatest strength of those that have a sign. */
static const double greatest[CHANGES] = {
    [SHEAR_X] = 0.99,    [SHEAR_Y] = 0.99, [TRANSLATE_X] = 32, [TRANSLATE_Y] = 32, [ROTATE] = 135,
    [BRIGHTNESS] = 0.99, [COLOR] = 0.99,   [CONTRAST] = 0.99,  [SHARPNESS] = 0.99};

/* Shears are given as tangents, and are around the top left corner. */
static kn_status move(kn_picture *picture, change which, double strength, const kn_transforms_trivial_augment_params *p)
{
    const double degrees = atan(strength) * 180 / 3.14159265358979323846;
    const double middle_x = 0.5 * (double)picture->width, middle_y = 0.5 * (double)picture->height;
    double matrix[6], translate[2] = {0, 0}, shear[2] = {0, 0};
    if (which == TRANSLATE_X || which == TRANSLATE_Y)
        translate[which == TRANSLATE_Y] = trunc(strength);
    else
        shear[which == SHEAR_Y] = degrees;
    kn_affine_matrix(matrix, 0, translate, 1, shear);
    matrix[2] += (matrix[0] - 1) * middle_x + matrix[1] * middle_y;
    matrix[5] += matrix[3] * middle_x + (matrix[4] - 1) * middle_y;
    return kn_picture_affine(picture, matrix, (int)p->interpolation, p->fill);
}

static kn_status apply_change(kn_picture *picture, change which, double strength,
                              const kn_transforms_trivial_augment_params *p)
{
    switch (which) {
    case SHEAR_X:
    case SHEAR_Y:
    case TRANSLATE_X:
    case TRANSLATE_Y:
        return move(picture, which, strength, p);
    case ROTATE:
        return kn_picture_rotate(picture, strength, (int)p->interpolation, p->fill);
    case BRIGHTNESS:
        return kn_picture_brightness(picture, 1 + strength);
    case COLOR:
        return kn_picture_saturation(picture, 1 + strength);
    case CONTRAST:
        return kn_picture_contrast(picture, 1 + strength);
    case SHARPNESS:
        return kn_picture_sharpness(picture, 1 + strength);
    case POSTERIZE:
        return kn_picture_posterize(picture, (int)strength);
    case SOLARIZE:
        return kn_picture_solarize(picture, strength * (double)kn_picture_bound(picture));
    case AUTOCONTRAST:
        return kn_picture_autocontrast(picture);
    case EQUALIZE:
        return kn_picture_equalize(picture);
    default:
        return KN_OK;
    }
}

static kn_status augment(const void *params, kn_picture *picture, kn_draws *draws)
{
    const kn_transforms_trivial_augment_params *p = params;
    const change which = (change)kn_draw_below(draws, CHANGES);
    const double part = (double)kn_draw_below(draws, p->num_magnitude_bins) / (p->num_magnitude_bins - 1);
    const double sign = kn_draw(draws) <= 0.5 ? -1 : 1;
    const double strength = which == POSTERIZE  ? rint(8 - 6 * part)
                            : which == SOLARIZE ? 1 - part
                                                : sign * part * greatest[which];
    return apply_change(picture, which, strength, p);
}

kn_status kn_transforms_trivial_augment_wide_with(kn_transforms *transforms,
                                                  const kn_transforms_trivial_augment_params *params)
{
    static const kn_step_kind kind = {.name = "trivial_augment_wide", .rule = kn_rule_of_colors, .apply = augment};
    KN_CHECK_TRANSFORMS(transforms);
    const kn_transforms_trivial_augment_params p = params ? *params : kn_transforms_trivial_augment_params_init();
    if (p.num_magnitude_bins < 2 || p.num_magnitude_bins > 1000)
        return kn_transforms_refuse(transforms, &kind, "num_magnitude_bins is %d; it must be from 2 to 1000",
                                    p.num_magnitude_bins);
    KN_TRY(kn_transforms_check_interpolation(transforms, &kind, (int)p.interpolation, false));
    return KN_ADD_STEP(transforms, kind, p);
}
