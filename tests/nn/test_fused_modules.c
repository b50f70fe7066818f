/* test_fused_modules.c - fused activations: which layers fuse them, and that results do not change. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/op.h"
#include "support/as_gpu.h"
#include "support/values.h"

/* --- what ran ----------------------------------------------------------------------------------------------------- */

static kn_status note(kn_call *call, bool after, void *user)
{
    char *names = user;
    if (!after) {
        strcat(names, call->op->name);
        strcat(names, " ");
    }
    return KN_OK;
}

/* Applies the network to x; `names` (a few hundred bytes) receives the operations. */
static kn_tensor *watched(kn_module *net, kn_tensor *x, char *names)
{
    names[0] = '\0';
    kn_op_set_observer(note, names);
    kn_tensor *y = kn_forward(net, x);
    kn_op_set_observer(NULL, NULL);
    CHECK_TENSOR(y);
    return y;
}

/* --- the same with and without ------------------------------------------------------------------------------------ */

#define MOST 16
typedef struct results {
    int count;
    int64_t sizes[MOST];
    double *values[MOST]; /* y, dL/dx, and the parameters' gradients */
} results;

static void add(results *r, const kn_tensor *tensor)
{
    CHECK_TENSOR(tensor);
    r->sizes[r->count] = kn_numel(tensor);
    r->values[r->count] = read_doubles(tensor);
    assert_non_null(r->values[r->count++]);
}

/* A forward and a backward pass, with a gradient that differs for each element. */
static results pass(kn_module *net, kn_tensor *x, bool fused)
{
    results r = {0};
    kn_set_fusion(fused);
    kn_module_zero_grad(net);
    CHECK_OK(kn_set_grad(x, NULL));
    {
        KN_SCOPE;
        kn_tensor *y = kn_forward(net, x);
        CHECK_TENSOR(y);
        kn_tensor *gradient = kn_reshape(kn_arange(-1.5, (double)kn_numel(y) - 1.5, 1), kn_ndim(y), kn_shape(y));
        CHECK_OK(kn_backward_with(y, kn_to_dtype(gradient, kn_dtype_of(y)), false));
        add(&r, y);
        add(&r, kn_grad(x));
        for (int i = 0; i < kn_module_parameters(net).count; i++)
            add(&r, kn_grad(kn_module_parameters(net).tensors[i]));
    }
    kn_set_fusion(true);
    return r;
}

static void check_same(kn_module *net, kn_tensor *x)
{
    char message[400];
    results fused = pass(net, x, true), apart = pass(net, x, false);
    assert_int_equal(fused.count, apart.count);
    for (int i = 0; i < fused.count; i++) {
        assert_int_equal(fused.sizes[i], apart.sizes[i]);
        if (!values_close(fused.values[i], apart.values[i], apart.sizes[i], (closeness){0, 0}, message, sizeof message))
            fail_msg("result %d: %s", i, message);
        free(fused.values[i]);
        free(apart.values[i]);
    }
}

/* Normally distributed, with a NaN, both infinities, and adjacent equal elements. */
static kn_tensor *odd_input(int ndim, const int64_t *shape, bool odd)
{
    double values[2000];
    test_random random = test_random_from("fused");
    const int64_t n = shape[0] * shape[1] * (ndim > 2 ? shape[2] * shape[3] : 1);
    assert_true(n > 70 && n <= 2000);
    for (int64_t i = 0; i < n; i++)
        values[i] = test_random_uniform(&random, -4, 8);
    if (odd) {
        values[3] = NAN;
        values[n / 2] = INFINITY;
        values[n / 3] = -INFINITY;
        values[60] = values[61] = values[62] = 0;
        values[63] = values[64] = 6;
    }
    return tensor_of_doubles(values, ndim, shape, KN_F32, true);
}

#define CONV(in, out) kn_nn_conv2d(.in_channels = in, .out_channels = out, .kernel_size = 3, .padding = 1)

