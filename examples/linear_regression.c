/* linear_regression.c - fits y = x w^T + b to a million points by gradient descent, on the CPU device and on the GPU,
 * timed side by side. */
#include <koine/koine.h>
#include <stdio.h>

#include "common/options.h"
#include "common/side_by_side.h"

static const char program[] = "linear_regression";

typedef struct settings {
    const char *device;
    int64_t samples, epochs, every, seed;
    double lr;
} settings;

/* --- the model: a user-defined module -------------------------------------------------------------------------- */

typedef struct regression {
    kn_tensor *w, *b;
} regression;

static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    regression *self = kn_module_self(module);
    return kn_add(kn_matmul(x, kn_t(self->w)), self->b);
}

static kn_module *new_regression(void)
{
    kn_module *module = kn_module_new("LinearRegression", forward, sizeof(regression), NULL);
    regression *self = kn_module_self(module);
    if (self == NULL)
        return NULL;
    {
        KN_SCOPE;
        self->w = kn_module_register_parameter(module, "w", kn_randn(KN_SHAPE(1, 2)));
        self->b = kn_module_register_parameter(module, "b", kn_zeros(KN_SHAPE(1)));
    }
    if (self->w != NULL && self->b != NULL)
        return module;
    kn_module_free(module);
    return NULL;
}

/* --- the data: y = x (2, -3)^T + 10 + noise -------------------------------------------------------------------- */

static bool make_data(int64_t samples, kn_tensor **x, kn_tensor **y)
{
    {
        KN_SCOPE;
        kn_tensor *w = kn_from_data(((float[]){2, -3}), KN_SHAPE(2, 1));
        *x = kn_retain(kn_add_scalar(kn_mul_scalar(kn_rand(KN_SHAPE(samples, 2)), 10), -5));
        kn_tensor *noise = kn_normal_(kn_empty(KN_SHAPE(samples, 1)), 0, 2);
        *y = kn_retain(kn_add(kn_add_scalar(kn_matmul(*x, w), 10), noise));
    }
    return *x != NULL && *y != NULL;
}

/* --- training -------------------------------------------------------------------------------------------------- */

static bool step(kn_module *model, kn_optim *optim, kn_tensor *x, kn_tensor *y, double *loss_value)
{
    bool done = false;

    KN_SCOPE;
    kn_optim_zero_grad(optim);
    kn_tensor *loss = kn_mse_loss(kn_forward(model, x), y, KN_REDUCTION_MEAN);
    done = kn_backward(loss) == KN_OK && kn_optim_step(optim) == KN_OK &&
           (loss_value == NULL || kn_item(loss, loss_value) == KN_OK);

    return done;
}

static bool train(const settings *s, kn_module *model, kn_optim *optim, kn_tensor *x, kn_tensor *y, double *seconds)
{
    double started = seconds_now();
    for (int64_t epoch = 0; epoch < s->epochs; epoch++) {
        /* Reading the loss makes the host wait for the device, so it is read only when it is printed. */
        bool shown = epoch % s->every == 0;
        double loss;
        if (!step(model, optim, x, y, shown ? &loss : NULL))
            return false;
        if (shown)
            printf("epoch: %lld, loss: %.6f\n", (long long)epoch, loss);
    }
    if (kn_synchronize(kn_device_of(x)) != KN_OK)
        return false;
    *seconds = seconds_now() - started;
    printf("time used: %.3f s, %.3f ms per epoch\n", *seconds, 1e3 * *seconds / (double)s->epochs);
    return true;
}

/* The fitted w1, w2, b. */
static bool read_result(kn_module *model, double found[3])
{
    regression *self = kn_module_self(model);
    float w[2], b;
    if (kn_read(self->w, w, sizeof w) != KN_OK || kn_read(self->b, &b, sizeof b) != KN_OK)
        return false;
    found[0] = w[0];
    found[1] = w[1];
    found[2] = b;
    return true;
}

static bool run_on(const settings *s, kn_device *device, double *seconds, double found[3])
{
    if (kn_device_set_current(device) != KN_OK)
        return false;
    printf("device: %s (%s)\n", kn_device_string(device), kn_device_name(device));
    kn_manual_seed((uint64_t)s->seed);
    kn_tensor *x = NULL, *y = NULL;
    kn_module *model = NULL;
    kn_optim *optim = NULL;
    bool done = make_data(s->samples, &x, &y);
    if (done) {
        model = new_regression();
        optim = kn_optim_adam(kn_module_parameters(model), .lr = s->lr);
        done = optim != NULL && train(s, model, optim, x, y, seconds) && read_result(model, found);
    }
    if (done)
        printf("w = (%.4f, %.4f), b = %.4f\n\n", found[0], found[1], found[2]);
    kn_optim_free(optim);
    kn_module_free(model);
    kn_release(x);
    kn_release(y);
    return done;
}

int main(int argc, char **argv)
{
    settings s = {.samples = 1000000, .epochs = 500, .every = 50, .lr = 0.1};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0,
         "this device only; otherwise the CPU device and the GPU, side by side"},
        {"--samples", "N", OPTION_WHOLE, &s.samples, 1, 1e9, "points"},
        {"--epochs", "N", OPTION_WHOLE, &s.epochs, 1, 1e9, "steps, each over all points"},
        {"--every", "N", OPTION_WHOLE, &s.every, 1, 1e9, "epochs between printed lines"},
        {"--lr", "X", OPTION_NUMBER, &s.lr, 0, 1000, "learning rate of Adam"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the data and the initial weights"},
    };
    int usage = options_parse(program, "Fits w = (2, -3) and b = 10 to noisy points.", options, OPTION_COUNT(options),
                              argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    kn_device *devices[MAX_DEVICES];
    double seconds[MAX_DEVICES], found[MAX_DEVICES][3];
    int count = devices_to_compare(devices, s.device), done = 0;
    while (done < count && run_on(&s, devices[done], &seconds[done], found[done]))
        done++;
    if (count == 0 || done < count) {
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
        return 1;
    }
    printf("%-10s %10s %12s %10s %10s %10s\n", "device", "seconds", "ms/epoch", "w1", "w2", "b");
    for (int i = 0; i < count; i++)
        printf("%-10s %10.3f %12.3f %10.4f %10.4f %10.4f\n", kn_device_string(devices[i]), seconds[i],
               1e3 * seconds[i] / (double)s.epochs, found[i][0], found[i][1], found[i][2]);
    return options_finish(program, 0);
}
