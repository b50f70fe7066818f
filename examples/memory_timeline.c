/* memory_timeline.c - plots the device memory of two training steps over time: allocated from the pool and reserved by
 * it. Times are the host's, which runs ahead of the device. */
#include <koine/koine.h>
#include <stdio.h>

#include "common/fashion.h"
#include "common/options.h"

static const char program[] = "memory_timeline";

typedef struct settings {
    const char *device, *out, *snapshot;
    int64_t batch_size, steps, seed;
} settings;

/* Random images suffice: only their sizes matter. */
static bool train_step(kn_module *net, kn_optim *optim, int64_t batch_size)
{
    bool fine = false;

    KN_SCOPE;
    kn_tensor *images = kn_rand(KN_SHAPE(batch_size, 1, 28, 28)), *labels = kn_randint(0, 10, KN_SHAPE(batch_size));
    kn_tensor *loss = kn_cross_entropy(kn_forward(net, images), labels);
    fine = kn_backward(loss) == KN_OK && kn_optim_step(optim) == KN_OK;
    kn_optim_zero_grad(optim);

    return fine;
}

/* The first step compiles the kernels and creates the optimizer's state: it is not recorded. */
static bool record(const settings *s, kn_device *device, kn_module *net, kn_optim *optim)
{
    bool fine = train_step(net, optim, s->batch_size) && kn_empty_cache(device) == KN_OK &&
                kn_memory_record_history(device, 100000) == KN_OK;
    for (int64_t step = 0; step < s->steps && fine; step++)
        fine = train_step(net, optim, s->batch_size);
    return fine && kn_synchronize(device) == KN_OK;
}

static bool write_results(const settings *s, kn_device *device)
{
    if (s->snapshot && kn_memory_snapshot(device, s->snapshot) != KN_OK)
        return false;
    if (kn_memory_save_plot(device, s->out) != KN_OK)
        return false;
    char *summary = kn_memory_summary_abbreviated(device);
    if (summary == NULL)
        return false;
    printf("%swritten: %s\n", summary, s->out);
    kn_free(summary);
    return true;
}

static bool run(const settings *s)
{
    kn_device *device = kn_device_open(s->device);
    if (device == NULL || kn_device_set_current(device) != KN_OK)
        return false;
    kn_manual_seed((uint64_t)s->seed);
    kn_module *net = fashion_network();
    kn_optim *optim = kn_optim_adam(kn_module_parameters(net), .lr = 0.01);
    bool fine = optim != NULL && record(s, device, net, optim) && write_results(s, device);
    kn_optim_free(optim);
    kn_module_free(net);
    return fine;
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto", .out = "memory.svg", .batch_size = 128, .steps = 2};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0,
         "auto, gpu, cpu, nvidia, pocl:0, 0:1, ... (see `koine devices`)"},
        {"--batch-size", "N", OPTION_WHOLE, &s.batch_size, 1, 60000, "images per step"},
        {"--steps", "N", OPTION_WHOLE, &s.steps, 1, 1000, "training steps to record"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the weights, the images and dropout"},
        {"--out", "FILE", OPTION_TEXT, &s.out, 0, 0, "the plot, .svg or .png"},
        {"--snapshot", "FILE", OPTION_TEXT, &s.snapshot, 0, 0,
         "write the memory snapshot to this file, as JSON; default: none"},
    };
    int usage = options_parse(program, "Plots the memory use of training steps over time.", options,
                              OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    bool done = run(&s);
    if (!done)
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
    return options_finish(program, done ? 0 : 1);
}
