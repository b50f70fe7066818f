/* test_golden_parametrize.c - parametrized, pruned and fused modules are PyTorch's: outputs over steps of training,
 * masks, and state dicts, which load by PyTorch's names (module_features.safetensors, golden_parametrize.py). */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/values.h"

enum { STEPS = 3, TERMS = 64 };

static kn_tensor_file *file;
static char path[512];

/* The stored tensor, or NULL. */
static kn_tensor *stored(const char *name, const char *role)
{
    const golden_case c = {.file = file, .name = name};
    return golden_tensor(&c, role, -1);
}

static kn_tensor *given(const char *name, const char *role)
{
    kn_tensor *host = stored(name, role);
    CHECK_TENSOR(host);
    return golden_on_device(host, KN_F64);
}

static void check(kn_tensor *actual, const char *name, const char *role)
{
    char message[400];
    kn_tensor *expected = stored(name, role);
    if (!actual || !expected)
        fail_msg("%s/%s: %s", name, role, actual ? "not in the file" : kn_error_message());
    double *a = read_doubles(actual), *b = read_doubles(expected);
    assert_true(a && b && kn_numel(actual) == kn_numel(expected));
    if (!values_close(a, b, kn_numel(expected), closeness_of(KN_F64, TERMS), message, sizeof message))
        fail_msg("%s/%s: %s", name, role, message);
    free(a);
    free(b);
}

static void check_list(const char *name, const char *when, kn_parameter_list list)
{
    char role[128];
    for (int i = 0; i < list.count; i++) {
        snprintf(role, sizeof role, "%s/%s", when, list.names[i]);
        check(list.tensors[i], name, role);
    }
}

/* All values; that no name is missing or unexpected, a strict load checks. */
static void check_state(const char *name, const char *when, kn_module *module)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/%s/", name, when);
    check_list(name, when, kn_module_parameters(module));
    check_list(name, when, kn_module_buffers(module));
    CHECK_OK(kn_module_load(module, path, .prefix = prefix));
}

static kn_module *started(kn_module *module, const char *name)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/start/", name);
    CHECK_NEW(module);
    CHECK_OK(kn_module_to_dtype(module, KN_F64));
    CHECK_OK(kn_module_load(module, path, .prefix = prefix));
    return module;
}

/* --- parametrizations --------------------------------------------------------------------------------------------- */

static void train(const char *name, kn_module *module)
{
    started(module, name);
    kn_tensor *x = given(name, "in"), *gradient = given(name, "gout");
    kn_optim *optimizer = kn_optim_sgd(kn_module_parameters(module), .lr = 0.05);
    for (int step = 0; step < STEPS; step++) {
        char role[16];
        snprintf(role, sizeof role, "out%d", step);
        kn_tensor *y = kn_forward(module, x);
        check(y, name, role);
        kn_module_zero_grad(module);
        CHECK_OK(kn_backward_with(y, gradient, false));
        CHECK_OK(kn_optim_step(optimizer));
    }
    kn_module_train(module, false);
    check(kn_forward(module, x), name, "eval");
    check_state(name, "end", module);
    check(kn_forward(module, x), name, "eval");
    kn_optim_free(optimizer);
    kn_module_free(module);
}

static kn_module *linear(void) { return kn_nn_linear(.in_features = 5, .out_features = 4); }
static kn_module *conv(void) { return kn_nn_conv2d(.in_channels = 2, .out_channels = 3, .kernel_size = 2); }

TENSOR_TEST_F64(weight_norm_is_pytorchs)
{
    kn_module *module = linear();
    CHECK_OK(kn_parametrizations_weight_norm(module, "weight"));
    train("weight_linear", module);
    CHECK_OK(kn_parametrizations_weight_norm(module = conv(), "weight", .dim = 1));
    train("weight_conv_dim1", module);
    CHECK_OK(kn_parametrizations_weight_norm(module = linear(), "weight", .dim = -1));
    train("weight_whole", module);
    CHECK_OK(kn_parametrizations_weight_norm(module = linear(), "bias"));
    train("weight_bias", module);
}

TENSOR_TEST_F64(spectral_norm_is_pytorchs)
{
    kn_module *module = linear();
    CHECK_OK(kn_parametrizations_spectral_norm(module, "weight"));
    train("spectral_linear", module);
    CHECK_OK(kn_parametrizations_spectral_norm(module = conv(), "weight", .n_power_iterations = 2, .eps = 1e-6));
    train("spectral_conv", module);
    module = kn_nn_conv_transpose2d(.in_channels = 3, .out_channels = 2, .kernel_size = 2);
    CHECK_OK(kn_parametrizations_spectral_norm(module, "weight"));
    train("spectral_transposed", module);
    CHECK_OK(kn_parametrizations_spectral_norm(module = linear(), "bias"));
    train("spectral_bias", module);
    CHECK_OK(kn_parametrizations_weight_norm(module = linear(), "weight"));
    CHECK_OK(kn_parametrizations_spectral_norm(module, "weight"));
    train("weight_spectral", module);
}

/* --- pruning ------------------------------------------------------------------------------------------------------ */

static void check_mask(const char *name, int step, kn_module *module)
{
    char role[16];
    snprintf(role, sizeof role, "mask%d", step);
    check(kn_module_get(module, "weight_mask"), name, role);
}

