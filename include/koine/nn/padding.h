/* koine/nn/padding.h - padding of the last one to three dimensions (koine/pad.h). Constructors as in koine/module.h.
 *
 * `padding` is one number for all sides or, as in PyTorch, two per dimension from the last one on: {left, right},
 * {left, right, top, bottom}, {left, right, top, bottom, front, back}:
 *
 *     kn_nn_zero_pad2d(KN_SHAPE(1))
 *     kn_nn_reflection_pad2d(KN_SHAPE(2, 2, 1, 1)) */
#ifndef KOINE_NN_PADDING_H
#define KOINE_NN_PADDING_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/pad.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_zero_pad1d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_zero_pad2d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_zero_pad3d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_constant_pad1d(int count, const int64_t *padding, double value);
KN_API kn_module *kn_nn_constant_pad2d(int count, const int64_t *padding, double value);
KN_API kn_module *kn_nn_constant_pad3d(int count, const int64_t *padding, double value);
KN_API kn_module *kn_nn_reflection_pad1d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_reflection_pad2d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_reflection_pad3d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_replication_pad1d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_replication_pad2d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_replication_pad3d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_circular_pad1d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_circular_pad2d(int count, const int64_t *padding);
KN_API kn_module *kn_nn_circular_pad3d(int count, const int64_t *padding);

KN_END_DECLS

#endif
