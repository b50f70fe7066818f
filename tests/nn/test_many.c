/* test_many.c - modules with several inputs and outputs: their order, optional inputs, wrong counts, sequences, summary
 * and state. */
#include "support/check.h"

#include <string.h>

#include "support/many.h"

/* --- calls ------------------------------------------------------------------------------------------------------ */

TENSOR_TEST(inputs_and_outputs_keep_their_order)
{
    kn_module *net = gate_module(2);
    kn_tensor *x = kn_from_data(((float[]){1, 2}), KN_SHAPE(1, 2)),
              *scale = kn_from_data(((float[]){10, 100}), KN_SHAPE(2));
    kn_tensor *shift = kn_from_data(((float[]){5, 6}), KN_SHAPE(1, 2)), *outputs[2] = {NULL};
    assert_int_equal(kn_module_input_count(net), 3);
    assert_int_equal(kn_module_output_count(net), 2);
    CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale, shift), outputs, 2));
    CHECK_VALUES(outputs[0], 2 * 10 + 5, 4 * 100 + 6); /* the gate's weight is twice the identity */
    CHECK_VALUES(outputs[1], 10, 200);
    kn_module_free(net);
}

TENSOR_TEST(what_may_be_left_out_is_null)
{
    kn_module *net = gate_module(2);
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2)), *scale = kn_full(KN_SHAPE(2), 3), *outputs[2] = {NULL};
    CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale, NULL), outputs, 2));
    CHECK_VALUES(outputs[0], 6, 6);
    CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale), outputs, 2));
    CHECK_VALUES(outputs[0], 6, 6);
    kn_module_free(net);
}

TENSOR_TEST(one_array_may_be_both)
{
    kn_module *net = gate_module(2);
    kn_tensor *values[3] = {kn_ones(KN_SHAPE(1, 2)), kn_full(KN_SHAPE(2), 3), NULL};
    for (int i = 0; i < 2; i++) /* [6, 6], [3, 3]; then of those */
        CHECK_OK(kn_forward_many(net, values, 2, values, 2));
    CHECK_VALUES(values[0], 2 * 6 * 3, 2 * 6 * 3);
    CHECK_VALUES(values[1], 6 * 3, 6 * 3);
    kn_module_free(net);
}

TENSOR_TEST(gradients_reach_every_input)
{
    kn_module *net = gate_module(2);
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2), .requires_grad = true),
              *scale = kn_full(KN_SHAPE(2), 3, .requires_grad = true);
    kn_tensor *outputs[2] = {NULL};
    CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale), outputs, 2));
    CHECK_OK(kn_backward(kn_add(kn_sum(outputs[0]), kn_mul_scalar(kn_sum(outputs[1]), 10))));
    CHECK_VALUES(kn_grad(x), 2 * 3 + 10 * 3, 2 * 3 + 10 * 3);
    CHECK_VALUES(kn_grad(scale), 2 + 10, 2 + 10);
    CHECK_TENSOR(kn_grad(kn_module_get(net, "gate.weight")));
    kn_module_free(net);
}

/* More than the library handles without allocating. */
static kn_status sums(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const int count = kn_module_input_count(module);
    outputs[0] = inputs[0];
    for (int i = 1; i < count; i++)
        outputs[i] = kn_add(outputs[i - 1], inputs[i]);
    return KN_OK;
}

TENSOR_TEST(twenty_in_and_twenty_out)
{
    kn_module *net = kn_module_new_many("Sums", sums, .num_inputs = 20, .num_outputs = 20);
    kn_tensor *inputs[20], *outputs[20];
    for (int i = 0; i < 20; i++)
        inputs[i] = kn_full(KN_SHAPE(1), i);
    CHECK_OK(kn_forward_many(net, inputs, 20, outputs, 20));
    for (int i = 0; i < 20; i++)
        CHECK_VALUES(outputs[i], i * (i + 1) / 2);
    kn_module_free(net);
}

