/* bench.h - a benchmark: what it sets up, what one repetition does, how much work that is, and what a peer needs to do
 * the very same. */
#ifndef KOINE_BENCH_H
#define KOINE_BENCH_H

#include <koine/koine.h>

typedef struct bench_case bench_case;

/* What a set-up benchmark holds; freed by its `teardown`. */
typedef struct bench_state {
    kn_device *device;
    void *data;
    double flops; /* of one repetition where the set-up counted them; else 0 */
} bench_state;

/* --- one operation ---------------------------------------------------------------------------- */

#define BENCH_INPUTS 5
#define BENCH_PARAMETERS 4

typedef enum bench_fill { BENCH_NORMAL, BENCH_UNIFORM, BENCH_ZEROS, BENCH_ONES } bench_fill;

typedef struct bench_input {
    int ndim; /* 0: there is no such input */
    int64_t shape[4];
    bench_fill fill;
    bool transposed; /* a matrix that lies in memory column by column */
} bench_input;

/* A benchmark of one operation, forward or, where `gradients` is not 0, backward: then the forward pass is recorded
 * once and the gradients of the inputs whose bits are set are computed anew each time. */
typedef struct bench_operation {
    const char *name; /* what bench/peer_torch.py knows it by */
    kn_tensor *(*apply)(kn_tensor *const *x, const double *parameters);
    bench_input inputs[BENCH_INPUTS];
    double parameters[BENCH_PARAMETERS];
    unsigned gradients;
    bool tf32; /* products of f32 may round their operands to TF32, here and in the peer */
} bench_operation;

kn_status bench_operation_setup(const bench_case *self, bench_state *state);
kn_status bench_operation_run(const bench_case *self, bench_state *state);
kn_status bench_operation_inputs(const bench_case *self, bench_state *state, kn_tensor_file *file);
kn_status bench_operation_results(const bench_case *self, bench_state *state, kn_tensor_file *file);
void bench_operation_teardown(bench_state *state);
#define BENCH_OPERATION                                                                                                \
    .setup = bench_operation_setup, .run = bench_operation_run, .teardown = bench_operation_teardown,                  \
    .inputs = bench_operation_inputs, .results = bench_operation_results

/* --- training --------------------------------------------------------------------------------- */

/* A network in training: what a step needs. */
typedef struct bench_training {
    kn_module *module;
    kn_optim *optim;
    kn_tensor *(*criterion)(kn_tensor *output, kn_tensor *target);
    kn_tensor *x, *y;
    bool has_dropout; /* switched off for the first step that is compared: no two libraries draw alike */
    bool keep;        /* the next step leaves its output and its loss in these: */
    kn_tensor *output, *loss;
    kn_dataset *dataset;
    kn_loader *loader;
    bool stepped; /* once at least: the optimizer has its state */
    kn_graph *graph;
} bench_training;

/* An empty one in state->data; NULL when there is no memory. Tensors made from then on are the device's. */
bench_training *bench_training_new(bench_state *state);
kn_tensor *bench_cross_entropy(kn_tensor *output, kn_tensor *target);

/* One step on (x, y): forward, loss, backward, optimizer. */
kn_status bench_training_step(bench_training *t, kn_tensor *x, kn_tensor *y);
/* A step on its own x and y. Of a case that is `replayed` the first is taken as it stands, the second is recorded, and
 * that one and all further ones are replays. */
kn_status bench_training_run(const bench_case *self, bench_state *state);
/* x, y, and all parameters and buffers by their names. */
kn_status bench_training_inputs(const bench_case *self, bench_state *state, kn_tensor_file *file);
/* The output and the loss of the step that was kept, and the loss after it; and after a replay, where there will be
 * replays and nothing is drawn. */
kn_status bench_training_results(const bench_case *self, bench_state *state, kn_tensor_file *file);
void bench_training_teardown(bench_state *state);
#define BENCH_TRAINING                                                                                                 \
    .run = bench_training_run, .teardown = bench_training_teardown, .inputs = bench_training_inputs,                   \
    .results = bench_training_results

/* The CNN of the seeds, in state->data: a batch of size[0]. */
kn_status bench_cnn_setup(const bench_case *self, bench_state *state);
/* Linear regression on size[0] samples. */
kn_status bench_regression_setup(const bench_case *self, bench_state *state);

/* --- a case ----------------------------------------------------------------------------------- */

struct bench_case {
    const char *name;  /* "gemm/1024" */
    const char *shape; /* "1024x1024x1024" */
    kn_dtype dtype;
    double flops, bytes; /* of one repetition; 0: not counted */
    kn_status (*setup)(const bench_case *self, bench_state *state);
    kn_status (*run)(const bench_case *self, bench_state *state); /* one repetition; the harness waits for the device */
    void (*teardown)(bench_state *state);

    /* For a peer; NULL: it cannot be given the same values. What the first repetition starts from, and what it gave:
     * `inputs` is called after `setup`, then `run`, then `results`. */
    kn_status (*inputs)(const bench_case *self, bench_state *state, kn_tensor_file *file);
    kn_status (*results)(const bench_case *self, bench_state *state, kn_tensor_file *file);

    const bench_operation *operation; /* NULL: no single operation */
    int64_t size[4];                  /* the case's own numbers */
    bool replayed;                    /* training: the step is recorded as a graph once, and replayed */
    bool enqueue_only; /* the time is the host's until `run` returns: the wait for the device is not counted */
    int most;          /* repetitions at most, the first among them; 0: no limit */
};

typedef struct bench_list {
    const bench_case *cases;
    int count;
} bench_list;

/* The families, in the order in which they run. */
extern const bench_list bench_seeds, bench_gemm, bench_conv, bench_pooling, bench_networks, bench_elementwise,
    bench_reduce, bench_softmax, bench_norm, bench_move, bench_launch, bench_profiler, bench_transfer, bench_startup;
extern const bench_list *const bench_families[];
extern const int bench_family_count;

/* Is it sized for a GPU? Its name starts with "gpu/" then. On a CPU it takes too long, or more memory than there is,
 * and runs only where it is asked for. */
bool bench_is_for_gpus(const bench_case *c);

double bench_now(void); /* seconds */

/* `count` repetitions in a row, as a loop of them would be written: the device is waited for after the last. Seconds of
 * one. */
kn_status bench_burst(const bench_case *c, bench_state *state, int count, double *seconds);

/* koine-bench --serve: answers a peer's requests (serve.c). Returns the exit status. */
int bench_serve(kn_device *device);
/* koine-bench --first-step: one training step, for the benchmarks of the start (startup.c). Returns the exit status. */
int bench_first_step(kn_device *device);
extern const char *bench_program; /* argv[0] */

#endif
