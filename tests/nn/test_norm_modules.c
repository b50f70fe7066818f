/* test_norm_modules.c - batch and layer normalisation as modules: names, PyTorch's files, modes, graphs, replicas. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"
#include "support/values.h"
#include "tensor/tensor.h"

#define GOLDEN KOINE_SOURCE_DIR "/tests/golden/"

static void check_close(const kn_tensor *actual, const kn_tensor *expected, double tolerance)
{
    char message[400];
    double *a = read_doubles(actual), *b = read_doubles(expected);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(kn_numel(actual), kn_numel(expected));
    if (!values_close(a, b, kn_numel(expected), (closeness){tolerance, tolerance}, message, sizeof message))
        fail_msg("%s", message);
    free(a);
    free(b);
}

TENSOR_TEST(names_are_pytorchs)
{
    kn_module *net = kn_nn_sequential(kn_nn_batch_norm2d(.num_features = 3), kn_nn_layer_norm(KN_SHAPE(4, 5)));
    CHECK_TENSOR(net);
    kn_parameter_list parameters = kn_module_parameters(net), buffers = kn_module_buffers(net);
    static const char *const names[] = {"0.weight", "0.bias", "1.weight", "1.bias"};
    static const char *const of_buffers[] = {"0.running_mean", "0.running_var", "0.num_batches_tracked"};
    assert_int_equal(parameters.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(parameters.names[i], names[i]);
    assert_int_equal(buffers.count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(buffers.names[i], of_buffers[i]);
    CHECK_VALUES(parameters.tensors[0], 1, 1, 1);
    CHECK_VALUES(parameters.tensors[1], 0, 0, 0);
    CHECK_VALUES(buffers.tensors[0], 0, 0, 0);
    CHECK_VALUES(buffers.tensors[1], 1, 1, 1);
    CHECK_VALUES(buffers.tensors[2], 0);
    CHECK_DTYPE(buffers.tensors[2], KN_I64);
    assert_int_equal(kn_ndim(buffers.tensors[2]), 0);
    CHECK_SHAPE(parameters.tensors[2], 4, 5);
    kn_module_free(net);
    kn_module *bare = kn_nn_sequential(
        kn_nn_batch_norm1d(.num_features = 3, .affine = false, .track_running_stats = false),
        kn_nn_layer_norm(KN_SHAPE(4), .elementwise_affine = false), kn_nn_layer_norm(KN_SHAPE(4), .bias = false));
    assert_int_equal(kn_module_parameters(bare).count, 1);
    assert_int_equal(kn_module_buffers(bare).count, 0);
    kn_module_free(bare);
}

/* The network of tests/golden/golden_norm.py. */
static kn_module *golden_network(void)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "conv", kn_nn_conv2d(.in_channels = 2, .out_channels = 5, .kernel_size = 3, .bias = false));
    kn_nn_add_module(net, "bn", kn_nn_batch_norm2d(.num_features = 5));
    kn_nn_add_module(net, "flatten", kn_nn_flatten());
    kn_nn_add_module(net, "head",
                     kn_nn_sequential(kn_nn_linear(.in_features = 45, .out_features = 6),
                                      kn_nn_batch_norm1d(.num_features = 6, .cumulative_average = true),
                                      kn_nn_layer_norm(KN_SHAPE(6))));
    CHECK_TENSOR(net);
    return net;
}

static void goes_on_as_pytorch(kn_dtype dtype, double tolerance)
{
    kn_module *net = golden_network();
    kn_tensor_file *run;
    CHECK_OK(kn_module_load(net, GOLDEN "norm_weights.safetensors"));
    CHECK_VALUES(kn_module_get(net, "bn.num_batches_tracked"), 2);
    CHECK_OK(kn_module_to_dtype(net, dtype));
    CHECK_NEW(run = kn_load_safetensors(GOLDEN "norm_run.safetensors"));
    kn_tensor *x =
        kn_to_with(kn_tensor_file_get(run, "x"), &(kn_to_params){.device = kn_device_current(), .dtype = dtype});
    check_close(kn_forward(net, x), kn_tensor_file_get(run, "train"), tolerance);
    kn_module_train(net, false);
    check_close(kn_forward(net, x), kn_tensor_file_get(run, "eval"), tolerance);
    kn_parameter_list buffers = kn_module_buffers(net);
    assert_int_equal(buffers.count, 6);
    for (int i = 0; i < buffers.count; i++)
        check_close(buffers.tensors[i], kn_tensor_file_get(run, buffers.names[i]), tolerance);
    kn_tensor_file_free(run);
    kn_module_free(net);
}