/* Without a scope the caller releases the outputs, and nothing else is left (the test checks memory). */
static void outputs_without_a_scope_are_the_callers(void **state)
{
    (void)state;
    kn_module *net = NULL;
    kn_tensor *x, *scale, *outputs[2] = {NULL};
    {
        KN_SCOPE;
        net = gate_module(2);
        x = kn_retain(kn_ones(KN_SHAPE(4, 2)));
        scale = kn_retain(kn_full(KN_SHAPE(2), 3));
    }
    CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale), outputs, 2));
    CHECK_SHAPE(outputs[0], 4, 2);
    for (int i = 0; i < 2; i++)
        kn_release(outputs[i]);
    kn_release(x);
    kn_release(scale);
    kn_module_free(net);
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

TENSOR_TEST(wrong_numbers_are_told_and_where)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    CHECK_OK(kn_nn_add_module(net, "gate", gate_module(2)));
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2)), *outputs[3] = {x, x, x};
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x), outputs, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "Sequential: takes 2 or 3 inputs, not 1");
    assert_null(outputs[0]);
    assert_null(outputs[1]);
    assert_ptr_equal(outputs[2], x);
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, x, x, x), outputs, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "not 4");
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, x), outputs, 3), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "returns 2 outputs, not 3");
    assert_null(kn_forward(net, x));
    CHECK_ERROR(KN_ERR_ARGUMENT, "takes 2 or 3 inputs, not 1");
    /* Nor does a module with one input accept two. */
    kn_module *relu = kn_nn_relu();
    assert_int_equal(kn_forward_many(relu, KN_TENSORS(x, x), outputs, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "ReLU: takes 1 input, not 2");
    assert_int_equal(kn_forward_many(relu, KN_TENSORS(x), outputs, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "ReLU: returns 1 output, not 2");
    CHECK_OK(kn_nn_add_module(net, "relu", relu)); /* which receives two */
    assert_null(kn_forward(net, x));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Sequential: takes 2 or 3 inputs");
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, x), outputs, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "ReLU: takes 1 input, not 2 (in relu)");
    kn_module_free(net);
}