TENSOR_TEST(layers_apply_the_activation_that_follows)
{
    kn_module *const nets[] = {
        kn_nn_sequential(CONV(3, 5), kn_nn_relu()),
        kn_nn_sequential(CONV(3, 5), kn_nn_relu6(), CONV(5, 2)),
        kn_nn_sequential(CONV(3, 5), kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2), CONV(5, 4), kn_nn_relu()),
        kn_nn_sequential(CONV(3, 5), kn_nn_batch_norm2d(.num_features = 5), kn_nn_relu(), CONV(5, 4)),
        kn_nn_sequential(kn_nn_sequential(CONV(3, 5), kn_nn_batch_norm2d(.num_features = 5)), kn_nn_relu6()),
        kn_nn_sequential(kn_nn_relu(), CONV(3, 2), kn_nn_relu6(), kn_nn_relu()),
        kn_nn_sequential(CONV(3, 4), kn_nn_batch_norm2d(.num_features = 4, .affine = false), kn_nn_relu6(),
                         kn_nn_max_pool2d(.kernel_size = 2)),
    };
    for (int i = 0; i < 7; i++) {
        CHECK_TENSOR(nets[i]);
        for (int odd = 0; odd < 2; odd++) {
            KN_SCOPE;
            check_same(nets[i], odd_input(KN_SHAPE(2, 3, 9, 10), odd));
        }
        kn_module_train(nets[i], false);
        {
            KN_SCOPE;
            check_same(nets[i], odd_input(KN_SHAPE(2, 3, 9, 10), false));
        }
        kn_module_free(nets[i]);
    }
}

TENSOR_TEST(linear_layers_too)
{
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = 20, .out_features = 33), kn_nn_relu(),
                                      kn_nn_linear(.in_features = 33, .out_features = 7, .bias = false), kn_nn_relu6());
    CHECK_TENSOR(net);
    char names[200];
    {
        KN_SCOPE;
        check_same(net, odd_input(KN_SHAPE(9, 20), false));
        check_same(net, odd_input(KN_SHAPE(9, 20), true));
        watched(net, odd_input(KN_SHAPE(9, 20), false), names);
        assert_string_equal(names, "linear linear ");
    }
    kn_module_free(net);
}

/* relu(max) is max(relu), and their gradients too: for windows without a positive element, with equal maxima,
 * overlapping, or with NaN; a window of padding alone is the exception, so with dilation the order is kept. */
TENSOR_TEST(pooling_takes_the_activation_before_it)
{
    static const char *const expected[] = {"max_pool2d ", "max_pool2d ", "max_pool2d relu6 ", "relu max_pool2d ",
                                           "relu6 avg_pool2d "};
    char names[200];
    kn_module *const nets[] = {
        kn_nn_sequential(kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2)),
        kn_nn_sequential(kn_nn_relu6(), kn_nn_max_pool2d(.kernel_size = 3, .stride = 2, .padding = 1)),
        kn_nn_sequential(kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 3, .stride = 1), kn_nn_relu6()),
        kn_nn_sequential(kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2, .padding = 1, .dilation = 9)),
        kn_nn_sequential(kn_nn_relu6(), kn_nn_avg_pool2d(.kernel_size = 2)),
    };
    for (int i = 0; i < 5; i++) {
        CHECK_TENSOR(nets[i]);
        {
            KN_SCOPE;
            check_same(nets[i], odd_input(KN_SHAPE(2, 3, 9, 10), false));
            check_same(nets[i], odd_input(KN_SHAPE(2, 3, 9, 10), true));
            check_same(nets[i], kn_full(KN_SHAPE(2, 3, 9, 10), -1, .requires_grad = true));
            watched(nets[i], odd_input(KN_SHAPE(2, 3, 9, 10), false), names);
            assert_string_equal(names, expected[i]);
        }
        kn_module_free(nets[i]);
    }
}

