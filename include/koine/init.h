/* koine/init.h - initialisation of parameters (torch.nn.init): in place, with random numbers from the generator of the
 * tensor's device. Functions return their argument, or NULL with a sticky error. */
#ifndef KOINE_INIT_H
#define KOINE_INIT_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

KN_API kn_tensor *kn_init_uniform_(kn_tensor *tensor, double low, double high);
KN_API kn_tensor *kn_init_normal_(kn_tensor *tensor, double mean, double std);
/* bound = sqrt(6 / ((1 + a^2) fan_in)) (He et al. 2015); a = sqrt(5) gives 1 / sqrt(fan_in), the default of Linear and
 * Conv. */
KN_API kn_tensor *kn_init_kaiming_uniform_(kn_tensor *tensor, double a);
/* bound = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). */
KN_API kn_tensor *kn_init_xavier_uniform_(kn_tensor *tensor, double gain);

KN_END_DECLS

#endif
