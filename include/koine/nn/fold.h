/* koine/nn/fold.h - patches as columns and back (koine/vision.h). Constructors as in koine/module.h. */
#ifndef KOINE_NN_FOLD_H
#define KOINE_NN_FOLD_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/vision.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_unfold_with(const kn_fold_params *params);
KN_API kn_module *kn_nn_fold_with(int64_t output_height, int64_t output_width, const kn_fold_params *params);
#define kn_nn_unfold(...) KN_CALL(kn_nn_unfold_with(KN_FOLD_PARAMS(__VA_ARGS__)))
#define kn_nn_fold(output_height, output_width, ...)                                                                   \
    KN_CALL(kn_nn_fold_with(output_height, output_width, KN_FOLD_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
