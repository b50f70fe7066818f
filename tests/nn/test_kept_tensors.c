/* test_kept_tensors.c - tensors created by user functions that the library calls belong to the program's scope; errors
 * name their module. Runs again in guard mode, which names tensors used after they were released. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

static bool guarded(void) { return getenv("KOINE_GUARD") != NULL; }

/* A module that stores a value of its forward pass, as a variational autoencoder stores mean and variance. */
typedef struct encoder {
    kn_module *inner;
    kn_tensor *kept, *seen;
} encoder;

static kn_tensor *encode(kn_module *module, kn_tensor *x)
{
    encoder *self = kn_module_self(module);
    self->seen = x;
    self->kept = kn_mul_scalar(kn_forward(self->inner, x), 2);
    return kn_add_scalar(self->kept, 1);
}

static kn_module *make_encoder(encoder **self)
{
    kn_module *module = kn_module_new("Encoder", encode, sizeof(encoder), NULL);
    *self = kn_module_self(module);
    (*self)->inner = kn_module_register_module(module, "inner", kn_nn_sequential(kn_nn_relu(), kn_nn_relu()));
    return module;
}

TENSOR_TEST(a_value_kept_by_a_forward_lives_to_the_end_of_the_programs_scope)
{
    encoder *first, *second;
    kn_device *device = kn_device_current();
    kn_module *net =
        kn_nn_sequential(make_encoder(&first), kn_nn_sequential(kn_nn_relu(), make_encoder(&second)), kn_nn_relu());
    kn_tensor *x = kn_ones(KN_SHAPE(2));
    const uint64_t before = kn_memory_allocated(device);
    for (int round = 0; round < 3; round++) {
        KN_SCOPE;
        KN_NO_GRAD;
        kn_tensor *y = kn_forward(net, x);
        for (int i = 0; i < 20; i++)
            kn_full(KN_SHAPE(2), -9); /* would reuse its memory if it were free */
        CHECK_VALUES(first->kept, 2, 2);
        CHECK_VALUES(second->kept, 6, 6);
        CHECK_VALUES(second->seen, 3, 3);
        CHECK_VALUES(y, 7, 7);
    }
    assert_int_equal(kn_memory_allocated(device), before);
    kn_module_free(net);
}

/* Results of built-in layers are released immediately: outside training two activations are enough. */
TENSOR_TEST(layers_of_the_library_keep_nothing)
{
    kn_device *device = kn_device_current();
    kn_module *net =
        kn_nn_sequential(kn_nn_softmax(0), kn_nn_softmax(0), kn_nn_softmax(0), kn_nn_softmax(0), kn_nn_softmax(0));
    KN_SCOPE;
    KN_NO_GRAD;
    kn_tensor *x = kn_ones(KN_SHAPE(1 << 18));
    kn_reset_peak_memory_stats(device);
    const uint64_t before = kn_memory_allocated(device);
    CHECK_TENSOR(kn_forward(net, x));
    const uint64_t activation = (1 << 20) + (guarded() ? 4096 : 0);
    assert_true(kn_max_memory_allocated(device) - before <= 2 * activation + 65536);
    assert_true(kn_memory_allocated(device) - before <= activation + 32768);
    kn_module_free(net);
}

/* Without an open scope, the outermost kn_forward releases tensors created by forward functions. */
static void without_a_scope_it_goes_with_the_outermost_forward(void **state)
{
    (void)state;
    encoder *self;
    kn_module *net = kn_nn_sequential(make_encoder(&self));
    kn_tensor *x = kn_ones(KN_SHAPE(2));
    kn_tensor *y = kn_forward(net, x);
    if (guarded()) {
        assert_null(kn_exp(self->kept));
        CHECK_ERROR(KN_ERR_STATE, "exp", "float32 [2] on ", "is used after the scope that it belonged to ended",
                    "kn_retain");
    }
    CHECK_VALUES(y, 3, 3);
    kn_release(y);
    kn_release(x);
    kn_module_free(net);
}

static kn_tensor *keep_gradient(kn_tensor *gradient, void *user)
{
    kn_tensor **kept = user;
    *kept = kn_mul_scalar(gradient, 10);
    return gradient;
}

