/* defaults_vision.c - padding, patches, resizing, sampling, and the poolings beside max and average. */
#include "defaults.h"

static kn_tensor *places;

/* A pooling of 2 and its indices. */
static kn_tensor *pooled1d(void) { return kn_max_pool1d(signal(), .kernel_size = 2); }
static kn_tensor *chosen1d(void)
{
    kn_tensor *indices = NULL;
    (void)kn_max_pool1d_with_indices(signal(), &indices, .kernel_size = 2);
    return indices;
}
static kn_tensor *pooled2d(void) { return kn_max_pool2d(image(), .kernel_size = 2); }
static kn_tensor *chosen2d(void)
{
    kn_tensor *indices = NULL;
    (void)kn_max_pool2d_with_indices(image(), &indices, .kernel_size = 2);
    return indices;
}
static kn_tensor *pooled3d(void) { return kn_max_pool3d(volume(), .kernel_size = 2); }
static kn_tensor *chosen3d(void)
{
    kn_tensor *indices = NULL;
    (void)kn_max_pool3d_with_indices(volume(), &indices, .kernel_size = 2);
    return indices;
}
static kn_tensor *columns(void) { return ramp(KN_SHAPE(1, 4, 16)); }
static kn_tensor *grid(void) { return kn_mul_scalar(ramp(KN_SHAPE(1, 2, 3, 2)), 0.2); }
static void give_factor(void *params) { ((kn_interpolate_params *)params)->scale_factor = 2; }
static void give_window(void *params) { ((kn_fold_params *)params)->kernel_size = 2; }
static void give_unpool(void *params) { ((kn_max_unpool_params *)params)->kernel_size = 2; }
static void give_fraction(void *params)
{
    ((kn_fractional_max_pool_params *)params)->kernel_size = 2;
    ((kn_fractional_max_pool_params *)params)->output_size = 2;
}
static void give_bilinear(void *params)
{
    ((kn_nn_bilinear_params *)params)->in1_features = 2;
    ((kn_nn_bilinear_params *)params)->in2_features = 3;
    ((kn_nn_bilinear_params *)params)->out_features = 4;
}

CALLS(kn_pad, kn_pad_params, show_tensor, kn_pad_with(image(), KN_SHAPE(1, 2), params), kn_pad(image(), KN_SHAPE(1, 2)))
CALLS(kn_interpolate, kn_interpolate_params, show_tensor, kn_interpolate_with(image(), params), kn_interpolate(image()))
CALLS(given_interpolate, kn_interpolate_params, show_tensor, kn_interpolate_with(image(), params),
      kn_interpolate(image(), .scale_factor = 2))
CALLS(kn_grid_sample, kn_grid_sample_params, show_tensor, kn_grid_sample_with(image(), grid(), params),
      kn_grid_sample(image(), grid()))
CALLS(kn_unfold, kn_fold_params, show_tensor, kn_unfold_with(image(), params), kn_unfold(image()))
CALLS(given_unfold, kn_fold_params, show_tensor, kn_unfold_with(image(), params), kn_unfold(image(), .kernel_size = 2))
CALLS(kn_fold, kn_fold_params, show_tensor, kn_fold_with(columns(), 5, 5, params), kn_fold(columns(), 5, 5))
CALLS(given_fold, kn_fold_params, show_tensor, kn_fold_with(columns(), 5, 5, params),
      kn_fold(columns(), 5, 5, .kernel_size = 2))
CALLS(kn_max_unpool1d, kn_max_unpool_params, show_tensor, kn_max_unpool1d_with(pooled1d(), chosen1d(), params),
      kn_max_unpool1d(pooled1d(), chosen1d()))
CALLS(given_max_unpool1d, kn_max_unpool_params, show_tensor, kn_max_unpool1d_with(pooled1d(), chosen1d(), params),
      kn_max_unpool1d(pooled1d(), chosen1d(), .kernel_size = 2))
CALLS(kn_max_unpool2d, kn_max_unpool_params, show_tensor, kn_max_unpool2d_with(pooled2d(), chosen2d(), params),
      kn_max_unpool2d(pooled2d(), chosen2d()))
