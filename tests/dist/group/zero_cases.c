/* zero_cases.c - optimizers divided among ranks, compared with undivided ones, to the bit; clipping and scaling. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/training.h"
#include "dist/zero_share.h"

/* A distributed network with an optimizer; `name` NULL: AdamW. */
typedef struct trained {
    kn_module *net;
    kn_optim *optim;
} trained;

static trained train_with(state *s, const char *name, kn_group *divided_among)
{
    trained t = {.net = wrap_small(s, network(0))};
    kn_tensor *matrices[3];
    kn_parameter_list list = kn_module_parameters(t.net);
    if (name && strcmp(name, "Muon") == 0) {
        for (int i = 0; i < 3; i++)
            matrices[i] = list.tensors[2 * i];
        list = (kn_parameter_list){.tensors = matrices, .count = 3};
    }
    t.optim = kn_optim_named(name ? name : "AdamW", list, {"lr", 0.05});
    EXPECT(t.optim != NULL);
    if (divided_among)
        t.optim = kn_optim_zero(t.optim, divided_among);
    EXPECT(t.optim != NULL);
    return t;
}

static void end_training(trained *t)
{
    kn_optim_free(t->optim);
    kn_module_free(t->net);
}

static void train_both(state *s, trained *a, trained *b, int first, int end)
{
    for (int i = first; i < end; i++) {
        step(s, a->net, a->optim, i, true);
        step(s, b->net, b->optim, i, true);
    }
    EXPECT(difference(a->net, b->net, false) == 0);
}

/* Transfers cut the parameters, and in the end some ranks have nothing left to give. */
static void shares_parameters_in_small_pieces(state *s)
{
    const int64_t before = kn_zero_transfer_bytes;
    trained divided = train_with(s, NULL, s->group), whole = train_with(s, NULL, NULL);
    for (int64_t bytes = 64; bytes <= 1024; bytes *= 4) {
        EXPECT_OK(kn_group_barrier(s->group));
        kn_zero_transfer_bytes = bytes * s->size;
        train_both(s, &divided, &whole, 0, 2);
        EXPECT_OK(kn_distributed_check(divided.net));
        EXPECT_OK(kn_group_barrier(s->group));
        kn_zero_transfer_bytes = before;
    }
    end_training(&divided);
    end_training(&whole);
}

/* All of them with two ranks; their kernels cost time. */
static void steps_like_the_undivided_optimizer(state *s)
{
    static const char *const names[] = {"AdamW",  "SGD",  "Adam",  "RMSprop", "Adagrad", "Adadelta",  "NAdam", "RAdam",
                                        "Adamax", "ASGD", "Rprop", "LAMB",    "Lion",    "Adafactor", "Muon"};
    const size_t count = s->size == 2 ? sizeof names / sizeof names[0] : 1;
    for (size_t n = 0; n < count; n++) {
        trained divided = train_with(s, names[n], s->group), whole = train_with(s, names[n], NULL);
        train_both(s, &divided, &whole, 0, 3);
        EXPECT_OK(kn_distributed_check(divided.net));
        end_training(&divided);
        end_training(&whole);
    }
    kn_module *net = network(0);
    EXPECT(!kn_optim_zero(kn_optim_lbfgs(kn_module_parameters(net)), s->group) &&
           strstr(kn_error_message(), "LBFGS steps all parameters together"));
    kn_module_free(net);
}

/* Each rank keeps its share, and little more than the n-th part. */
static void divides_the_state(state *s)
{
    trained divided = train_with(s, NULL, s->group), whole = train_with(s, NULL, NULL);
    train_both(s, &divided, &whole, 0, 1);
    const int64_t all = kn_optim_state_bytes(whole.optim), own = kn_optim_state_bytes(divided.optim);
    const int64_t largest = 2 * 64 * (int64_t)sizeof(double); /* two moments of [9, 6], rounded up to 64 elements */
    kn_tensor *sum = kn_full(KN_SHAPE(1), (double)own, .dtype = KN_I64, .device = kn_device_host());
    EXPECT_OK(kn_group_all_reduce(s->group, sum));
    EXPECT(all > 0 && *(int64_t *)kn_data(sum) == all);
    EXPECT(own <= all / s->size + largest);
    if (s->rank == 0)
        printf("state of AdamW: %lld bytes, on rank 0 of %d %lld\n", (long long)all, s->size, (long long)own);
    end_training(&divided);
    end_training(&whole);
}

