/* test_hooks.c - hooks of modules run in PyTorch's order, may replace what passes, and go with replicas, recomputation,
 * graphs and summaries as koine/hook.h says; hooks of leaves. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/many.h"

static char events[1024];

static double number(const kn_tensor *tensor)
{
    double value = 0;
    kn_item(tensor, &value);
    return value;
}

static void note(const char *format, const void *name, double value)
{
    const size_t length = strlen(events);
    snprintf(events + length, sizeof events - length, format, (const char *)name, value);
}

static kn_status log_pre(kn_module *module, kn_tensor **inputs, int num_inputs, void *user)
{
    (void)module;
    assert_int_equal(num_inputs, 1);
    note("%s pre %g, ", user, number(inputs[0]));
    return KN_OK;
}

static kn_status log_forward(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                             int num_outputs, void *user)
{
    (void)module, (void)inputs, (void)num_inputs, (void)num_outputs;
    note("%s post %g, ", user, number(outputs[0]));
    return KN_OK;
}

static kn_status log_backward_pre(kn_module *module, kn_tensor **grad_outputs, int num_outputs, void *user)
{
    (void)module, (void)num_outputs;
    note("%s bpre %g, ", user, number(grad_outputs[0]));
    return KN_OK;
}

static kn_status log_backward(kn_module *module, kn_tensor **grad_inputs, int num_inputs,
                              kn_tensor *const *grad_outputs, int num_outputs, void *user)
{
    (void)module, (void)num_inputs, (void)num_outputs;
    if (grad_inputs[0])
        note("%s back %g", user, number(grad_inputs[0]));
    else
        note("%s back none", user, 0);
    note("%s%g, ", " ", number(grad_outputs[0]));
    return KN_OK;
}

static void log_all(kn_module *module, const char *name)
{
    void *user = (void *)(uintptr_t)name;
    assert_true(kn_module_register_forward_pre_hook(module, log_pre, .user = user) != 0);
    assert_true(kn_module_register_forward_hook(module, log_forward, .user = user) != 0);
    assert_true(kn_module_register_full_backward_pre_hook(module, log_backward_pre, .user = user) != 0);
    assert_true(kn_module_register_full_backward_hook(module, log_backward, .user = user) != 0);
}

static kn_module *two_x_plus_1(void)
{
    kn_module *linear = kn_nn_linear(.in_features = 1, .out_features = 1);
    KN_NO_GRAD;
    kn_fill_(kn_module_get(linear, "weight"), 2);
    kn_fill_(kn_module_get(linear, "bias"), 1);
    return linear;
}

static kn_module *logged(void)
{
    kn_module *net = kn_nn_sequential(two_x_plus_1(), kn_nn_relu(), two_x_plus_1());
    log_all(net, "net");
    log_all(kn_module_child(net, 0), "0");
    log_all(kn_module_child(net, 1), "1");
    log_all(kn_module_child(net, 2), "2");
    events[0] = '\0';
    return net;
}

static kn_tensor *one(bool requires_grad) { return kn_ones(KN_SHAPE(1, 1), .requires_grad = requires_grad); }

static const char forward_events[] = "net pre 1, 0 pre 1, 0 post 3, 1 pre 3, 1 post 3, 2 pre 3, 2 post 7, net post 7, ";

/* The order of PyTorch 2.15. */
TENSOR_TEST(the_order_is_pytorchs)
{
    kn_module *net = logged();
    CHECK_OK(kn_backward(kn_forward(net, one(true))));
    assert_memory_equal(events, forward_events, strlen(forward_events));
    assert_string_equal(events + strlen(forward_events),
                        "net bpre 1, 2 bpre 1, 2 back 2 1, 1 bpre 2, 1 back 2 2, 0 bpre 2, 0 back 4 2, net back 4 1, ");
    events[0] = '\0';
    CHECK_OK(kn_backward(kn_forward(net, one(false))));
    assert_string_equal(events + strlen(forward_events), "net bpre 1, net back none 1, 2 bpre 1, 2 back 2 1, 1 bpre 2, "
                                                         "1 back 2 2, 0 bpre 2, 0 back none 2, ");
    kn_module_free(net);
}

/* --- replacing ---------------------------------------------------------------------------------------------------- */

static kn_status triple(kn_module *module, kn_tensor **inputs, int num_inputs, void *user)
{
    (void)module, (void)num_inputs, (void)user;
    inputs[0] = kn_mul_scalar(inputs[0], 3);
    return KN_OK;
}

