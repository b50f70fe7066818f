/* data/transforms/steps_size.c - resize, crops. */
#include "data/transforms/step.h"

static kn_status check_size(kn_transforms *transforms, const kn_step_kind *kind, const char *name, int64_t size)
{
    return size >= 1 && size <= 65536 ? KN_OK
                                      : kn_transforms_refuse(transforms, kind, "%s is %lld; it must be from 1 to 65536",
                                                             name, (long long)size);
}

static kn_status check_sizes(kn_transforms *transforms, const kn_step_kind *kind, int64_t height, int64_t width)
{
    KN_TRY(check_size(transforms, kind, "height", height));
    return check_size(transforms, kind, "width", width);
}

/* The first members of the parameters of all steps here. */
typedef struct extent {
    int64_t height, width;
} extent;

static kn_status size_rule(const void *params, kn_picture_kind *kind)
{
    const extent *s = params;
    kind->height = s->height;
    kind->width = s->width;
    return KN_OK;
}

/* --- resize ------------------------------------------------------------------------------------------------------- */

typedef struct resize {
    extent size; /* width 0: height is that of the shorter side */
    int interpolation;
} resize;

kn_transforms_resize_params kn_transforms_resize_params_init(void)
{
    return (kn_transforms_resize_params){KN_TRANSFORMS_RESIZE_DEFAULTS};
}

static extent resized(const resize *r, int64_t height, int64_t width)
{
    const int64_t shorter = r->size.height;
    if (r->size.width > 0)
        return r->size;
    if (height <= width)
        return (extent){shorter, (int64_t)((double)(shorter * width) / (double)height)};
    return (extent){(int64_t)((double)(shorter * height) / (double)width), shorter};
}

static kn_status resize_rule(const void *params, kn_picture_kind *kind)
{
    const resize *r = params;
    if (r->size.width == 0 && (kind->height < 0 || kind->width < 0))
        kind->height = kind->width = KN_UNKNOWN_SIZE;
    else {
        const extent s = resized(r, kind->height, kind->width);
        kind->height = s.height;
        kind->width = s.width;
    }
    return KN_OK;
}

static kn_status resize_picture(const void *params, kn_picture *picture, kn_draws *draws)
{
    (void)draws;
    const resize *r = params;
    const extent s = resized(r, picture->height, picture->width);
    if (s.height > (INT64_C(1) << 27) / s.width)
        return kn_fail(KN_ERR_SHAPE,
                       "an image of %lld x %lld pixels would become %lld x %lld; at most 2^27 are allowed",
                       (long long)picture->width, (long long)picture->height, (long long)s.width, (long long)s.height);
    return kn_picture_resize(picture, (kn_box){0, 0, picture->height, picture->width}, s.height, s.width,
                             r->interpolation);
}

kn_status kn_transforms_resize_with(kn_transforms *transforms, int64_t size, const kn_transforms_resize_params *params)
{
    static const kn_step_kind kind = {.name = "resize", .rule = resize_rule, .apply = resize_picture};
    KN_CHECK_TRANSFORMS(transforms);
    const kn_transforms_resize_params p = params ? *params : kn_transforms_resize_params_init();
    const resize r = {.size = {size, p.width}, .interpolation = (int)p.interpolation};
    KN_TRY(check_size(transforms, &kind, "size", size));
    if (p.width != 0)
        KN_TRY(check_size(transforms, &kind, "width", p.width));
    KN_TRY(kn_transforms_check_interpolation(transforms, &kind, r.interpolation, true));
    return KN_ADD_STEP(transforms, kind, r);
}

/* --- center_crop -------------------------------------------------------------------------------------------------- */

/* torchvision pads by the smaller half on the left, and cuts by the rounded half (to even). */
static int64_t center(int64_t have, int64_t wanted)
{
    return have < wanted ? -((wanted - have) / 2) : (int64_t)rint((double)(have - wanted) / 2);
}

static kn_status crop_center(const void *params, kn_picture *picture, kn_draws *draws)
{
    (void)draws;
    const extent *s = params;
    const kn_box box = {center(picture->height, s->height), center(picture->width, s->width), s->height, s->width};
    return kn_picture_crop(picture, box, KN_PAD_CONSTANT, 0);
}

kn_status kn_transforms_center_crop(kn_transforms *transforms, int64_t height, int64_t width)
{
    static const kn_step_kind kind = {.name = "center_crop", .rule = size_rule, .apply = crop_center};
    KN_CHECK_TRANSFORMS(transforms);
    KN_TRY(check_sizes(transforms, &kind, height, width));
    const extent params = {height, width};
    return KN_ADD_STEP(transforms, kind, params);
}

/* --- random_crop -------------------------------------------------------------------------------------------------- */

typedef struct crop {
    extent size;
    kn_transforms_crop_params params;
} crop;

kn_transforms_crop_params kn_transforms_crop_params_init(void)
{
    return (kn_transforms_crop_params){KN_TRANSFORMS_CROP_DEFAULTS};
}

static kn_status check_fits(const crop *c, int64_t height, int64_t width)
{
    const int64_t padding = 2 * c->params.padding;
    if (c->params.pad_if_needed || (height + padding >= c->size.height && width + padding >= c->size.width))
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE,
                   "a crop of %lld x %lld is larger than the image%s of %lld x %lld pixels (width x "
                   "height): .pad_if_needed pads it",
                   (long long)c->size.width, (long long)c->size.height, padding > 0 ? " with its padding" : "",
                   (long long)(width + padding), (long long)(height + padding));
}