CALLS(given_max_unpool2d, kn_max_unpool_params, show_tensor, kn_max_unpool2d_with(pooled2d(), chosen2d(), params),
      kn_max_unpool2d(pooled2d(), chosen2d(), .kernel_size = 2))
CALLS(kn_max_unpool3d, kn_max_unpool_params, show_tensor, kn_max_unpool3d_with(pooled3d(), chosen3d(), params),
      kn_max_unpool3d(pooled3d(), chosen3d()))
CALLS(given_max_unpool3d, kn_max_unpool_params, show_tensor, kn_max_unpool3d_with(pooled3d(), chosen3d(), params),
      kn_max_unpool3d(pooled3d(), chosen3d(), .kernel_size = 2))
CALLS(kn_lp_pool1d, kn_pool_params, show_tensor, kn_lp_pool1d_with(signal(), 2, params), kn_lp_pool1d(signal(), 2))
CALLS(given_lp_pool1d, kn_pool_params, show_tensor, kn_lp_pool1d_with(signal(), 2, params),
      kn_lp_pool1d(signal(), 2, .kernel_size = 2))
CALLS(kn_lp_pool2d, kn_pool_params, show_tensor, kn_lp_pool2d_with(image(), 2, params), kn_lp_pool2d(image(), 2))
CALLS(given_lp_pool2d, kn_pool_params, show_tensor, kn_lp_pool2d_with(image(), 2, params),
      kn_lp_pool2d(image(), 2, .kernel_size = 2))
CALLS(kn_lp_pool3d, kn_pool_params, show_tensor, kn_lp_pool3d_with(volume(), 2, params), kn_lp_pool3d(volume(), 2))
CALLS(given_lp_pool3d, kn_pool_params, show_tensor, kn_lp_pool3d_with(volume(), 2, params),
      kn_lp_pool3d(volume(), 2, .kernel_size = 2))
CALLS(kn_fractional_max_pool2d, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool2d_with(image(), params), kn_fractional_max_pool2d(image()))
CALLS(given_fractional_max_pool2d, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool2d_with(image(), params),
      kn_fractional_max_pool2d(image(), .kernel_size = 2, .output_size = 2))
CALLS(kn_fractional_max_pool2d_with_indices, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool2d_with_indices_with(image(), &places, params),
      kn_fractional_max_pool2d_with_indices(image(), &places))
CALLS(given_fractional_max_pool2d_with_indices, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool2d_with_indices_with(image(), &places, params),
      kn_fractional_max_pool2d_with_indices(image(), &places, .kernel_size = 2, .output_size = 2))
CALLS(kn_fractional_max_pool3d, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool3d_with(ramp(KN_SHAPE(1, 2, 4, 4, 4)), params),
      kn_fractional_max_pool3d(ramp(KN_SHAPE(1, 2, 4, 4, 4))))
CALLS(given_fractional_max_pool3d, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool3d_with(ramp(KN_SHAPE(1, 2, 4, 4, 4)), params),
      kn_fractional_max_pool3d(ramp(KN_SHAPE(1, 2, 4, 4, 4)), .kernel_size = 2, .output_size = 2))
CALLS(kn_fractional_max_pool3d_with_indices, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool3d_with_indices_with(ramp(KN_SHAPE(1, 2, 4, 4, 4)), &places, params),
      kn_fractional_max_pool3d_with_indices(ramp(KN_SHAPE(1, 2, 4, 4, 4)), &places))
CALLS(given_fractional_max_pool3d_with_indices, kn_fractional_max_pool_params, show_tensor,
      kn_fractional_max_pool3d_with_indices_with(ramp(KN_SHAPE(1, 2, 4, 4, 4)), &places, params),
      kn_fractional_max_pool3d_with_indices(ramp(KN_SHAPE(1, 2, 4, 4, 4)), &places, .kernel_size = 2, .output_size = 2))
