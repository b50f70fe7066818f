/* test_parametrize.c - parametrized and pruned modules: names, identity of parameters, removal, replicas,
 * recomputation, graphs, threads' views, user-defined parametrizations, errors; values against PyTorch are in
 * test_golden_parametrize. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"

static void check_names(kn_parameter_list list, const char *const *names, int count)
{
    assert_int_equal(list.count, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(list.names[i], names[i]);
}
#define CHECK_NAMES(list, ...)                                                                                         \
    check_names(list, (const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)))

static void check_same(kn_tensor *a, kn_tensor *b)
{
    CHECK_TENSOR(a);
    CHECK_TENSOR(b);
    double *p = read_doubles(a), *q = read_doubles(b);
    assert_true(p && q && kn_numel(a) == kn_numel(b));
    assert_memory_equal(p, q, (size_t)kn_numel(a) * sizeof *p);
    free(p);
    free(q);
}

static bool close_to(kn_tensor *a, kn_tensor *b)
{
    bool result = false;
    CHECK_OK(kn_allclose(kn_detach(a), kn_detach(b), &result));
    return result;
}

static kn_module *linear(int64_t in, int64_t out)
{
    kn_manual_seed(3);
    return kn_nn_linear(.in_features = in, .out_features = out);
}

/* --- names and identity ------------------------------------------------------------------------------------------- */

TENSOR_TEST(names_are_pytorchs_and_come_back)
{
    kn_module *module = linear(2, 3);
    kn_tensor *weight = kn_module_get(module, "weight"), *before = kn_clone(weight);
    CHECK_OK(kn_parametrizations_weight_norm(module, "weight"));
    CHECK_NAMES(kn_module_parameters(module), "bias", "parametrizations.weight.original0",
                "parametrizations.weight.original1");
    CHECK_SHAPE(kn_module_parameters(module).tensors[1], 3, 1);
    assert_ptr_equal(kn_module_parameters(module).tensors[2], weight);
    assert_string_equal(kn_module_type_name(module), "ParametrizedLinear");
    assert_true(kn_parametrize_is_parametrized(module, "weight") && kn_parametrize_is_parametrized(module, NULL));
    char *text = kn_module_summary_with(module, &(kn_module_summary_params){.width = KN_WIDE});
    assert_non_null(strstr(text, "  in_features=2, out_features=3, bias=True"));
    assert_non_null(strstr(text, "      (0): _WeightNorm()"));
    kn_free(text);
    CHECK_OK(kn_parametrize_remove_parametrizations(module, "weight", true));
    CHECK_NAMES(kn_module_parameters(module), "bias", "weight");
    assert_string_equal(kn_module_type_name(module), "Linear");
    assert_false(kn_parametrize_is_parametrized(module, NULL));
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2));
    kn_tensor *y = kn_forward(module, x), *expected = kn_linear(x, before, kn_module_get(module, "bias"));
    assert_true(close_to(y, expected));
    assert_true(kn_requires_grad(kn_module_get(module, "weight")));
    kn_module_free(module);
}

/* A single original stays the optimizer's parameter. */
TENSOR_TEST(a_single_original_keeps_its_identity)
{
    kn_module *module = linear(2, 3);
    kn_tensor *weight = kn_module_get(module, "weight"), *x = kn_ones(KN_SHAPE(1, 2));
    kn_optim *optimizer = kn_optim_sgd(kn_module_parameters(module), .lr = 0.1);
    CHECK_OK(kn_parametrizations_spectral_norm(module, "weight"));
    CHECK_NAMES(kn_module_parameters(module), "bias", "parametrizations.weight.original");
    CHECK_NAMES(kn_module_buffers(module), "parametrizations.weight.0._u", "parametrizations.weight.0._v");
    assert_ptr_equal(kn_module_get(module, "parametrizations.weight.original"), weight);
    kn_tensor *before = kn_clone(kn_detach(weight));
    CHECK_OK(kn_backward(kn_sum(kn_forward(module, x))));
    CHECK_OK(kn_optim_step(optimizer));
    assert_false(close_to(weight, before));
    kn_module_train(module, false);
    kn_tensor *y = kn_forward(module, x), *value = kn_clone(kn_module_get(module, "weight"));
    CHECK_OK(kn_parametrize_remove_parametrizations(module, "weight", true));
    assert_ptr_equal(kn_module_get(module, "weight"), weight);
    check_same(weight, value);
    check_same(kn_forward(module, x), y);
    kn_optim_free(optimizer);
    kn_module_free(module);
}

