/* test_jit_gradients.c - operations from user code with derivatives: backward, graphs, threads. */
#include "support/check.h"

#include <pthread.h>

#include "ops/jit_inputs.h"
#include "support/as_gpu.h"

#define PRODUCT "T f(T x, T y) { return x * x * exp(y); }"
#define PRODUCT_BACKWARD                                                                                               \
    "void df(T x, T y, T grad, T *grad_x, T *grad_y) { *grad_x = 2 * grad * x * exp(y); *grad_y = grad * f(x, y); }"

static kn_tensor *call_two(kn_tensor *const *inputs, void *user) { return kn_jit_call_with(user, inputs, 2, NULL); }

TENSOR_TEST_F64(test_gradcheck)
{
    kn_jit *right = kn_jit_elementwise(PRODUCT, .derivative = PRODUCT_BACKWARD);
    kn_jit *wrong = kn_jit_elementwise(PRODUCT, .derivative = "void df(T x, T y, T grad, T *grad_x, T *grad_y)\n"
                                                              "{ *grad_x = grad * x * exp(y); *grad_y = 0; }");
    kn_tensor *x = leaf(kn_t(numbers(KN_F64, KN_SHAPE(5, 3), -1, 0.17))),
              *y = leaf(numbers(KN_F64, KN_SHAPE(3, 1), 0, 0.3));
    kn_tensor *inputs[] = {x, y};
    CHECK_OK(kn_gradcheck(call_two, right, inputs, 2, NULL));
    assert_int_equal(kn_gradcheck(call_two, wrong, inputs, 2, NULL), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "input 0");
    CHECK_OK(kn_set_requires_grad(x, false)); /* only one is needed */
    CHECK_OK(kn_gradcheck(call_two, right, inputs, 2, NULL));
    kn_jit_free(right);
    kn_jit_free(wrong);
}

TENSOR_TEST(test_freed_before_backward)
{
    kn_jit *jit = kn_jit_elementwise("T cube(T x, T scale) { return scale * x * x * x; }",
                                     .derivative = "T dcube(T x, T grad, T scale) { return 3 * scale * grad * x * x; }",
                                     .scalars = {{"scale", 1}});
    kn_tensor *x = leaf(numbers(KN_F32, KN_SHAPE(3), 1, 1));
    kn_tensor *y = kn_sum(kn_jit_call(jit, KN_JIT_INPUTS(x), .scalars = {{"scale", 2}}));
    kn_jit_free(jit);
    CHECK_OK(kn_backward(y));
    CHECK_VALUES(kn_grad(x), 6, 24, 54);
}

/* f16 is computed in f32, integers get no gradient, and a value that backward needs must not change. */
TENSOR_TEST(test_gradients_and_dtypes)
{
    kn_jit *jit = kn_jit_elementwise(PRODUCT, .derivative = PRODUCT_BACKWARD);
    kn_tensor *x = leaf(kn_full(KN_SHAPE(2), 3, .dtype = KN_F16)), *y = kn_zeros(KN_SHAPE(2), .dtype = KN_I32);
    kn_tensor *z = kn_jit_call(jit, KN_JIT_INPUTS(x, y));
    CHECK_DTYPE(z, KN_F16);
    CHECK_OK(kn_backward(kn_sum(z)));
    CHECK_VALUES(kn_grad(x), 6, 6);
    CHECK_DTYPE(kn_grad(x), KN_F16);
    x = leaf(kn_ones(KN_SHAPE(2)));
    y = kn_ones(KN_SHAPE(2));
    z = kn_sum(kn_jit_call(jit, KN_JIT_INPUTS(x, y)));
    kn_fill_(y, 2);
    assert_int_equal(kn_backward(z), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "f", "changed in place");
    kn_jit_free(jit);
}

/* As in PyTorch's jiterator: the result is not recorded. */
TENSOR_TEST(test_without_derivative)
{
    kn_jit *jit = kn_jit_elementwise(PRODUCT);
    kn_tensor *x = leaf(kn_ones(KN_SHAPE(2)));
    kn_tensor *z = kn_jit_call(jit, KN_JIT_INPUTS(x, x));
    assert_false(kn_requires_grad(z));
    assert_int_not_equal(kn_backward(kn_sum(z)), KN_OK);
    CHECK_ERROR(kn_error_status(), "require");
    kn_jit_free(jit);
}

TENSOR_TEST(test_nothing_to_differentiate)
{
    kn_jit *jit = kn_jit_elementwise(PRODUCT, .derivative = PRODUCT_BACKWARD);
    kn_tensor *x = leaf(kn_zeros(KN_SHAPE(0, 3))), *y = leaf(kn_ones(KN_SHAPE(3)));
    CHECK_OK(kn_backward(kn_sum(kn_jit_call(jit, KN_JIT_INPUTS(x, y)))));
    CHECK_SHAPE(kn_grad(x), 0, 3);
    CHECK_VALUES(kn_grad(y), 0, 0, 0);
    kn_jit_free(jit);
}

/* A replay uses the current values of the inputs. */
TENSOR_TEST(test_graph)
{
    kn_jit *jit = kn_jit_elementwise("T f(T x, T scale) { return scale * x * x; }", .scalars = {{"scale", 1}});
    kn_graph *graph;
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *y = NULL;
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        y = kn_jit_call(jit, KN_JIT_INPUTS(x), .scalars = {{"scale", 5}});
    }
    kn_jit_free(jit);
    CHECK_OK(kn_graph_replay(graph));
    CHECK_VALUES(y, 5, 5, 5);
    kn_fill_(x, 2);
    CHECK_OK(kn_graph_replay(graph));
    CHECK_VALUES(y, 20, 20, 20);
    kn_graph_free(graph);
}

enum { THREADS = 4, ROUNDS = 25 };

static void *call_from_thread(void *user)
{
    intptr_t wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        KN_SCOPE;
        double value = 0;
        kn_tensor *x = leaf(kn_full(KN_SHAPE(1), i));
        kn_tensor *y = kn_jit_call(user, KN_JIT_INPUTS(x, kn_zeros(KN_SHAPE(1))));
        wrong += kn_item(y, &value) != KN_OK || value != (double)i * i;
        wrong += kn_backward(y) != KN_OK || kn_item(kn_grad(x), &value) != KN_OK || value != 2.0 * i;
    }
    return (void *)wrong;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    kn_jit *jit =
        kn_jit_elementwise(PRODUCT " /* compiled by several threads at once */", .derivative = PRODUCT_BACKWARD);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_from_thread, jit), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    kn_jit_free(jit);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(test_gradcheck),
        TEST(test_freed_before_backward),
        TEST(test_gradients_and_dtypes),
        TEST(test_without_derivative),
        TEST(test_nothing_to_differentiate),
        TEST(test_graph),
        TEST(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