CALLS(kn_nn_unfold, kn_fold_params, show_module, kn_nn_unfold_with(params), kn_nn_unfold())
CALLS(given_nn_unfold, kn_fold_params, show_module, kn_nn_unfold_with(params), kn_nn_unfold(.kernel_size = 2))
CALLS(kn_nn_fold, kn_fold_params, show_module, kn_nn_fold_with(5, 5, params), kn_nn_fold(5, 5))
CALLS(given_nn_fold, kn_fold_params, show_module, kn_nn_fold_with(5, 5, params), kn_nn_fold(5, 5, .kernel_size = 2))
CALLS(kn_nn_upsample, kn_interpolate_params, show_module, kn_nn_upsample_with(params), kn_nn_upsample())
CALLS(given_nn_upsample, kn_interpolate_params, show_module, kn_nn_upsample_with(params),
      kn_nn_upsample(.scale_factor = 2))
CALLS(kn_nn_upsampling_nearest2d, kn_interpolate_params, show_module, kn_nn_upsampling_nearest2d_with(params),
      kn_nn_upsampling_nearest2d())
CALLS(given_nn_upsampling_nearest2d, kn_interpolate_params, show_module, kn_nn_upsampling_nearest2d_with(params),
      kn_nn_upsampling_nearest2d(.scale_factor = 2))
CALLS(kn_nn_upsampling_bilinear2d, kn_interpolate_params, show_module, kn_nn_upsampling_bilinear2d_with(params),
      kn_nn_upsampling_bilinear2d())
CALLS(given_nn_upsampling_bilinear2d, kn_interpolate_params, show_module, kn_nn_upsampling_bilinear2d_with(params),
      kn_nn_upsampling_bilinear2d(.scale_factor = 2))
CALLS(kn_nn_max_pool1d_with_indices, kn_pool_params, show_module, kn_nn_max_pool1d_with_indices_with(params),
      kn_nn_max_pool1d_with_indices())
CALLS(given_nn_max_pool1d_with_indices, kn_pool_params, show_module, kn_nn_max_pool1d_with_indices_with(params),
      kn_nn_max_pool1d_with_indices(.kernel_size = 2))
CALLS(kn_nn_max_unpool1d, kn_max_unpool_params, show_module, kn_nn_max_unpool1d_with(params), kn_nn_max_unpool1d())
CALLS(given_nn_max_unpool1d, kn_max_unpool_params, show_module, kn_nn_max_unpool1d_with(params),
      kn_nn_max_unpool1d(.kernel_size = 2))
CALLS(kn_nn_lp_pool1d, kn_pool_params, show_module, kn_nn_lp_pool1d_with(2, params), kn_nn_lp_pool1d(2))
CALLS(given_nn_lp_pool1d, kn_pool_params, show_module, kn_nn_lp_pool1d_with(2, params),
      kn_nn_lp_pool1d(2, .kernel_size = 2))
CALLS(kn_nn_max_pool2d_with_indices, kn_pool_params, show_module, kn_nn_max_pool2d_with_indices_with(params),
      kn_nn_max_pool2d_with_indices())
CALLS(given_nn_max_pool2d_with_indices, kn_pool_params, show_module, kn_nn_max_pool2d_with_indices_with(params),
      kn_nn_max_pool2d_with_indices(.kernel_size = 2))
CALLS(kn_nn_max_unpool2d, kn_max_unpool_params, show_module, kn_nn_max_unpool2d_with(params), kn_nn_max_unpool2d())
CALLS(given_nn_max_unpool2d, kn_max_unpool_params, show_module, kn_nn_max_unpool2d_with(params),
      kn_nn_max_unpool2d(.kernel_size = 2))
CALLS(kn_nn_lp_pool2d, kn_pool_params, show_module, kn_nn_lp_pool2d_with(2, params), kn_nn_lp_pool2d(2))
CALLS(given_nn_lp_pool2d, kn_pool_params, show_module, kn_nn_lp_pool2d_with(2, params),
      kn_nn_lp_pool2d(2, .kernel_size = 2))
CALLS(kn_nn_max_pool3d_with_indices, kn_pool_params, show_module, kn_nn_max_pool3d_with_indices_with(params),
      kn_nn_max_pool3d_with_indices())