/* --- a user-defined parametrization ------------------------------------------------------------------------------- */

static kn_tensor *symmetric(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_add(kn_triu(x, 0), kn_t(kn_triu(x, 1)));
}

static kn_tensor *exponential(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_exp(x);
}

static kn_status logarithm(kn_module *module, kn_tensor *value, kn_tensor **originals)
{
    (void)module;
    originals[0] = kn_log(value);
    return KN_OK;
}

TENSOR_TEST(of_the_program)
{
    kn_module *module = linear(2, 2);
    {
        KN_NO_GRAD;
        CHECK_OK(kn_copy_(kn_module_get(module, "weight"), kn_from_data(((float[]){1, 2, 3, 4}), KN_SHAPE(2, 2))));
    }
    CHECK_OK(kn_parametrize_register_parametrization(module, "weight", kn_module_new("Symmetric", symmetric, 0, NULL)));
    CHECK_VALUES(kn_module_get(module, "weight"), 1, 2, 2, 4);
    CHECK_OK(kn_parametrize_register_parametrization(module, "bias", kn_module_new("Exponential", exponential, 0, NULL),
                                                     .right_inverse = logarithm, .unsafe = true));
    CHECK_OK(kn_parametrize_assign(module, "bias", kn_ones(KN_SHAPE(2))));
    CHECK_VALUES(kn_module_get(module, "parametrizations.bias.original"), 0, 0);
    CHECK_VALUES(kn_forward(module, kn_ones(KN_SHAPE(1, 2))), 4, 7);
    /* a second one of the same tensor; the first's modes and hooks are those of any module */
    CHECK_OK(kn_parametrize_register_parametrization(module, "weight", kn_module_new("Symmetric", symmetric, 0, NULL)));
    CHECK_NEW(kn_module_named_child(kn_module_named_child(kn_module_child(module, 0), "weight"), "1"));
    CHECK_VALUES(kn_forward(module, kn_ones(KN_SHAPE(1, 2))), 4, 7);
    CHECK_OK(kn_parametrize_remove_parametrizations(module, "weight", false));
    CHECK_VALUES(kn_module_get(module, "weight"), 1, 2, 3, 4);
    assert_string_equal(kn_module_type_name(module), "ParametrizedLinear");
    kn_module_free(module);
}

typedef struct own {
    kn_tensor *w;
    int calls;
} own;

static kn_tensor *own_forward(kn_module *module, kn_tensor *x)
{
    own *self = kn_module_self(module);
    self->calls++;
    return kn_add(kn_mul(x, self->w), kn_module_get(module, "w"));
}

TENSOR_TEST(of_a_module_of_the_program)
{
    kn_module *module = kn_module_new("Own", own_forward, sizeof(own), NULL);
    own *self = kn_module_self(module);
    self->w = kn_module_register_parameter(module, "w", kn_full(KN_SHAPE(2), 3));
    kn_tensor *w = self->w;
    CHECK_OK(kn_parametrize_register_parametrization(module, "w", kn_module_new("Exponential", exponential, 0, NULL),
                                                     .right_inverse = logarithm));
    assert_true(close_to(kn_forward(module, kn_ones(KN_SHAPE(2))), kn_full(KN_SHAPE(2), 6)));
    assert_true(self->w == w && self->calls == 1);
    kn_module_free(module);
}

/* --- with other features ------------------------------------------------------------------------------------------ */