static kn_status add_10(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                        int num_outputs, void *user)
{
    (void)module, (void)inputs, (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = kn_add_scalar(outputs[0], 10);
    return KN_OK;
}

static kn_status twice(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                       int num_outputs, void *user)
{
    (void)module, (void)inputs, (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = kn_mul_scalar(outputs[0], 2);
    return KN_OK;
}

static kn_status five_times(kn_module *module, kn_tensor **grad_outputs, int num_outputs, void *user)
{
    (void)module, (void)user;
    for (int o = 0; o < num_outputs; o++)
        grad_outputs[o] = kn_mul_scalar(grad_outputs[o], 5);
    return KN_OK;
}

static kn_status add_output(kn_module *module, kn_tensor **grad_inputs, int num_inputs, kn_tensor *const *grad_outputs,
                            int num_outputs, void *user)
{
    (void)module, (void)num_inputs, (void)num_outputs, (void)user;
    grad_inputs[0] = kn_add(grad_inputs[0], grad_outputs[0]);
    return KN_OK;
}

TENSOR_TEST(hooks_replace_tensors_and_gradients)
{
    kn_module *linear = two_x_plus_1();
    kn_module_register_forward_pre_hook(linear, triple);
    kn_hook_handle last = kn_module_register_forward_hook(linear, add_10);
    kn_module_register_forward_hook(linear, twice, .prepend = true);
    kn_module_register_full_backward_pre_hook(linear, five_times);
    kn_module_register_full_backward_hook(linear, add_output);
    kn_tensor *x = one(true), *y = kn_forward(linear, x);
    CHECK_VALUES(y, 24);
    CHECK_OK(kn_backward(y));
    CHECK_VALUES(kn_grad(x), 75);
    CHECK_VALUES(kn_grad(kn_module_get(linear, "weight")), 30);
    CHECK_VALUES(kn_grad(kn_module_get(linear, "bias")), 10);
    CHECK_OK(kn_module_remove_hook(linear, last));
    CHECK_OK(kn_module_remove_hook(linear, last));
    CHECK_VALUES(kn_forward(linear, x), 14);
    kn_module_free(linear);
}

/* The second gradient passes through the nodes of the hooks. */
TENSOR_TEST(gradients_have_gradients)
{
    kn_module *square = kn_nn_sequential(kn_nn_gelu());
    kn_module_register_full_backward_hook(square, add_output);
    kn_tensor *x = one(true), *y = kn_forward(square, x), *slope, *curvature;
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &slope, .create_graph = true));
    CHECK_OK(kn_autograd_grad(&slope, 1, &x, 1, &curvature));
    kn_module *plain = kn_nn_gelu();
    kn_tensor *z = kn_forward(plain, x), *expected_slope, *expected;
    CHECK_OK(kn_autograd_grad(&z, 1, &x, 1, &expected_slope, .create_graph = true));
    CHECK_OK(kn_autograd_grad(&expected_slope, 1, &x, 1, &expected));
    assert_true(fabs(number(slope) - number(expected_slope) - 1) < 1e-6);
    assert_true(number(curvature) == number(expected));
    kn_module_free(square);
    kn_module_free(plain);
}

/* --- several inputs and outputs ----------------------------------------------------------------------------------- */

static kn_status see_all(kn_module *module, kn_tensor **grad_inputs, int num_inputs, kn_tensor *const *grad_outputs,
                         int num_outputs, void *user)
{
    (void)module, (void)user;
    assert_int_equal(num_inputs, 3);
    assert_int_equal(num_outputs, 2);
    assert_true(grad_inputs[0] && !grad_inputs[1] && !grad_inputs[2]);
    assert_true(grad_outputs[0] && !grad_outputs[1]);
    note("%s%g", "", 0);
    return KN_OK;
}

/* outputs (2 x scale, x scale), of which the second is unused; scale needs no gradient, shift is omitted. */
TENSOR_TEST(a_module_of_many)
{
    kn_module *gate = gate_module(2);
    kn_module_register_full_backward_hook(gate, see_all);
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2), .requires_grad = true), *inputs[] = {x, kn_full(KN_SHAPE(2), 3)}, *out[2];
    events[0] = '\0';
    CHECK_OK(kn_forward_many(gate, inputs, 2, out, 2));
    CHECK_OK(kn_backward(kn_sum(out[0])));
    assert_string_equal(events, "0");
    CHECK_VALUES(kn_grad(x), 6, 6);
    kn_module_free(gate);
}

