/* grad_norms.c - monitors training step by step: loss, gradient norm and gradient histograms, kept on the device and
 * fetched from time to time, with a plot. The task is to separate two spirals. */
#include <koine/koine.h>
#include <math.h>
#include <stdio.h>

#include "common/options.h"

enum { SAMPLES = 1024, BATCH = 64 };

typedef struct run {
    kn_dataset *data;
    kn_loader *loader;
    kn_module *net;
    kn_optim *optim;
    kn_trainer *trainer;
} run;

typedef struct settings {
    const char *device, *out;
    int64_t epochs, every, seed;
    double lr;
} settings;

/* Two spiral arms, one class each. */
static kn_dataset *spirals(void)
{
    kn_dataset *dataset = NULL;

    KN_SCOPE;
    kn_tensor *points = kn_empty(KN_SHAPE(SAMPLES, 2), .device = kn_device_host());
    kn_tensor *arms = kn_empty(KN_SHAPE(SAMPLES), .dtype = KN_I64, .device = kn_device_host());
    float *xy = kn_data(points);
    int64_t *arm = kn_data(arms);
    for (int i = 0; xy && arm && i < SAMPLES; i++) {
        double along = (double)(i / 2) / (SAMPLES / 2), angle = 9 * along + (i % 2) * 3.14159265;
        xy[2 * i] = (float)((0.1 + along) * cos(angle));
        xy[2 * i + 1] = (float)((0.1 + along) * sin(angle));
        arm[i] = i % 2;
    }
    dataset = kn_tensor_dataset(points, arms);

    return dataset;
}

static bool set_up(run *r, const settings *s)
{
    kn_device *device = kn_device_open(s->device);
    if (device == NULL || kn_device_set_current(device) != KN_OK)
        return false;
    kn_manual_seed((uint64_t)s->seed);
    r->net = kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 64), kn_nn_relu(),
                              kn_nn_linear(.in_features = 64, .out_features = 64), kn_nn_relu(),
                              kn_nn_linear(.in_features = 64, .out_features = 2));
    r->optim = kn_optim_adam(kn_module_parameters(r->net), .lr = s->lr);
    r->data = spirals();
    r->loader =
        kn_loader_new(r->data, .batch_size = BATCH, .shuffle = true, .num_workers = 2, .seed = (uint64_t)s->seed);
    r->trainer = kn_trainer_new(.module = r->net, .optim = r->optim, .epochs = (int)s->epochs, .patience = 0,
                                .output = s->out, .quiet = true, .log_every = (int)s->every, .log_grad_norm = true,
                                .log_histograms = 40, .log_range = 0.1);
    return r->loader != NULL && r->trainer != NULL; /* the first error is kept: one check for all */
}

static void report(const run *r, const settings *s)
{
    const kn_history *steps = kn_trainer_steps(r->trainer);
    int rows = kn_history_epochs(steps), loss = 2, norm = 5;
    double largest = 0;
    printf("%lld steps, %d of them logged every %lld\n", (long long)(s->epochs * (SAMPLES / BATCH)), rows,
           (long long)s->every);
    if (rows == 0)
        return;
    for (int i = 0; i < rows; i++)
        largest = fmax(largest, kn_history_value(steps, i, norm));
    printf("loss            first %.4f, last %.4f\n", kn_history_value(steps, 0, loss),
           kn_history_value(steps, rows - 1, loss));
    printf("gradient norm   first %.4f, last %.4f, maximum %.4f\n", kn_history_value(steps, 0, norm),
           kn_history_value(steps, rows - 1, norm), largest);
    if (s->out)
        printf("steps.csv, histograms.csv and steps.svg are in %s\n", s->out);
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto", .epochs = 60, .every = 8, .lr = 0.005};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0, "device (auto)"},
        {"--epochs", "N", OPTION_WHOLE, &s.epochs, 1, 100000, "passes over the points (60)"},
        {"--every", "N", OPTION_WHOLE, &s.every, 1, 100000, "steps per row of the table (8)"},
        {"--lr", "X", OPTION_NUMBER, &s.lr, 0, 1000, "learning rate of Adam (0.005)"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e15, "seed of the weights and the order of the points (0)"},
        {"--out", "DIR", OPTION_TEXT, &s.out, 0, 0, "folder for the tables and the plot; default: none"},
    };
    int usage = options_parse("grad_norms", "Trains on two spirals and logs loss and gradient norms of single steps.",
                              options, OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    run r = {0};
    bool done = set_up(&r, &s) && kn_trainer_fit(r.trainer, r.loader, NULL) == KN_OK;
    if (done)
        report(&r, &s);
    else
        fprintf(stderr, "grad_norms: %s\n", kn_error_message());
    kn_trainer_free(r.trainer);
    kn_optim_free(r.optim);
    kn_module_free(r.net);
    kn_loader_free(r.loader);
    kn_dataset_free(r.data);
    return options_finish("grad_norms", done ? 0 : 1);
}