static kn_module *critic(void)
{
    kn_manual_seed(9);
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = 6, .out_features = 8), kn_nn_relu(),
                                      kn_nn_linear(.in_features = 8, .out_features = 4));
    CHECK_OK(kn_parametrizations_spectral_norm(kn_module_child(net, 0), "weight"));
    CHECK_OK(kn_parametrizations_weight_norm(kn_module_child(net, 2), "weight"));
    CHECK_OK(kn_prune_l1_unstructured(kn_module_child(net, 2), "bias", 1));
    return net;
}

static kn_tensor *sample(void)
{
    kn_manual_seed(4);
    return kn_randn(KN_SHAPE(5, 6), .requires_grad = true);
}

static void check_same_gradients(kn_module *a, kn_module *b)
{
    const kn_parameter_list p = kn_module_parameters(a), q = kn_module_parameters(b);
    assert_int_equal(p.count, q.count);
    for (int i = 0; i < p.count; i++)
        check_same(kn_grad(p.tensors[i]), kn_grad(q.tensors[i]));
    const kn_parameter_list s = kn_module_buffers(a), t = kn_module_buffers(b);
    for (int i = 0; i < s.count; i++)
        check_same(s.tensors[i], t.tensors[i]);
}

TENSOR_TEST(recomputed_and_replicated)
{
    kn_module *plain = critic(), *checkpointed = critic(), *replicated = critic(), *replica;
    kn_device *device = kn_device_current();
    CHECK_OK(kn_module_checkpoint(checkpointed, true));
    CHECK_OK(kn_module_replicate(replicated, &device, 1, &replica));
    kn_tensor *x = sample(), *y = kn_forward(plain, x);
    CHECK_OK(kn_backward(kn_sum(y)));
    kn_tensor *z = kn_forward(checkpointed, x);
    check_same(y, z);
    CHECK_OK(kn_backward(kn_sum(z)));
    check_same_gradients(plain, checkpointed);
    z = kn_forward(replica, x);
    kn_module_free(replica);
    check_same(y, z);
    CHECK_OK(kn_backward(kn_sum(z)));
    check_same_gradients(plain, replicated);
    kn_module_free(plain);
    kn_module_free(checkpointed);
    kn_module_free(replicated);
}

/* The originals' gradients, and the power iterations, are in the graphs. */
TENSOR_TEST(graphed)
{
    kn_module *plain = critic(), *graphed = critic();
    kn_tensor *x = sample();
    CHECK_OK(kn_make_graphed_callable(graphed, x));
    for (int i = 0; i < 3; i++) /* the warm-up has iterated, too */
        kn_forward(plain, x);
    CHECK_OK(kn_vector_to_parameters(kn_parameters_to_vector(kn_module_buffers(plain)), kn_module_buffers(graphed)));
    kn_tensor *y = kn_forward(plain, x), *z = kn_forward(graphed, x);
    assert_true(close_to(y, z));
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_OK(kn_backward(kn_sum(z)));
    const kn_parameter_list p = kn_module_parameters(plain), q = kn_module_parameters(graphed);
    for (int i = 0; i < p.count; i++)
        assert_true(close_to(kn_grad(p.tensors[i]), kn_grad(q.tensors[i])));
    kn_module_free(plain);
    kn_module_free(graphed);
}

/* Modules called without their forward function see the computed tensors, too. */
TENSOR_TEST(attention)
{
    kn_manual_seed(1);
    kn_module *module = kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2);
    kn_tensor *x = kn_randn(KN_SHAPE(3, 4)), *before = kn_multihead_attention(module, x, x, x);
    CHECK_OK(kn_parametrizations_weight_norm(module, "in_proj_weight"));
    CHECK_OK(kn_parametrizations_weight_norm(kn_module_named_child(module, "out_proj"), "weight"));
    assert_true(close_to(before, kn_multihead_attention(module, x, x, x)));
    {
        KN_NO_GRAD;
        kn_fill_(kn_module_get(module, "parametrizations.in_proj_weight.original0"), 0);
    }
    CHECK_VALUES(kn_sum(kn_abs(kn_multihead_attention(module, x, x, x))), 0);
    kn_module_free(module);
}