/* Values, including the plain means of momentum=None. */
TENSOR_TEST(a_network_of_pytorchs_goes_on)
{
    goes_on_as_pytorch(KN_F32, 2e-5);
    if (kn_device_limits(kn_device_current())->has_f64)
        goes_on_as_pytorch(KN_F64, 1e-9);
}

TENSOR_TEST(the_state_survives_a_file)
{
    const char *path = KOINE_BINARY_DIR "/tests/norm_modules.safetensors";
    kn_module *net = golden_network(), *copy = golden_network();
    CHECK_TENSOR(kn_forward(net, kn_rand(KN_SHAPE(3, 2, 5, 5))));
    CHECK_OK(kn_module_save(net, path));
    CHECK_OK(kn_module_load(copy, path));
    for (int i = 0; i < 6; i++)
        check_close(kn_module_buffers(copy).tensors[i], kn_module_buffers(net).tensors[i], 0);
    CHECK_VALUES(kn_module_get(copy, "head.1.num_batches_tracked"), 1);
    kn_module_free(net);
    kn_module_free(copy);
}

/* PyTorch's half(): floating tensors become f16, the counter does not change. */
TENSOR_TEST(modules_in_half_precision)
{
    kn_module *layer = kn_nn_batch_norm1d(.num_features = 2);
    CHECK_OK(kn_module_to_dtype(layer, KN_F16));
    kn_tensor *x = kn_from_data(((float[]){1, 10, 3, 10, 5, 10, 7, 30}), KN_SHAPE(4, 2));
    CHECK_TENSOR(kn_forward(layer, kn_to_dtype(x, KN_F16)));
    CHECK_DTYPE(kn_module_get(layer, "running_mean"), KN_F16);
    double *mean = read_doubles(kn_module_get(layer, "running_mean"));
    assert_true(fabs(mean[0] - 0.4) < 1e-3 && fabs(mean[1] - 1.5) < 2e-3);
    free(mean);
    CHECK_VALUES(kn_module_get(layer, "num_batches_tracked"), 1);
    kn_module_free(layer);
}

TENSOR_TEST(without_tracking_evaluation_uses_the_batch)
{
    kn_module *layer = kn_nn_batch_norm1d(.num_features = 2, .track_running_stats = false);
    kn_tensor *x = kn_rand(KN_SHAPE(5, 2));
    kn_tensor *train = kn_forward(layer, x);
    kn_module_train(layer, false);
    check_close(kn_forward(layer, x), train, 0);
    kn_module_free(layer);
    layer = kn_nn_batch_norm1d(.num_features = 2, .track_running_stats = false, .cumulative_average = true);
    check_close(kn_forward(layer, x), train, 0); /* there is no counter */
    kn_module_free(layer);
}

/* The next pass does not change tensors saved for backward: two forward passes, then both backward passes. */
TENSOR_TEST(two_passes_before_their_backward_passes)
{
    kn_module *layer = kn_nn_batch_norm1d(.num_features = 2);
    kn_tensor *x = kn_rand(KN_SHAPE(5, 2), .requires_grad = true);
    kn_tensor *one = kn_forward(layer, x), *two = kn_forward(layer, x);
    kn_module_train(layer, false);
    kn_tensor *three = kn_forward(layer, x);
    kn_module_train(layer, true);
    CHECK_TENSOR(kn_forward(layer, x));
    CHECK_OK(kn_backward(kn_sum(kn_add(kn_add(one, two), three))));
    CHECK_TENSOR(kn_grad(x));
    CHECK_VALUES(kn_module_get(layer, "num_batches_tracked"), 3);
    kn_module_free(layer);
}

/* An empty batch counts, as in PyTorch, and changes nothing else. */
TENSOR_TEST(an_empty_batch_counts)
{
    kn_module *layer = kn_nn_batch_norm2d(.num_features = 2);
    CHECK_TENSOR(kn_forward(layer, kn_zeros(KN_SHAPE(0, 2, 3, 3))));
    CHECK_VALUES(kn_module_get(layer, "num_batches_tracked"), 1);
    CHECK_VALUES(kn_module_get(layer, "running_var"), 1, 1);
    kn_module_free(layer);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* Replays change the buffers bit for bit like eager passes, and continue the count; nothing waits. */
static void replays_go_on(bool cumulative, int64_t channels, int64_t size)
{
    kn_module *layers[2];
    kn_tensor *x = kn_zeros(KN_SHAPE(4, channels, size, size)), *y = NULL;
    kn_stream *stream = kn_stream_current(kn_device_current());
    kn_graph *graph;
    for (int i = 0; i < 2; i++)
        layers[i] = kn_nn_batch_norm2d(.num_features = channels, .cumulative_average = cumulative);
    for (int i = 0; i < 2; i++)
        CHECK_TENSOR(kn_forward(layers[i], x)); /* kernels are built */
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, stream);
        KN_SCOPE;
        y = kn_retain(kn_forward(layers[0], x));
    }
    CHECK_VALUES(kn_module_get(layers[0], "num_batches_tracked"), 1); /* the capture ran nothing */
    for (int step = 0; step < 5; step++) {
        kn_manual_seed((uint64_t)step);
        CHECK_OK(kn_copy_(x, kn_rand(KN_SHAPE(4, channels, size, size))));
        const uint64_t waits = kn_host_wait_count();
        CHECK_OK(kn_graph_replay(graph));
        kn_tensor *right = kn_forward(layers[1], x);
        assert_true(kn_host_wait_count() == waits);
        check_close(y, right, 0);
    }
    CHECK_VALUES(kn_module_get(layers[0], "num_batches_tracked"), 6);
    for (int i = 0; i < 3; i++)
        check_close(kn_module_buffers(layers[0]).tensors[i], kn_module_buffers(layers[1]).tensors[i], 0);
    kn_release(y);
    kn_graph_free(graph);
    kn_module_free(layers[0]);
    kn_module_free(layers[1]);
}

