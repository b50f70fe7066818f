/* test_data_parallel.c - a network on two and three devices made from one CPU trains as on one: losses, gradients,
 * parameters after steps of Adam; names, files, modes, moves, uneven and small batches, unwrapping. */
#include "dist_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"
#include "support/values.h"

/* --- equal to one device ------------------------------------------------------------------------------------------ */

/* Trains on one device and on `count`. Only the order of sums over the batch differs, hence rounding. */
static void train_both(int count, int64_t size, kn_dtype dtype, double tolerance)
{
    kn_device *const *devices = case_devices(count);
    kn_module *plain = case_network(dtype);
    kn_module *wrapped = kn_nn_data_parallel(case_network(dtype), .devices = devices, .num_devices = count);
    CHECK_TENSOR(wrapped);
    kn_optim *a = kn_optim_adam(kn_module_parameters(plain)), *b = kn_optim_adam(kn_module_parameters(wrapped));
    assert_true(case_parameters_differ(plain, wrapped) == 0);
    for (int step = 0; step < 4; step++) {
        double one = case_step(plain, a, size, dtype, step), many = case_step(wrapped, b, size, dtype, step);
        double gradients = case_gradients_differ(plain, wrapped), parameters = case_parameters_differ(plain, wrapped);
        if (fabs(one - many) > tolerance * fabs(one) || gradients > 100 * tolerance || parameters > 100 * tolerance)
            fail_msg("%d devices, batch %d, step %d: loss %.17g and %.17g, gradients differ by %g, parameters by %g",
                     count, (int)size, step, one, many, gradients, parameters);
    }
    for (int i = 0; i < kn_module_parameters(wrapped).count; i++)
        assert_ptr_equal(kn_device_of(kn_grad(kn_module_parameters(wrapped).tensors[i])), devices[0]);
    kn_optim_free(a);
    kn_optim_free(b);
    kn_module_free(plain);
    kn_module_free(wrapped);
}

/* float64: 1e-12 of the loss, 1e-10 of gradients and parameters. */
TENSOR_TEST_F64(two_devices_learn_what_one_learns_in_float64) { train_both(2, 16, KN_F64, 1e-12); }
TENSOR_TEST_F64(three_devices_and_uneven_parts_in_float64) { train_both(3, 13, KN_F64, 1e-12); }

/* float32: 1e-5 of the loss, 1e-3 of the largest gradient and parameter: Adam's first steps divide small gradients by
 * themselves, which amplifies rounding. */
TENSOR_TEST(two_devices_learn_what_one_learns_in_float32) { train_both(2, 32, KN_F32, 1e-5); }
TENSOR_TEST_F64(fewer_samples_than_devices) { train_both(3, 2, KN_F64, 1e-12); }
TENSOR_TEST_F64(one_sample) { train_both(3, 1, KN_F64, 1e-12); }
TENSOR_TEST_F64(one_device_passes_through) { train_both(1, 8, KN_F64, 1e-15); }

/* As in PyTorch, each device normalises its own part, and the first device's statistics update the module's buffers. */
TENSOR_TEST(batch_norm_keeps_the_first_devices_statistics)
{
    kn_device *const *devices = case_devices(3);
    kn_module *layer = kn_nn_batch_norm1d(.num_features = 2, .momentum = 0.5);
    kn_tensor *mean = kn_module_get(layer, "running_mean"), *count = kn_module_get(layer, "num_batches_tracked");
    kn_module *wrapped = kn_nn_data_parallel(layer, .devices = devices, .num_devices = 3);
    CHECK_TENSOR(wrapped);
    kn_tensor *x = kn_from_data(((float[]){1, 2, 3, 6, 10, 10, 30, 30, -5, 0, -5, 8}), KN_SHAPE(6, 2));
    for (int step = 1; step <= 2; step++) {
        kn_tensor *y = kn_forward(wrapped, x);
        double *values = read_doubles(y);
        assert_non_null(values);
        for (int i = 0; i < 12; i++) /* two samples per device: -1 and 1, or 0 if they are equal */
            assert_true(fabs(fabs(values[i]) - (i == 8 || i == 10 ? 0 : 1)) < 1e-4);
        free(values);
        CHECK_VALUES(count, step);
    }
    CHECK_VALUES(mean, 0.75 * 2, 0.75 * 4);
    assert_ptr_equal(kn_device_of(mean), devices[0]);
    assert_ptr_equal(kn_module_get(wrapped, "module.running_mean"), mean);
    kn_module_free(wrapped);
}

