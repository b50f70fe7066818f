/* rows_vision.c - padding, patches, resizing, sampling, moving channels into space. */
#include "ops/rows.h"

/* --- by name ------------------------------------------------------------------------------------------------------ */

typedef struct padded {
    int count;
    int64_t pad[6];
    kn_pad_params params;
} padded;

static kn_tensor *build_pad(kn_tensor *const *x, const void *params)
{
    const padded *p = params;
    return kn_pad_with(x[0], p->count, p->pad, &p->params);
}

static kn_tensor *build_unfold(kn_tensor *const *x, const void *params) { return kn_unfold_with(x[0], params); }

typedef struct folded {
    int64_t height, width;
    kn_fold_params params;
} folded;

static kn_tensor *build_fold(kn_tensor *const *x, const void *params)
{
    const folded *p = params;
    return kn_fold_with(x[0], p->height, p->width, &p->params);
}

static kn_tensor *build_interpolate(kn_tensor *const *x, const void *params)
{
    return kn_interpolate_with(x[0], params);
}

static kn_tensor *build_grid_sample(kn_tensor *const *x, const void *params)
{
    return kn_grid_sample_with(x[0], x[1], params);
}

static kn_tensor *build_affine_grid(kn_tensor *const *x, const void *params)
{
    const int64_t *size = params;
    return kn_affine_grid(x[0], kn_size(x[0], 1) + 2, size, size[5] != 0);
}

static kn_tensor *build_pixel_shuffle(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_channel_shuffle(kn_pixel_unshuffle(kn_pixel_shuffle(x[0], 2), 3), 3);
}

static kn_tensor *build_bilinear(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_bilinear(x[0], x[1], x[2], x[3]);
}

