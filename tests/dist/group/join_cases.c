/* join_cases.c - ranks with unequal numbers of batches. */
#include <string.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/training.h"

static int batches_of(int rank) { return 2 + rank; }

/* The joint step of all ranks that have a batch: their gradients, divided by `divisor`. */
static void step_alone(state *s, kn_module *alone, kn_optim *optim, int number, bool by_all)
{
    KN_SCOPE;
    int active = 0;
    for (int r = 0; r < s->size; r++)
        active += number < batches_of(r);
    kn_optim_zero_grad(optim);
    for (int r = 0; r < s->size; r++) {
        if (number >= batches_of(r))
            continue;
        kn_tensor *x = kn_narrow(batch(s, FEATURES, number, false), 0, ROWS * r, ROWS);
        kn_tensor *y = kn_narrow(batch(s, 2, number + 0.5, false), 0, ROWS * r, ROWS);
        kn_tensor *loss = kn_mse_loss(kn_forward(alone, x), y, KN_REDUCTION_MEAN);
        EXPECT_OK(kn_backward(kn_div_scalar(loss, by_all ? s->size : active)));
    }
    EXPECT_OK(kn_optim_step(optim));
}

/* Two epochs: in the second one the momentum of all ranks must be the same, too. */
static void answers_the_ranks_that_have_more(state *s)
{
    for (int by_all = 0; by_all < 2; by_all++) {
        kn_module *net = wrap_small(s, network(0)), *alone = network(0);
        kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1, .momentum = 0.9);
        kn_optim *optim_alone = kn_optim_sgd(kn_module_parameters(alone), .lr = 0.1, .momentum = 0.9);
        for (int epoch = 0; epoch < 2; epoch++) {
            EXPECT_OK(kn_distributed_join_begin(net, .divide_by_initial_world_size = by_all, .optim = optim));
            for (int i = 0; i < batches_of(s->rank); i++)
                step(s, net, optim, i, true);
            EXPECT_OK(kn_distributed_join_end(net));
            for (int i = 0; i < batches_of(s->size - 1); i++)
                step_alone(s, alone, optim_alone, i, by_all);
            EXPECT(difference(net, alone, false) < 1e-12);
        }
        step(s, net, optim, 1, true); /* as if nothing had been */
        step(s, alone, optim_alone, 1, false);
        EXPECT(difference(net, alone, false) < 1e-12);
        EXPECT_OK(kn_distributed_check(net));
        kn_optim_free(optim);
        kn_optim_free(optim_alone);
        kn_module_free(net);
        kn_module_free(alone);
    }
}

/* Without the optimizer, and with statistics: in the end all have those of the last rank. */
static void ends_with_the_last_ranks_values(state *s)
{
    kn_module *norm = kn_nn_sequential(kn_nn_linear(.in_features = FEATURES, .out_features = 4),
                                       kn_nn_batch_norm1d(.num_features = 4));
    kn_module_to_dtype(norm, KN_F64);
    for (int i = 0; i < 2; i++)
        fill(kn_module_parameters(norm).tensors[i], i);
    kn_module *net = wrap_small(s, norm);
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1);
    EXPECT_OK(kn_distributed_join_begin(net));
    EXPECT(kn_distributed_join_begin(net) == KN_ERR_STATE);
    for (int i = 0; i < batches_of(s->rank); i++) {
        KN_SCOPE;
        kn_optim_zero_grad(optim);
        EXPECT_OK(kn_backward(kn_sum(kn_square(kn_forward(net, batch(s, FEATURES, i, true))))));
        EXPECT_OK(kn_optim_step(optim));
    }
    EXPECT_OK(kn_distributed_join_end(net));
    EXPECT_OK(kn_distributed_check(net));
    int64_t count = 0;
    EXPECT_OK(kn_read(kn_module_buffers(net).tensors[2], &count, sizeof count));
    EXPECT(count == batches_of(s->size - 1));
    EXPECT(kn_distributed_join_end(net) == KN_ERR_STATE);
    kn_optim_free(optim);
    kn_module_free(net);
}

static void ends_all_with_the_first(state *s)
{
    kn_module *net = wrap_small(s, network(0));
    bool has_failed = false;
    EXPECT_OK(kn_distributed_join_begin(net, .throw_on_early_termination = true));
    for (int i = 0; i < batches_of(s->rank) && !has_failed; i++) {
        KN_SCOPE;
        kn_tensor *y = kn_forward(net, batch(s, FEATURES, i, true));
        has_failed = !y;
        EXPECT(y ? i < batches_of(0)
                 : i == batches_of(0) && strstr(kn_error_message(), "rank 0 (") &&
                       strstr(kn_error_message(), ") has no more batches"));
        if (y)
            EXPECT_OK(kn_backward(kn_sum(y)));
    }
    EXPECT(has_failed == (s->rank > 0));
    EXPECT(kn_distributed_join_end(net) == (s->size == 1 ? KN_OK : KN_ERR_STATE));
    EXPECT_OK(kn_group_barrier(s->group)); /* the group goes on */
    kn_module_free(net);
}

int join_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        answers_the_ranks_that_have_more,
        ends_with_the_last_ranks_values,
        ends_all_with_the_first,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