/* A layer after it applies its activation in the same pass. */
TENSOR_TEST(an_activation_is_fused)
{
    kn_module *net = kn_nn_sequential(linear(2, 3), kn_nn_relu());
    CHECK_OK(kn_prune_custom_from_mask(kn_module_child(net, 0), "weight", kn_zeros(KN_SHAPE(3, 2))));
    CHECK_OK(kn_prune_custom_from_mask(kn_module_child(net, 0), "bias", kn_zeros(KN_SHAPE(3))));
    CHECK_VALUES(kn_forward(net, kn_ones(KN_SHAPE(1, 2))), 0, 0, 0);
    kn_module_free(net);
}

/* Moving converts the originals, which stay the parameters; freezing passes to the originals. */
TENSOR_TEST_F64(moved_and_frozen)
{
    kn_module *module = linear(3, 2);
    assert_ptr_equal(kn_module_requires_grad_(module, false), module);
    CHECK_OK(kn_parametrizations_weight_norm(module, "weight"));
    CHECK_OK(kn_prune_identity(module, "bias"));
    for (int i = 0; i < kn_module_parameters(module).count; i++)
        assert_false(kn_requires_grad(kn_module_parameters(module).tensors[i]));
    CHECK_OK(kn_module_to_dtype(module, KN_F64));
    kn_tensor *y = kn_forward(module, kn_ones(KN_SHAPE(1, 3), .dtype = KN_F64));
    CHECK_DTYPE(y, KN_F64);
    assert_false(kn_requires_grad(y));
    CHECK_OK(kn_prune_remove(module, "bias"));
    CHECK_OK(kn_parametrize_remove_parametrizations(module, "weight", true));
    assert_false(kn_requires_grad(kn_module_get(module, "weight")));
    assert_false(kn_requires_grad(kn_module_get(module, "bias")));
    check_same(y, kn_forward(module, kn_ones(KN_SHAPE(1, 3), .dtype = KN_F64)));
    kn_module_free(module);
}

/* --- random pruning ----------------------------------------------------------------------------------------------- */

static int zeros_of(kn_module *module, const char *mask)
{
    double sum = 0;
    kn_tensor *t = kn_module_get(module, mask);
    CHECK_OK(kn_item(kn_sum(t), &sum));
    return (int)((double)kn_numel(t) - sum);
}

