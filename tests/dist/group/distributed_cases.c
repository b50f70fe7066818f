/* distributed_cases.c - distributed data parallel: every rank also trains a copy on the joint batch alone, and both
 * must agree. */
#include "dist/group/distributed_cases.h"

#include <math.h>
#include <string.h>

#include "dist/group/training.h"

static void trains_as_one_rank_on_the_joint_batch(state *s)
{
    kn_module *net = wrap_small(s, network(s->rank)), *alone = network(0);
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1, .momentum = 0.9);
    kn_optim *optim_alone = kn_optim_sgd(kn_module_parameters(alone), .lr = 0.1, .momentum = 0.9);
    EXPECT(difference(net, alone, false) == 0); /* rank 0's parameters */
    EXPECT(strcmp(kn_module_parameters(net).names[0], "module.0.weight") == 0);
    EXPECT(strcmp(kn_module_parameters(kn_data_parallel_inner(net)).names[0], "0.weight") == 0);
    double first = 0, last = 0;
    for (int i = 0; i < 20; i++) {
        step(s, net, optim, i % 3, true);
        last = step(s, alone, optim_alone, i % 3, false);
        first = i == 0 ? last : first;
    }
    EXPECT(last < first);
    EXPECT(difference(net, alone, false) < 1e-10);
    EXPECT_OK(kn_distributed_check(net));
    kn_optim_free(optim);
    kn_optim_free(optim_alone);
    kn_module_free(net);
    kn_module_free(alone);
}

static void accumulates_without_sync(state *s)
{
    kn_module *net = wrap_small(s, network(0)), *alone = network(0);
    {
        KN_NO_SYNC(net);
        step(s, net, NULL, 1, true);
    }
    if (s->size > 1)
        EXPECT(difference(net, alone, true) > 1e-6); /* its own part's gradient only */
    step(s, net, NULL, 2, true);
    step(s, alone, NULL, 1, false);
    step(s, alone, NULL, 2, false);
    EXPECT(difference(net, alone, true) < 1e-12);
    kn_module_free(net);
    kn_module_free(alone);
}

/* Only rank 0 uses the second layer, nobody the third: its gradient stays NULL. */
static kn_tensor *part_of_network(kn_module *module, kn_tensor *x)
{
    const bool uses = *(bool *)kn_module_self(module);
    kn_tensor *y = kn_forward(kn_module_child(module, 0), x);
    return uses ? kn_forward(kn_module_child(module, 1), y) : y;
}

static void averages_what_some_ranks_use(state *s)
{
    const bool uses = s->rank == 0;
    kn_module *net = kn_module_new("Part", part_of_network, sizeof uses, NULL);
    *(bool *)kn_module_self(net) = uses;
    for (int i = 0; i < 3; i++) {
        kn_module *layer = kn_nn_linear(.in_features = FEATURES, .out_features = FEATURES, .bias = false);
        kn_module_register_module(net, (const char *const[]){"a", "b", "c"}[i], layer);
    }
    kn_module_to_dtype(net, KN_F64);
    for (int i = 0; i < 3; i++)
        fill(kn_module_parameters(net).tensors[i], i);
    net = wrap_small(s, net);
    KN_SCOPE;
    EXPECT_OK(kn_backward(kn_sum(kn_forward(net, batch(s, FEATURES, 3, true)))));
    const kn_parameter_list list = kn_module_parameters(net);
    EXPECT(kn_grad(list.tensors[0]) && kn_grad(list.tensors[1]) && !kn_grad(list.tensors[2]));
    EXPECT_OK(kn_distributed_check(net));
    kn_module_free(net);
}

static void keeps_buffers_and_refuses_other_modules(state *s)
{
    kn_module *norm = kn_nn_sequential(kn_nn_linear(.in_features = FEATURES, .out_features = 4),
                                       kn_nn_batch_norm1d(.num_features = 4));
    kn_module_to_dtype(norm, KN_F64);
    kn_module *net = wrap_small(s, norm);
    KN_SCOPE;
    for (int i = 0; i < 2; i++)
        EXPECT(kn_forward(net, batch(s, FEATURES, i, true)) != NULL);
    if (s->size > 1) /* after the last pass each has its own statistics */
        EXPECT(kn_distributed_check(net) == KN_ERR_STATE && strstr(kn_error_message(), "the buffers of rank 1"));
    kn_module_free(net);
    const int width = s->rank == s->size - 1 ? 7 : 6;
    kn_module *other = kn_nn_distributed(kn_nn_linear(.in_features = width, .out_features = 2), s->group);
    EXPECT(s->size == 1 ? other != NULL : !other && strstr(kn_error_message(), "differ from those of rank 0"));
    kn_module_free(other);
    EXPECT(!kn_nn_distributed(NULL, s->group) && kn_error_status() == KN_ERR_ARGUMENT);
}

/* 11 MB, more than small parameters are packed into. */
static void sends_a_large_parameter(state *s)
{
    kn_module *inner = kn_nn_linear(.in_features = 2048, .out_features = 1350, .bias = false);
    fill(kn_module_parameters(inner).tensors[0], s->rank);
    kn_module *net = kn_nn_distributed(inner, s->group);
    double first = NAN;
    if (EXPECT(net != NULL))
        EXPECT_OK(kn_item(kn_narrow(kn_flatten(kn_module_parameters(net).tensors[0], 0, -1), 0, 1, 1), &first));
    EXPECT(fabs(first - 0.4 * sin(1.7)) < 1e-6); /* rank 0's */
    kn_module_free(net);
}

int distributed_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        trains_as_one_rank_on_the_joint_batch,   accumulates_without_sync, averages_what_some_ranks_use,
        keeps_buffers_and_refuses_other_modules, sends_a_large_parameter,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
