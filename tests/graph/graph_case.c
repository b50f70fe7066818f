/* graph_case.c - see graph_case.h. */
#include "graph_case.h"

#include <stdlib.h>
#include <string.h>

kn_optim *adam(kn_parameter_list parameters) { return kn_optim_adam(parameters, .lr = 0.01); }
kn_optim *sgd(kn_parameter_list parameters) { return kn_optim_sgd(parameters, .lr = 0.05, .momentum = 0.9); }

void case_make(graph_case *c, make_optim optim, kn_dtype dtype)
{
    kn_manual_seed(7);
    c->net = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 4, .kernel_size = 3), kn_nn_relu(),
                              kn_nn_max_pool2d(.kernel_size = 2), kn_nn_dropout2d(.p = 0.2), kn_nn_flatten(),
                              kn_nn_linear(.in_features = 4 * 5 * 5, .out_features = 12), kn_nn_relu(),
                              kn_nn_dropout(.p = 0.3), kn_nn_linear(.in_features = 12, .out_features = 3));
    CHECK_OK(c->net ? KN_OK : kn_error_status());
    CHECK_OK(kn_module_to_dtype(c->net, dtype));
    c->optim = optim(kn_module_parameters(c->net));
    CHECK_OK(c->optim ? KN_OK : kn_error_status());
    {
        KN_SCOPE;
        c->x = kn_retain(kn_rand(KN_SHAPE(CASE_BATCH, 1, 12, 12), .dtype = dtype));
        c->y = kn_retain(kn_randint(0, 3, KN_SHAPE(CASE_BATCH)));
    }
    CHECK_TENSOR(c->y);
}

void case_free(graph_case *c)
{
    kn_optim_free(c->optim);
    kn_module_free(c->net);
    kn_release(c->x);
    kn_release(c->y);
}

kn_tensor *case_step(graph_case *c)
{
    kn_optim_zero_grad(c->optim);
    kn_tensor *loss = kn_cross_entropy(kn_forward(c->net, c->x), c->y);
    kn_status status = kn_backward(loss);
    return status == KN_OK && kn_optim_step(c->optim) == KN_OK ? loss : NULL;
}

void case_warm_up(graph_case *c)
{
    for (int i = 0; i < 2; i++) {
        KN_SCOPE;
        CHECK_TENSOR(case_step(c));
    }
}

void case_capture(graph_case *c, kn_graph *graph, kn_tensor **loss)
{
    *loss = NULL;
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        *loss = kn_retain(case_step(c));
    }
    CHECK_TENSOR(*loss);
}

void case_feed(graph_case *c, int number)
{
    double x[CASE_BATCH * 144];
    int64_t y[CASE_BATCH];
    for (int i = 0; i < CASE_BATCH * 144; i++)
        x[i] = (i * 37 + number * 101) % 97 / 97.0;
    for (int i = 0; i < CASE_BATCH; i++)
        y[i] = (i + number) % 3;
    void *bytes = bytes_of_doubles(x, CASE_BATCH * 144, kn_dtype_of(c->x));
    CHECK_OK(kn_write(c->x, bytes, CASE_BATCH * 144 * kn_dtype_size(kn_dtype_of(c->x))));
    CHECK_OK(kn_write(c->y, y, sizeof y));
    free(bytes);
}

void check_same_parameters(const graph_case *a, const graph_case *b)
{
    kn_parameter_list first = kn_module_parameters(a->net), second = kn_module_parameters(b->net);
    assert_int_equal(first.count, second.count);
    for (int i = 0; i < first.count; i++) {
        size_t size, other;
        void *one = read_bytes(first.tensors[i], &size), *two = read_bytes(second.tensors[i], &other);
        assert_int_equal(size, other);
        if (memcmp(one, two, size) != 0)
            fail_msg("parameter %s differs", first.names[i]);
        free(one);
        free(two);
    }
}
