/* data/transforms/steps_place.c - flips, rotation, affine. */
#include <string.h>

#include "data/transforms/step.h"

/* --- flips -------------------------------------------------------------------------------------------------------- */

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char held = a[i];
        a[i] = b[i];
        b[i] = held;
    }
}

static kn_status maybe_mirror(const void *params, kn_picture *picture, kn_draws *draws)
{
    const size_t element = kn_picture_element(picture), row = (size_t)picture->width * element;
    if (!kn_happens(draws, *(const double *)params))
        return KN_OK;
    unsigned char *at = picture->data;
    for (int64_t y = 0; y < picture->channels * picture->height; y++, at += row)
        for (size_t left = 0, right = row - element; left < right; left += element, right -= element)
            swap(at + left, at + right, element);
    return KN_OK;
}

static kn_status maybe_turn_over(const void *params, kn_picture *picture, kn_draws *draws)
{
    const size_t row = (size_t)picture->width * kn_picture_element(picture), plane = row * (size_t)picture->height;
    if (!kn_happens(draws, *(const double *)params))
        return KN_OK;
    unsigned char *at = picture->data;
    for (int64_t c = 0; c < picture->channels; c++, at += plane)
        for (size_t top = 0, bottom = plane - row; top < bottom; top += row, bottom -= row)
            swap(at + top, at + bottom, row);
    return KN_OK;
}

kn_status kn_transforms_random_horizontal_flip(kn_transforms *transforms, double p)
{
    static const kn_step_kind kind = {.name = "random_horizontal_flip", .apply = maybe_mirror};
    KN_CHECK_TRANSFORMS(transforms);
    KN_TRY(kn_transforms_check_chance(transforms, &kind, p));
    return KN_ADD_STEP(transforms, kind, p);
}

kn_status kn_transforms_random_vertical_flip(kn_transforms *transforms, double p)
{
    static const kn_step_kind kind = {.name = "random_vertical_flip", .apply = maybe_turn_over};
    KN_CHECK_TRANSFORMS(transforms);
    KN_TRY(kn_transforms_check_chance(transforms, &kind, p));
    return KN_ADD_STEP(transforms, kind, p);
}

/* --- rotation ----------------------------------------------------------------------------------------------------- */

typedef struct rotation {
    double degrees[2];
    kn_transforms_rotation_params params;
} rotation;

kn_transforms_rotation_params kn_transforms_rotation_params_init(void)
{
    return (kn_transforms_rotation_params){KN_TRANSFORMS_ROTATION_DEFAULTS};
}

static kn_status rotate(const void *params, kn_picture *picture, kn_draws *draws)
{
    const rotation *r = params;
    return kn_picture_rotate(picture, kn_draw_between(draws, r->degrees[0], r->degrees[1]),
                             (int)r->params.interpolation, r->params.fill);
}

kn_status kn_transforms_random_rotation_with(kn_transforms *transforms, double low, double high,
                                             const kn_transforms_rotation_params *params)
{
    static const kn_step_kind kind = {.name = "random_rotation", .apply = rotate};
    KN_CHECK_TRANSFORMS(transforms);
    const rotation r = {.degrees = {low, high}, .params = params ? *params : kn_transforms_rotation_params_init()};
    KN_TRY(kn_transforms_check_range(transforms, &kind, "the angle", r.degrees, -3600, 3600));
    KN_TRY(kn_transforms_check_interpolation(transforms, &kind, (int)r.params.interpolation, false));
    return KN_ADD_STEP(transforms, kind, r);
}

/* --- affine ------------------------------------------------------------------------------------------------------- */

typedef struct affine {
    double degrees[2];
    kn_transforms_affine_params params;
} affine;

kn_transforms_affine_params kn_transforms_affine_params_init(void)
{
    return (kn_transforms_affine_params){KN_TRANSFORMS_AFFINE_DEFAULTS};
}

static kn_status move(const void *params, kn_picture *picture, kn_draws *draws)
{
    const affine *a = params;
    const kn_transforms_affine_params *p = &a->params;
    double matrix[6], translate[2], shear[2];
    const double angle = kn_draw_between(draws, a->degrees[0], a->degrees[1]);
    const double most[] = {p->translate[0] * (double)picture->width, p->translate[1] * (double)picture->height};
    for (int i = 0; i < 2; i++)
        translate[i] = rint(kn_draw_between(draws, -most[i], most[i]));
    const double scale = kn_draw_between(draws, p->scale[0], p->scale[1]);
    for (int i = 0; i < 2; i++)
        shear[i] = kn_draw_between(draws, p->shear[2 * i], p->shear[2 * i + 1]);
    kn_affine_matrix(matrix, angle, translate, scale, shear);
    return kn_picture_affine(picture, matrix, (int)p->interpolation, p->fill);
}

kn_status kn_transforms_random_affine_with(kn_transforms *transforms, double low, double high,
                                           const kn_transforms_affine_params *params)
{
    static const kn_step_kind kind = {.name = "random_affine", .apply = move};
    KN_CHECK_TRANSFORMS(transforms);
    const affine a = {.degrees = {low, high}, .params = params ? *params : kn_transforms_affine_params_init()};
    KN_TRY(kn_transforms_check_range(transforms, &kind, "the angle", a.degrees, -3600, 3600));
    for (int i = 0; i < 2; i++) {
        const double part[] = {0, a.params.translate[i]};
        KN_TRY(kn_transforms_check_range(transforms, &kind, "translate", part, 0, 1));
        KN_TRY(kn_transforms_check_range(transforms, &kind, "shear", a.params.shear + 2 * i, -89, 89));
    }
    KN_TRY(kn_transforms_check_range(transforms, &kind, "scale", a.params.scale, 1e-3, 1e3));
    KN_TRY(kn_transforms_check_interpolation(transforms, &kind, (int)a.params.interpolation, false));
    return KN_ADD_STEP(transforms, kind, a);
}
