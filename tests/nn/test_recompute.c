/* test_recompute.c - kn_module_checkpoint: results, gradients, running estimates and random numbers are those of the
 * module as it was, with less memory. */
#include "support/check.h"

#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/many.h"
#include "support/values.h"

static kn_module *block(void)
{
    return kn_nn_sequential(kn_nn_linear(.in_features = 16, .out_features = 64), kn_nn_batch_norm1d(.num_features = 64),
                            kn_nn_relu(), kn_nn_dropout(.p = 0.3), kn_nn_linear(.in_features = 64, .out_features = 16));
}

static kn_module *network(void)
{
    kn_manual_seed(5);
    return kn_nn_sequential(block(), block(), kn_nn_linear(.in_features = 16, .out_features = 4));
}

static void checkpoint_blocks(kn_module *net)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(kn_module_checkpoint(kn_module_child(net, i), true), KN_OK);
}

/* A step's loss; gradients and buffers stay in the module. */
static double step_of(kn_module *net, bool requires_grad)
{
    double loss = 0;
    kn_manual_seed(7);
    kn_tensor *x = kn_randn(KN_SHAPE(32, 16), .requires_grad = requires_grad);
    kn_tensor *y = kn_mse_loss(kn_forward(net, x), kn_zeros(KN_SHAPE(32, 4)), KN_REDUCTION_MEAN);
    assert_int_equal(kn_backward(y), KN_OK);
    kn_item(y, &loss);
    return loss;
}

static void check_equal(kn_tensor *a, kn_tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    size_t m, n;
    void *p = read_bytes(a, &m), *q = read_bytes(b, &n);
    assert_non_null(p);
    assert_non_null(q);
    assert_int_equal(m, n);
    assert_memory_equal(p, q, m);
    free(p);
    free(q);
}

static void check_same_state(kn_module *a, kn_module *b)
{
    const kn_parameter_list p = kn_module_parameters(a), q = kn_module_parameters(b);
    for (int i = 0; i < p.count; i++)
        check_equal(kn_grad(p.tensors[i]), kn_grad(q.tensors[i]));
    const kn_parameter_list s = kn_module_buffers(a), t = kn_module_buffers(b);
    for (int i = 0; i < s.count; i++)
        check_equal(s.tensors[i], t.tensors[i]);
}

TENSOR_TEST(the_bits_are_the_same)
{
    for (int requires_grad = 0; requires_grad < 2; requires_grad++) {
        kn_module *plain = network(), *checkpointed = network();
        checkpoint_blocks(checkpointed);
        assert_true(step_of(plain, requires_grad) == step_of(checkpointed, requires_grad));
        check_same_state(plain, checkpointed);
        kn_module_free(plain);
        kn_module_free(checkpointed);
    }
}

TENSOR_TEST(the_random_numbers_after_it_are_the_same)
{
    kn_module *plain = network(), *checkpointed = network();
    checkpoint_blocks(checkpointed);
    step_of(plain, false);
    kn_tensor *a = kn_rand(KN_SHAPE(8));
    step_of(checkpointed, false);
    check_equal(a, kn_rand(KN_SHAPE(8)));
    kn_module_free(plain);
    kn_module_free(checkpointed);
}

TENSOR_TEST(in_a_region_of_autocast)
{
    kn_module *plain = network(), *checkpointed = network();
    checkpoint_blocks(checkpointed);
    {
        KN_AUTOCAST(KN_BF16);
        assert_true(step_of(plain, false) == step_of(checkpointed, false));
    }
    check_same_state(plain, checkpointed);
    kn_module_free(plain);
    kn_module_free(checkpointed);
}

/* Several inputs and outputs, one input omitted. */
TENSOR_TEST(a_module_of_many)
{
    kn_tensor *gradients[2][2];
    for (int i = 0; i < 2; i++) {
        kn_module *gate = gate_module(3);
        kn_tensor *x = kn_full(KN_SHAPE(2, 3), 0.5, .requires_grad = true), *outputs[2];
        assert_int_equal(kn_module_checkpoint(gate, i == 1), KN_OK);
        assert_int_equal(kn_forward_many(gate, KN_TENSORS(x, kn_full(KN_SHAPE(3), 2)), outputs, 2), KN_OK);
        assert_int_equal(kn_backward(kn_sum(kn_mul(outputs[0], outputs[1]))), KN_OK);
        gradients[i][0] = kn_clone(kn_grad(x));
        gradients[i][1] = kn_clone(kn_grad(kn_module_parameters(gate).tensors[0]));
        kn_module_free(gate);
    }
    check_equal(gradients[0][0], gradients[1][0]);
    check_equal(gradients[0][1], gradients[1][1]);
}

static int64_t kept_bytes(bool checkpoint)
{
    KN_SCOPE;
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        kn_module *part = kn_nn_sequential(kn_nn_linear(.in_features = 64, .out_features = 256), kn_nn_relu(),
                                           kn_nn_sigmoid(), kn_nn_linear(.in_features = 256, .out_features = 64));
        kn_module_checkpoint(part, checkpoint);
        assert_int_equal(kn_nn_add_module(net, name, part), KN_OK);
    }
    kn_tensor *x = kn_zeros(KN_SHAPE(1024, 64));
    const int64_t before = (int64_t)kn_memory_allocated(kn_device_current());
    kn_tensor *y = kn_forward(net, x);
    assert_non_null(y);
    const int64_t after = (int64_t)kn_memory_allocated(kn_device_current());
    kn_module_free(net);
    return after - before;
}

TENSOR_TEST(less_is_kept) { assert_true(kept_bytes(true) * 4 < kept_bytes(false)); }

TENSOR_TEST(a_changed_parameter_is_an_error)
{
    kn_module *net = block();
    assert_int_equal(kn_module_checkpoint(net, true), KN_OK);
    kn_tensor *y = kn_forward(net, kn_ones(KN_SHAPE(4, 16)));
    {
        KN_NO_GRAD;
        kn_fill_(kn_module_parameters(net).tensors[0], 1);
    }
    assert_int_equal(kn_backward(kn_sum(y)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "checkpoint", "changed in place");
    kn_module_free(net);
    assert_int_equal(kn_module_checkpoint(NULL, true), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "module");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_bits_are_the_same),
        TEST(the_random_numbers_after_it_are_the_same),
        TEST(in_a_region_of_autocast),
        TEST(a_module_of_many),
        TEST(less_is_kept),
        TEST(a_changed_parameter_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