TENSOR_TEST(the_same_bits_every_time)
{
    kn_device *const *devices = case_devices(3);
    double before = 0;
    char *bytes = NULL;
    for (int run = 0; run < 3; run++) {
        kn_module *net = kn_nn_data_parallel(case_network(KN_F32), .devices = devices, .num_devices = 3);
        kn_optim *optim = kn_optim_adam(kn_module_parameters(net));
        double loss = 0;
        for (int step = 0; step < 3; step++)
            loss = case_step(net, optim, 10, KN_F32, step);
        size_t size;
        char *now = read_bytes(kn_module_get(net, "module.2.weight"), &size);
        assert_true(run == 0 || (loss == before && memcmp(now, bytes, size) == 0));
        before = loss;
        free(bytes);
        bytes = now;
        kn_optim_free(optim);
        kn_module_free(net);
    }
    free(bytes);
}

/* --- input and output --------------------------------------------------------------------------------------------- */

TENSOR_TEST(evaluation_output_device_and_host_input)
{
    kn_device *const *devices = case_devices(3);
    kn_module *plain = case_network(KN_F32);
    kn_module *wrapped =
        kn_nn_data_parallel(case_network(KN_F32), .devices = devices, .num_devices = 3, .output_device = devices[2]);
    kn_tensor *images, *classes;
    case_batch(&images, &classes, 7, KN_F32, 0);
    kn_module_train(wrapped, false);
    assert_false(kn_module_is_training(kn_data_parallel_inner(wrapped)));
    {
        KN_NO_GRAD;
        double *expected = read_doubles(kn_forward(plain, images));
        kn_tensor *y = kn_forward(wrapped, images);
        assert_ptr_equal(kn_device_of(y), devices[2]);
        assert_false(kn_requires_grad(y));
        CHECK_SHAPE(y, 7, 10);
        double *there = read_doubles(y),
               *from_host = read_doubles(kn_forward(wrapped, kn_to(images, kn_device_host())));
        char message[256];
        assert_true(values_close(there, expected, 70, (closeness){1e-5, 1e-6}, message, sizeof message));
        assert_memory_equal(there, from_host, 70 * sizeof(double));
        kn_tensor *nothing = kn_forward(wrapped, kn_zeros(KN_SHAPE(0, 1, 28, 28)));
        CHECK_SHAPE(nothing, 0, 10);
        free(expected);
        free(there);
        free(from_host);
    }
    kn_module_free(plain);
    kn_module_free(wrapped);
}

/* The input's gradient is passed back through scatter. */
TENSOR_TEST(the_input_gets_its_gradient)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net =
        kn_nn_data_parallel(kn_nn_linear(.in_features = 3, .out_features = 2), .devices = devices, .num_devices = 2);
    kn_tensor *x = kn_rand(KN_SHAPE(5, 3), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, x))));
    kn_tensor *rows = kn_sum_dims(kn_module_get(net, "module.weight"), (const int[]){0}, 1, false);
    double *expected = read_doubles(rows), *actual = read_doubles(kn_grad(x));
    for (int i = 0; i < 15; i++)
        assert_true(fabs(actual[i] - expected[i % 3]) < 1e-6);
    free(expected);
    free(actual);
    kn_module_free(net);
}

static kn_tensor *add_one(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_add(x, kn_ones(KN_SHAPE(1))); /* created on the current device: the replica's */
}

