/* test_rnn.c - recurrent modules: PyTorch's parameters, results and gradients, text and errors. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"

#define GOLDEN KOINE_SOURCE_DIR "/tests/golden/rnn_modules.safetensors"

/* "lstm:states.out0" of the file; NULL if there is none. */
static kn_tensor *stored(const kn_tensor_file *file, const char *layer, const char *name)
{
    char all[128];
    snprintf(all, sizeof all, "%s:%s", layer, name);
    kn_tensor *host = kn_tensor_file_get(file, all);
    kn_error_clear();
    return host ? kn_to(host, kn_device_current()) : NULL;
}

static void check_stored(const kn_tensor *actual, const kn_tensor_file *file, const char *layer, const char *name)
{
    char message[400];
    kn_tensor *expected = stored(file, layer, name);
    assert_non_null(expected);
    CHECK_TENSOR(actual);
    assert_int_equal(kn_ndim(actual), kn_ndim(expected));
    for (int d = 0; d < kn_ndim(actual); d++)
        assert_int_equal(kn_size(actual, d), kn_size(expected, d));
    double *a = read_doubles(actual), *b = read_doubles(expected);
    if (!values_close(a, b, kn_numel(expected), (closeness){2e-5, 2e-5}, message, sizeof message))
        fail_msg("%s:%s: %s", layer, name, message);
    free(a);
    free(b);
}

/* Results and gradients of one call, of the sum of squares of all results. */
static void check_call(kn_module *module, const kn_tensor_file *file, const char *layer, const char *call,
                       kn_tensor *const *inputs, int count)
{
    kn_tensor *outputs[3] = {NULL}, *total = NULL;
    const int results = kn_module_output_count(module);
    const kn_parameter_list parameters = kn_module_parameters(module);
    char name[96];
    kn_module_zero_grad(module);
    CHECK_OK(kn_forward_many(module, inputs, count, outputs, results));
    for (int i = 0; i < results; i++) {
        snprintf(name, sizeof name, "%s.out%d", call, i);
        check_stored(outputs[i], file, layer, name);
        kn_tensor *square = kn_sum(kn_mul(outputs[i], outputs[i]));
        total = total ? kn_add(total, square) : square;
    }
    CHECK_OK(kn_backward(total));
    snprintf(name, sizeof name, "%s.grad_x", call);
    check_stored(kn_grad(inputs[0]), file, layer, name);
    for (int i = 0; i < parameters.count; i++) {
        snprintf(name, sizeof name, "%s.grad.%s", call, parameters.names[i]);
        check_stored(kn_grad(parameters.tensors[i]), file, layer, name);
    }
}

static void check_layer(kn_module *module, const char *layer)
{
    kn_tensor_file *file = kn_load_safetensors(GOLDEN);
    char prefix[16];
    assert_non_null(file);
    CHECK_TENSOR(module);
    snprintf(prefix, sizeof prefix, "%s.", layer);
    CHECK_OK(kn_module_load(module, GOLDEN, .prefix = prefix));
    kn_tensor *inputs[4] = {stored(file, layer, "x"), stored(file, layer, "state0"), stored(file, layer, "state1")};
    const int states = inputs[2] ? 2 : 1;
    for (int i = 0; i <= states; i++)
        kn_set_requires_grad(inputs[i], true);
    check_call(module, file, layer, "states", inputs, 1 + states);
    check_stored(kn_grad(inputs[1]), file, layer, "grad_state0");
    if (states > 1)
        check_stored(kn_grad(inputs[2]), file, layer, "grad_state1");
    kn_set_grad(inputs[0], NULL);
    inputs[1] = inputs[2] = NULL;
    inputs[1 + states] = kn_to(kn_tensor_file_get(file, "lengths"), kn_device_current());
    check_call(module, file, layer, "lengths", inputs, 2 + states);
    kn_module_free(module);
    kn_tensor_file_free(file);
}

TENSOR_TEST(layers_of_pytorch_load_and_go_on)
{
    check_layer(kn_nn_rnn(.input_size = 3, .hidden_size = 4, .num_layers = 2, .nonlinearity = KN_RNN_NONLINEARITY_RELU),
                "rnn");
    check_layer(kn_nn_gru(.input_size = 3, .hidden_size = 4, .num_layers = 2, .bidirectional = true), "gru");
    check_layer(
        kn_nn_lstm(.input_size = 3, .hidden_size = 4, .num_layers = 2, .bidirectional = true, .batch_first = true),
        "lstm");
    check_layer(kn_nn_lstm(.input_size = 3, .hidden_size = 4, .num_layers = 2, .proj_size = 2, .bias = false), "proj");
}

