/* seeds.c - the example programs: the matrix product, a step of linear regression, a step of the CNN, an epoch of it
 * with its loader. */
#include "bench.h"

#define FASHION_MNIST "/usr/share/datasets/fashion-mnist"

/* --- 10000 x 200 @ 200 x 10000 ---------------------------------------------------------------- */

static kn_tensor *matmul(kn_tensor *const *x, const double *parameters)
{
    (void)parameters;
    return kn_matmul(x[0], x[1]);
}

static const bench_operation product = {
    .name = "matmul",
    .apply = matmul,
    .inputs = {{.ndim = 2, .shape = {10000, 200}, .fill = BENCH_UNIFORM},
               {.ndim = 2, .shape = {200, 10000}, .fill = BENCH_UNIFORM}},
};

/* --- linear regression: 10^6 samples, MSE, Adam ------------------------------------------------ */

static kn_tensor *regression_forward(kn_module *module, kn_tensor *x)
{
    kn_tensor *const *self = kn_module_self(module); /* w, b */
    return kn_add(kn_matmul(x, kn_t(self[0])), self[1]);
}

static kn_tensor *mean_square(kn_tensor *output, kn_tensor *target)
{
    return kn_mse_loss(output, target, KN_REDUCTION_MEAN);
}

kn_status bench_regression_setup(const bench_case *self, bench_state *state)
{
    bench_training *t = bench_training_new(state);
    if (!t)
        return KN_ERR_MEMORY;
    {
        KN_SCOPE;
        t->criterion = mean_square;
        t->module = kn_module_new("LinearRegression", regression_forward, 2 * sizeof(kn_tensor *), NULL);
        kn_tensor **parameters = kn_module_self(t->module);
        if (!parameters)
            return kn_error_status();
        parameters[0] = kn_module_register_parameter(t->module, "w", kn_randn(KN_SHAPE(1, 2)));
        parameters[1] = kn_module_register_parameter(t->module, "b", kn_zeros(KN_SHAPE(1)));
        t->x = kn_retain(kn_rand(KN_SHAPE(self->size[0], 2)));
        t->y = kn_retain(kn_rand(KN_SHAPE(self->size[0], 1)));
    }
    t->optim = kn_optim_adam(kn_module_parameters(t->module), .lr = 0.1);
    return t->y && t->optim ? KN_OK : kn_error_status();
}

/* --- the CNN ----------------------------------------------------------------------------------- */

static kn_module *seed_network(void)
{
    return kn_nn_sequential(
        kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_dropout2d(.p = 0.1), kn_nn_adaptive_max_pool2d(1, 1), kn_nn_flatten(),
        kn_nn_linear(.in_features = 64, .out_features = 32), kn_nn_relu(),
        kn_nn_linear(.in_features = 32, .out_features = 10));
}

kn_status bench_cnn_setup(const bench_case *self, bench_state *state)
{
    bench_training *t = bench_training_new(state);
    if (!t)
        return KN_ERR_MEMORY;
    t->has_dropout = true;
    t->module = seed_network();
    t->optim = t->module ? kn_optim_adam(kn_module_parameters(t->module), .lr = 0.01) : NULL;
    {
        KN_SCOPE;
        t->x = kn_retain(kn_rand(KN_SHAPE(self->size[0], 1, 28, 28)));
        t->y = kn_retain(kn_randint(0, 10, KN_SHAPE(self->size[0])));
    }
    return t->optim && t->x && t->y ? KN_OK : kn_error_status();
}

static kn_status epoch_setup(const bench_case *self, bench_state *state)
{
    kn_status status = bench_cnn_setup(self, state);
    bench_training *t = state->data;
    if (status != KN_OK)
        return status;
    t->dataset = kn_mnist_dataset(FASHION_MNIST, true);
    t->loader = kn_loader_new(t->dataset, .batch_size = self->size[0], .shuffle = true, .num_workers = 2);
    return kn_status_of(t->loader);
}

static kn_status epoch_run(const bench_case *self, bench_state *state)
{
    (void)self;
    bench_training *t = state->data;
    KN_FOR_BATCHES (batch, t->loader, 0) {
        kn_status status = bench_training_step(t, batch->input, batch->target);
        if (status != KN_OK)
            return status;
    }
    return kn_loader_status(t->loader);
}

/* --- the table --------------------------------------------------------------------------------- */

/* Multiply-adds of a CNN step per image: forward, the gradient of conv2's input, both convolutions' weights; the linear
 * layers three times. */
#define CONV1 (2.0 * 32 * 9 * 26 * 26)
#define CONV2 (2.0 * 64 * 800 * 9 * 9)
#define CNN_FLOPS (2 * CONV1 + 3 * CONV2 + 3 * 2.0 * (64 * 32 + 32 * 10))

#define REGRESSION(label, replayed_)                                                                                   \
    {                                                                                                                  \
        .name = label, .shape = "1000000x2", .dtype = KN_F32, .setup = bench_regression_setup, BENCH_TRAINING,         \
        .size = {1000000}, .replayed = replayed_,                                                                      \
    }
#define CNN_STEP(label, replayed_)                                                                                     \
    {                                                                                                                  \
        .name = label, .shape = "batch 128", .dtype = KN_F32, .flops = 128 * CNN_FLOPS, .setup = bench_cnn_setup,      \
        BENCH_TRAINING, .size = {128}, .replayed = replayed_,                                                          \
    }

static const bench_case cases[] = {
    {.name = "matmul",
     .shape = "10000x200 @ 200x10000",
     .dtype = KN_F32,
     .flops = 2.0 * 10000 * 200 * 10000,
     .bytes = 4.0 * (2 * 10000 * 200 + 1e8),
     .operation = &product,
     BENCH_OPERATION},
    REGRESSION("linear_regression", false),
    REGRESSION("linear_regression/replayed", true),
    CNN_STEP("cnn_step", false),
    CNN_STEP("cnn_step/replayed", true),
    {.name = "mnist_epoch",
     .shape = "60000 images, batch 128",
     .dtype = KN_F32,
     .flops = 60000 * CNN_FLOPS,
     .setup = epoch_setup,
     .run = epoch_run,
     .teardown = bench_training_teardown,
     .size = {128},
     .most = 4},
};
const bench_list bench_seeds = {cases, sizeof cases / sizeof cases[0]};