TENSOR_TEST(other_dimensions_and_the_current_device)
{
    kn_device *const *devices = case_devices(3);
    kn_module *net =
        kn_nn_data_parallel(kn_module_new("AddOne", add_one, 0, NULL), .devices = devices, .num_devices = 3, .dim = -1);
    kn_tensor *y = kn_forward(net, kn_reshape(kn_arange(0, 8, 1, .dtype = KN_F32), KN_SHAPE(2, 4)));
    CHECK_VALUES(y, 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_SHAPE(y, 2, 4);
    assert_ptr_equal(kn_device_current(), devices[0]);
    kn_module_free(net);
}

/* Each device draws a mask from its own generator. */
TENSOR_TEST(dropout_draws_on_each_device)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net = kn_nn_data_parallel(kn_nn_dropout(.p = 0.5), .devices = devices, .num_devices = 2);
    uint8_t states[2][KN_RNG_STATE_SIZE], after[KN_RNG_STATE_SIZE];
    kn_manual_seed(5);
    for (int i = 0; i < 2; i++)
        CHECK_OK(kn_get_rng_state(devices[i], states[i]));
    double *values = read_doubles(kn_forward(net, kn_ones(KN_SHAPE(1000))));
    int kept = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(values[i] == 0 || values[i] == 2);
        kept += values[i] != 0;
    }
    assert_true(kept > 400 && kept < 600);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kn_get_rng_state(devices[i], after));
        assert_memory_not_equal(after, states[i], KN_RNG_STATE_SIZE);
    }
    free(values);
    kn_module_free(net);
}

/* --- names, files, moves ------------------------------------------------------------------------------------------ */

TENSOR_TEST(names_and_files_are_those_of_pytorch)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net = kn_nn_data_parallel(case_network(KN_F32), .devices = devices, .num_devices = 2);
    kn_module *inner = kn_data_parallel_inner(net), *fresh = case_network(KN_F32);
    assert_string_equal(kn_module_parameters(net).names[0], "module.0.weight");
    assert_string_equal(kn_module_parameters(inner).names[0], "0.weight");
    assert_ptr_equal(kn_data_parallel_inner(inner), inner);
    CHECK_TENSOR(kn_module_get(net, "module.8.bias"));
    char *summary = kn_module_summary(net);
    assert_non_null(strstr(summary, "DataParallel(\n  (module): Sequential("));
    kn_free(summary);

    kn_optim *optim = kn_optim_adam(kn_module_parameters(net));
    case_step(net, optim, 4, KN_F32, 0);
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/data_parallel.safetensors", KOINE_BINARY_DIR);
    CHECK_OK(kn_module_save(inner, path));
    CHECK_OK(kn_module_load(fresh, path));
    assert_true(case_parameters_differ(net, fresh) == 0);
    assert_int_equal(kn_module_load(net, path), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "missing: \"module.0.weight\"");
    CHECK_OK(kn_module_save(net, path));
    kn_module *again = kn_nn_data_parallel(case_network(KN_F32), .devices = devices, .num_devices = 2);
    CHECK_OK(kn_module_load(again, path));
    assert_true(case_parameters_differ(net, again) == 0);
    remove(path);
    kn_optim_free(optim);
    kn_module_free(net);
    kn_module_free(again);
    kn_module_free(fresh);
}

