/* koine/vision.h - images and other signals: resizing, sampling at given places, patches, moving channels into space
 * and back. Tensor expressions (koine/tensor.h).
 *
 * Signals are [N, C, L], images [N, C, H, W], volumes [N, C, D, H, W], of float64, float32, float16 or bfloat16; halves
 * are computed in float32 and rounded once. Sums have a fixed order: the same bits every time. */
#ifndef KOINE_VISION_H
#define KOINE_VISION_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- resizing ----------------------------------------------------------------------------------------------------- */

typedef enum kn_interpolate_mode {
    KN_INTERPOLATE_NEAREST,       /* the element at or before the place, as in OpenCV */
    KN_INTERPOLATE_NEAREST_EXACT, /* the element at the centre */
    KN_INTERPOLATE_LINEAR,        /* signals */
    KN_INTERPOLATE_BILINEAR,      /* images */
    KN_INTERPOLATE_BICUBIC,       /* images; with -0.75, with antialias -0.5 */
    KN_INTERPOLATE_TRILINEAR,     /* volumes */
    KN_INTERPOLATE_AREA           /* adaptive average pooling */
} kn_interpolate_mode;

/* Either a size or a scale factor, for all dimensions or by dimension: {length}, {height, width}, {depth, height,
 * width}, which override the first unless they are all 0. */
typedef struct kn_interpolate_params {
    int64_t size, sizes[3];                /* of the result */
    double scale_factor, scale_factors[3]; /* the result has floor(size * factor) elements */
    kn_interpolate_mode mode;              /* default KN_INTERPOLATE_NEAREST */
    bool align_corners;                    /* linear and cubic: the corners' centres coincide; default false */
    bool recompute_scale_factor;           /* compute with the ratio of the sizes, not the factor; default false */
    bool antialias;                        /* bilinear and bicubic: widens the filter for smaller results */
} kn_interpolate_params;
#define KN_INTERPOLATE_DEFAULTS .mode = KN_INTERPOLATE_NEAREST
KN_API kn_interpolate_params kn_interpolate_params_init(void);

/* torch.nn.functional.interpolate: the last dimensions of x, one dimension after another. */
KN_API kn_tensor *kn_interpolate_with(kn_tensor *x, const kn_interpolate_params *params);
#define kn_interpolate(x, ...)                                                                                         \
    KN_CALL(kn_interpolate_with(x, &(kn_interpolate_params){KN_INTERPOLATE_DEFAULTS, __VA_ARGS__}))

/* --- sampling ----------------------------------------------------------------------------------------------------- */

typedef enum kn_grid_mode { KN_GRID_BILINEAR, KN_GRID_NEAREST, KN_GRID_BICUBIC } kn_grid_mode;
typedef enum kn_grid_padding { KN_GRID_ZEROS, KN_GRID_BORDER, KN_GRID_REFLECTION } kn_grid_padding;

typedef struct kn_grid_sample_params {
    kn_grid_mode mode;            /* default KN_GRID_BILINEAR, of volumes trilinear; bicubic: images only */
    kn_grid_padding padding_mode; /* of places outside; default KN_GRID_ZEROS */
    bool align_corners;           /* do -1 and 1 mean the centres of the corner elements? default false: their edges */
} kn_grid_sample_params;
#define KN_GRID_SAMPLE_DEFAULTS .mode = KN_GRID_BILINEAR
KN_API kn_grid_sample_params kn_grid_sample_params_init(void);

/* torch.nn.functional.grid_sample: for x [N, C, H, W] and grid [N, h, w, 2] of places (x, y) the result is
 * [N, C, h, w]; for volumes, grid [N, d, h, w, 3] of (x, y, z). Gradients for both. A NaN place counts as 0 (the first
 * element) with border and reflection, and gives NaN with zeros. */
KN_API kn_tensor *kn_grid_sample_with(kn_tensor *x, kn_tensor *grid, const kn_grid_sample_params *params);
#define kn_grid_sample(x, grid, ...)                                                                                   \
    KN_CALL(kn_grid_sample_with(x, grid, &(kn_grid_sample_params){KN_GRID_SAMPLE_DEFAULTS, __VA_ARGS__}))

/* torch.nn.functional.affine_grid: the grid of the affine maps theta [N, 2, 3] (or [N, 3, 4]) for results of `size`
 * [N, C, H, W] (or [N, C, D, H, W]). */
KN_API kn_tensor *kn_affine_grid(kn_tensor *theta, int ndim, const int64_t *size, bool align_corners);

/* --- patches ------------------------------------------------------------------------------------------------------ */

/* The plural fields, {height, width}, are used unless they are all 0. */
typedef struct kn_fold_params {
    int64_t kernel_size, dilation, padding, stride; /* defaults: required, 1, 0, 1 */
    int64_t kernel_sizes[2], dilations[2], paddings[2], strides[2];
} kn_fold_params;
#define KN_FOLD_DEFAULTS .dilation = 1, .stride = 1
KN_API kn_fold_params kn_fold_params_init(void);
#define KN_FOLD_PARAMS(...)                                                                                            \
    &(kn_fold_params) { KN_FOLD_DEFAULTS, __VA_ARGS__ }

/* torch.nn.functional.unfold (im2col): x [N, C, H, W] or [C, H, W]; the result [N, C kernel height kernel width, L] has
 * a column for each window, zeros where it is outside. */
KN_API kn_tensor *kn_unfold_with(kn_tensor *x, const kn_fold_params *params);
#define kn_unfold(x, ...) KN_CALL(kn_unfold_with(x, KN_FOLD_PARAMS(__VA_ARGS__)))

/* torch.nn.functional.fold (col2im), the gradient of unfold: images of the given size, each element the sum over all
 * windows that have it. */
KN_API kn_tensor *kn_fold_with(kn_tensor *x, int64_t output_height, int64_t output_width, const kn_fold_params *params);
#define kn_fold(x, output_height, output_width, ...)                                                                   \
    KN_CALL(kn_fold_with(x, output_height, output_width, KN_FOLD_PARAMS(__VA_ARGS__)))

/* --- channels and space; any dtype -------------------------------------------------------------------------------- */

KN_API kn_tensor *kn_pixel_shuffle(kn_tensor *x, int64_t upscale_factor);     /* [*, C r r, H, W] to [*, C, H r, W r] */
KN_API kn_tensor *kn_pixel_unshuffle(kn_tensor *x, int64_t downscale_factor); /* and back */
KN_API kn_tensor *kn_channel_shuffle(kn_tensor *x,
                                     int64_t groups); /* [N, C, ...]: channel j of group i becomes i of j */

KN_END_DECLS

#endif
