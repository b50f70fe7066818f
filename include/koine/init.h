/* koine/init.h - initialisation of parameters (torch.nn.init): in place, with random numbers from the generator of the
 * tensor's device or from `.generator`: kn_init_normal_(w, 0, 0.02, .generator = g). Functions return their argument,
 * or NULL with a sticky error. */
#ifndef KOINE_INIT_H
#define KOINE_INIT_H

#include <koine/common.h>
#include <koine/random.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

KN_API kn_tensor *kn_init_uniform_with_(kn_tensor *tensor, double low, double high, const kn_random_params *params);
KN_API kn_tensor *kn_init_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params);
/* bound = sqrt(6 / ((1 + a^2) fan_in)) (He et al. 2015); a = sqrt(5) gives 1 / sqrt(fan_in), the default of Linear and
 * Conv. */
KN_API kn_tensor *kn_init_kaiming_uniform_with_(kn_tensor *tensor, double a, const kn_random_params *params);
/* bound = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). */
KN_API kn_tensor *kn_init_xavier_uniform_with_(kn_tensor *tensor, double gain, const kn_random_params *params);

#define kn_init_uniform_(tensor, low, high, ...)                                                                       \
    KN_CALL(kn_init_uniform_with_(tensor, low, high, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_normal_(tensor, mean, std, ...)                                                                        \
    KN_CALL(kn_init_normal_with_(tensor, mean, std, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_kaiming_uniform_(tensor, a, ...)                                                                       \
    KN_CALL(kn_init_kaiming_uniform_with_(tensor, a, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_xavier_uniform_(tensor, gain, ...)                                                                     \
    KN_CALL(kn_init_xavier_uniform_with_(tensor, gain, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
