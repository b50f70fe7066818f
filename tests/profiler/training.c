/* profiler/training.c - the examples' network and one training step; inspecting results. */
#include "profiler/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

void training_open(training *t, int64_t batch)
{
    kn_manual_seed(0);
    t->net = kn_nn_sequential(
        kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_dropout2d(.p = 0.1), kn_nn_adaptive_max_pool2d(1, 1), kn_nn_flatten(),
        kn_nn_linear(.in_features = 64, .out_features = 32), kn_nn_relu(),
        kn_nn_linear(.in_features = 32, .out_features = 10));
    t->optim = kn_optim_adam(kn_module_parameters(t->net), .lr = 0.01);
    t->x = t->y = NULL;
    {
        KN_SCOPE;
        t->x = kn_retain(kn_rand(KN_SHAPE(batch, 1, 28, 28)));
        t->y = kn_retain(kn_randint(0, 10, KN_SHAPE(batch)));
    }
    CHECK_TENSOR(t->x);
    CHECK_TENSOR(t->y);
    assert_non_null(t->optim);
}

void training_close(training *t)
{
    kn_optim_free(t->optim);
    kn_module_free(t->net);
    kn_release(t->x);
    kn_release(t->y);
}

void training_step(training *t)
{
    KN_SCOPE;
    kn_tensor *loss = NULL;
    kn_optim_zero_grad(t->optim);
    {
        KN_RANGE("forward");
        loss = kn_cross_entropy(kn_forward(t->net, t->x), t->y);
    }
    CHECK_TENSOR(loss);
    CHECK_OK(kn_backward(loss));
    {
        KN_RANGE("update");
        CHECK_OK(kn_optim_step(t->optim));
    }
}

const kn_profiler_row *find_row(const kn_profiler_row *rows, int count, const char *name, bool on_device)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0 && rows[i].on_device == on_device)
            return &rows[i];
    fail_msg("no row `%s`", name);
    return NULL;
}

bool has_row(const kn_profiler_row *rows, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    return text;
}

int close_profiler(void **state)
{
    (void)state;
    kn_profiler_clear();
    return 0;
}
