/* koine/nn/pixelshuffle.h - moving channels into space and back (koine/vision.h). Constructors as in koine/module.h. */
#ifndef KOINE_NN_PIXELSHUFFLE_H
#define KOINE_NN_PIXELSHUFFLE_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/vision.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_pixel_shuffle(int64_t upscale_factor);
KN_API kn_module *kn_nn_pixel_unshuffle(int64_t downscale_factor);
KN_API kn_module *kn_nn_channel_shuffle(int64_t groups);

KN_END_DECLS

#endif
