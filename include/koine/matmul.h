/* koine/matmul.h - matrix products. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_MATMUL_H
#define KOINE_MATMUL_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* torch.matmul: vectors, matrices, and batches of matrices, whose batch dimensions broadcast. Both of the same floating
 * dtype. */
KN_API kn_tensor *kn_matmul(kn_tensor *a, kn_tensor *b);

/* y = x weight^T + bias, with x [..., in], weight [out, in], bias [out] or NULL; y [..., out]. */
KN_API kn_tensor *kn_linear(kn_tensor *x, kn_tensor *weight, kn_tensor *bias);

typedef struct kn_linear_params {
    kn_activation activation; /* of the result, bias included; default none */
} kn_linear_params;
#define KN_LINEAR_DEFAULTS .activation = KN_ACTIVATION_NONE
KN_API kn_linear_params kn_linear_params_init(void);
KN_API kn_tensor *kn_linear_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_linear_params *params);

/* y = x1 A x2 + bias for each row, with x1 [..., in1], x2 [..., in2], weight [out, in1, in2], bias [out] or NULL. */
KN_API kn_tensor *kn_bilinear(kn_tensor *x1, kn_tensor *x2, kn_tensor *weight, kn_tensor *bias);

KN_END_DECLS

#endif
