/* bench.h - a benchmark: what it sets up, what one repetition does, how much work that is. */
#ifndef KOINE_BENCH_H
#define KOINE_BENCH_H

#include <koine/koine.h>

typedef struct bench_case bench_case;

/* What a set-up benchmark holds; freed by its `teardown`. */
typedef struct bench_state {
    kn_device *device;
    void *data;
} bench_state;

struct bench_case {
    const char *name;  /* "gemm/1024" */
    const char *shape; /* "1024x1024x1024" */
    kn_dtype dtype;
    double flops, bytes; /* of one repetition; 0: not counted */
    kn_status (*setup)(const bench_case *self, bench_state *state);
    kn_status (*run)(const bench_case *self,
                     bench_state *state); /* one repetition; the harness waits for the device after it */
    void (*teardown)(bench_state *state);
    int64_t size[4];   /* the case's own numbers */
    bool enqueue_only; /* the time is the host's until `run` returns: the wait for the device is not counted */
};

typedef struct bench_list {
    const bench_case *cases;
    int count;
} bench_list;

/* The families, in the order in which they run. */
extern const bench_list bench_seeds, bench_gemm, bench_conv, bench_norm, bench_launch, bench_profiler, bench_transfer;

/* A network in training: what a step needs (seeds.c). */
typedef struct bench_training {
    kn_module *module;
    kn_optim *optim;
    kn_tensor *x, *y;
    kn_dataset *dataset;
    kn_loader *loader;
    kn_graph *graph;
} bench_training;

/* The CNN of the seeds, in state->data: a batch of size[0]; one training step. */
kn_status bench_cnn_setup(const bench_case *self, bench_state *state);
kn_status bench_cnn_run(const bench_case *self, bench_state *state);
/* Linear regression on size[0] samples. */
kn_status bench_regression_setup(const bench_case *self, bench_state *state);
kn_status bench_regression_run(const bench_case *self, bench_state *state);
void bench_training_teardown(bench_state *state);

double bench_now(void); /* seconds */

#endif
