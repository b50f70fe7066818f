/* koine/nn/linear.h - linear layers. Constructors as in koine/module.h. */
#ifndef KOINE_NN_LINEAR_H
#define KOINE_NN_LINEAR_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef struct kn_nn_linear_params {
    int64_t in_features, out_features;
    bool bias; /* default true */
} kn_nn_linear_params;
#define KN_NN_LINEAR_DEFAULTS .bias = true
KN_API kn_nn_linear_params kn_nn_linear_params_init(void);
KN_API kn_module *kn_nn_linear_with(const kn_nn_linear_params *params);
#define kn_nn_linear(...) KN_CALL(kn_nn_linear_with(&(kn_nn_linear_params){KN_NN_LINEAR_DEFAULTS, __VA_ARGS__}))

/* A module of two inputs (kn_bilinear); weight [out_features, in1_features, in2_features]. */
typedef struct kn_nn_bilinear_params {
    int64_t in1_features, in2_features, out_features;
    bool bias; /* default true */
} kn_nn_bilinear_params;
#define KN_NN_BILINEAR_DEFAULTS .bias = true
KN_API kn_nn_bilinear_params kn_nn_bilinear_params_init(void);
KN_API kn_module *kn_nn_bilinear_with(const kn_nn_bilinear_params *params);
#define kn_nn_bilinear(...) KN_CALL(kn_nn_bilinear_with(&(kn_nn_bilinear_params){KN_NN_BILINEAR_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