static void gives_added_parameters_an_owner(state *s)
{
    trained whole = train_with(s, NULL, NULL), divided = {.net = wrap_small(s, network(0))};
    kn_parameter_list first = kn_module_parameters(divided.net), rest = first;
    first.count = 2;
    rest.tensors += 2;
    rest.count -= 2;
    divided.optim = kn_optim_zero(kn_optim_adamw(first, .lr = 0.05), s->group);
    EXPECT_OK(kn_optim_add_group(divided.optim, rest));
    train_both(s, &divided, &whole, 0, 2);
    end_training(&divided);
    end_training(&whole);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* "/tmp/koine_zero_PID_NAME", with rank 0's PID. */
static void path_of(state *s, char path[80], const char *name)
{
    kn_tensor *pid = kn_full(KN_SHAPE(1), (double)getpid(), .dtype = KN_I64, .device = kn_device_host());
    EXPECT_OK(kn_group_broadcast(s->group, pid, 0));
    snprintf(path, 80, "/tmp/koine_zero_%lld_%s", (long long)*(int64_t *)kn_data(pid), name);
}

static void copy_parameters(kn_module *to, kn_module *from)
{
    KN_NO_GRAD;
    for (int i = 0; i < kn_module_parameters(to).count; i++)
        kn_copy_(kn_module_parameters(to).tensors[i], kn_module_parameters(from).tensors[i]);
}

/* Into an undivided optimizer, and into one divided among half of the ranks. */
static void saves_one_file(state *s)
{
    char path[80];
    kn_group *half = NULL;
    path_of(s, path, "whole");
    EXPECT_OK(kn_group_split(s->group, s->rank / 2, 0, &half));
    trained first = train_with(s, NULL, s->group), whole = train_with(s, NULL, NULL), again = train_with(s, NULL, half);
    for (int i = 0; i < 2; i++)
        step(s, first.net, first.optim, i, true);
    EXPECT_OK(kn_optim_zero_consolidate(first.optim, 0));
    if (s->rank == 0)
        EXPECT_OK(kn_optim_save(first.optim, path));
    EXPECT_OK(kn_group_barrier(s->group));
    EXPECT_OK(kn_optim_load(whole.optim, path));
    EXPECT_OK(kn_optim_load(again.optim, path));
    copy_parameters(whole.net, first.net);
    copy_parameters(again.net, first.net);
    train_both(s, &first, &whole, 2, 3);
    step(s, again.net, again.optim, 2, true);
    EXPECT(difference(first.net, again.net, false) == 0);
    EXPECT_OK(kn_optim_zero_consolidate(whole.optim, 0)); /* nothing to do */
    EXPECT_OK(kn_group_barrier(s->group));
    if (s->rank == 0)
        unlink(path);
    end_training(&first);
    end_training(&whole);
    end_training(&again);
    kn_group_free(half);
}

static void saves_a_file_for_each_rank(state *s)
{
    char paths[8][80], name[16];
    const char *list[8];
    trained first = train_with(s, NULL, s->group), whole = train_with(s, NULL, NULL);
    for (int r = 0; r < s->size; r++) {
        snprintf(name, sizeof name, "part_%d", r);
        path_of(s, paths[r], name);
        list[s->size - 1 - r] = paths[r]; /* in any order */
    }
    for (int i = 0; i < 2; i++)
        step(s, first.net, first.optim, i, true);
    EXPECT_OK(kn_optim_save(first.optim, paths[s->rank]));
    EXPECT_OK(kn_group_barrier(s->group));
    if (s->size > 1) {
        EXPECT(kn_optim_load(whole.optim, paths[1]) == KN_ERR_FORMAT &&
               strstr(kn_error_message(), "holds a part of an optimizer's state, that of rank 1 of"));
        EXPECT(kn_optim_zero_load(whole.optim, list, 1) == KN_ERR_FORMAT);
    }
    EXPECT_OK(kn_optim_zero_load(whole.optim, list, s->size));
    copy_parameters(whole.net, first.net);
    train_both(s, &first, &whole, 2, 3);
    EXPECT_OK(kn_group_barrier(s->group));
    unlink(paths[s->rank]);
    end_training(&first);
    end_training(&whole);
}

/* --- clipping and scaling ----------------------------------------------------------------------------------------- */

static double clip(kn_module *net, double most)
{
    KN_SCOPE;
    double norm = NAN;
    kn_item(kn_clip_grad_norm_(kn_module_parameters(net), most), &norm);
    return norm;
}

static void clips_as_on_the_joint_batch(state *s)
{
    trained t = train_with(s, NULL, s->group);
    kn_module *alone = network(0);
    step(s, t.net, NULL, 1, true);
    step(s, alone, NULL, 1, false);
    const double norm = clip(t.net, 1e-3), norm_alone = clip(alone, 1e-3);
    EXPECT(norm > 1e-3 && fabs(norm - norm_alone) < 1e-12);
    EXPECT(difference(t.net, alone, true) < 1e-12);
    EXPECT_OK(kn_optim_step(t.optim));
    EXPECT_OK(kn_distributed_check(t.net));
    kn_module_free(alone);
    end_training(&t);
}

static void scaled_step(state *s, trained *t, kn_grad_scaler *scaler, double factor)
{
    KN_SCOPE;
    kn_optim_zero_grad(t->optim);
    kn_tensor *loss = kn_mean(kn_square(kn_forward(t->net, batch(s, FEATURES, 1, true))));
    EXPECT_OK(kn_backward(kn_grad_scaler_scale(scaler, kn_mul_scalar(loss, factor))));
    EXPECT_OK(kn_grad_scaler_step(scaler, t->optim));
    EXPECT_OK(kn_grad_scaler_update(scaler));
}

/* One rank's loss overflows: nobody steps, and all lower the scale. */
static void skips_a_step_on_all_ranks(state *s)
{
    for (int divided = 0; divided < 2; divided++) {
        double scale = 0;
        kn_module *before = network(0);
        trained t = train_with(s, NULL, divided ? s->group : NULL);
        kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 1024);
        scaled_step(s, &t, scaler, s->rank == s->size - 1 ? INFINITY : 1);
        EXPECT(difference(t.net, before, false) == 0);
        EXPECT_OK(kn_grad_scaler_get_scale(scaler, &scale));
        EXPECT(scale == 512);
        scaled_step(s, &t, scaler, 1);
        EXPECT(difference(t.net, before, false) > 0);
        EXPECT_OK(kn_distributed_check(t.net));
        kn_grad_scaler_free(scaler);
        kn_module_free(before);
        end_training(&t);
    }
}

/* Gradients that no module has averaged. */
static void agrees_on_what_one_rank_found(state *s)
{
    kn_module *net = network(0), *before = network(0);
    kn_optim *optim = kn_optim_zero(kn_optim_sgd(kn_module_parameters(net), .lr = 0.1), s->group);
    kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 1);
    kn_tensor *loss = kn_mean(kn_square(kn_forward(net, batch(s, FEATURES, 1, false))));
    EXPECT_OK(kn_backward(kn_grad_scaler_scale(scaler, kn_mul_scalar(loss, s->rank == 0 ? NAN : 1))));
    EXPECT_OK(kn_grad_scaler_step(scaler, optim));
    EXPECT(difference(net, before, false) == 0);
    kn_grad_scaler_free(scaler);
    kn_optim_free(optim);
    kn_module_free(net);
    kn_module_free(before);
}

int zero_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        steps_like_the_undivided_optimizer,
        shares_parameters_in_small_pieces,
        divides_the_state,
        gives_added_parameters_an_owner,
        saves_one_file,
        saves_a_file_for_each_rank,
        clips_as_on_the_joint_batch,
        skips_a_step_on_all_ranks,
        agrees_on_what_one_rank_found,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
