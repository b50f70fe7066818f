/* test_module_utils.c - frozen modules, tied parameters in lists and files, containers of parameters, parameters as one
 * vector, fused layers' errors. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/values.h"

static kn_module *linear(int64_t in, int64_t out) { return kn_nn_linear(.in_features = in, .out_features = out); }

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

/* --- freezing ----------------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_frozen_module_stays)
{
    kn_module *net = kn_nn_sequential(linear(2, 3), kn_nn_relu(), linear(3, 1)), *body = kn_module_child(net, 0);
    assert_ptr_equal(kn_module_requires_grad_(body, false), body);
    kn_tensor *frozen = kn_clone(kn_module_get(net, "0.weight")),
              *free_ = kn_clone(kn_detach(kn_module_get(net, "2.bias")));
    kn_optim *optimizer = kn_optim_adamw(kn_module_parameters(net), .lr = 0.1, .weight_decay = 0.5);
    for (int i = 0; i < 2; i++) {
        kn_optim_zero_grad(optimizer);
        CHECK_OK(kn_backward(kn_sum(kn_forward(net, kn_ones(KN_SHAPE(4, 2))))));
        CHECK_OK(kn_optim_step(optimizer));
    }
    assert_null(kn_grad(kn_module_get(net, "0.weight")));
    check_same(kn_module_get(net, "0.weight"), frozen);
    double difference = 0;
    CHECK_OK(kn_item(kn_sum(kn_abs(kn_sub(kn_detach(kn_module_get(net, "2.bias")), free_))), &difference));
    assert_true(difference > 0.1);
    /* thawed, it learns */
    CHECK_NEW(kn_module_requires_grad_(net, true));
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, kn_ones(KN_SHAPE(4, 2))))));
    assert_non_null(kn_grad(kn_module_get(net, "0.weight")));
    kn_optim_free(optimizer);
    kn_module_free(net);
    assert_null(kn_module_requires_grad_(NULL, true));
    CHECK_ERROR(KN_ERR_ARGUMENT, "module_requires_grad_", "module");
}

/* --- tied parameters ---------------------------------------------------------------------------------------------- */

typedef struct tied {
    kn_tensor *weight;
} tied;

static kn_tensor *tied_forward(kn_module *module, kn_tensor *x)
{
    return kn_matmul(x, kn_t(((tied *)kn_module_self(module))->weight));
}

/* "0" maps 2 to 3 features; "1" has the same weight, transposed. */
static kn_module *autoencoder(void)
{
    kn_module *first = kn_nn_linear(.in_features = 3, .out_features = 3, .bias = false);
    kn_module *second = kn_module_new("Tied", tied_forward, sizeof(tied), NULL);
    ((tied *)kn_module_self(second))->weight =
        kn_module_register_parameter(second, "weight", kn_module_get(first, "weight"));
    return kn_nn_sequential(first, second);
}

static void save_list(const char *path, const char *const *names, kn_tensor *const *tensors, int count)
{
    kn_tensor_file *file = kn_tensor_file_new();
    for (int i = 0; i < count; i++)
        CHECK_OK(kn_tensor_file_put(file, names[i], kn_to(tensors[i], kn_device_host())));
    CHECK_OK(kn_save_safetensors(path, file));
    kn_tensor_file_free(file);
}