TENSOR_TEST(random_masks_have_the_numbers)
{
    kn_module *module = linear(8, 6);
    CHECK_OK(kn_prune_random_unstructured(module, "weight", 0.25));
    assert_int_equal(zeros_of(module, "weight_mask"), 12);
    CHECK_OK(kn_prune_random_unstructured(module, "weight", 6));
    assert_int_equal(zeros_of(module, "weight_mask"), 18);
    CHECK_OK(kn_prune_random_unstructured(module, "weight", 1.0));
    assert_int_equal(zeros_of(module, "weight_mask"), 48);
    CHECK_OK(kn_prune_random_unstructured(module, "bias", 0.0));
    assert_int_equal(zeros_of(module, "bias_mask"), 0);
    kn_module_free(module);
    module = linear(8, 6);
    CHECK_OK(kn_prune_random_structured(module, "weight", 0.5, 0));
    assert_int_equal(zeros_of(module, "weight_mask"), 24);
    CHECK_OK(kn_prune_random_structured(module, "weight", 2, -1));
    assert_int_equal(zeros_of(module, "weight_mask"), 30);
    const kn_prune_target target = {module, "bias", NULL};
    CHECK_OK(kn_prune_global_unstructured(&target, 1, KN_PRUNE_RANDOM_UNSTRUCTURED, 2));
    assert_int_equal(zeros_of(module, "bias_mask"), 2);
    kn_module_free(module);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void errors_of_parametrizations(kn_module *module)
{
    assert_int_equal(kn_parametrizations_weight_norm(module, "weights"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "parametrizations_weight_norm", "Linear", "\"weights\"");
    assert_int_equal(kn_parametrizations_weight_norm(NULL, "weight"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "module");
    assert_int_equal(kn_parametrizations_weight_norm(module, "weight", .dim = 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "dim must be from 0 to 1", "not 2");
    assert_int_equal(kn_parametrizations_spectral_norm(module, "weight", .n_power_iterations = 0), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "n_power_iterations", "not 0");
    assert_int_equal(kn_parametrizations_spectral_norm(module, "weight", .dim = -3), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "dim must be from -2 to 1", "not -3");
    assert_int_equal(kn_parametrizations_spectral_norm(module, "weight", .eps = -1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "eps", "-1");
    assert_int_equal(
        kn_parametrize_register_parametrization(module, "weight", kn_nn_linear(.in_features = 3, .out_features = 4)),
        KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[2, 4]", "[2, 3]", ".unsafe");
    assert_int_equal(kn_parametrize_register_parametrization(
                         module, "weight", kn_nn_bilinear(.in1_features = 1, .in2_features = 1, .out_features = 1)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "Bilinear", "2 inputs", "right_inverse");
    assert_int_equal(kn_parametrize_remove_parametrizations(module, "weight", true), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "no parametrization of \"weight\"");
    CHECK_OK(kn_parametrizations_weight_norm(module, "weight"));
    assert_int_equal(kn_parametrizations_weight_norm(module, "weight"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "_WeightNorm", "2 inputs");
    assert_int_equal(kn_parametrize_remove_parametrizations(module, "weight", false), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "leave_parametrized");
    assert_null(kn_module_register_buffer(module, "weight", kn_ones(KN_SHAPE(1))));
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"weight\"", "computed");
    assert_int_equal(kn_prune_identity(module, "weight"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "prune_identity", "no parameter \"weight\"");
}

static void errors_of_pruning(kn_module *module)
{
    assert_int_equal(kn_prune_l1_unstructured(module, "weight", 1.5), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "prune_l1_unstructured", "amount", "1.5");
    assert_int_equal(kn_prune_l1_unstructured(module, "weight", 7), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "amount", "from 0 to the 6", "not 7");
    assert_int_equal(kn_prune_l1_unstructured(module, "weight", 1, .importance_scores = kn_ones(KN_SHAPE(2, 2))),
                     KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "importance_scores", "[2, 3]", "[2, 2]");
    assert_int_equal(kn_prune_ln_structured(module, "weight", 1, 2, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "prune_ln_structured", "dim must be from -2 to 1", "not 2");
    assert_int_equal(kn_prune_ln_structured(module, "bias", 1, 2, 0), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "two dimensions", "not 1");
    assert_int_equal(kn_prune_custom_from_mask(module, "weight", kn_ones(KN_SHAPE(3))), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "prune_custom_from_mask", "[2, 3]", "[3]");
    assert_int_equal(kn_prune_remove(module, "weight"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "prune_remove", "\"weight\"", "not pruned");
    assert_int_equal(kn_prune_global_unstructured(NULL, 0, KN_PRUNE_L1_UNSTRUCTURED, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "prune_global_unstructured", "at least one");
    CHECK_NAMES(kn_module_parameters(module), "weight", "bias");
}

TENSOR_TEST(errors)
{
    kn_module *module = linear(3, 2);
    errors_of_pruning(module);
    errors_of_parametrizations(module);
    kn_module_free(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_pytorchs_and_come_back),
        TEST(a_single_original_keeps_its_identity),
        TEST(of_the_program),
        TEST(of_a_module_of_the_program),
        TEST(recomputed_and_replicated),
        TEST(graphed),
        TEST(attention),
        TEST(an_activation_is_fused),
        TEST(moved_and_frozen),
        TEST(random_masks_have_the_numbers),
        TEST(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
