/* koine/nn/upsampling.h - resizing (koine/vision.h). Constructors as in koine/module.h. */
#ifndef KOINE_NN_UPSAMPLING_H
#define KOINE_NN_UPSAMPLING_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/vision.h>

KN_BEGIN_DECLS

/* Of the parameters UpsamplingNearest2d and UpsamplingBilinear2d take the size or the scale factor; the mode is theirs,
 * and bilinear means with aligned corners. */
KN_API kn_module *kn_nn_upsample_with(const kn_interpolate_params *params);
KN_API kn_module *kn_nn_upsampling_nearest2d_with(const kn_interpolate_params *params);
KN_API kn_module *kn_nn_upsampling_bilinear2d_with(const kn_interpolate_params *params);
#define KN_UPSAMPLE_PARAMS(...)                                                                                        \
    &(kn_interpolate_params) { KN_INTERPOLATE_DEFAULTS, __VA_ARGS__ }
#define kn_nn_upsample(...) KN_CALL(kn_nn_upsample_with(KN_UPSAMPLE_PARAMS(__VA_ARGS__)))
#define kn_nn_upsampling_nearest2d(...) KN_CALL(kn_nn_upsampling_nearest2d_with(KN_UPSAMPLE_PARAMS(__VA_ARGS__)))
#define kn_nn_upsampling_bilinear2d(...) KN_CALL(kn_nn_upsampling_bilinear2d_with(KN_UPSAMPLE_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