TENSOR_TEST(tied_parameters_are_one)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/koine-tied-%ld.safetensors", (long)getpid());
    kn_module *net = autoencoder(), *other = autoencoder();
    assert_int_equal(kn_module_parameters(net).count, 1);
    assert_true(kn_module_parameter_count(net) == 9);
    kn_tensor *w = kn_module_get(net, "1.weight"), *x = kn_ones(KN_SHAPE(1, 3));
    assert_ptr_equal(w, kn_module_get(net, "0.weight"));
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, x))));
    kn_tensor *both = kn_grad(w), *gradient;
    kn_tensor *v = kn_clone(kn_detach(w)), *y;
    CHECK_OK(kn_set_requires_grad(v, true));
    y = kn_sum(kn_matmul(kn_matmul(x, kn_t(v)), kn_t(v)));
    CHECK_OK(kn_autograd_grad(&y, 1, &v, 1, &gradient));
    check_same(both, gradient);
    /* both names in Koine's files; one in those of safetensors.torch.save_model */
    CHECK_OK(kn_module_save(net, path));
    kn_tensor_file *file = kn_load_safetensors(path);
    assert_int_equal(kn_tensor_file_count(file), 2);
    kn_tensor_file_free(file);
    CHECK_OK(kn_module_load(other, path));
    check_same(kn_module_get(other, "1.weight"), w);
    const char *const names[] = {"0.weight", "1.weight"};
    for (int i = 0; i < 2; i++) {
        kn_tensor *value = kn_full(KN_SHAPE(3, 3), i + 2);
        save_list(path, &names[i], &value, 1);
        CHECK_OK(kn_module_load(other, path));
        check_same(kn_module_get(other, "0.weight"), value);
    }
    kn_tensor *value = kn_ones(KN_SHAPE(3, 3));
    const char *wrong = "2.weight";
    save_list(path, &wrong, &value, 1);
    assert_int_equal(kn_module_load(other, path), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "missing: \"0.weight\", \"1.weight\"", "unexpected: \"2.weight\"");
    remove(path);
    kn_module_free(net);
    kn_module_free(other);
}

/* The names of torch.nn.utils.weight_norm, which PyTorch's parametrizations also load, and spectral_norm. */
TENSOR_TEST(older_names_load)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/koine-older-%ld.safetensors", (long)getpid());
    kn_module *net = kn_nn_sequential(linear(2, 3));
    CHECK_OK(kn_parametrizations_weight_norm(kn_module_child(net, 0), "weight"));
    const char *const names[] = {"0.bias", "0.weight_g", "0.weight_v", "0.weight_x"};
    kn_tensor *const tensors[] = {kn_zeros(KN_SHAPE(3)), kn_full(KN_SHAPE(3, 1), 2), kn_ones(KN_SHAPE(3, 2)),
                                  kn_ones(KN_SHAPE(1))};
    save_list(path, names, tensors, 3);
    CHECK_OK(kn_module_load(net, path));
    CHECK_VALUES(kn_module_get(net, "0.parametrizations.weight.original0"), 2, 2, 2);
    CHECK_VALUES(kn_module_get(net, "0.parametrizations.weight.original1"), 1, 1, 1, 1, 1, 1);
    save_list(path, names, tensors, 4);
    assert_int_equal(kn_module_load(net, path), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "unexpected: \"0.weight_x\"");
    kn_module_free(net);
    net = kn_nn_sequential(linear(2, 3));
    CHECK_OK(kn_parametrizations_spectral_norm(kn_module_child(net, 0), "weight"));
    const char *const spectral[] = {"0.bias", "0.weight_orig", "0.weight_u", "0.weight_v"};
    save_list(path, spectral,
              (kn_tensor *const[]){tensors[0], tensors[2], kn_full(KN_SHAPE(3), 4), kn_full(KN_SHAPE(2), 5)}, 4);
    CHECK_OK(kn_module_load(net, path));
    CHECK_VALUES(kn_module_get(net, "0.parametrizations.weight.original"), 1, 1, 1, 1, 1, 1);
    CHECK_VALUES(kn_module_get(net, "0.parametrizations.weight.0._u"), 4, 4, 4);
    CHECK_VALUES(kn_module_get(net, "0.parametrizations.weight.0._v"), 5, 5);
    remove(path);
    kn_module_free(net);
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

