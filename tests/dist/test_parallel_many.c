/* test_parallel_many.c - a module with several inputs and outputs on two and three devices: values and gradients as on
 * one, uneven parts, omitted inputs, inputs of different sizes. */
#include "dist_case.h"

#include <string.h>

#include "support/many.h"

/* x [n, 2], a scale for each row, and perhaps a shift. */
typedef struct rows {
    kn_tensor *x, *scale, *shift;
} rows;

static rows rows_make(int64_t n, bool with_shift)
{
    kn_manual_seed(3);
    rows r = {.x = kn_randn(KN_SHAPE(n, 2), .dtype = KN_F64), .scale = kn_randn(KN_SHAPE(n, 2), .dtype = KN_F64)};
    kn_set_requires_grad(r.x, true);
    r.shift = with_shift ? kn_randn(KN_SHAPE(n, 2), .dtype = KN_F64) : NULL;
    return r;
}

static void run(kn_module *net, rows *r, kn_tensor **outputs)
{
    CHECK_OK(kn_forward_many(net, KN_TENSORS(r->x, r->scale, r->shift), outputs, 2));
    CHECK_OK(kn_backward(kn_add(kn_sum(outputs[0]), kn_mul_scalar(kn_sum(outputs[1]), 3))));
}

static double apart(kn_tensor *a, kn_tensor *b)
{
    double value = 1;
    KN_NO_GRAD;
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(a, b))), &value));
    return value;
}

static void compare(int count, int64_t n, bool with_shift)
{
    kn_device *const *devices = case_devices(count);
    kn_module *plain = gate_module(2), *inner = gate_module(2);
    CHECK_OK(kn_module_to_dtype(plain, KN_F64));
    CHECK_OK(kn_module_to_dtype(inner, KN_F64));
    kn_module *wrapped = kn_nn_data_parallel(inner, .devices = devices, .num_devices = count);
    assert_int_equal(kn_module_input_count(wrapped), 3);
    assert_int_equal(kn_module_output_count(wrapped), 2);
    rows a = rows_make(n, with_shift), b = rows_make(n, with_shift);
    kn_tensor *one[2] = {NULL}, *many[2] = {NULL};
    run(plain, &a, one);
    run(wrapped, &b, many);
    for (int o = 0; o < 2; o++) {
        CHECK_SHAPE(many[o], n, 2);
        assert_ptr_equal(kn_device_of(many[o]), devices[0]);
        assert_true(apart(one[o], many[o]) == 0);
    }
    assert_true(apart(kn_grad(a.x), kn_grad(b.x)) == 0);
    assert_true(apart(kn_grad(kn_module_get(plain, "gate.weight")),
                      kn_grad(kn_module_get(wrapped, "module.gate.weight"))) < 1e-12);
    kn_module_free(plain);
    kn_module_free(wrapped);
}

TENSOR_TEST_F64(two_devices) { compare(2, 8, true); }
TENSOR_TEST_F64(three_devices_and_uneven_parts) { compare(3, 7, true); }
TENSOR_TEST_F64(an_input_left_out) { compare(3, 7, false); }
TENSOR_TEST_F64(fewer_rows_than_devices) { compare(3, 2, true); }

TENSOR_TEST(inputs_that_cannot_be_cut_alike)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net = kn_nn_data_parallel(gate_module(2), .devices = devices, .num_devices = 2);
    kn_tensor *x = kn_ones(KN_SHAPE(4, 2)), *outputs[2];
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, kn_ones(KN_SHAPE(2))), outputs, 2), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "split along dimension 0, where input 1 has size 2, those before it 4");
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, kn_ones(KN_SCALAR)), outputs, 2), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "no dimension 0");
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x), outputs, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "DataParallel: takes 2 or 3 inputs, not 1");
    kn_module_free(net);
}

static kn_status first(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = inputs[0];
    return KN_OK;
}

/* Batches of three fields, two of them for the module. */
TENSOR_TEST(trained_by_names_of_fields)
{
    kn_device *const *devices = case_devices(2);
    kn_device *host = kn_device_host();
    kn_dataset *data = NULL;
    kn_loader *loader = NULL;
    kn_trainer *trainer = NULL;
    double before, after, accuracy;
    kn_manual_seed(2);
    CHECK_NEW(data = kn_tensor_dataset_of(KN_TENSORS(kn_to(kn_randint(0, 2, KN_SHAPE(13)), host),
                                                     kn_to(kn_randn(KN_SHAPE(13, 2)), host),
                                                     kn_to(kn_rand(KN_SHAPE(13, 2)), host)),
                                          KN_NAMES("class", "x", "scale")));
    CHECK_NEW(loader = kn_loader_new(data, .batch_size = 5, .num_workers = 2));
    kn_module *net = kn_nn_sequential(gate_module(2), kn_module_new_many("First", first, .num_inputs = 2));
    kn_module *wrapped = kn_nn_data_parallel(net, .devices = devices, .num_devices = 2);
    kn_optim *optim = kn_optim_adam(kn_module_parameters(wrapped), .lr = 0.1);
    CHECK_NEW(trainer = kn_trainer_new(.module = wrapped, .optim = optim, .epochs = 5, .quiet = true,
                                       .inputs = KN_NAMES("x", "scale"), .target = "class"));
    CHECK_OK(kn_trainer_evaluate(trainer, loader, &before, &accuracy));
    CHECK_OK(kn_trainer_fit(trainer, loader, loader));
    CHECK_OK(kn_trainer_evaluate(trainer, loader, &after, &accuracy));
    assert_true(after < before);
    kn_trainer_free(trainer);
    kn_loader_free(loader);
    kn_dataset_free(data);
    kn_optim_free(optim);
    kn_module_free(wrapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_devices),
        TEST(three_devices_and_uneven_parts),
        TEST(an_input_left_out),
        TEST(fewer_rows_than_devices),
        TEST(inputs_that_cannot_be_cut_alike),
        TEST(trained_by_names_of_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