TENSOR_TEST_F64(masks_of_a_matrix_are_pytorchs)
{
    static const char name[] = "prune_linear";
    kn_module *module = started(kn_nn_linear(.in_features = 6, .out_features = 5), name);
    kn_tensor *weight = kn_module_get(module, "weight");
    CHECK_OK(kn_prune_l1_unstructured(module, "weight", 0.3));
    check_mask(name, 0, module);
    CHECK_OK(kn_prune_l1_unstructured(module, "weight", 4));
    check_mask(name, 1, module);
    CHECK_OK(kn_prune_l1_unstructured(module, "weight", 0.5, .importance_scores = given(name, "scores")));
    check_mask(name, 2, module);
    CHECK_OK(kn_prune_ln_structured(module, "weight", 1, 2, 1));
    check_mask(name, 3, module);
    CHECK_OK(kn_prune_identity(module, "weight"));
    check_mask(name, 4, module);
    assert_true(kn_prune_is_pruned(module));
    check_state(name, "pruned", module);
    CHECK_OK(kn_prune_remove(module, "weight"));
    assert_false(kn_prune_is_pruned(module));
    assert_ptr_equal(kn_module_get(module, "weight"), weight);
    check_state(name, "end", module);
    kn_module_free(module);
}

TENSOR_TEST_F64(masks_of_channels_are_pytorchs)
{
    static const char name[] = "prune_conv";
    kn_module *module = started(kn_nn_conv2d(.in_channels = 4, .out_channels = 6, .kernel_size = 3), name);
    CHECK_OK(kn_prune_ln_structured(module, "weight", 2, 1, 0));
    check_mask(name, 0, module);
    CHECK_OK(kn_prune_ln_structured(module, "weight", 0.5, 2, -3));
    check_mask(name, 1, module);
    CHECK_OK(kn_prune_ln_structured(module, "weight", 1, INFINITY, 0));
    check_mask(name, 2, module);
    CHECK_OK(kn_prune_custom_from_mask(module, "weight", given(name, "custom")));
    check_mask(name, 3, module);
    CHECK_OK(kn_prune_l1_unstructured(module, "weight", 0.25));
    check_mask(name, 4, module);
    kn_module_free(module);
}

TENSOR_TEST_F64(masks_of_several_tensors_are_pytorchs)
{
    static const char name[] = "prune_both";
    kn_module *net = started(kn_nn_sequential(kn_nn_linear(.in_features = 4, .out_features = 5),
                                              kn_nn_linear(.in_features = 5, .out_features = 3)),
                             name);
    const kn_prune_target targets[] = {{kn_module_child(net, 0), "weight", NULL},
                                       {kn_module_child(net, 1), "weight", NULL}};
    CHECK_OK(kn_prune_global_unstructured(targets, 2, KN_PRUNE_L1_UNSTRUCTURED, 7));
    check_mask(name, 0, kn_module_child(net, 0));
    check_mask(name, 1, kn_module_child(net, 1));
    CHECK_OK(kn_prune_global_unstructured(targets, 2, KN_PRUNE_L1_UNSTRUCTURED, 0.5));
    check_mask(name, 2, kn_module_child(net, 0));
    check_mask(name, 3, kn_module_child(net, 1));
    kn_module_free(net);
}

/* --- fusion ------------------------------------------------------------------------------------------------------- */

static void check_fused(const char *name, kn_module *pair, kn_module *(*fuse)(const kn_module *, const kn_module *))
{
    started(pair, name);
    kn_module_train(pair, false);
    kn_module *made = fuse(kn_module_child(pair, 0), kn_module_child(pair, 1));
    CHECK_NEW(made);
    check(kn_forward(made, given(name, "in")), name, "out");
    check_state(name, "end", made);
    kn_module_free(pair);
    check(kn_forward(made, given(name, "in")), name, "out");
    kn_module_free(made);
}

TENSOR_TEST_F64(fused_layers_are_pytorchs)
{
    check_fused("fuse_conv",
                kn_nn_sequential(kn_nn_conv2d(.in_channels = 2, .out_channels = 3, .kernel_size = 2, .bias = false),
                                 kn_nn_batch_norm2d(.num_features = 3, .eps = 1e-3)),
                kn_fuse_conv_bn_eval);
    check_fused("fuse_transposed",
                kn_nn_sequential(kn_nn_conv_transpose1d(.in_channels = 2, .out_channels = 3, .kernel_size = 2),
                                 kn_nn_batch_norm1d(.num_features = 3, .affine = false)),
                kn_fuse_conv_bn_eval);
    check_fused(
        "fuse_linear",
        kn_nn_sequential(kn_nn_linear(.in_features = 4, .out_features = 3), kn_nn_batch_norm1d(.num_features = 3)),
        kn_fuse_linear_bn_eval);
}

static int open_file(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/module_features.safetensors", KOINE_SOURCE_DIR);
    file = golden_open("module_features");
    return file ? 0 : -1;
}

static int close_file(void **state)
{
    (void)state;
    kn_tensor_file_free(file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(weight_norm_is_pytorchs),        TEST(spectral_norm_is_pytorchs),
        TEST(masks_of_a_matrix_are_pytorchs), TEST(masks_of_channels_are_pytorchs),
        TEST(fused_layers_are_pytorchs),      TEST(masks_of_several_tensors_are_pytorchs),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