CALLS(given_nn_max_pool3d_with_indices, kn_pool_params, show_module, kn_nn_max_pool3d_with_indices_with(params),
      kn_nn_max_pool3d_with_indices(.kernel_size = 2))
CALLS(kn_nn_max_unpool3d, kn_max_unpool_params, show_module, kn_nn_max_unpool3d_with(params), kn_nn_max_unpool3d())
CALLS(given_nn_max_unpool3d, kn_max_unpool_params, show_module, kn_nn_max_unpool3d_with(params),
      kn_nn_max_unpool3d(.kernel_size = 2))
CALLS(kn_nn_lp_pool3d, kn_pool_params, show_module, kn_nn_lp_pool3d_with(2, params), kn_nn_lp_pool3d(2))
CALLS(given_nn_lp_pool3d, kn_pool_params, show_module, kn_nn_lp_pool3d_with(2, params),
      kn_nn_lp_pool3d(2, .kernel_size = 2))
CALLS(kn_nn_fractional_max_pool2d, kn_fractional_max_pool_params, show_module, kn_nn_fractional_max_pool2d_with(params),
      kn_nn_fractional_max_pool2d())
CALLS(given_nn_fractional_max_pool2d, kn_fractional_max_pool_params, show_module,
      kn_nn_fractional_max_pool2d_with(params), kn_nn_fractional_max_pool2d(.kernel_size = 2, .output_size = 2))
CALLS(kn_nn_fractional_max_pool2d_with_indices, kn_fractional_max_pool_params, show_module,
      kn_nn_fractional_max_pool2d_with_indices_with(params), kn_nn_fractional_max_pool2d_with_indices())
CALLS(given_nn_fractional_max_pool2d_with_indices, kn_fractional_max_pool_params, show_module,
      kn_nn_fractional_max_pool2d_with_indices_with(params),
      kn_nn_fractional_max_pool2d_with_indices(.kernel_size = 2, .output_size = 2))
CALLS(kn_nn_fractional_max_pool3d, kn_fractional_max_pool_params, show_module, kn_nn_fractional_max_pool3d_with(params),
      kn_nn_fractional_max_pool3d())
CALLS(given_nn_fractional_max_pool3d, kn_fractional_max_pool_params, show_module,
      kn_nn_fractional_max_pool3d_with(params), kn_nn_fractional_max_pool3d(.kernel_size = 2, .output_size = 2))
CALLS(kn_nn_fractional_max_pool3d_with_indices, kn_fractional_max_pool_params, show_module,
      kn_nn_fractional_max_pool3d_with_indices_with(params), kn_nn_fractional_max_pool3d_with_indices())
CALLS(given_nn_fractional_max_pool3d_with_indices, kn_fractional_max_pool_params, show_module,
      kn_nn_fractional_max_pool3d_with_indices_with(params),
      kn_nn_fractional_max_pool3d_with_indices(.kernel_size = 2, .output_size = 2))
CALLS(kn_nn_bilinear, kn_nn_bilinear_params, show_module, kn_nn_bilinear_with(params), kn_nn_bilinear())
CALLS(given_nn_bilinear, kn_nn_bilinear_params, show_module, kn_nn_bilinear_with(params),
      kn_nn_bilinear(.in1_features = 2, .in2_features = 3, .out_features = 4))

static const int64_t cutoffs[] = {2};
static void give_adaptive(void *params)
{
    kn_nn_adaptive_log_softmax_with_loss_params *p = params;
    p->in_features = 8;
    p->n_classes = 5;
    p->cutoffs = cutoffs;
    p->num_cutoffs = 1;
}
CALLS(kn_nn_adaptive_log_softmax_with_loss, kn_nn_adaptive_log_softmax_with_loss_params, show_module,
      kn_nn_adaptive_log_softmax_with_loss_with(params), kn_nn_adaptive_log_softmax_with_loss())
CALLS(given_adaptive, kn_nn_adaptive_log_softmax_with_loss_params, show_module,
      kn_nn_adaptive_log_softmax_with_loss_with(params),
      kn_nn_adaptive_log_softmax_with_loss(.in_features = 8, .n_classes = 5, .cutoffs = cutoffs, .num_cutoffs = 1))

