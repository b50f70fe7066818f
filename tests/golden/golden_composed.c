/* golden_composed.c - functions that compose operators and are none themselves, by the names of golden_composed.py. */
#include "golden/golden_ops.h"

#include <string.h>

static kn_tensor *apply_cond(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)more;
    return kn_linalg_cond(x[0], (kn_matrix_norm)golden_whole(c, "norm", 0));
}

static kn_tensor *apply_lu_factor(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)c;
    kn_tensor *result = kn_linalg_lu_factor(x[0], more);
    more[0] = NULL;
    return result;
}

static kn_tensor *apply_lu(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    kn_tensor *parts[3] = {NULL};
    (void)more;
    parts[0] = kn_linalg_lu(x[0], &parts[1], &parts[2]);
    return parts[golden_whole(c, "part", 0)];
}

static kn_tensor *apply_lu_solve(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)more;
    return kn_linalg_lu_solve(x[0], x[2], x[1], golden_whole(c, "left", 0) != 0, golden_whole(c, "adjoint", 0) != 0);
}

static kn_tensor *apply_tensorinv(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)more;
    return kn_linalg_tensorinv(x[0], (int)golden_whole(c, "ind", 0));
}

static kn_tensor *apply_tensorsolve(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)c;
    (void)more;
    return kn_linalg_tensorsolve(x[0], x[1]);
}

static kn_tensor *apply_vecdot(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)c;
    (void)more;
    return kn_linalg_vecdot(x[0], x[1], -1);
}

static kn_tensor *apply_frexp(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)c;
    return kn_frexp(x[0], more);
}

static kn_tensor *apply_fill_diagonal(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)more;
    return kn_fill_diagonal_(kn_clone(x[0]), 0.5, golden_whole(c, "wrap", 0) != 0);
}

static kn_tensor *apply_sum_to_size(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    int64_t shape[KN_MAX_DIMS];
    const int ndim = golden_list(c, "shape", shape, KN_MAX_DIMS);
    (void)more;
    return kn_sum_to_size(x[0], ndim, shape);
}

static kn_tensor *apply_nonzero_static(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    (void)more;
    return kn_nonzero_static(x[0], golden_whole(c, "size", 0), -2);
}

static kn_tensor *apply_unravel_index(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    int64_t shape[KN_MAX_DIMS];
    kn_tensor *results[KN_MAX_DIMS];
    const int ndim = golden_list(c, "shape", shape, KN_MAX_DIMS);
    if (kn_unravel_index(x[0], ndim, shape, results) != KN_OK)
        return NULL;
    more[0] = results[1];
    return results[0];
}

static kn_tensor *apply_histogram(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    return kn_histogram(x[0], more, .bins = golden_whole(c, "bins", 100), .max = golden_number(c, "max", 0),
                        .edges = x[1], .weight = x[2], .density = golden_whole(c, "density", 0) != 0);
}

/* The inputs after the first two are the parameters, in order. */
static kn_tensor *apply_adaptive(const golden_case *c, kn_tensor *const *x, kn_tensor **more)
{
    const int64_t cutoffs[] = {3, 7};
    kn_tensor *outputs[2] = {NULL};
    kn_module *module = kn_nn_adaptive_log_softmax_with_loss(.in_features = 9, .n_classes = 12, .cutoffs = cutoffs,
                                                             .num_cutoffs = 2, .div_value = 2, .head_bias = true);
    (void)c;
    if (!module || kn_module_to_dtype(module, kn_dtype_of(x[0])) != KN_OK)
        return NULL;
    const kn_parameter_list parameters = kn_module_parameters(module);
    for (int i = 0; i < parameters.count; i++) {
        KN_NO_GRAD;
        if (kn_copy_(parameters.tensors[i], x[2 + i]) != KN_OK)
            return NULL;
    }
    kn_forward_many(module, x, 2, outputs, 2);
    more[0] = outputs[0];
    more[1] = kn_adaptive_log_softmax_log_prob(module, x[0]);
    more[2] = kn_adaptive_log_softmax_predict(module, x[0]);
    kn_module_free(module);
    return outputs[1];
}

bool golden_is_composed(const char *op, golden_composed *function)
{
    static const struct {
        const char *op;
        golden_composed function;
    } functions[] = {{"adaptive", apply_adaptive},
                     {"linalg_cond", apply_cond},
                     {"lu_factor", apply_lu_factor},
                     {"lu", apply_lu},
                     {"lu_solve", apply_lu_solve},
                     {"tensorinv", apply_tensorinv},
                     {"tensorsolve", apply_tensorsolve},
                     {"vecdot", apply_vecdot},
                     {"frexp", apply_frexp},
                     {"fill_diagonal", apply_fill_diagonal},
                     {"sum_to_size", apply_sum_to_size},
                     {"nonzero_static", apply_nonzero_static},
                     {"unravel_index", apply_unravel_index},
                     {"histogram", apply_histogram}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(op, functions[i].op) == 0) {
            *function = functions[i].function;
            return true;
        }
    return false;
}