/* --- elsewhere ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_checkpointed_module_runs_them_in_both_passes)
{
    kn_module *net = logged();
    CHECK_OK(kn_module_checkpoint(net, true));
    CHECK_OK(kn_backward(kn_forward(net, one(true))));
    const size_t length = strlen(forward_events);
    assert_memory_equal(events, forward_events, length);
    assert_memory_equal(events + length, forward_events, length);
    assert_string_equal(events + 2 * length,
                        "net bpre 1, 2 bpre 1, 2 back 2 1, 1 bpre 2, 1 back 2 2, 0 bpre 2, 0 back 4 2, net back 4 1, ");
    kn_module_free(net);
}

TENSOR_TEST(replicas_have_them)
{
    kn_module *net = logged(), *replica;
    kn_device *device = kn_device_current();
    CHECK_OK(kn_module_replicate(net, &device, 1, &replica));
    kn_tensor *y = kn_forward(replica, one(true));
    kn_module_free(replica);
    CHECK_OK(kn_backward(y));
    assert_memory_equal(events, forward_events, strlen(forward_events));
    assert_non_null(strstr(events, "net back 4 1, "));
    kn_module_free(net);
}

TENSOR_TEST(graphs_and_summaries)
{
    kn_module *net = logged();
    assert_int_equal(kn_make_graphed_callable(net, one(false)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "make_graphed_callable", "Sequential", "hook");
    assert_int_equal(strlen(events), 0);
    char *text = kn_module_summary_with(net, &(kn_module_summary_params){.input = one(false)});
    assert_non_null(text);
    assert_int_equal(strlen(events), 0);
    kn_free(text);
    kn_module_free(net);
    kn_module *graphed = kn_nn_sequential(two_x_plus_1());
    CHECK_OK(kn_make_graphed_callable(graphed, one(true)));
    log_all(graphed, "net");
    CHECK_OK(kn_backward(kn_forward(graphed, one(true))));
    assert_string_equal(events, "net pre 1, net post 3, net bpre 1, net back 2 1, ");
    kn_module_free(graphed);
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

static kn_status refuse(kn_module *module, kn_tensor **tensors, int count, void *user)
{
    (void)module, (void)tensors, (void)count, (void)user;
    return KN_ERR_NUMERIC;
}

static kn_status lose(kn_module *module, kn_tensor **tensors, int count, void *user)
{
    (void)module, (void)count, (void)user;
    tensors[0] = NULL;
    return KN_OK;
}

static int destroyed;
static void count_destroyed(void *user) { destroyed += user == &destroyed; }

TENSOR_TEST(errors_of_hooks)
{
    kn_module *net = kn_nn_sequential(two_x_plus_1()), *linear = kn_module_child(net, 0);
    kn_hook_handle hook =
        kn_module_register_forward_pre_hook(linear, refuse, .user = &destroyed, .destroy = count_destroyed);
    assert_null(kn_forward(net, one(false)));
    CHECK_ERROR(KN_ERR_NUMERIC, "Linear", "forward pre-hook", "(in 0)");
    CHECK_OK(kn_module_remove_hook(linear, hook));
    assert_int_equal(destroyed, 1);
    hook = kn_module_register_forward_pre_hook(linear, lose);
    assert_null(kn_forward(net, one(false)));
    CHECK_ERROR(KN_ERR_STATE, "Linear", "inputs[0]", "NULL");
    CHECK_OK(kn_module_remove_hook(linear, hook));
    hook = kn_module_register_full_backward_pre_hook(linear, lose);
    assert_int_equal(kn_backward(kn_forward(net, one(false))), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "Linear", "removed gradient 0");
    kn_module_free(net);
    assert_int_equal(kn_module_register_forward_hook(NULL, twice, .user = &destroyed, .destroy = count_destroyed), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "module_register_forward_hook", "module");
    assert_int_equal(destroyed, 2);
}

/* --- leaves ------------------------------------------------------------------------------------------------------- */

/* A step of gradient descent in the backward pass, after which the gradient is dropped. */
static kn_status descend(kn_tensor *leaf, void *user)
{
    KN_NO_GRAD;
    kn_tensor *step = kn_mul_scalar(kn_grad(leaf), *(double *)user);
    const kn_status status = kn_copy_(leaf, kn_sub(leaf, step));
    return status == KN_OK ? kn_set_grad(leaf, NULL) : status;
}

TENSOR_TEST(a_hook_after_accumulating)
{
    double rate = 0.5;
    kn_tensor *w = kn_full(KN_SHAPE(2), 3, .requires_grad = true);
    destroyed = 0;
    CHECK_OK(kn_register_post_accumulate_grad_hook(w, descend, &rate, NULL));
    CHECK_OK(kn_backward(kn_sum(kn_mul(w, w))));
    CHECK_VALUES(w, 0, 0);
    assert_null(kn_grad(w));
    kn_tensor *gradient, *y = kn_sum(w);
    CHECK_OK(kn_autograd_grad(&y, 1, &w, 1, &gradient));
    CHECK_VALUES(w, 0, 0);
    assert_int_equal(kn_register_post_accumulate_grad_hook(kn_neg(w), descend, &destroyed, count_destroyed),
                     KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_register_post_accumulate_grad_hook", "leaf");
    assert_int_equal(destroyed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_order_is_pytorchs),
        TEST(hooks_replace_tensors_and_gradients),
        TEST(gradients_have_gradients),
        TEST(a_module_of_many),
        TEST(a_checkpointed_module_runs_them_in_both_passes),
        TEST(replicas_have_them),
        TEST(graphs_and_summaries),
        TEST(errors_of_hooks),
        TEST(a_hook_after_accumulating),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
