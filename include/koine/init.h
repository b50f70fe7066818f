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
/* Without random numbers, which torch.nn.init has for completeness: every element `value` / 0 / 1 / the identity, of a
 * matrix / of a convolution's weight [out, in, field...], of 3 to 5 dimensions: the first min(out, in) / groups
 * channels of each group are passed on. */
KN_API kn_tensor *kn_init_constant_(kn_tensor *tensor, double value);
KN_API kn_tensor *kn_init_zeros_(kn_tensor *tensor);
KN_API kn_tensor *kn_init_ones_(kn_tensor *tensor);
KN_API kn_tensor *kn_init_eye_(kn_tensor *tensor);
KN_API kn_tensor *kn_init_dirac_(kn_tensor *tensor, int64_t groups);

/* The recommended gain of a nonlinearity: "linear", "sigmoid", "conv2d", ... 1, "tanh" 5/3, "relu" sqrt(2),
 * "leaky_relu" sqrt(2 / (1 + a^2)) with the negative slope `a`, "selu" 3/4. NaN with an error for other names. */
KN_API double kn_init_calculate_gain(const char *nonlinearity, double a);

typedef enum kn_fan_mode { KN_FAN_IN = 0, KN_FAN_OUT } kn_fan_mode;
typedef struct kn_init_kaiming_params {
    kn_fan_mode mode;         /* default fan_in */
    const char *nonlinearity; /* default NULL: "leaky_relu", the one that uses `a` */
    kn_generator *generator;  /* default NULL: that of the tensor's device */
} kn_init_kaiming_params;
#define KN_INIT_KAIMING_DEFAULTS .mode = KN_FAN_IN
KN_API kn_init_kaiming_params kn_init_kaiming_params_init(void);

/* He et al. 2015: bound = gain sqrt(3 / fan), or std = gain / sqrt(fan), with the gain of the nonlinearity. With the
 * defaults and a = sqrt(5) the bound is 1 / sqrt(fan_in), the default of Linear and Conv. */
KN_API kn_tensor *kn_init_kaiming_uniform_with_(kn_tensor *tensor, double a, const kn_init_kaiming_params *params);
KN_API kn_tensor *kn_init_kaiming_normal_with_(kn_tensor *tensor, double a, const kn_init_kaiming_params *params);
/* Glorot and Bengio 2010: bound = gain sqrt(6 / (fan_in + fan_out)), or std = gain sqrt(2 / (fan_in + fan_out)). */
KN_API kn_tensor *kn_init_xavier_uniform_with_(kn_tensor *tensor, double gain, const kn_random_params *params);
KN_API kn_tensor *kn_init_xavier_normal_with_(kn_tensor *tensor, double gain, const kn_random_params *params);
/* Normal deviates, but only from a to b. */
KN_API kn_tensor *kn_init_trunc_normal_with_(kn_tensor *tensor, double mean, double std, double a, double b,
                                             const kn_random_params *params);
/* Saxe et al. 2014: `gain` times a matrix with orthonormal rows or columns, [size 0, all others]; computed on the host,
 * which waits. */
KN_API kn_tensor *kn_init_orthogonal_with_(kn_tensor *tensor, double gain, const kn_random_params *params);
/* Martens 2010: a matrix of normal deviates, of which the part `sparsity` of each column is 0; on the host, which
 * waits. */
KN_API kn_tensor *kn_init_sparse_with_(kn_tensor *tensor, double sparsity, double std, const kn_random_params *params);

#define kn_init_uniform_(tensor, low, high, ...)                                                                       \
    KN_CALL(kn_init_uniform_with_(tensor, low, high, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_normal_(tensor, mean, std, ...)                                                                        \
    KN_CALL(kn_init_normal_with_(tensor, mean, std, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_kaiming_uniform_(tensor, a, ...)                                                                       \
    KN_CALL(kn_init_kaiming_uniform_with_(tensor, a, &(kn_init_kaiming_params){KN_INIT_KAIMING_DEFAULTS, __VA_ARGS__}))
#define kn_init_kaiming_normal_(tensor, a, ...)                                                                        \
    KN_CALL(kn_init_kaiming_normal_with_(tensor, a, &(kn_init_kaiming_params){KN_INIT_KAIMING_DEFAULTS, __VA_ARGS__}))
#define kn_init_xavier_uniform_(tensor, gain, ...)                                                                     \
    KN_CALL(kn_init_xavier_uniform_with_(tensor, gain, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_xavier_normal_(tensor, gain, ...)                                                                      \
    KN_CALL(kn_init_xavier_normal_with_(tensor, gain, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_trunc_normal_(tensor, mean, std, a, b, ...)                                                            \
    KN_CALL(kn_init_trunc_normal_with_(tensor, mean, std, a, b, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_orthogonal_(tensor, gain, ...)                                                                         \
    KN_CALL(kn_init_orthogonal_with_(tensor, gain, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))
#define kn_init_sparse_(tensor, sparsity, std, ...)                                                                    \
    KN_CALL(kn_init_sparse_with_(tensor, sparsity, std, &(kn_random_params){KN_RANDOM_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