TENSOR_TEST(replays_go_on_counting)
{
    replays_go_on(false, 20, 3);
    replays_go_on(false, 2, 100);
    replays_go_on(true, 20, 3);
    replays_go_on(true, 2, 100);
}

/* --- refused, printed --------------------------------------------------------------------------------------------- */

TENSOR_TEST(what_does_not_fit_is_refused)
{
    assert_null(kn_nn_batch_norm2d(.num_features = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "BatchNorm2d", "num_features (0)");
    assert_null(kn_nn_batch_norm1d(.num_features = 2, .momentum = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "BatchNorm1d", "momentum", "-1");
    assert_null(kn_nn_batch_norm1d(.num_features = 2, .momentum = NAN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "momentum", "cumulative_average");
    assert_null(kn_nn_batch_norm1d(.num_features = 2, .eps = NAN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "eps");
    assert_null(kn_nn_layer_norm(KN_SHAPE(4, 0)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "LayerNorm", "size 1");
    assert_null(kn_nn_layer_norm(KN_SCALAR));
    CHECK_ERROR(KN_ERR_ARGUMENT, "LayerNorm");
    kn_module *one = kn_nn_batch_norm1d(.num_features = 2), *two = kn_nn_batch_norm2d(.num_features = 2);
    assert_null(kn_forward(one, kn_ones(KN_SHAPE(3, 2, 4, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "BatchNorm1d", "2- or 3-dimensional", "[3, 2, 4, 4]");
    assert_null(kn_forward(two, kn_ones(KN_SHAPE(3, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "BatchNorm2d", "4-dimensional", "[3, 2]");
    assert_null(kn_forward(two, kn_ones(KN_SHAPE(3, 5, 4, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "5 elements", "[2]");
    assert_null(kn_forward(one, kn_ones(KN_SHAPE(1, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "more than 1 value per channel when training");
    CHECK_VALUES(kn_module_get(one, "num_batches_tracked"), 0);
    kn_module_train(one, false);
    CHECK_TENSOR(kn_forward(one, kn_ones(KN_SHAPE(1, 2))));
    kn_module_free(one);
    kn_module_free(two);
}

TENSOR_TEST(they_print_as_in_pytorch)
{
    kn_module *net =
        kn_nn_sequential(kn_nn_batch_norm2d(.num_features = 64),
                         kn_nn_batch_norm1d(.num_features = 3, .cumulative_average = true, .affine = false),
                         kn_nn_layer_norm(KN_SHAPE(10)), kn_nn_layer_norm(KN_SHAPE(3, 4), .eps = 0.001));
    static const char *const lines[] = {
        "BatchNorm2d(64, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        "BatchNorm1d(3, eps=1e-05, momentum=None, affine=False, track_running_stats=True)",
        "LayerNorm((10,), eps=1e-05, elementwise_affine=True)",
        "LayerNorm((3, 4), eps=0.001, elementwise_affine=True)"};
    char *text = kn_module_summary(net);
    assert_non_null(text);
    for (int i = 0; i < 4; i++)
        if (!strstr(text, lines[i]))
            fail_msg("expected \"%s\" in:\n%s", lines[i], text);
    kn_free(text);
    kn_module_free(net);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(names_are_pytorchs),
        TEST(a_network_of_pytorchs_goes_on),
        TEST(the_state_survives_a_file),
        TEST(modules_in_half_precision),
        TEST(without_tracking_evaluation_uses_the_batch),
        TEST(two_passes_before_their_backward_passes),
        TEST(an_empty_batch_counts),
        TEST(replays_go_on_counting),
        TEST(what_does_not_fit_is_refused),
        TEST(they_print_as_in_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
