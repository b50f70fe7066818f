/* test_module_tree.c - children: who frees them, modules that several share, what takes another's place. */
#include "support/check.h"

#include <string.h>

#include "support/values.h"

static kn_module *linear(int64_t in, int64_t out) { return kn_nn_linear(.in_features = in, .out_features = out); }

/* --- a module that counts how often it is freed ------------------------------------------------------------------- */

static int destroyed;
static void count_destroyed(void *self)
{
    (void)self;
    destroyed++;
}

static kn_tensor *add_one(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_add_scalar(x, 1);
}

static kn_module *counted(void)
{
    destroyed = 0;
    return kn_module_new("Counted", add_one, 0, count_destroyed);
}

static double applied(kn_module *module)
{
    double value = -1;
    kn_item(kn_forward(module, kn_zeros(KN_SHAPE(1))), &value);
    return value;
}

/* --- owners ------------------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_failed_child_fails_the_sequence_and_frees_the_rest)
{
    assert_null(kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 2), kn_nn_dropout(.p = 2),
                                 kn_nn_linear(.in_features = 2, .out_features = 2)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Dropout", "2");
    assert_null(kn_nn_hardtanh(2, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Hardtanh", "2", "1");
    assert_null(kn_nn_sequential(kn_nn_relu(), NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Sequential");
}

TENSOR_TEST(a_shared_module_is_freed_with_its_last_owner)
{
    kn_module *shared = counted(), *first = kn_nn_sequential(shared, shared), *second = kn_nn_module_list(shared);
    assert_true(applied(first) == 2);
    kn_module_free(first);
    assert_int_equal(destroyed, 0);
    assert_true(applied(kn_module_child(second, 0)) == 1);
    assert_ptr_equal(kn_module_register_module(second, "again", shared), shared);
    assert_ptr_equal(kn_module_remove_module(second, "again"), shared);
    assert_int_equal(destroyed, 0);
    kn_log_set_level(KN_LOG_OFF);
    kn_module_free(shared); /* its owner frees it; here nothing happens */
    kn_log_set_level(KN_LOG_WARNING);
    assert_int_equal(destroyed, 0);
    kn_module_free(second);
    assert_int_equal(destroyed, 1);
}

TENSOR_TEST(a_module_that_is_taken_out_everywhere_belongs_to_the_caller)
{
    kn_module *shared = counted(), *first = kn_nn_sequential(shared), *second = kn_nn_sequential(shared);
    assert_ptr_equal(kn_module_remove_module(first, "0"), shared);
    assert_ptr_equal(kn_module_replace_module(second, "0", kn_nn_relu()), shared);
    kn_module_free(first);
    kn_module_free(second);
    assert_int_equal(destroyed, 0);
    kn_module_free(shared);
    assert_int_equal(destroyed, 1);
}

/* The first layers of a network, and it as a whole, are trained together. */
TENSOR_TEST(a_part_of_a_network_shares_its_parameters)
{
    kn_module *net = kn_nn_sequential(linear(2, 3), kn_nn_relu(), linear(3, 1));
    kn_module *features = kn_nn_sequential(kn_module_child(net, 0), kn_module_child(net, 1));
    kn_module *both = kn_nn_module_list(features, net);
    assert_int_equal(kn_module_parameters(features).count, 2);
    assert_int_equal(kn_module_parameters(both).count, 4);
    assert_string_equal(kn_module_parameters(both).names[0], "0.0.weight");
    assert_string_equal(kn_module_parameters(both).names[2], "1.2.weight");
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, kn_ones(KN_SHAPE(1, 2))))));
    assert_non_null(kn_grad(kn_module_parameters(features).tensors[0]));
    kn_module_train(features, false);
    assert_false(kn_module_is_training(kn_module_child(net, 0)));
    kn_module_free(both);
}

static kn_status count_module(kn_module *module, void *user)
{
    (void)module;
    ++*(int *)user;
    return KN_OK;
}

/* As torch.nn.Module.apply, whose children() names a child once. */
TENSOR_TEST(apply_visits_a_child_with_two_names_once)
{
    int count = 0;
    kn_module *shared = kn_nn_relu(), *net = kn_nn_sequential(shared, shared, kn_nn_sequential(shared));
    CHECK_OK(kn_module_apply(net, count_module, &count));
    assert_int_equal(count, 4);
    kn_module_free(net);
}