/* Created elsewhere, wrapped, moved, trained, unwrapped, trained again with the same optimizer: as if never wrapped. */
TENSOR_TEST_F64(moves_and_unwrapping_keep_the_optimizer)
{
    kn_device *const *devices = case_devices(3);
    kn_module *plain = case_network(KN_F64), *net = case_network(KN_F64);
    CHECK_OK(kn_module_to(net, devices[2]));
    kn_optim *a = kn_optim_adam(kn_module_parameters(plain)), *b = kn_optim_adam(kn_module_parameters(net));
    net = kn_nn_data_parallel(net, .devices = devices, .num_devices = 2);
    kn_tensor *images, *classes;
    case_batch(&images, &classes, 4, KN_F64, 0);
    assert_null(kn_forward(net, images));
    CHECK_ERROR(KN_ERR_DEVICE, "DataParallel", "\"0.weight\" is on", kn_device_string(devices[2]),
                kn_device_string(devices[0]), "kn_module_to");
    CHECK_OK(kn_module_to(net, devices[0]));
    for (int step = 0; step < 2; step++)
        assert_true(fabs(case_step(plain, a, 6, KN_F64, step) - case_step(net, b, 6, KN_F64, step)) < 1e-10);
    net = kn_data_parallel_unwrap(net);
    assert_string_equal(kn_module_type_name(net), "Sequential");
    assert_ptr_equal(kn_data_parallel_unwrap(net), net);
    for (int step = 2; step < 4; step++)
        assert_true(fabs(case_step(plain, a, 6, KN_F64, step) - case_step(net, b, 6, KN_F64, step)) < 1e-10);
    assert_true(case_parameters_differ(plain, net) < 1e-9);
    kn_optim_free(a);
    kn_optim_free(b);
    kn_module_free(net);
    kn_module_free(plain);
}

/* --- errors ---------------------------------------------------------------------------------------------- */

TENSOR_TEST(misuse_is_one_sentence)
{
    kn_device *const *devices = case_devices(3);
    kn_device *twice[] = {devices[0], devices[0]}, *with_host[] = {devices[0], kn_device_host()};
#define LAYER kn_nn_linear(.in_features = 2, .out_features = 2)
    assert_null(kn_nn_data_parallel(LAYER, .devices = twice, .num_devices = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "DataParallel: devices 0 and 1 are both", kn_device_string(devices[0]));
    assert_null(kn_nn_data_parallel(LAYER, .devices = with_host, .num_devices = 2));
    CHECK_ERROR(KN_ERR_DEVICE, "device 1 is the host");
    assert_null(kn_nn_data_parallel(LAYER, .devices = devices, .num_devices = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "at least one device");
    assert_null(
        kn_nn_data_parallel(LAYER, .devices = devices, .num_devices = 2, .output_device = (kn_device *)(void *)twice));
    CHECK_ERROR(KN_ERR_DEVICE, "output device");
    assert_null(kn_nn_data_parallel(NULL, .devices = devices, .num_devices = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "DataParallel", "NULL");

    kn_module *net = kn_nn_data_parallel(LAYER, .devices = devices, .num_devices = 2);
    assert_null(kn_forward(net, kn_ones(KN_SHAPE(4, 2), .device = devices[1])));
    CHECK_ERROR(KN_ERR_DEVICE, "the input is on", kn_device_string(devices[1]));
    assert_null(kn_forward(net, kn_ones(KN_SCALAR)));
    CHECK_ERROR(KN_ERR_SHAPE, "DataParallel", "no dimension 0");
    assert_null(kn_forward(net, kn_ones(KN_SHAPE(4, 3))));
    CHECK_ERROR(KN_ERR_SHAPE, "linear", "[2, 3]");
    assert_ptr_equal(kn_device_current(), devices[0]);
    CHECK_SHAPE(kn_forward(net, kn_ones(KN_SHAPE(4, 2))), 4, 2);
    kn_module *outer = kn_nn_sequential(net);
    assert_null(kn_data_parallel_unwrap(net));
    CHECK_ERROR(KN_ERR_ARGUMENT, "belongs to another module");
    CHECK_SHAPE(kn_forward(outer, kn_ones(KN_SHAPE(4, 2))), 4, 2);
    kn_module_free(outer);
}

/* Without devices: all GPUs, or the CPU device. */
TENSOR_TEST(the_default_devices)
{
    case_devices(1);
    kn_module *net = kn_nn_data_parallel(LAYER);
    CHECK_TENSOR(net);
    if (kn_gpu_count() == 0)
        CHECK_SHAPE(kn_forward(net, kn_ones(KN_SHAPE(4, 2))), 4, 2);
    kn_module_free(net);
}

/* A backward pass that fails on the second device leaks nothing. */
static kn_tensor *refuse(kn_tensor *gradient, void *user)
{
    (void)gradient;
    (void)user;
    kn_error_set(KN_ERR_STATE, "refused by the hook");
    return NULL;
}

TENSOR_TEST(a_failed_backward_leaks_nothing)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net = kn_nn_data_parallel(LAYER, .devices = devices, .num_devices = 2);
    kn_tensor *weight = kn_module_get(net, "module.weight");
    CHECK_OK(kn_register_hook(weight, refuse, NULL));
    assert_int_equal(kn_backward(kn_sum(kn_forward(net, kn_ones(KN_SHAPE(4, 2))))), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "refused by the hook");
    assert_null(kn_grad(weight));
    kn_module_free(net);
}

/* Two passes accumulate in one gradient, and a hook sees the sum over the devices once per pass. */
static kn_tensor *count_calls(kn_tensor *gradient, void *user)
{
    ++*(int *)user;
    return gradient;
}

TENSOR_TEST_F64(passes_add_up_and_hooks_run_once)
{
    kn_device *const *devices = case_devices(3);
    kn_module *plain = case_network(KN_F64);
    kn_module *net = kn_nn_data_parallel(case_network(KN_F64), .devices = devices, .num_devices = 3);
    int calls = 0;
    CHECK_OK(kn_register_hook(kn_module_get(net, "module.0.weight"), count_calls, &calls));
    for (int pass = 0; pass < 2; pass++) {
        kn_tensor *images, *classes;
        case_batch(&images, &classes, 7 - pass, KN_F64, pass);
        kn_tensor *one = kn_cross_entropy(kn_forward(plain, images), classes);
        kn_tensor *many = kn_cross_entropy(kn_forward(net, images), classes);
        CHECK_OK(kn_backward(one));
        CHECK_OK(kn_backward(many));
        assert_int_equal(calls, pass + 1);
    }
    assert_true(case_gradients_differ(plain, net) < 1e-10);
    kn_module_free(plain);
    kn_module_free(net);
}

TENSOR_TEST(a_parameter_changed_before_backward_is_told)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net =
        kn_nn_data_parallel(kn_nn_sequential(LAYER, kn_nn_tanh(), LAYER), .devices = devices, .num_devices = 2);
    kn_tensor *x = kn_ones(KN_SHAPE(4, 2)), *loss = kn_sum(kn_forward(net, x));
    {
        KN_NO_GRAD;
        kn_fill_(kn_module_get(net, "module.2.weight"), 1);
    }
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, x))));
    kn_module_free(net);
}

