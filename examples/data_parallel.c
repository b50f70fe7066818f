/* data_parallel.c - the network of the Fashion-MNIST examples on several devices at once: the same steps on the first
 * device alone and on all of them, timed side by side, and how far apart the parameters are afterwards. */
#include <koine/koine.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/device_list.h"
#include "common/fashion.h"
#include "common/options.h"
#include "common/side_by_side.h"

static const char program[] = "data_parallel";

typedef struct settings {
    const char *devices;
    int64_t batch_size, steps, seed;
} settings;

/* A network on one device or several, with its optimizer. */
typedef struct run {
    kn_module *net;
    kn_optim *optim;
} run;

static void clean_up(run *r)
{
    kn_optim_free(r->optim);
    kn_module_free(r->net);
}

static bool set_up(run *r, const settings *s, kn_device *const *devices, int num_devices)
{
    kn_manual_seed((uint64_t)s->seed);
    r->net = fashion_network();
    r->optim = kn_optim_adam(kn_module_parameters(r->net));
    if (num_devices > 1)
        r->net = kn_nn_data_parallel(r->net, .devices = devices, .num_devices = num_devices);
    kn_module_train(r->net, false); /* no dropout: its masks depend on the device that draws them */
    return r->net != NULL && r->optim != NULL;
}

static bool step(run *r, kn_tensor *images, kn_tensor *labels)
{

    KN_SCOPE;
    kn_optim_zero_grad(r->optim);
    kn_tensor *loss = kn_cross_entropy(kn_forward(r->net, images), labels);
    return kn_backward(loss) == KN_OK && kn_optim_step(r->optim) == KN_OK;

    return false;
}

/* Milliseconds per step, after two warm-up steps; negative after an error. */
static double train(run *r, const settings *s, kn_device *first)
{
    double milliseconds = -1;

    KN_SCOPE;
    kn_tensor *images = kn_rand(KN_SHAPE(s->batch_size, 1, 28, 28));
    kn_tensor *labels = kn_randint(0, 10, KN_SHAPE(s->batch_size));
    bool fine = step(r, images, labels) && step(r, images, labels) && kn_synchronize(first) == KN_OK;
    double start = seconds_now();
    for (int64_t i = 0; i < s->steps && fine; i++)
        fine = step(r, images, labels);
    if (fine && kn_synchronize(first) == KN_OK)
        milliseconds = 1000 * (seconds_now() - start) / (double)s->steps;

    return milliseconds;
}

/* The largest difference between two parameters; NaN after an error. */
static double apart(const run *a, const run *b)
{
    kn_parameter_list left = kn_module_parameters(a->net), right = kn_module_parameters(b->net);
    double largest = 0;

    KN_SCOPE;
    KN_NO_GRAD;
    for (int i = 0; i < left.count; i++) {
        double difference = NAN;
        kn_item(kn_max(kn_abs(kn_sub(left.tensors[i], right.tensors[i]))), &difference);
        largest = difference > largest || isnan(difference) ? difference : largest;
    }

    return largest;
}

int main(int argc, char **argv)
{
    settings s = {.devices = "all", .batch_size = 128, .steps = 20};
    const option options[] = {
        {"--devices", "LIST", OPTION_TEXT, &s.devices, 0, 0, "gpu:0,gpu:1 or pocl:0,pocl:1 or all (the GPUs)"},
        {"--batch-size", "N", OPTION_WHOLE, &s.batch_size, 1, 60000, "images per step"},
        {"--steps", "N", OPTION_WHOLE, &s.steps, 1, 1000000, "timed steps"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the weights and the images"},
    };
    int usage = options_parse(program, "Trains a network on several devices at once, and on one.", options,
                              OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    kn_device *devices[LONGEST_LIST];
    int count = 0;
    run one = {0}, all = {0};
    bool fine = device_list(devices, &count, s.devices) == KN_OK && kn_device_set_current(devices[0]) == KN_OK &&
                set_up(&one, &s, devices, 1) && set_up(&all, &s, devices, count);
    double alone = -1, together = -1;
    if (fine) {
        kn_manual_seed((uint64_t)s.seed);
        alone = train(&one, &s, devices[0]);
        kn_manual_seed((uint64_t)s.seed);
        together = train(&all, &s, devices[0]);
    }
    fine = fine && alone >= 0 && together >= 0;
    if (fine) {
        printf("%-30s %8.2f ms per step\n", kn_device_string(devices[0]), alone);
        printf("%d device%-22s %8.2f ms per step\n", count, count == 1 ? "" : "s", together);
        printf("parameters differ by at most %g after %lld steps\n", apart(&one, &all), (long long)s.steps + 2);
        fine = kn_error_status() == KN_OK;
    }
    if (!fine)
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
    clean_up(&one);
    clean_up(&all);
    return options_finish(program, fine ? 0 : 1);
}