static kn_status crop_rule(const void *params, kn_picture_kind *kind)
{
    const crop *c = params;
    if (kind->height > 0 && kind->width > 0)
        KN_TRY(check_fits(c, kind->height, kind->width));
    return size_rule(params, kind);
}

/* The first row or column of the crop. */
static int64_t start(kn_draws *draws, int64_t have, int64_t wanted, int64_t padding)
{
    if (have + 2 * padding < wanted)
        padding += wanted - have - 2 * padding;
    return kn_draw_below(draws, have + 2 * padding - wanted + 1) - padding;
}

static kn_status crop_somewhere(const void *params, kn_picture *picture, kn_draws *draws)
{
    const crop *c = params;
    KN_TRY(check_fits(c, picture->height, picture->width));
    kn_box box = {.height = c->size.height, .width = c->size.width};
    box.top = start(draws, picture->height, box.height, c->params.padding);
    box.left = start(draws, picture->width, box.width, c->params.padding);
    return kn_picture_crop(picture, box, c->params.padding_mode, c->params.fill);
}

kn_status kn_transforms_random_crop_with(kn_transforms *transforms, int64_t height, int64_t width,
                                         const kn_transforms_crop_params *params)
{
    static const kn_step_kind kind = {.name = "random_crop", .rule = crop_rule, .apply = crop_somewhere};
    KN_CHECK_TRANSFORMS(transforms);
    const crop c = {.size = {height, width}, .params = params ? *params : kn_transforms_crop_params_init()};
    KN_TRY(check_sizes(transforms, &kind, height, width));
    if (c.params.padding < 0 || c.params.padding > 65536)
        return kn_transforms_refuse(transforms, &kind, "padding is %lld; it must be from 0 to 65536",
                                    (long long)c.params.padding);
    if ((unsigned)c.params.padding_mode > KN_PAD_CIRCULAR)
        return kn_transforms_refuse(transforms, &kind, "padding_mode is %d; it must be a kn_padding_mode",
                                    (int)c.params.padding_mode);
    return KN_ADD_STEP(transforms, kind, c);
}

/* --- random_resized_crop ------------------------------------------------------------------------------------------ */

typedef struct resized_crop {
    extent size;
    kn_transforms_resized_crop_params params;
} resized_crop;

kn_transforms_resized_crop_params kn_transforms_resized_crop_params_init(void)
{
    return (kn_transforms_resized_crop_params){KN_TRANSFORMS_RESIZED_CROP_DEFAULTS};
}

/* If no drawn one fits: as large as the ratio allows, in the centre. */
static kn_box central_box(const kn_picture *picture, const double ratio[2])
{
    kn_box box = {.height = picture->height, .width = picture->width};
    const double have = (double)picture->width / (double)picture->height;
    if (have < ratio[0])
        box.height = (int64_t)rint((double)box.width / ratio[0]);
    else if (have > ratio[1])
        box.width = (int64_t)rint((double)box.height * ratio[1]);
    box.height = box.height < 1 ? 1 : box.height;
    box.width = box.width < 1 ? 1 : box.width;
    box.top = (picture->height - box.height) / 2;
    box.left = (picture->width - box.width) / 2;
    return box;
}

static kn_box draw_box(const kn_picture *picture, const kn_transforms_resized_crop_params *p, kn_draws *draws)
{
    for (int attempt = 0; attempt < 10; attempt++) {
        const double area = (double)kn_picture_size(picture) * kn_draw_between(draws, p->scale[0], p->scale[1]);
        const double ratio = kn_draw_log_between(draws, p->ratio);
        kn_box box = {.width = (int64_t)rint(sqrt(area * ratio)), .height = (int64_t)rint(sqrt(area / ratio))};
        if (box.width < 1 || box.height < 1 || box.width > picture->width || box.height > picture->height)
            continue;
        box.top = kn_draw_below(draws, picture->height - box.height + 1);
        box.left = kn_draw_below(draws, picture->width - box.width + 1);
        return box;
    }
    return central_box(picture, p->ratio);
}

static kn_status crop_and_resize(const void *params, kn_picture *picture, kn_draws *draws)
{
    const resized_crop *r = params;
    return kn_picture_resize(picture, draw_box(picture, &r->params, draws), r->size.height, r->size.width,
                             (int)r->params.interpolation);
}

kn_status kn_transforms_random_resized_crop_with(kn_transforms *transforms, int64_t height, int64_t width,
                                                 const kn_transforms_resized_crop_params *params)
{
    static const kn_step_kind kind = {.name = "random_resized_crop", .rule = size_rule, .apply = crop_and_resize};
    KN_CHECK_TRANSFORMS(transforms);
    const resized_crop r = {.size = {height, width},
                            .params = params ? *params : kn_transforms_resized_crop_params_init()};
    KN_TRY(check_sizes(transforms, &kind, height, width));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "scale", r.params.scale, 0, 1));
    KN_TRY(kn_transforms_check_range(transforms, &kind, "ratio", r.params.ratio, 1e-6, 1e6));
    KN_TRY(kn_transforms_check_interpolation(transforms, &kind, (int)r.params.interpolation, true));
    return KN_ADD_STEP(transforms, kind, r);
}