static void check_text(kn_module *module, const char *text)
{
    CHECK_TENSOR(module);
    char *summary = kn_module_summary(module);
    assert_non_null(strstr(summary, text));
    kn_free(summary);
    kn_module_free(module);
}

TENSOR_TEST(recurrent_modules_print_as_in_pytorch)
{
    check_text(kn_nn_rnn(.input_size = 3, .hidden_size = 4), "RNN(3, 4)");
    check_text(kn_nn_gru(.input_size = 3, .hidden_size = 4, .num_layers = 2, .bias = false, .dropout = 0.5),
               "GRU(3, 4, num_layers=2, bias=False, dropout=0.5)");
    check_text(
        kn_nn_lstm(.input_size = 3, .hidden_size = 4, .proj_size = 2, .batch_first = true, .bidirectional = true),
        "LSTM(3, 4, proj_size=2, batch_first=True, bidirectional=True)");
    check_text(kn_nn_rnn_cell(.input_size = 3, .hidden_size = 4, .nonlinearity = KN_RNN_NONLINEARITY_RELU),
               "RNNCell(3, 4, nonlinearity=relu)");
    check_text(kn_nn_lstm_cell(.input_size = 3, .hidden_size = 4, .bias = false), "LSTMCell(3, 4, bias=False)");
    check_text(kn_nn_gru_cell(.input_size = 3, .hidden_size = 4), "GRUCell(3, 4)");
}

/* The largest of all elements. */
static double difference(kn_tensor *a, kn_tensor *b)
{
    double value = -1;
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(a, b))), &value));
    return value;
}

/* An input without a batch, and a cell, against the same layer with a batch of one. */
TENSOR_TEST(without_a_batch)
{
    kn_module *lstm = kn_nn_lstm(.input_size = 3, .hidden_size = 4),
              *cell = kn_nn_lstm_cell(.input_size = 3, .hidden_size = 4);
    kn_tensor *x = kn_randn(KN_SHAPE(5, 3)), *one = kn_unsqueeze(x, 1), *plain[3], *batched[3], *stepped[2] = {NULL};
    CHECK_OK(kn_forward_many(lstm, &x, 1, plain, 3));
    CHECK_OK(kn_forward_many(lstm, &one, 1, batched, 3));
    CHECK_SHAPE(plain[0], 5, 4);
    CHECK_SHAPE(plain[1], 1, 4);
    CHECK_SHAPE(plain[2], 1, 4);
    for (int i = 0; i < 4; i++) {
        KN_NO_GRAD;
        kn_copy_(kn_module_parameters(cell).tensors[i], kn_module_parameters(lstm).tensors[i]);
    }
    for (int step = 0; step < 5; step++) {
        kn_tensor *inputs[] = {kn_select(x, 0, step), stepped[0], stepped[1]};
        CHECK_OK(kn_forward_many(cell, inputs, 3, stepped, 2));
    }
    for (int i = 0; i < 3; i++) {
        kn_tensor *other = i == 0 ? kn_squeeze(batched[0], 1) : kn_squeeze(batched[i], 1);
        assert_true(difference(plain[i], other) == 0);
    }
    assert_true(difference(stepped[0], kn_select(plain[0], 0, 4)) < 1e-6);
    assert_true(difference(stepped[1], kn_select(plain[2], 0, 0)) < 1e-6);
    kn_module_free(lstm);
    kn_module_free(cell);
}

TENSOR_TEST(dropout_is_between_the_layers)
{
    kn_module *gru = kn_nn_gru(.input_size = 3, .hidden_size = 4, .num_layers = 2, .dropout = 1);
    kn_tensor *x = kn_randn(KN_SHAPE(5, 2, 3)), *trained[2], *again[2];
    CHECK_OK(kn_forward_many(gru, &x, 1, trained, 2));
    kn_tensor *other = kn_add_scalar(x, 1);
    CHECK_OK(kn_forward_many(gru, &other, 1, again, 2));
    assert_true(difference(trained[0], again[0]) == 0); /* nothing goes through */
    kn_module_train(gru, false);
    CHECK_OK(kn_forward_many(gru, &x, 1, again, 2));
    assert_true(difference(trained[0], again[0]) > 0);
    kn_module_free(gru);
}