TENSOR_TEST(children_and_tensors_are_removed)
{
    kn_module *net = kn_nn_sequential(linear(2, 3), kn_nn_relu(), linear(3, 4));
    assert_int_equal(kn_module_parameters(net).count, 4);
    kn_module *head = kn_module_remove_module(net, "2");
    assert_int_equal(kn_module_parameters(net).count, 2);
    assert_int_equal(kn_module_child_count(net), 2);
    assert_int_equal(kn_size(kn_forward(net, kn_ones(KN_SHAPE(1, 2))), 1), 3);
    assert_null(kn_module_remove_module(net, "2"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "no child \"2\"");
    assert_int_equal(kn_module_remove_tensor(head, "bias"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "Linear", "bias", "not removed");
    assert_null(kn_module_remove_module(NULL, "0"));
    assert_int_equal(kn_module_remove_tensor(net, NULL), KN_ERR_ARGUMENT);
    kn_error_clear();

    kn_module *module = kn_module_new("Tied", tied_forward, sizeof(tied), NULL);
    tied *self = kn_module_self(module);
    self->weight = kn_module_register_parameter(module, "weight", kn_ones(KN_SHAPE(2, 2)));
    assert_non_null(kn_module_register_buffer(module, "scale", kn_ones(KN_SHAPE(1))));
    assert_ptr_equal(kn_module_register_module(module, "head", head), head);
    CHECK_OK(kn_prune_identity(module, "weight"));
    assert_int_equal(kn_module_remove_tensor(module, "weight_orig"), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "Tied", "masks");
    CHECK_OK(kn_prune_remove(module, "weight"));
    CHECK_OK(kn_module_remove_tensor(module, "scale"));
    assert_non_null(self->weight);
    assert_int_equal(kn_module_buffers(module).count, 0);
    CHECK_OK(kn_module_remove_tensor(module, "weight"));
    assert_null(self->weight);
    assert_int_equal(kn_module_parameters(module).count, 2);
    assert_int_equal(kn_module_remove_tensor(module, "weight"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "Tied", "\"weight\" to remove");
    assert_ptr_equal(kn_module_remove_module(module, "head"), head);
    kn_module_free(module);
    assert_ptr_equal(kn_module_register_module(net, "2", head), head); /* it had no owner */
    kn_module_free(net);
}

/* --- containers --------------------------------------------------------------------------------------------------- */

TENSOR_TEST(parameters_by_number_and_by_name)
{
    kn_module *list = kn_nn_parameter_list(kn_ones(KN_SHAPE(2)), kn_zeros(KN_SHAPE(1)));
    CHECK_NEW(list);
    kn_tensor *third = kn_full(KN_SHAPE(3), 5);
    assert_ptr_equal(kn_nn_append_parameter(list, third), third);
    kn_parameter_list all = kn_module_parameters(list);
    assert_int_equal(all.count, 3);
    assert_string_equal(all.names[2], "2");
    assert_true(all.tensors[2] == third && kn_requires_grad(third));
    assert_null(kn_forward(list, third));
    CHECK_ERROR(KN_ERR_STATE, "ParameterList", "no forward");
    const char *const names[] = {"scale", "shift"};
    kn_module *dict = kn_nn_parameter_dict_of(names, KN_TENSORS(kn_ones(KN_SHAPE(2)), kn_zeros(KN_SHAPE(2))));
    CHECK_NEW(dict);
    CHECK_VALUES(kn_module_get(dict, "scale"), 1, 1);
    assert_non_null(kn_module_register_parameter(dict, "more", kn_ones(KN_SHAPE(1))));
    assert_null(kn_nn_parameter_dict_of(names, KN_TENSORS(kn_ones(KN_SHAPE(2)), NULL)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensor");
    assert_null(kn_nn_parameter_dict_of(NULL, KN_TENSORS(third)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "ParameterDict", "names");
    char *text = kn_module_summary_with(list, &(kn_module_summary_params){.width = KN_WIDE});
    assert_non_null(strstr(text, "(0): Parameter containing: [float32 of size 2]"));
    kn_free(text);
    kn_module_free(list);
    kn_module_free(dict);
}

/* --- all modules -------------------------------------------------------------------------------------------------- */

static kn_status add_type(kn_module *module, void *user)
{
    char *types = user;
    strcat(strcat(types, kn_module_type_name(module)), " ");
    return strcmp(kn_module_type_name(module), "Tanh") == 0 ? KN_ERR_STATE : KN_OK;
}

TENSOR_TEST(a_function_of_all_modules)
{
    char types[128] = "";
    kn_module *net = kn_nn_sequential(linear(1, 1), kn_nn_sequential(kn_nn_relu()), kn_nn_flatten());
    CHECK_OK(kn_module_apply(net, add_type, types));
    assert_string_equal(types, "Linear ReLU Sequential Flatten Sequential ");
    CHECK_OK(kn_nn_add_module(net, "tanh", kn_nn_tanh()));
    assert_int_equal(kn_module_apply(net, add_type, types), KN_ERR_STATE);
    assert_int_equal(kn_module_apply(net, NULL, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "module_apply", "function");
    kn_module_free(net);
}

/* --- one vector --------------------------------------------------------------------------------------------------- */

TENSOR_TEST(parameters_as_a_vector)
{
    kn_module *module = linear(2, 2);
    const kn_parameter_list list = kn_module_parameters(module);
    CHECK_OK(kn_vector_to_parameters(kn_arange(0, 6, 1, .dtype = KN_F32), list));
    CHECK_VALUES(kn_module_get(module, "weight"), 0, 1, 2, 3);
    CHECK_VALUES(kn_module_get(module, "bias"), 4, 5);
    kn_tensor *vector = kn_parameters_to_vector(list);
    CHECK_VALUES(vector, 0, 1, 2, 3, 4, 5);
    CHECK_OK(kn_backward(kn_sum(kn_mul(vector, vector))));
    CHECK_VALUES(kn_grad(kn_module_get(module, "bias")), 8, 10);
    assert_int_equal(kn_vector_to_parameters(kn_ones(KN_SHAPE(5)), list), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "vector_to_parameters", "6 elements", "[5]");
    assert_null(kn_parameters_to_vector((kn_parameter_list){0}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "parameters_to_vector", "no parameters");
    kn_module_free(module);
}

/* --- fused layers ------------------------------------------------------------------------------------------------- */

TENSOR_TEST(errors_of_fusing)
{
    kn_module *layer = linear(2, 3), *bn = kn_nn_batch_norm1d(.num_features = 3);
    assert_null(kn_fuse_linear_bn_eval(layer, bn));
    CHECK_ERROR(KN_ERR_STATE, "fuse_linear_bn_eval", "evaluation mode");
    kn_module_train(layer, false);
    kn_module_train(bn, false);
    assert_null(kn_fuse_conv_bn_eval(layer, bn));
    CHECK_ERROR(KN_ERR_ARGUMENT, "fuse_conv_bn_eval", "Linear", "BatchNorm1d");
    assert_null(kn_fuse_linear_bn_eval(NULL, bn));
    CHECK_ERROR(KN_ERR_ARGUMENT, "layer");
    kn_module *other = kn_nn_batch_norm1d(.num_features = 4);
    kn_module_train(other, false);
    assert_null(kn_fuse_linear_bn_eval(layer, other));
    CHECK_ERROR(KN_ERR_SHAPE, "3 outputs", "4 features");
    CHECK_OK(kn_prune_identity(layer, "weight"));
    assert_null(kn_fuse_linear_bn_eval(layer, bn));
    CHECK_ERROR(KN_ERR_STATE, "computed from others");
    kn_module_free(layer);
    kn_module_free(bn);
    kn_module_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_frozen_module_stays),     TEST(tied_parameters_are_one),
        TEST(older_names_load),          TEST(parameters_by_number_and_by_name),
        TEST(parameters_as_a_vector),    TEST(errors_of_fusing),
        TEST(a_function_of_all_modules), TEST(children_and_tensors_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
