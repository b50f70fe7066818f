/* dist.c - koine-bench-dist: groups of processes. Runs under mpirun; rank 0 prints one JSON object per line.
 *
 *     mpirun -n 2 koine-bench-dist all_reduce               # MPI's own, Koine's on the same memory, and on a device
 *     mpirun -n 2 koine-bench-dist link                     # latency and bandwidth: for `koine scale`
 *     mpirun -n 2 koine-bench-dist step [SECONDS [TRACE]]   # a data parallel step that computes for SECONDS
 *
 * Bus bandwidths are NCCL's tests': 2 (n - 1) / n bytes for each byte of an all_reduce. The step's computation is a
 * sleep: so it takes a known time on any number of ranks, however few the processors. */
#include <koine/koine.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dist/scale.h"

#define MOST_REPETITIONS 200

static kn_group *group;
static kn_device *device;
static int size, rank;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void rest(double seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - (time_t)seconds))};
    if (seconds > 0)
        nanosleep(&time, NULL);
}

static void die(const char *what)
{
    fprintf(stderr, "koine-bench-dist: rank %d: %s: %s\n", rank, what, kn_error_message());
    exit(1);
}

static void check(kn_status status, const char *what)
{
    if (status != KN_OK)
        die(what);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* --- all_reduce --------------------------------------------------------------------------------------------------- */

typedef struct buffers {
    float *memory; /* of the host tensor */
    kn_tensor *on_host, *on_device;
    int64_t count;
} buffers;

static void by_mpi(const buffers *b)
{
    MPI_Allreduce(MPI_IN_PLACE, b->memory, (int)b->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void on_host(const buffers *b) { check(kn_group_all_reduce(group, b->on_host), "all_reduce"); }
static void on_device(const buffers *b)
{
    check(kn_group_all_reduce(group, b->on_device), "all_reduce");
    check(kn_synchronize(device), "all_reduce");
}

static const struct {
    const char *name;
    void (*run)(const buffers *b);
} ways[] = {{"mpi", by_mpi}, {"host", on_host}, {"device", on_device}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* In turns, so that all see the same machine. */
static void time_ways(const buffers *b, int repetitions, double medians[WAYS])
{
    static double times[WAYS][MOST_REPETITIONS];
    for (int i = -1; i < repetitions; i++)
        for (int w = 0; w < WAYS; w++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double began = now();
            ways[w].run(b);
            if (i >= 0)
                times[w][i] = now() - began;
        }
    for (int w = 0; w < WAYS; w++)
        medians[w] = median(times[w], repetitions);
}

static void bench_all_reduce(size_t bytes)
{
    KN_SCOPE;
    double medians[WAYS];
    buffers b = {.count = (int64_t)(bytes / sizeof(float))};
    b.on_host = kn_zeros(KN_SHAPE(b.count), .device = kn_device_host());
    b.on_device = kn_zeros(KN_SHAPE(b.count), .device = device);
    b.memory = kn_data(b.on_host);
    if (!b.memory || !b.on_device)
        die("all_reduce");
    time_ways(&b, bytes < (size_t)1 << 20 ? MOST_REPETITIONS : 21, medians);
    for (int w = 0; w < WAYS && rank == 0; w++)
        printf("{\"name\": \"all_reduce/%s\", \"ranks\": %d, \"bytes\": %zu, \"seconds_median\": %.9f, "
               "\"bus_gbytes_per_s\": %.4f, \"relative_to_mpi\": %.4f}\n",
               ways[w].name, size, bytes, medians[w], 2e-9 * (size - 1) / size * (double)bytes / medians[w],
               medians[0] / medians[w]);
    fflush(stdout);
}

static void all_reduce(void)
{
    for (size_t bytes = 8; bytes <= (size_t)64 << 20; bytes *= bytes < 4096 ? 8 : 4)
        bench_all_reduce(bytes);
}

/* --- the link ----------------------------------------------------------------------------------------------------- */

static kn_scale_link measure_link(void)
{
    kn_scale_link link;
    check(kn_scale_measure_link(group, device, &link), "link");
    return link;
}

static void show_link(void)
{
    const kn_scale_link link = measure_link();
    if (rank == 0)
        printf("{\"name\": \"link\", \"ranks\": %d, \"latency_s\": %.9f, \"call_s\": %.9f, \"bytes_per_s\": %.0f, "
               "\"staging_bytes_per_s\": %.0f}\n",
               size, link.latency, link.call, link.bandwidth, link.staging);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

#define LAYERS 8
#define LAYER_BYTES ((size_t)1 << 20)

static double layer_seconds; /* of the backward pass of one layer; the forward pass takes half of it */

static kn_status forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    rest(layer_seconds / 2);
    outputs[0] = kn_empty_like(inputs[0]);
    return kn_function_save(context, inputs[1]);
}

/* The parameter stands for its gradient. */
static kn_status backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    rest(layer_seconds);
    grad_inputs[0] = grad_outputs[0];
    grad_inputs[1] = kn_function_saved(context, 0);
    return KN_OK;
}

typedef struct sleeper {
    kn_tensor *weights[LAYERS];
} sleeper;

static kn_tensor *sleeper_forward(kn_module *module, kn_tensor *x)
{
    static const kn_function sleeping = {.name = "sleeping", .forward = forward, .backward = backward};
    const sleeper *self = kn_module_self(module);
    for (int i = 0; i < LAYERS; i++)
        x = kn_function_apply(&sleeping, KN_TENSORS(x, self->weights[i]), NULL);
    return x;
}

static kn_module *make_network(void)
{
    char name[16];
    kn_module *net = kn_module_new("Sleeper", sleeper_forward, sizeof(sleeper), NULL);
    sleeper *self = kn_module_self(net);
    KN_SCOPE;
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "weight%d", i);
        self->weights[i] =
            kn_module_register_parameter(net, name, kn_zeros(KN_SHAPE((int64_t)(LAYER_BYTES / sizeof(float)))));
    }
    return net;
}

static void run_step(kn_module *net)
{
    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    check(kn_backward(kn_sum(kn_forward(net, x))), "a step");
    check(kn_synchronize(device), "a step");
}

static void run_step_alone(kn_module *net)
{
    KN_NO_SYNC(net);
    run_step(net);
}

static double time_step(kn_module *net, void (*run)(kn_module *net))
{
    double times[5];
    const int repetitions = sizeof times / sizeof times[0];
    for (int i = -1; i < repetitions; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double began = now();
        run(net);
        if (i >= 0)
            times[i] = now() - began;
    }
    return median(times, repetitions);
}

/* What the model expects of the same step. */
static double predict(const kn_scale_link *link, double forward, double backward)
{
    const kn_distributed_params params = {.bucket_bytes = LAYER_BYTES, .first_bucket_bytes = LAYER_BYTES};
    kn_scale_job job = {.forward = forward, .backward = backward, .link = *link};
    kn_scale_bucket *buckets =
        kn_scale_buckets_of_equal((double)LAYERS * LAYER_BYTES / 4, LAYERS, &params, 4, &job.num_buckets);
    job.buckets = buckets;
    const double time = kn_scale_predict(&job, size).time;
    kn_free(buckets);
    return time;
}

/* What a perfect overlap would leave: buckets as long as measured, sent one after another as they become ready. */
static double perfect(double computing, double sending)
{
    double done = 0;
    for (int layer = 1; layer <= LAYERS; layer++) {
        const double ready = computing / 3 + computing * 2 / 3 * layer / LAYERS;
        done = (done > ready ? done : ready) + sending / LAYERS;
    }
    return done;
}

/* One step of all ranks. */
static void write_trace(kn_module *net, const char *path)
{
    check(kn_profiler_start(), "the profiler");
    run_step(net);
    check(kn_profiler_stop(), "the profiler");
    check(kn_group_export_trace(group, path), "the trace");
    char *table = rank == 0 ? kn_profiler_table(.width = 150) : NULL;
    fputs(table ? table : "", stderr);
    kn_free(table);
}

static void step(double seconds, const char *trace)
{
    kn_module *net =
        kn_nn_distributed(make_network(), group, .bucket_bytes = LAYER_BYTES, .first_bucket_bytes = LAYER_BYTES);
    if (!net)
        die("the network");
    kn_scale_link link = {.bandwidth = 1e12};
    if (size > 1)
        link = measure_link();
    layer_seconds = 0;
    const double sending = time_step(net, run_step), idle = time_step(net, run_step_alone);
    layer_seconds = (seconds > 0 ? seconds : 1.25 * sending) / LAYERS;
    MPI_Bcast(&layer_seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const double computing = time_step(net, run_step_alone), both = time_step(net, run_step);
    const double best = perfect(computing, sending - idle);
    if (rank == 0)
        printf("{\"name\": \"step\", \"ranks\": %d, \"bytes\": %zu, \"computing_s\": %.6f, \"sending_s\": %.6f, "
               "\"step_s\": %.6f, \"hidden\": %.4f, \"can_be_hidden\": %.4f, \"hidden_share\": %.4f, "
               "\"efficiency\": %.4f, \"predicted_s\": %.6f}\n",
               size, LAYERS * LAYER_BYTES, computing, sending, both, computing + sending - both,
               computing + sending - best, (computing + sending - both) / (computing + sending - best),
               computing / both, predict(&link, computing / 3, computing * 2 / 3));
    if (trace)
        write_trace(net, trace);
    kn_module_free(net);
}

int main(int argc, char **argv)
{
    group = kn_group_open(.backend = "mpi");
    if (!group)
        die("the group");
    rank = kn_group_rank(group);
    size = kn_group_size(group);
    device = kn_device_open("auto");
    if (!device)
        die("the device");
    kn_device_set_current(device);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "all_reduce") == 0)
        all_reduce();
    else if (strcmp(what, "link") == 0)
        show_link();
    else if (strcmp(what, "step") == 0)
        step(argc > 2 ? atof(argv[2]) : 0, argc > 3 ? argv[3] : NULL);
    else if (rank == 0)
        fprintf(stderr, "usage: mpirun -n RANKS koine-bench-dist all_reduce|link|step [SECONDS [TRACE]]\n");
    const bool known = strcmp(what, "all_reduce") == 0 || strcmp(what, "link") == 0 || strcmp(what, "step") == 0;
    kn_group_free(group);
    return known ? 0 : 2;
}
