/* koine/nn_utils.h - parameters as one vector, and layers fused for inference: the rest of torch.nn.utils
 * (koine/clip_grad.h, koine/parametrize.h, koine/prune.h). */
#ifndef KOINE_NN_UTILS_H
#define KOINE_NN_UTILS_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* All elements in the order of the list: kn_parameters_to_vector(kn_module_parameters(net)). Recorded, as kn_cat is. */
KN_API kn_tensor *kn_parameters_to_vector(kn_parameter_list parameters);

/* The reverse, in place and without a record: copies parts of `vector`, which has as many elements as the
 * parameters. */
KN_API kn_status kn_vector_to_parameters(kn_tensor *vector, kn_parameter_list parameters);

/* A batch normalisation by its running estimates is linear, so a convolution or linear layer before it can do its work:
 * a new layer, in evaluation mode, that gives bn(layer(x)), with a bias. Both modules are unchanged, and in evaluation
 * mode; the layer has no tensors computed from others (koine/parametrize.h). Transposed convolutions have one group.
 * The caller owns the result; NULL with a sticky error. */
KN_API kn_module *kn_fuse_conv_bn_eval(const kn_module *conv, const kn_module *bn);
KN_API kn_module *kn_fuse_linear_bn_eval(const kn_module *linear, const kn_module *bn);

/* The same of tensors. conv_b, bn_w and bn_b may be NULL: zeros, ones and zeros. `transpose`: of a transposed
 * convolution. *weight and *bias are owned as results are. */
KN_API kn_status kn_fuse_conv_bn_weights(kn_tensor *conv_w, kn_tensor *conv_b, kn_tensor *bn_rm, kn_tensor *bn_rv,
                                         double bn_eps, kn_tensor *bn_w, kn_tensor *bn_b, bool transpose,
                                         kn_tensor **weight, kn_tensor **bias);
KN_API kn_status kn_fuse_linear_bn_weights(kn_tensor *linear_w, kn_tensor *linear_b, kn_tensor *bn_rm, kn_tensor *bn_rv,
                                           double bn_eps, kn_tensor *bn_w, kn_tensor *bn_b, kn_tensor **weight,
                                           kn_tensor **bias);

KN_END_DECLS

#endif
