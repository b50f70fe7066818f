/* koine/nn/shape.h - layers that only change shapes. Constructors as in koine/module.h. */
#ifndef KOINE_NN_SHAPE_H
#define KOINE_NN_SHAPE_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

/* Joins dimensions start_dim to end_dim. */
typedef struct kn_nn_flatten_params {
    int start_dim, end_dim; /* default 1 and -1 */
} kn_nn_flatten_params;
#define KN_NN_FLATTEN_DEFAULTS .start_dim = 1, .end_dim = -1
KN_API kn_nn_flatten_params kn_nn_flatten_params_init(void);
KN_API kn_module *kn_nn_flatten_with(const kn_nn_flatten_params *params);
#define kn_nn_flatten(...) KN_CALL(kn_nn_flatten_with(&(kn_nn_flatten_params){KN_NN_FLATTEN_DEFAULTS, __VA_ARGS__}))

/* Dimension `dim` as several: kn_nn_unflatten(1, KN_SHAPE(3, -1)). */
KN_API kn_module *kn_nn_unflatten(int dim, int ndim, const int64_t *unflattened_size);

KN_API kn_module *kn_nn_identity(void); /* returns its input */

KN_END_DECLS

#endif
