/* graph.c - the same training steps twice: enqueued launch by launch, and captured once and replayed. Prints the host
 * time per step, the time of a step, and whether the two networks are identical afterwards. */
#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fashion.h"
#include "common/options.h"
#include "common/side_by_side.h"

typedef struct run {
    kn_module *net;
    kn_optim *optim;
    kn_tensor *images, *labels, *loss;
    kn_graph *graph;
    double host_seconds, seconds; /* per step, medians */
} run;

/* Random images suffice: only the time matters, and whether both results agree. */
static bool set_up(run *r, int64_t batch_size, int64_t seed)
{
    kn_manual_seed((uint64_t)seed);
    r->net = fashion_network();
    r->optim = kn_optim_adam(kn_module_parameters(r->net), .lr = 0.01);
    {
        KN_SCOPE;
        r->images = kn_retain(kn_rand(KN_SHAPE(batch_size, 1, 28, 28)));
        r->labels = kn_retain(kn_randint(0, 10, KN_SHAPE(batch_size)));
    }
    return r->optim && r->labels;
}

static void clear(run *r)
{
    kn_graph_free(r->graph);
    kn_release(r->loss);
    kn_release(r->images);
    kn_release(r->labels);
    kn_optim_free(r->optim);
    kn_module_free(r->net);
}

static kn_tensor *step(run *r)
{
    kn_optim_zero_grad(r->optim);
    kn_tensor *loss = kn_cross_entropy(kn_forward(r->net, r->images), r->labels);
    return kn_backward(loss) == KN_OK && kn_optim_step(r->optim) == KN_OK ? loss : NULL;
}

static bool eager_step(run *r)
{
    bool done = false;

    KN_SCOPE;
    done = step(r) != NULL;

    return done;
}

static bool replayed_step(run *r) { return kn_graph_replay(r->graph) == KN_OK; }

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* Two warm-up steps compile kernels and create the optimizer's state. Then `steps` timed ones. */
static bool train(run *r, bool with_graph, int64_t steps)
{
    kn_device *device = kn_device_current();
    if (!eager_step(r) || !eager_step(r))
        return false;
    if (with_graph) {
        r->graph = kn_graph_new();
        if (r->graph == NULL)
            return false;
        {
            KN_GRAPH_CAPTURE(r->graph, NULL);
            KN_SCOPE;
            r->loss = kn_retain(step(r));
        }
    }
    double *host = malloc((size_t)steps * sizeof *host), *whole = malloc((size_t)steps * sizeof *whole);
    bool fine = host && whole;
    for (int64_t i = 0; i < steps && fine; i++) {
        double start = seconds_now();
        fine = with_graph ? replayed_step(r) : eager_step(r);
        host[i] = seconds_now() - start;
        fine = fine && kn_synchronize(device) == KN_OK;
        whole[i] = seconds_now() - start;
    }
    r->host_seconds = fine ? median(host, steps) : 0;
    r->seconds = fine ? median(whole, steps) : 0;
    free(host);
    free(whole);
    return fine;
}

static bool same_parameters(run *a, run *b)
{
    kn_parameter_list first = kn_module_parameters(a->net), second = kn_module_parameters(b->net);
    bool same = first.count == second.count;
    for (int i = 0; i < first.count && same; i++) {
        size_t bytes = (size_t)kn_numel(first.tensors[i]) * sizeof(float);
        float *one = malloc(bytes), *two = malloc(bytes);
        same = one && two && kn_read(first.tensors[i], one, bytes) == KN_OK &&
               kn_read(second.tensors[i], two, bytes) == KN_OK && memcmp(one, two, bytes) == 0;
        free(one);
        free(two);
    }
    return same;
}

int main(int argc, char **argv)
{
    const char *name = NULL;
    int64_t steps = 50, batch_size = 128, seed = 1;
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &name, 0, 0, "device (auto)"},
        {"--steps", "N", OPTION_WHOLE, &steps, 1, 1e6, "training steps in each mode (50)"},
        {"--batch-size", "N", OPTION_WHOLE, &batch_size, 1, 65536, "images per step (128)"},
        {"--seed", "N", OPTION_WHOLE, &seed, 0, 9e15, "seed of weights, images and dropout (1)"},
    };
    int status =
        options_parse("graph", "Trains the examples' network step by step, then replays the same steps from a graph.",
                      options, OPTION_COUNT(options), argc, argv);
    if (status != OPTIONS_GO_ON)
        return status;
    kn_device *device = kn_device_open(name);
    run eager = {0}, replayed = {0};
    bool fine = device != NULL && kn_device_set_current(device) == KN_OK && set_up(&eager, batch_size, seed) &&
                train(&eager, false, steps) && set_up(&replayed, batch_size, seed) && train(&replayed, true, steps);
    bool same = fine && same_parameters(&eager, &replayed);
    if (fine) {
        printf("%s, %lld steps of %lld images, %d commands each\n", kn_device_name(device), (long long)steps,
               (long long)batch_size, kn_graph_command_count(replayed.graph));
        printf("          host per step    step\n");
        printf("eager     %10.1f us %8.2f ms\n", eager.host_seconds * 1e6, eager.seconds * 1e3);
        printf("replayed  %10.1f us %8.2f ms\n", replayed.host_seconds * 1e6, replayed.seconds * 1e3);
        printf("the networks are %s\n", same ? "the same, bit for bit" : "different");
    } else {
        fprintf(stderr, "graph: %s\n", kn_error_message());
    }
    clear(&eager);
    clear(&replayed);
    return options_finish("graph", fine && same ? 0 : 1);
}