/* clang-format off */
DEFAULTS(vision_defaults,
         ROW(kn_pad),
         NEEDS(kn_interpolate),
         GIVEN(given_interpolate, give_factor),
         ROW(kn_grid_sample),
         NEEDS(kn_unfold),
         GIVEN(given_unfold, give_window),
         NEEDS(kn_fold),
         GIVEN(given_fold, give_window),
         NEEDS(kn_max_unpool1d),
         GIVEN(given_max_unpool1d, give_unpool),
         NEEDS(kn_max_unpool2d),
         GIVEN(given_max_unpool2d, give_unpool),
         NEEDS(kn_max_unpool3d),
         GIVEN(given_max_unpool3d, give_unpool),
         NEEDS(kn_lp_pool1d),
         GIVEN(given_lp_pool1d, give_2),
         NEEDS(kn_lp_pool2d),
         GIVEN(given_lp_pool2d, give_2),
         NEEDS(kn_lp_pool3d),
         GIVEN(given_lp_pool3d, give_2),
         NEEDS(kn_fractional_max_pool2d),
         GIVEN(given_fractional_max_pool2d, give_fraction),
         NEEDS(kn_fractional_max_pool2d_with_indices),
         GIVEN(given_fractional_max_pool2d_with_indices, give_fraction),
         NEEDS(kn_fractional_max_pool3d),
         GIVEN(given_fractional_max_pool3d, give_fraction),
         NEEDS(kn_fractional_max_pool3d_with_indices),
         GIVEN(given_fractional_max_pool3d_with_indices, give_fraction),
         NEEDS(kn_nn_unfold),
         GIVEN(given_nn_unfold, give_window),
         NEEDS(kn_nn_fold),
         GIVEN(given_nn_fold, give_window),
         NEEDS(kn_nn_upsample),
         GIVEN(given_nn_upsample, give_factor),
         NEEDS(kn_nn_upsampling_nearest2d),
         GIVEN(given_nn_upsampling_nearest2d, give_factor),
         NEEDS(kn_nn_upsampling_bilinear2d),
         GIVEN(given_nn_upsampling_bilinear2d, give_factor),
         NEEDS(kn_nn_max_pool1d_with_indices),
         GIVEN(given_nn_max_pool1d_with_indices, give_2),
         NEEDS(kn_nn_max_unpool1d),
         GIVEN(given_nn_max_unpool1d, give_unpool),
         NEEDS(kn_nn_lp_pool1d),
         GIVEN(given_nn_lp_pool1d, give_2),
         NEEDS(kn_nn_max_pool2d_with_indices),
         GIVEN(given_nn_max_pool2d_with_indices, give_2),
         NEEDS(kn_nn_max_unpool2d),
         GIVEN(given_nn_max_unpool2d, give_unpool),
         NEEDS(kn_nn_lp_pool2d),
         GIVEN(given_nn_lp_pool2d, give_2),
         NEEDS(kn_nn_max_pool3d_with_indices),
         GIVEN(given_nn_max_pool3d_with_indices, give_2),
         NEEDS(kn_nn_max_unpool3d),
         GIVEN(given_nn_max_unpool3d, give_unpool),
         NEEDS(kn_nn_lp_pool3d),
         GIVEN(given_nn_lp_pool3d, give_2),
         NEEDS(kn_nn_fractional_max_pool2d),
         GIVEN(given_nn_fractional_max_pool2d, give_fraction),
         NEEDS(kn_nn_fractional_max_pool2d_with_indices),
         GIVEN(given_nn_fractional_max_pool2d_with_indices, give_fraction),
         NEEDS(kn_nn_fractional_max_pool3d),
         GIVEN(given_nn_fractional_max_pool3d, give_fraction),
         NEEDS(kn_nn_fractional_max_pool3d_with_indices),
         GIVEN(given_nn_fractional_max_pool3d_with_indices, give_fraction),
         NEEDS(kn_nn_bilinear),
         GIVEN(given_nn_bilinear, give_bilinear),
         NEEDS(kn_nn_adaptive_log_softmax_with_loss),
         GIVEN(given_adaptive, give_adaptive))
/* clang-format on */