/* clang-format off */
#define PAD(mode_, ...) &(const padded){sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}, {.mode = KN_PAD_##mode_}}
#define PAD_WITH(number, ...) &(const padded){sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}, {.value = {.real = number}}}
#define FOLD(...) &(const kn_fold_params){KN_FOLD_DEFAULTS, __VA_ARGS__}
#define FOLDED(h, w, ...) &(const folded){h, w, {KN_FOLD_DEFAULTS, __VA_ARGS__}}
#define SIZED(m, ...) &(const kn_interpolate_params){.mode = KN_INTERPOLATE_##m, __VA_ARGS__}
#define GRID(m, p, ...) &(const kn_grid_sample_params){.mode = KN_GRID_##m, .padding_mode = KN_GRID_##p, __VA_ARGS__}
#define SIZE(...) (const int64_t[6]){__VA_ARGS__}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"pad/constant", build_pad, {FLOATS(2, 3, 5, 7)}, PAD_WITH(1.5, 1, 2, 3, 0)},
    {"pad/crop", build_pad, {FLOATS(2, 3, 5, 7)}, PAD_WITH(-2.5, -1, 2, 3, -2), .full = true},
    {"pad/crop_all", build_pad, {FLOATS(2, 5)}, PAD_WITH(2, -7, 5), .full = true},
    {"pad/four_dimensions", build_pad, {FLOATS(2, 3, 2, 3)}, PAD(CONSTANT, 1, 0, 0, 1, 1, 1), .full = true},
    {"pad/constant_empty", build_pad, {FLOATS(0, 3)}, PAD(CONSTANT, 1, 0, 1, 2), .no_gradient = true, .full = true},
    {"pad/reflect", build_pad, {FLOATS(2, 3, 5, 7)}, PAD(REFLECT, 6, 2, 0, 4)},
    {"pad/reflect_empty", build_pad, {FLOATS(0, 3, 4)}, PAD(REFLECT, 2, 1), .no_gradient = true},
    {"pad/reflect_1d", build_pad, {FLOATS(3, 301)}, PAD(REFLECT, 300, 17), .full = true},
    {"pad/reflect_3d", build_pad, {FLOATS(2, 3, 4, 5)}, PAD(REFLECT, 1, 4, 3, 2, 2, 1), .full = true},
    {"pad/reflect_crop", build_pad, {FLOATS(2, 5, 7)}, PAD(REFLECT, -2, 3, 4, -1), .full = true},
    {"pad/replicate", build_pad, {FLOATS(2, 3, 5, 1)}, PAD(REPLICATE, 4, 2, 0, 9)},
    {"pad/replicate_crop", build_pad, {FLOATS(2, 3, 4)}, PAD(REPLICATE, -3, 5, -5, 7), .full = true},
    {"pad/replicate_3d", build_pad, {FLOATS(1, 2, 3, 4)}, PAD(REPLICATE, 1, 2, 3, 0, 5, 5), .full = true},
    {"pad/circular", build_pad, {FLOATS(2, 3, 5, 7)}, PAD(CIRCULAR, 7, 2, 0, 5)},
    {"pad/circular_crop", build_pad, {FLOATS(2, 5, 7)}, PAD(CIRCULAR, -1, 2, 2, -3), .full = true},
    {"pad/circular_large", build_pad, {FLOATS(5, 37, 67)}, PAD(CIRCULAR, 3, 3, 2, 2), .full = true},
    {"pad/nothing", build_pad, {FLOATS(2, 5, 7)}, PAD(REFLECT, 0, 0, 0, 0), .full = true},

    {"unfold/everything", build_unfold, {FLOATS(2, 3, 8, 9)}, FOLD(.kernel_sizes = {2, 3}, .dilations = {2, 1}, .paddings = {1, 2}, .strides = {1, 2})},
    {"unfold/1", build_unfold, {FLOATS(2, 4, 4)}, FOLD(.kernel_size = 1), .full = true},
    {"unfold/same", build_unfold, {FLOATS(1, 2, 17, 19)}, FOLD(.kernel_size = 3, .padding = 1), .full = true},
    {"unfold/mostly_padding", build_unfold, {FLOATS(1, 1, 1, 1)}, FOLD(.kernel_size = 3, .padding = 4, .stride = 3), .full = true},
    {"unfold/empty", build_unfold, {FLOATS(0, 2, 4, 4)}, FOLD(.kernel_size = 2), .full = true},
    {"fold/everything", build_fold, {FLOATS(2, 18, 48)}, FOLDED(8, 9, .kernel_sizes = {2, 3}, .dilations = {2, 1}, .paddings = {1, 2}, .strides = {1, 2})},
    {"fold/apart", build_fold, {FLOATS(4, 9)}, FOLDED(7, 8, .kernel_size = 2, .stride = 2, .padding = 0, .dilations = {1, 2}, .strides = {2, 2}), .full = true},

    {"interpolate/bilinear", build_interpolate, {FLOATS(2, 3, 5, 7)}, SIZED(BILINEAR, .sizes = {11, 4})},
    {"interpolate/bilinear_double", build_interpolate, {FLOATS(2, 3, 5, 7)}, SIZED(BILINEAR, .scale_factor = 2), .full = true},
    {"interpolate/bilinear_factors", build_interpolate, {FLOATS(1, 2, 5, 7)}, SIZED(BILINEAR, .scale_factors = {1.3, 0.6}), .full = true},
    {"interpolate/bilinear_same", build_interpolate, {FLOATS(1, 2, 5, 7)}, SIZED(BILINEAR, .size = 5), .full = true},
    {"interpolate/bilinear_aligned", build_interpolate, {FLOATS(2, 1, 5, 7)}, SIZED(BILINEAR, .sizes = {11, 4}, .align_corners = true), .full = true},
    {"interpolate/bilinear_to_1", build_interpolate, {FLOATS(1, 2, 5, 1)}, SIZED(BILINEAR, .sizes = {1, 6}, .align_corners = true), .full = true},
    {"interpolate/bilinear_smooth", build_interpolate, {FLOATS(1, 2, 13, 7)}, SIZED(BILINEAR, .sizes = {4, 9}, .antialias = true)},
    {"interpolate/bicubic", build_interpolate, {FLOATS(2, 3, 5, 2)}, SIZED(BICUBIC, .sizes = {3, 7})},
    {"interpolate/bicubic_aligned", build_interpolate, {FLOATS(1, 2, 5, 3)}, SIZED(BICUBIC, .sizes = {9, 7}, .align_corners = true), .full = true},
    {"interpolate/bicubic_smooth", build_interpolate, {FLOATS(1, 1, 17, 7)}, SIZED(BICUBIC, .sizes = {4, 9}, .antialias = true), .full = true},
    {"interpolate/bicubic_1x1", build_interpolate, {FLOATS(1, 2, 1, 1)}, SIZED(BICUBIC, .sizes = {3, 2}), .full = true},
    {"interpolate/linear", build_interpolate, {FLOATS(2, 3, 9)}, SIZED(LINEAR, .size = 23)},
    {"interpolate/linear_down", build_interpolate, {FLOATS(2, 3, 99)}, SIZED(LINEAR, .size = 7), .full = true},
    {"interpolate/linear_long", build_interpolate, {FLOATS(1, 1, 3)}, SIZED(LINEAR, .size = 777), .full = true},
    {"interpolate/trilinear", build_interpolate, {FLOATS(1, 2, 3, 4, 2)}, SIZED(TRILINEAR, .sizes = {5, 2, 3})},
    {"interpolate/nearest", build_interpolate, {FLOATS(2, 3, 5, 7)}, SIZED(NEAREST, .sizes = {3, 16})},
    {"interpolate/nearest_double", build_interpolate, {FLOATS(2, 3, 4, 5, 6)}, SIZED(NEAREST, .scale_factor = 2), .full = true},
    {"interpolate/nearest_exact", build_interpolate, {FLOATS(2, 3, 5)}, SIZED(NEAREST_EXACT, .size = 7)},
    {"interpolate/area", build_interpolate, {FLOATS(2, 3, 5, 7)}, SIZED(AREA, .sizes = {2, 4}), .full = true},

    {"grid_sample/bilinear", build_grid_sample, {FLOATS(2, 3, 4, 5), FLOATS_IN(-1.4, 1.4, 2, 7, 6, 2)}, GRID(BILINEAR, ZEROS)},
    {"grid_sample/bilinear_border", build_grid_sample, {FLOATS(2, 3, 4, 5), FLOATS_IN(-1.9, 1.9, 2, 7, 6, 2)}, GRID(BILINEAR, BORDER, .align_corners = true), .full = true},
    {"grid_sample/bilinear_reflection", build_grid_sample, {FLOATS(2, 3, 4, 5), FLOATS_IN(-3.9, 3.9, 2, 7, 6, 2)}, GRID(BILINEAR, REFLECTION)},
    {"grid_sample/aligned_reflection", build_grid_sample, {FLOATS(1, 2, 4, 5), FLOATS_IN(-3.9, 3.9, 1, 7, 6, 2)}, GRID(BILINEAR, REFLECTION, .align_corners = true), .full = true},
    {"grid_sample/nearest", build_grid_sample, {FLOATS(2, 3, 4, 5), FLOATS_IN(-1.4, 1.4, 2, 7, 6, 2)}, GRID(NEAREST, ZEROS), .no_gradient = true},
    {"grid_sample/bicubic", build_grid_sample, {FLOATS(2, 2, 6, 5), FLOATS_IN(-1.4, 1.4, 2, 5, 6, 2)}, GRID(BICUBIC, ZEROS)},
    {"grid_sample/bicubic_border", build_grid_sample, {FLOATS(1, 2, 6, 5), FLOATS_IN(-1.4, 1.4, 1, 5, 6, 2)}, GRID(BICUBIC, BORDER), .full = true},
    {"grid_sample/bicubic_reflection", build_grid_sample, {FLOATS(1, 2, 6, 5), FLOATS_IN(-2.4, 2.4, 1, 5, 6, 2)}, GRID(BICUBIC, REFLECTION, .align_corners = true), .full = true},
    {"grid_sample/16_channels", build_grid_sample, {FLOATS(2, 16, 4, 5), FLOATS_IN(-1.4, 1.4, 2, 7, 6, 2)}, GRID(BILINEAR, ZEROS)},
    {"grid_sample/24_channels", build_grid_sample, {FLOATS(1, 24, 4, 5), FLOATS_IN(-1.4, 1.4, 1, 3, 3, 2)}, GRID(BICUBIC, BORDER)},
    {"grid_sample/volumes_of_8_channels", build_grid_sample, {FLOATS(2, 8, 3, 4, 2), FLOATS_IN(-1.4, 1.4, 2, 2, 4, 5, 3)}, GRID(BILINEAR, REFLECTION)},
    {"grid_sample/volumes", build_grid_sample, {FLOATS(2, 3, 3, 4, 5), FLOATS_IN(-1.4, 1.4, 2, 2, 4, 5, 3)}, GRID(BILINEAR, ZEROS)},
    {"grid_sample/volumes_reflection", build_grid_sample, {FLOATS(1, 2, 3, 4, 5), FLOATS_IN(-2.4, 2.4, 1, 2, 4, 5, 3)}, GRID(BILINEAR, REFLECTION, .align_corners = true), .full = true},
    {"grid_sample/many_places", build_grid_sample, {FLOATS(1, 1, 3, 2), FLOATS_IN(-1.4, 1.4, 1, 17, 67, 2)}, GRID(BILINEAR, BORDER), .full = true},
    {"grid_sample/empty", build_grid_sample, {FLOATS(2, 3, 4, 5), FLOATS(2, 0, 6, 2)}, GRID(BILINEAR, ZEROS), .full = true},
    {"affine_grid/2d", build_affine_grid, {FLOATS(2, 2, 3)}, SIZE(2, 3, 4, 5)},
    {"affine_grid/3d", build_affine_grid, {FLOATS(2, 3, 4)}, SIZE(2, 1, 3, 1, 5, 1), .full = true},

    {"pixel_shuffle/and_others", build_pixel_shuffle, {FLOATS(2, 8, 3, 6)}},
    {"bilinear/matrix", build_bilinear, {FLOATS(5, 3), FLOATS(5, 4), FLOATS(6, 3, 4), FLOATS(6)}},
    {"bilinear/no_rows", build_bilinear, {FLOATS(0, 3), FLOATS(0, 4), FLOATS(6, 3, 4)}, .full = true},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(vision_rows, rows, .has_golden = true);