TENSOR_TEST(sequences_are_padded)
{
    kn_tensor *a = kn_ones(KN_SHAPE(1), .requires_grad = true), *b = kn_full(KN_SHAPE(3), 2);
    CHECK_VALUES(kn_pad_sequence(KN_TENSORS(a, b), true, -1), 1, -1, -1, 2, 2, 2);
    kn_tensor *padded = kn_pad_sequence(KN_TENSORS(a, b), false, 0);
    CHECK_SHAPE(padded, 3, 2);
    CHECK_OK(kn_backward(kn_sum(padded)));
    CHECK_VALUES(kn_grad(a), 1);
    assert_null(kn_pad_sequence(NULL, 0, false, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "pad_sequence: at least one sequence is needed");
}

TENSOR_TEST(bad_recurrent_modules)
{
    assert_null(kn_nn_lstm(.input_size = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "LSTM: input_size (3) and hidden_size (0) must be at least 1");
    assert_null(kn_nn_gru(.input_size = 3, .hidden_size = 4, .proj_size = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "GRU: only LSTM has proj_size");
    assert_null(kn_nn_lstm(.input_size = 3, .hidden_size = 4, .proj_size = 4));
    CHECK_ERROR(KN_ERR_ARGUMENT, "proj_size (4) must be from 1 to hidden_size - 1");
    assert_null(kn_nn_lstm(.input_size = 3, .hidden_size = 4, .num_layers = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "num_layers (0) must be at least 1");
    assert_null(kn_nn_lstm(.input_size = 3, .hidden_size = 4, .dropout = 1.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "dropout must be a probability from 0 to 1, not 1.5");
    assert_null(kn_nn_gru(.input_size = 3, .hidden_size = 4, .nonlinearity = KN_RNN_NONLINEARITY_RELU));
    CHECK_ERROR(KN_ERR_ARGUMENT, "GRU: only RNN has a nonlinearity");
    assert_null(kn_nn_gru_cell(.input_size = 3, .hidden_size = 4, .nonlinearity = KN_RNN_NONLINEARITY_RELU));
    CHECK_ERROR(KN_ERR_ARGUMENT, "GRUCell: only RNNCell has a nonlinearity");
}

/* --- long batches ------------------------------------------------------------------------------------------------- */

/* A layer of `hidden` units over 9 steps of `batch` sequences of different lengths. */
typedef struct long_case {
    kn_tensor *(*function)(kn_tensor *, kn_tensor *, kn_tensor *, const kn_rnn_params *);
    int gates;
    bool reverse;
    int64_t hidden, batch, repeats;
} long_case;

enum { STEPS = 9, FEATURES = 2 };

static void check_close(kn_tensor *a, kn_tensor *b, const char *what)
{
    bool is_close = false;
    CHECK_OK(kn_allclose(a, b, &is_close, .rtol = 1e-3, .atol = 1e-5));
    if (!is_close)
        fail_msg("%s", what);
}

/* The weights' gradients are of the mean over the repeats. */
static kn_tensor *apply(const long_case *c, kn_tensor *const *weights, kn_tensor *x, kn_tensor *lengths,
                        int64_t repeats)
{
    kn_tensor *h_n, *y;
    y = c->function(kn_repeat(x, 3, (int64_t[]){1, repeats, 1}), weights[0], weights[1],
                    &(kn_rnn_params){.bias_ih = weights[2],
                                     .bias_hh = weights[2],
                                     .lengths = kn_repeat(lengths, 1, &repeats),
                                     .reverse = c->reverse,
                                     .h_n = &h_n});
    return kn_mul(y, h_n);
}

/* Sequences that are repeated in a batch give the same results: in parts of the steps and at once, with and without
 * a recorded graph, with work-items that take rows through all steps and with a launch for each step. */
static void check_repeats(const long_case *c)
{
    const int64_t rows = c->gates * c->hidden, lengths[] = {STEPS, 5};
    const kn_tensor_options leaf = {.requires_grad = true};
    kn_tensor *weights[] = {kn_randn_with(2, (int64_t[]){rows, FEATURES}, &leaf),
                            kn_randn_with(2, (int64_t[]){rows, c->hidden}, &leaf), kn_randn_with(1, &rows, &leaf)};
    /* Larger ones would make the steps chaotic: rounding would grow with each. */
    CHECK_TENSOR(kn_init_normal_(weights[1], 0, 1 / sqrt((double)c->hidden)));
    kn_tensor *x = kn_randn_with(3, (int64_t[]){STEPS, c->batch, FEATURES}, &leaf), *gradients[2][4];
    kn_tensor *l = kn_from_data(lengths, KN_SHAPE(c->batch), .dtype = KN_I64), *y[2], *in_parts;

    for (int i = 0; i < 2; i++) {
        const int64_t repeats = i ? c->repeats : 1;
        y[i] = apply(c, weights, x, l, repeats);
        kn_tensor *const leaves[] = {x, weights[0], weights[1], weights[2]};
        kn_tensor *mean = kn_div_scalar(kn_sum(y[i]), (double)repeats);
        CHECK_OK(kn_autograd_grad(&mean, 1, leaves, 4, gradients[i]));
    }
    {
        KN_NO_GRAD;
        in_parts = apply(c, weights, x, l, c->repeats);
    }
    check_close(y[1], kn_repeat(y[0], 3, (int64_t[]){1, c->repeats, 1}), "results");
    check_close(in_parts, y[1], "results without a graph");
    for (int i = 0; i < 4; i++)
        check_close(gradients[1][i], gradients[0][i], "gradients");
}

TENSOR_TEST(long_batches_are_as_short_ones)
{
    const long_case cases[] = {
        {kn_lstm_with, 4, false, 8, 2, 8000}, {kn_gru_with, 3, true, 8, 2, 12000}, {kn_lstm_with, 4, true, 220, 1, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        KN_SCOPE;
        kn_manual_seed(3);
        check_repeats(&cases[i]);
    }
}

static void check_refused(kn_module *module, kn_tensor *const *inputs, int count, const char *text)
{
    kn_tensor *outputs[3];
    assert_int_equal(kn_forward_many(module, inputs, count, outputs, kn_module_output_count(module)), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, text);
}

TENSOR_TEST(bad_inputs_of_recurrent_modules)
{
    kn_module *lstm = kn_nn_lstm(.input_size = 3, .hidden_size = 4, .num_layers = 2),
              *cell = kn_nn_gru_cell(.input_size = 3, .hidden_size = 4);
    kn_tensor *x = kn_ones(KN_SHAPE(5, 2, 3)), *state = kn_ones(KN_SHAPE(2, 2, 4)), *outputs[3];
    check_refused(lstm, KN_TENSORS(kn_ones(KN_SHAPE(5, 2, 7))), "the input's last dimension must be input_size, 3");
    check_refused(lstm, KN_TENSORS(kn_ones(KN_SHAPE(3))), "expected the input to have 2 or 3 dimensions");
    check_refused(lstm, KN_TENSORS(x, kn_ones(KN_SHAPE(2, 3, 4)), state), "expected h_0 to be [2, 2, 4], got");
    check_refused(lstm, KN_TENSORS(x, state, kn_ones(KN_SHAPE(1, 2, 4))), "expected c_0 to be [2, 2, 4], got");
    check_refused(lstm, KN_TENSORS(x, NULL, NULL, kn_ones(KN_SHAPE(3), .dtype = KN_I64)), "lengths must be [2]");
    check_refused(lstm, KN_TENSORS(kn_ones(KN_SHAPE(5, 3)), NULL, NULL, kn_ones(KN_SHAPE(1), .dtype = KN_I64)),
                  "lengths are for an input with a batch");
    check_refused(lstm, KN_TENSORS(kn_ones(KN_SHAPE(0, 2, 3))), "has no steps");
    check_refused(cell, KN_TENSORS(kn_ones(KN_SHAPE(2, 4))), "GRUCell: the input must be [batch, 3] or [3], not");
    check_refused(cell, KN_TENSORS(kn_ones(KN_SHAPE(2, 3)), kn_ones(KN_SHAPE(1, 4))), "the state h must have");
    /* Lengths out of range are found by the kernel. */
    kn_tensor *lengths = kn_full(KN_SHAPE(2), 6, .dtype = KN_I64);
    CHECK_OK(kn_forward_many(lstm, KN_TENSORS(x, NULL, NULL, lengths), outputs, 3));
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "lstm: index 6 is out of range for size 6");
    kn_module_free(lstm);
    kn_module_free(cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layers_of_pytorch_load_and_go_on),
        TEST(recurrent_modules_print_as_in_pytorch),
        TEST(without_a_batch),
        TEST(dropout_is_between_the_layers),
        TEST(sequences_are_padded),
        TEST(long_batches_are_as_short_ones),
        TEST(bad_recurrent_modules),
        TEST(bad_inputs_of_recurrent_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