TENSOR_TEST(the_switch_leaves_each_layer_an_operation)
{
    char names[200];
    kn_module *net = kn_nn_sequential(CONV(3, 5), kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2));
    CHECK_TENSOR(net);
    {
        KN_SCOPE;
        kn_tensor *x = odd_input(KN_SHAPE(2, 3, 9, 10), false);
        assert_true(kn_get_fusion());
        kn_set_fusion(false);
        watched(net, x, names);
        assert_string_equal(names, "conv2d relu max_pool2d ");
        kn_set_fusion(true);
    }
    kn_module_free(net);
}

/* A user-defined module that fuses, and one that cannot. */
TENSOR_TEST(forward_with_an_activation)
{
    kn_module *conv = CONV(3, 5), *flatten = kn_nn_flatten();
    CHECK_TENSOR(conv);
    {
        KN_SCOPE;
        kn_tensor *x = odd_input(KN_SHAPE(2, 3, 9, 10), false);
        kn_tensor *fused = kn_forward_activated(conv, x, KN_ACTIVATION_RELU), *apart = kn_relu(kn_forward(conv, x));
        CHECK_TENSOR(fused);
        CHECK_VALUES(kn_max(kn_abs(kn_sub(fused, apart))), 0);
        kn_tensor *flat = kn_forward_activated(flatten, x, KN_ACTIVATION_RELU6);
        CHECK_TENSOR(flat);
        CHECK_VALUES(kn_max(flat), 6);
        assert_int_equal(kn_ndim(flat), 2);
        assert_null(kn_forward_activated(conv, x, (kn_activation)7));
        CHECK_ERROR(KN_ERR_ARGUMENT, "activation", "7");
        assert_null(kn_forward_activated(NULL, x, KN_ACTIVATION_RELU));
        CHECK_ERROR(KN_ERR_ARGUMENT, "module");
    }
    kn_module_free(conv);
    kn_module_free(flatten);
}

/* The end of a residual block, with NaN, infinities and zeros among the sums; two tensors of different shapes. */
TENSOR_TEST(a_sum_with_an_activation)
{
    KN_SCOPE;
    kn_tensor *x = odd_input(KN_SHAPE(2, 3, 9, 10), true), *y = odd_input(KN_SHAPE(2, 3, 9, 10), true);
    kn_tensor *b = kn_full(KN_SHAPE(3, 1, 1), -1, .requires_grad = true);
    kn_tensor *c = kn_full(KN_SHAPE(3, 1, 1), -1, .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_add_activated(x, b, KN_ACTIVATION_RELU6))));
    CHECK_OK(kn_backward(kn_sum(kn_relu6(kn_add(y, c)))));
    double *values[] = {read_doubles(kn_add_activated(x, b, KN_ACTIVATION_RELU)),
                        read_doubles(kn_relu(kn_add(y, c))),
                        read_doubles(kn_grad(x)),
                        read_doubles(kn_grad(y)),
                        read_doubles(kn_grad(b)),
                        read_doubles(kn_grad(c))};
    char message[400];
    for (int i = 0; i < 6; i += 2)
        if (!values_close(values[i], values[i + 1], i < 4 ? 540 : 3, (closeness){0, 0}, message, sizeof message))
            fail_msg("%d: %s", i, message);
    for (int i = 0; i < 6; i++)
        free(values[i]);
    assert_null(kn_add_activated(x, NULL, KN_ACTIVATION_RELU));
    CHECK_ERROR(KN_ERR_ARGUMENT, "add_activated", "b");
    assert_null(kn_add_activated(x, b, (kn_activation)-1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "add_activated", "activation must be one of");
    kn_tensor *whole = kn_ones(KN_SHAPE(3), .dtype = KN_I32);
    assert_null(kn_add_activated(whole, whole, KN_ACTIVATION_RELU));
    CHECK_ERROR(KN_ERR_DTYPE, "add_activated", "int32");
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(layers_apply_the_activation_that_follows),
        TEST(linear_layers_too),
        TEST(pooling_takes_the_activation_before_it),
        TEST(the_switch_leaves_each_layer_an_operation),
        TEST(forward_with_an_activation),
        TEST(a_sum_with_an_activation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
