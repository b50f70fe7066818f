/* koine/nn/activation.h - activations and softmax. Constructors as in koine/module.h. */
#ifndef KOINE_NN_ACTIVATION_H
#define KOINE_NN_ACTIVATION_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_relu(void);
KN_API kn_module *kn_nn_relu6(void);
KN_API kn_module *kn_nn_hardtanh(double min_val, double max_val); /* PyTorch's defaults are -1, 1 */
KN_API kn_module *kn_nn_sigmoid(void);
KN_API kn_module *kn_nn_tanh(void);
KN_API kn_module *kn_nn_silu(void);
KN_API kn_module *kn_nn_log_sigmoid(void);
KN_API kn_module *kn_nn_softsign(void);
KN_API kn_module *kn_nn_tanhshrink(void);
KN_API kn_module *kn_nn_hardsigmoid(void);
KN_API kn_module *kn_nn_hardswish(void);
KN_API kn_module *kn_nn_softmax(int dim);
KN_API kn_module *kn_nn_log_softmax(int dim);

KN_END_DECLS

#endif