TENSOR_TEST(null_in_gives_null_out)
{
    kn_module *net = gate_module(2);
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2)), *outputs[2] = {x, x};
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, NULL), outputs, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "forward: argument `inputs[1]` is NULL");
    assert_null(outputs[0]);
    assert_int_equal(kn_forward_many(net, KN_TENSORS(x, kn_reshape(x, KN_SHAPE(7))), outputs, 2), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "reshape"); /* the first error of the chain */
    assert_int_equal(kn_forward_many(NULL, &x, 1, outputs, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "module");
    assert_int_equal(kn_forward_many(net, NULL, 1, outputs, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "inputs");
    assert_int_equal(kn_forward_many(net, &x, 1, NULL, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "outputs");
    assert_int_equal(kn_module_input_count(NULL), 0);
    kn_module_free(net);
}

static kn_status forgetful(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = inputs[0];
    return KN_OK;
}

static kn_status silent(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = outputs[1] = inputs[0];
    return KN_ERR_FORMAT;
}

TENSOR_TEST(forward_functions_that_do_not_do_their_part)
{
    kn_module *first = kn_module_new_many("Forgetful", forgetful, .num_outputs = 2);
    kn_module *second = kn_module_new_many("Silent", silent, .num_outputs = 2);
    kn_tensor *x = kn_ones(KN_SHAPE(1)), *outputs[2];
    assert_int_equal(kn_forward_many(first, &x, 1, outputs, 2), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "Forgetful: its forward function left outputs[1] NULL");
    assert_int_equal(kn_forward_many(second, &x, 1, outputs, 2), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "Silent: its forward function returned KN_ERR_FORMAT");
    assert_null(outputs[0]);
    assert_null(kn_module_new_many("None", silent, .num_inputs = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "num_inputs (0)");
    assert_null(kn_module_new_many("None", silent, .num_optional = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "num_optional (2)");
    assert_null(kn_module_new_many("None", NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "forward");
    kn_module_free(first);
    kn_module_free(second);
}

/* --- sequences, summary, state ---------------------------------------------------------------------------------- */

static kn_status add_up(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = kn_add(inputs[0], inputs[1]);
    return KN_OK;
}

static kn_module *gates(void)
{
    return kn_nn_sequential(gate_module(2), gate_module(2), kn_module_new_many("Add", add_up, .num_inputs = 2),
                            kn_nn_relu());
}

TENSOR_TEST(a_sequence_hands_all_outputs_on)
{
    kn_module *net = gates();
    CHECK_TENSOR(net);
    kn_tensor *x = kn_from_data(((float[]){1, -1}), KN_SHAPE(1, 2)), *scale = kn_full(KN_SHAPE(2), 3), *y = NULL;
    assert_int_equal(kn_module_input_count(net), 3);
    assert_int_equal(kn_module_output_count(net), 1);
    for (int fused = 0; fused < 2; fused++) {
        kn_set_fusion(fused);
        CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale), &y, 1)); /* 6, 3; then 36, 18; then their sum */
        CHECK_VALUES(y, 54, 54);
    }
    /* The sequence's optional inputs are those of the first gate. */
    CHECK_OK(kn_forward_many(net, KN_TENSORS(x, scale, kn_full(KN_SHAPE(1, 2), -6)), &y, 1));
    CHECK_VALUES(y, 0, 2 * 36 + 36);
    kn_module_free(net);
}

TENSOR_TEST(the_summary_shows_all_shapes)
{
    kn_module *net = gates();
    kn_tensor *x = kn_ones(KN_SHAPE(5, 2)), *scale = kn_ones(KN_SHAPE(2));
    char *text =
        kn_module_summary_with(net, &(kn_module_summary_params){.inputs = KN_TENSORS(x, scale), .width = KN_WIDE});
    CHECK_TENSOR(text);
    assert_non_null(strstr(text, "  (0-1): 2 x Gate(                                             [5, 2], [5, 2]\n"));
    assert_non_null(strstr(text, "  (2): Add()                                                   [5, 2]\n"));
    assert_non_null(strstr(text, "Multiply-adds: 40 for inputs [5, 2], [2]\n"));
    kn_free(text);
    text = kn_module_summary_with(net, &(kn_module_summary_params){.inputs = KN_TENSORS(x, scale, NULL)});
    CHECK_TENSOR(text);
    assert_non_null(strstr(text, " for inputs [5, 2], [2], none\n"));
    kn_free(text);
    assert_null(kn_module_summary_with(net, &(kn_module_summary_params){.input = x}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "takes 2 or 3 inputs, not 1");
    kn_module_free(net);
}

TENSOR_TEST(the_state_is_that_of_any_module)
{
    kn_module *net = gates(), *other = gates();
    kn_parameter_list list = kn_module_parameters(net);
    const char *path = KOINE_BINARY_DIR "/tests/many.safetensors";
    assert_int_equal(list.count, 2);
    assert_string_equal(list.names[0], "0.gate.weight");
    assert_string_equal(list.names[1], "1.gate.weight");
    {
        KN_NO_GRAD;
        CHECK_OK(kn_copy_(list.tensors[0], kn_full(KN_SHAPE(2, 2), 7)));
    }
    CHECK_OK(kn_module_save(net, path));
    CHECK_OK(kn_module_load(other, path));
    CHECK_VALUES(kn_module_get(other, "0.gate.weight"), 7, 7, 7, 7);
    kn_module_free(net);
    kn_module_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(inputs_and_outputs_keep_their_order),
        TEST(what_may_be_left_out_is_null),
        TEST(one_array_may_be_both),
        TEST(gradients_reach_every_input),
        TEST(twenty_in_and_twenty_out),
        TEST(outputs_without_a_scope_are_the_callers),
        TEST(wrong_numbers_are_told_and_where),
        TEST(null_in_gives_null_out),
        TEST(forward_functions_that_do_not_do_their_part),
        TEST(a_sequence_hands_all_outputs_on),
        TEST(the_summary_shows_all_shapes),
        TEST(the_state_is_that_of_any_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