/* What a failed constructor frees, it frees once. */
TENSOR_TEST(constructors_that_fail_free_shared_modules_once)
{
    kn_module *shared = counted();
    assert_null(kn_nn_sequential(shared, NULL, shared));
    assert_int_equal(destroyed, 1);
    shared = counted();
    assert_null(kn_nn_module_list(NULL, shared, shared));
    assert_int_equal(destroyed, 1);
    shared = counted();
    assert_null(kn_nn_transformer_encoder_of((kn_module *[]){shared, shared}, 2, NULL));
    assert_int_equal(destroyed, 1);
    kn_error_clear();
    shared = counted();
    kn_module *owner = kn_nn_sequential(shared);
    assert_null(kn_nn_sequential(NULL, shared));
    assert_int_equal(destroyed, 0);
    kn_error_clear();
    kn_module_free(owner);
    assert_int_equal(destroyed, 1);
}

TENSOR_TEST(a_tree_has_no_cycles)
{
    kn_module *first = kn_nn_sequential(kn_nn_relu()), *second = kn_nn_sequential_of(NULL, 0);
    assert_int_not_equal(kn_nn_add_module(first, "itself", first), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "cannot contain itself");
    CHECK_OK(kn_nn_add_module(second, "first", first));
    assert_int_not_equal(kn_nn_add_module(first, "up", second), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "cannot contain itself");
    /* The name is taken: the new child is freed nevertheless. */
    assert_int_not_equal(kn_nn_add_module(second, "first", linear(1, 1)), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "taken");
    assert_int_equal(kn_module_child_count(first), 1);
    kn_module_free(second);
}

/* --- other children ----------------------------------------------------------------------------------------------- */

TENSOR_TEST(children_and_tensors_are_replaced)
{
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 3), kn_nn_relu(),
                                      kn_nn_linear(.in_features = 3, .out_features = 4));
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2));
    assert_int_equal(kn_size(kn_forward(net, x), 1), 4);
    assert_int_equal(kn_module_parameters(net).count, 4);
    assert_string_equal(kn_module_child_name(net, 2), "2");
    assert_null(kn_module_child_name(net, 3));
    kn_module *head = kn_nn_linear(.in_features = 3, .out_features = 5, .bias = false);
    kn_module *former = kn_module_replace_module(net, "2", head);
    assert_non_null(former);
    assert_int_equal(kn_size(kn_forward(net, x), 1), 5);
    assert_int_equal(kn_module_parameters(net).count, 3);
    assert_int_equal(kn_size(kn_forward(former, kn_ones(KN_SHAPE(1, 3))), 1), 4);
    assert_null(kn_module_replace_module(net, "3", former));
    assert_non_null(strstr(kn_error_message(), "there is no child"));
    kn_error_clear();
    kn_module_free(former);

    kn_tensor *weight = kn_zeros(KN_SHAPE(5, 3));
    assert_ptr_equal(kn_module_replace_tensor(head, "weight", weight), weight);
    assert_true(kn_requires_grad(weight));
    assert_ptr_equal(kn_module_parameters(net).tensors[2], weight);
    double sum = 1;
    assert_int_equal(kn_item(kn_sum(kn_forward(net, x)), &sum), KN_OK);
    assert_true(sum == 0); /* the layer computes with it */
    assert_null(kn_module_replace_tensor(head, "bias", weight));
    assert_non_null(strstr(kn_error_message(), "no parameter or buffer"));
    kn_error_clear();
    assert_null(kn_module_replace_tensor(head, "weight", NULL));
    assert_null(kn_module_replace_module(NULL, "0", NULL));
    kn_error_clear();
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_failed_child_fails_the_sequence_and_frees_the_rest),
        TEST(a_shared_module_is_freed_with_its_last_owner),
        TEST(a_module_that_is_taken_out_everywhere_belongs_to_the_caller),
        TEST(a_part_of_a_network_shares_its_parameters),
        TEST(apply_visits_a_child_with_two_names_once),
        TEST(constructors_that_fail_free_shared_modules_once),
        TEST(a_tree_has_no_cycles),
        TEST(children_and_tensors_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
