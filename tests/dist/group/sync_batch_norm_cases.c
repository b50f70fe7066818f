/* sync_batch_norm_cases.c - batch normalisation over ranks, compared with one rank's of the joint batch. */
#include <math.h>
#include <string.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/training.h"

#define CHANNELS 3

/* Unequal batches; the last of several ranks has no row. */
static int rows_of(const state *s, int rank)
{
    return s->size > 2 && rank == s->size - 1 ? 0 : 2 * rank + 1 + (s->size == 1);
}

static int rows_before(const state *s, int rank)
{
    int rows = 0;
    for (int r = 0; r < rank; r++)
        rows += rows_of(s, r);
    return rows;
}

/* The joint tensor [rows, CHANNELS] or [rows, CHANNELS, 2, 3]. */
static kn_tensor *joint(state *s, bool images, double seed)
{
    const int64_t rows = rows_before(s, s->size);
    kn_tensor *x = kn_empty_with(images ? 4 : 2, (const int64_t[]){rows, CHANNELS, 2, 3},
                                 &(kn_tensor_options){.dtype = KN_F64, .device = s->device});
    fill(x, seed);
    return x;
}

static kn_tensor *part(state *s, kn_tensor *x) { return kn_narrow(x, 0, rows_before(s, s->rank), rows_of(s, s->rank)); }

static double largest(kn_tensor *x, kn_tensor *y)
{
    double value = kn_numel(x) == 0 ? 0 : INFINITY;
    if (kn_numel(x) > 0)
        kn_item(kn_max(kn_abs(kn_sub(x, y))), &value);
    return isfinite(value) ? value : INFINITY;
}

/* Sums of the ranks' gradients of weight and bias are those of the joint batch. */
static void compare_gradients(state *s, kn_module *norm, kn_module *alone)
{
    KN_NO_GRAD;
    for (int i = 0; i < 2; i++) {
        kn_tensor *sum = kn_clone(kn_grad(kn_module_parameters(norm).tensors[i]));
        EXPECT_OK(kn_group_all_reduce(s->group, sum));
        EXPECT(largest(sum, kn_grad(kn_module_parameters(alone).tensors[i])) < 1e-10);
    }
}

static void compare_pass(state *s, kn_module *norm, kn_module *alone, bool images, double seed)
{
    KN_SCOPE;
    kn_tensor *all = joint(s, images, seed), *factors = joint(s, images, seed + 0.5);
    kn_tensor *x = kn_clone(part(s, all));
    kn_set_requires_grad(x, true);
    kn_set_requires_grad(all, true);
    kn_module_zero_grad(norm);
    kn_module_zero_grad(alone);
    kn_tensor *y = kn_forward(norm, x), *y_all = kn_forward(alone, all);
    EXPECT(largest(y, part(s, y_all)) < 1e-10);
    EXPECT_OK(kn_backward(kn_sum(kn_mul(y, part(s, factors)))));
    EXPECT_OK(kn_backward(kn_sum(kn_mul(y_all, factors))));
    KN_NO_GRAD;
    EXPECT(largest(kn_grad(x), part(s, kn_grad(all))) < 1e-10);
    compare_gradients(s, norm, alone);
    for (int i = 0; i < 2; i++)
        EXPECT(largest(kn_module_buffers(norm).tensors[i], kn_module_buffers(alone).tensors[i]) < 1e-10);
}

static void is_that_of_the_joint_batch(state *s)
{
    for (int images = 0; images < 2; images++) {
        kn_module *norm = kn_nn_sync_batch_norm(s->group, .num_features = CHANNELS, .cumulative_average = images);
        kn_module *alone = images ? kn_nn_batch_norm2d(.num_features = CHANNELS, .cumulative_average = true)
                                  : kn_nn_batch_norm1d(.num_features = CHANNELS);
        kn_module *const modules[] = {norm, alone};
        for (int m = 0; m < 2; m++) {
            kn_module_to_dtype(modules[m], KN_F64);
            for (int i = 0; i < 2; i++)
                fill(kn_module_parameters(modules[m]).tensors[i], 3 + i);
        }
        compare_pass(s, norm, alone, images, 1);
        compare_pass(s, norm, alone, images, 2);
        kn_module_train(norm, false);
        kn_module_train(alone, false);
        KN_NO_GRAD;
        kn_tensor *x = joint(s, images, 3);
        EXPECT(largest(kn_forward(norm, x), kn_forward(alone, x)) < 1e-10);
        kn_module_free(norm);
        kn_module_free(alone);
    }
}

static kn_module *convolutions(void)
{
    kn_module *net = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 2, .kernel_size = 2),
                                      kn_nn_batch_norm2d(.num_features = 2), kn_nn_relu(), kn_nn_flatten(),
                                      kn_nn_linear(.in_features = 8, .out_features = 2));
    kn_module_to_dtype(net, KN_F64);
    for (int i = 0; i < kn_module_parameters(net).count; i++)
        fill(kn_module_parameters(net).tensors[i], i);
    return net;
}

static void train_step(state *s, kn_module *net, kn_optim *optim, int number, bool of_rank)
{
    KN_SCOPE;
    kn_tensor *x = batch(s, 9, number, of_rank);
    kn_optim_zero_grad(optim);
    kn_tensor *y = kn_forward(net, kn_reshape(x, KN_SHAPE(kn_size(x, 0), 1, 3, 3)));
    EXPECT_OK(kn_backward(kn_mse_loss(y, batch(s, 2, number + 0.5, of_rank), KN_REDUCTION_MEAN)));
    EXPECT_OK(kn_optim_step(optim));
}

/* A converted network under kn_nn_distributed trains as the plain one on the joint batch. */
static void converts_a_network(state *s)
{
    kn_module *alone = convolutions(), *converted = kn_convert_sync_batchnorm(convolutions(), s->group);
    EXPECT(converted && strcmp(kn_module_type_name(kn_module_child(converted, 1)), "SyncBatchNorm") == 0);
    kn_module *net = wrap_small(s, converted);
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1);
    kn_optim *optim_alone = kn_optim_sgd(kn_module_parameters(alone), .lr = 0.1);
    for (int i = 0; i < 3; i++) {
        train_step(s, net, optim, i, true);
        train_step(s, alone, optim_alone, i, false);
    }
    EXPECT(difference(net, alone, false) < 1e-10);
    EXPECT_OK(kn_distributed_check(net)); /* buffers too, without a broadcast */
    kn_optim_free(optim);
    kn_optim_free(optim_alone);
    kn_module_free(net);
    kn_module_free(alone);
}

static void refuses_what_it_cannot_normalise(state *s)
{
    kn_module *norm = kn_nn_sync_batch_norm(s->group, .num_features = 2);
    kn_tensor *one = kn_ones(KN_SHAPE(s->rank == 0, 2), .device = s->device);
    EXPECT(!kn_forward(norm, one) && strstr(kn_error_message(), "more than 1 value per channel"));
    EXPECT(!kn_forward(norm, kn_ones(KN_SHAPE(2), .device = s->device)) &&
           strstr(kn_error_message(), "at least 2-dimensional"));
    EXPECT(!kn_forward(norm, kn_ones(KN_SHAPE(2, 3), .device = s->device)) && strstr(kn_error_message(), "3 channels"));
    EXPECT(!kn_nn_sync_batch_norm(NULL, .num_features = 2));
    EXPECT(!kn_convert_sync_batchnorm(NULL, s->group));
    kn_module_free(norm);
}

int sync_batch_norm_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        is_that_of_the_joint_batch,
        converts_a_network,
        refuses_what_it_cannot_normalise,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