/* The tape keeps everything that backward needs alive. */
TENSOR_TEST(backward_after_the_module_is_gone)
{
    kn_device *const *devices = case_devices(2);
    kn_module *net = kn_nn_data_parallel(LAYER, .devices = devices, .num_devices = 2);
    kn_tensor *x = kn_ones(KN_SHAPE(4, 2), .requires_grad = true), *loss = kn_sum(kn_forward(net, x));
    kn_module_free(net);
    CHECK_OK(kn_backward(loss));
    CHECK_TENSOR(kn_grad(x));
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(two_devices_learn_what_one_learns_in_float64),
        TEST(three_devices_and_uneven_parts_in_float64),
        TEST(two_devices_learn_what_one_learns_in_float32),
        TEST(fewer_samples_than_devices),
        TEST(one_sample),
        TEST(one_device_passes_through),
        TEST(batch_norm_keeps_the_first_devices_statistics),
        TEST(the_same_bits_every_time),
        TEST(evaluation_output_device_and_host_input),
        TEST(the_input_gets_its_gradient),
        TEST(other_dimensions_and_the_current_device),
        TEST(dropout_draws_on_each_device),
        TEST(names_and_files_are_those_of_pytorch),
        TEST(moves_and_unwrapping_keep_the_optimizer),
        TEST(misuse_is_one_sentence),
        TEST(the_default_devices),
        TEST(a_failed_backward_leaks_nothing),
        TEST(passes_add_up_and_hooks_run_once),
        TEST(a_parameter_changed_before_backward_is_told),
        TEST(backward_after_the_module_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