TENSOR_TEST(a_value_kept_by_a_hook_lives_to_the_end_of_the_programs_scope)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true), *y = kn_mul_scalar(x, 3), *kept = NULL;
    CHECK_OK(kn_register_hook(y, keep_gradient, &kept));
    CHECK_OK(kn_backward(kn_sum(kn_mul_scalar(y, 5))));
    for (int i = 0; i < 20; i++)
        kn_full(KN_SHAPE(2), -9);
    CHECK_VALUES(kept, 50, 50);
}

/* --- guard mode ------------------------------------------------------------------------------------------------ */

static kn_tensor *ended_scope(void)
{
    KN_SCOPE;
    return kn_full(KN_SHAPE(3), 2, .requires_grad = true);
}

static void expect_too_late(void) { CHECK_ERROR(KN_ERR_STATE, "float32 [3]", "is used after the scope"); }

TENSOR_TEST(a_tensor_used_after_its_scope_is_named)
{
    if (!guarded())
        return;
    kn_tensor *late = ended_scope(), *x = kn_ones(KN_SHAPE(3));
    float values[3];
    double value;
    assert_null(kn_add(x, late));
    expect_too_late();
    assert_null(kn_retain(late));
    expect_too_late();
    assert_null(kn_narrow(late, 0, 0, 1));
    expect_too_late();
    assert_null(kn_to(late, kn_device_host()));
    expect_too_late();
    kn_module *relu = kn_nn_relu();
    assert_null(kn_forward(relu, late));
    expect_too_late();
    kn_module_free(relu);
    assert_int_equal(kn_read(late, values, sizeof values), KN_ERR_STATE);
    expect_too_late();
    assert_int_equal(kn_item(late, &value), KN_ERR_STATE);
    expect_too_late();
    assert_int_equal(kn_copy_(x, late), KN_ERR_STATE);
    expect_too_late();
    assert_int_equal(kn_backward(late), KN_ERR_STATE);
    expect_too_late();
    assert_int_equal(kn_set_grad(late, NULL), KN_ERR_STATE);
    expect_too_late();
    kn_release(late);
    expect_too_late();
    CHECK_VALUES(x, 1, 1, 1);
}

static void a_tensor_released_too_often_is_named(void **state)
{
    (void)state;
    if (!guarded())
        return;
    kn_tensor *x = kn_ones(KN_SHAPE(3));
    kn_release(x);
    kn_release(x);
    CHECK_ERROR(KN_ERR_STATE, "kn_release: tensor, float32 [3]", "kn_release dropped its last reference");
}

/* --- errors name the module ------------------------------------------------------------------------------------ */

static kn_tensor *through_child(kn_module *module, kn_tensor *x) { return kn_forward(kn_module_child(module, 0), x); }

TENSOR_TEST(an_error_names_the_module_that_it_came_from)
{
    kn_module *block = kn_module_new("Block", through_child, 0, NULL);
    kn_module_register_module(block, "conv1", kn_nn_linear(.in_features = 4, .out_features = 2));
    kn_module *net = kn_module_new("Net", through_child, 0, NULL);
    kn_module_register_module(net, "layer2", kn_nn_sequential(block, kn_nn_relu()));
    assert_null(kn_forward(net, kn_ones(KN_SHAPE(3, 8))));
    assert_non_null(strstr(kn_error_message(), " (in layer2.0.conv1)"));
    assert_null(strstr(strstr(kn_error_message(), " (in ") + 1, " (in "));
    kn_error_clear();
    assert_null(kn_forward(block, kn_ones(KN_SHAPE(3, 8)))); /* called by itself, it is the root */
    CHECK_ERROR(KN_ERR_SHAPE, "linear", "(in conv1)");
    assert_null(kn_forward(kn_module_child(block, 0), kn_ones(KN_SHAPE(3, 8))));
    assert_null(strstr(kn_error_message(), "(in"));
    kn_error_clear();
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_kept_by_a_forward_lives_to_the_end_of_the_programs_scope),
        TEST(layers_of_the_library_keep_nothing),
        TEST(without_a_scope_it_goes_with_the_outermost_forward),
        TEST(a_value_kept_by_a_hook_lives_to_the_end_of_the_programs_scope),
        TEST(a_tensor_used_after_its_scope_is_named),
        TEST(a_tensor_released_too_often_is_named),
        TEST(an_error_names_the_module_that_it_came_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
