/* test_golden_run.c - ten Adam steps of the examples' network, without dropout, from PyTorch's initial weights on the
 * same batches: the losses follow PyTorch's within 1e-4 relative in f32 and 1e-9 in f64. Once on stored batches of 32,
 * once on Fashion-MNIST's first 1280 training images in batches of 128. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/full.h"
#include "support/golden.h"
#include "support/values.h"

#define STEPS 10
#define FASHION_MNIST "/usr/share/datasets/fashion-mnist"
#define PIXELS (28 * 28)

static kn_module *build_network(void)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "conv1", kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3));
    kn_nn_add_module(net, "pool1", kn_nn_max_pool2d(.kernel_size = 2, .stride = 2));
    kn_nn_add_module(net, "conv2", kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5));
    kn_nn_add_module(net, "pool2", kn_nn_max_pool2d(.kernel_size = 2, .stride = 2));
    kn_nn_add_module(net, "dropout", kn_nn_dropout2d(.p = 0));
    kn_nn_add_module(net, "adaptive_pool", kn_nn_adaptive_max_pool2d(1, 1));
    kn_nn_add_module(net, "flatten", kn_nn_flatten());
    kn_nn_add_module(net, "linear1", kn_nn_linear(.in_features = 64, .out_features = 32));
    kn_nn_add_module(net, "relu", kn_nn_relu());
    kn_nn_add_module(net, "linear2", kn_nn_linear(.in_features = 32, .out_features = 10));
    return net;
}

typedef struct batches {
    int64_t size;
    const uint8_t *images; /* STEPS * size * PIXELS */
    const int64_t *labels;
} batches;

/* ToTensor: x / 255 in float32, then the dtype of the run. */
static kn_tensor *batch_images(const batches *data, int step, kn_dtype dtype)
{
    int64_t count = data->size * PIXELS;
    const uint8_t *pixels = data->images + step * count;
    float *values = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; values && i < count; i++)
        values[i] = (float)pixels[i] / 255.0f;
    kn_tensor *x = kn_to_dtype(kn_from_data(values, KN_SHAPE(data->size, 1, 28, 28), .dtype = KN_F32), dtype);
    free(values);
    return x;
}

static double train_step(kn_module *net, kn_optim *optimizer, const batches *data, int step, kn_dtype dtype)
{
    double value = NAN;

    KN_SCOPE;
    kn_tensor *x = batch_images(data, step, dtype);
    kn_tensor *labels = kn_from_data(data->labels + step * data->size, KN_SHAPE(data->size), .dtype = KN_I64);
    kn_tensor *loss = kn_cross_entropy(kn_forward(net, x), labels);
    kn_optim_zero_grad(optimizer);
    if (!loss || kn_backward(loss) != KN_OK || kn_optim_step(optimizer) != KN_OK || kn_item(loss, &value) != KN_OK)
        print_error("step %d: %s\n", step, kn_error_message());

    return value;
}

static void follow(const batches *data, const char *losses, kn_dtype dtype, double tolerance)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/golden_run_weights.safetensors", KOINE_SOURCE_DIR);
    kn_tensor_file *file = golden_open("golden_run");
    kn_module *net = build_network();
    assert_non_null(net);
    if (kn_module_load(net, path) != KN_OK || kn_module_to_dtype(net, dtype) != KN_OK)
        fail_msg("%s", kn_error_message());
    kn_optim *optimizer = kn_optim_adam(kn_module_parameters(net), .lr = 0.01);
    assert_non_null(optimizer);
    assert_non_null(kn_tensor_file_get(file, losses));
    double *expected = read_doubles(kn_tensor_file_get(file, losses));
    double worst = 0;
    int failed = 0;
    for (int step = 0; step < STEPS; step++) {
        double loss = train_step(net, optimizer, data, step, dtype);
        double error = fabs(loss - expected[step]) / fabs(expected[step]);
        worst = error > worst ? error : worst;
        if (!(error <= tolerance)) {
            print_error("%s, step %d: the loss is %.12g, PyTorch's %.12g (relative error %.3g)\n", losses, step, loss,
                        expected[step], error);
            failed++;
        }
    }
    print_message("%s on %s: largest relative error of a loss %.3g\n", losses, kn_device_string(kn_device_current()),
                  worst);
    free(expected);
    kn_optim_free(optimizer);
    kn_module_free(net);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

static void follow_on_all_devices(const batches *data, const char *losses, kn_dtype dtype, double tolerance)
{
    for (int i = 0; i < kn_device_count(); i++) {
        kn_device_properties properties;
        assert_int_equal(kn_device_set_current(kn_device_at(i)), KN_OK);
        assert_int_equal(kn_device_get_properties(kn_device_at(i), &properties), KN_OK);
        if (dtype != KN_F64 || properties.has_f64)
            follow(data, losses, dtype, tolerance);
    }
}

static void stored(const char *losses, kn_dtype dtype, double tolerance)
{
    kn_tensor_file *file = golden_open("golden_run");
    assert_non_null(file);
    batches data = {32, kn_data(kn_tensor_file_get(file, "images")), kn_data(kn_tensor_file_get(file, "labels"))};
    follow_on_all_devices(&data, losses, dtype, tolerance);
    kn_tensor_file_free(file);
}

static void fashion(const char *losses, kn_dtype dtype, double tolerance)
{
    kn_tensor *images = NULL, *labels = NULL;
    if ((images = kn_load_idx(FASHION_MNIST "/train-images-idx3-ubyte.gz")) == NULL ||
        (labels = kn_load_idx(FASHION_MNIST "/train-labels-idx1-ubyte.gz")) == NULL) {
        print_message("skipped: no Fashion-MNIST in " FASHION_MNIST " (Debian package dataset-fashion-mnist): %s\n",
                      kn_error_message());
        kn_release(images);
        skip();
    }
    int64_t *classes = read_integers(labels);
    batches data = {128, kn_data(images), classes};
    follow_on_all_devices(&data, losses, dtype, tolerance);
    free(classes);
    kn_release(images);
    kn_release(labels);
}

static void test_stored_f32(void **state)
{
    (void)state;
    stored("loss_f32", KN_F32, 1e-4);
}

static void test_stored_f64(void **state)
{
    (void)state;
    stored("loss_f64", KN_F64, 1e-9);
}

static void test_fashion_f32(void **state)
{
    (void)state;
    fashion("fashion_loss_f32", KN_F32, 1e-4);
}

static void test_fashion_f64(void **state)
{
    (void)state;
    if (!test_full())
        skip();
    fashion("fashion_loss_f64", KN_F64, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_f32),
        cmocka_unit_test(test_stored_f64),
        cmocka_unit_test(test_fashion_f32),
        cmocka_unit_test(test_fashion_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
