/* bench.h - a benchmark: its set-up, one repetition, its work, and what a peer needs to do the same. */
#pragma once

#include <koine/koine.h>

typedef struct bench_case bench_case;

/* The state of a benchmark after its set-up; freed by its `teardown`. */
typedef struct bench_state {
    kn_device *device;
    void *data;
    double flops; /* of one repetition if the set-up counted them; else 0 */
} bench_state;

/* --- one operation ---------------------------------------------------------------------------- */

#define BENCH_INPUTS 5 /* one letter each in `peer`: a to e */
#define BENCH_PARAMETERS 4

/* UNIFORM: 0 .. 1; SIGNED: -1 .. 1; FROM_1: 1 .. 2. */
typedef enum bench_fill {
    BENCH_NORMAL,
    BENCH_UNIFORM,
    BENCH_SIGNED,
    BENCH_FROM_1,
    BENCH_ZEROS,
    BENCH_ONES,
    BENCH_INDICES,
    BENCH_MASK
} bench_fill;

typedef struct bench_input {
    int ndim; /* 0: no such input */
    int64_t shape[5];
    bench_fill fill;
    int64_t below;   /* of indices, which are int64: 0 .. below - 1; half of a mask, which is bool, is true */
    bool transposed; /* a column-major matrix */
} bench_input;

/* A benchmark of one operation, forward, or, if `gradients` is not 0, backward: then the forward pass is recorded once,
 * and each repetition computes the gradients of the inputs whose bits are set. */
typedef struct bench_operation {
    const char *name; /* its name in bench/peer_torch.py */
    kn_tensor *(*apply)(kn_tensor *const *x, const double *parameters);
    const char *call; /* instead of `apply`: an operator of the list, "avg_pool2d kernel_size=3 stride=2" */
    const char *peer; /* instead of `name`: the same in Python, "F.avg_pool2d(a, 3, 2)" */
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
#define BENCH_OPERATION_UNCOMPARED                                                                                     \
    .setup = bench_operation_setup, .run = bench_operation_run, .teardown = bench_operation_teardown,                  \
    .inputs = bench_operation_inputs
#define BENCH_OPERATION BENCH_OPERATION_UNCOMPARED, .results = bench_operation_results

/* --- training --------------------------------------------------------------------------------- */

/* The state of a training step. */
typedef struct bench_training {
    kn_module *module;
    kn_optim *optim;
    kn_tensor *(*criterion)(kn_tensor *output, kn_tensor *target);
    kn_tensor *x, *y;
    bool has_dropout; /* switched off for the compared first step: random draws differ between libraries */
    bool keep;        /* the next step stores its output and its loss in: */
    kn_tensor *output, *loss;
    kn_dataset *dataset;
    kn_loader *loader;
    bool stepped;   /* after the first step: the optimizer has its state */
    bool autocasts; /* forward pass and loss under autocast in bf16: a case with that dtype */
    kn_graph *graph;
} bench_training;

/* Creates an empty one in state->data; NULL if out of memory. New tensors are on the device from then on. */
bench_training *bench_training_new(bench_state *state);
kn_tensor *bench_cross_entropy(kn_tensor *output, kn_tensor *target);

/* One step on (x, y): forward, loss, backward, optimizer. */
kn_status bench_training_step(bench_training *t, kn_tensor *x, kn_tensor *y);
/* A step on its own x and y. In a `replayed` case the first step is eager, the second is captured, and it and all later
 * ones are replays. */
kn_status bench_training_run(const bench_case *self, bench_state *state);
/* Writes x, y, and all parameters and buffers by name. */
kn_status bench_training_inputs(const bench_case *self, bench_state *state, kn_tensor_file *file);
/* Writes the output and the loss of the stored step and the loss after it; and the loss after a replay, if the case is
 * replayed and draws nothing. */
kn_status bench_training_results(const bench_case *self, bench_state *state, kn_tensor_file *file);
void bench_training_teardown(bench_state *state);
#define BENCH_TRAINING                                                                                                 \
    .run = bench_training_run, .teardown = bench_training_teardown, .inputs = bench_training_inputs,                   \
    .results = bench_training_results

/* Inference: the output for x in evaluation mode, without gradients. */
kn_status bench_inference_run(const bench_case *self, bench_state *state);
kn_status bench_inference_results(const bench_case *self, bench_state *state, kn_tensor_file *file);
#define BENCH_INFERENCE                                                                                                \
    .run = bench_inference_run, .teardown = bench_training_teardown, .inputs = bench_training_inputs,                  \
    .results = bench_inference_results

/* The examples' CNN, in state->data, with a batch of size[0]. */
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
    kn_status (*run)(const bench_case *self, bench_state *state); /* one repetition; the caller waits for the device */
    void (*teardown)(bench_state *state);

    /* For a peer; NULL if it cannot use the same values. They write the inputs and the results of the first repetition:
     * `inputs` is called after `setup`, then `run`, then `results`. */
    kn_status (*inputs)(const bench_case *self, bench_state *state, kn_tensor_file *file);
    kn_status (*results)(const bench_case *self, bench_state *state, kn_tensor_file *file);

    const bench_operation *operation; /* NULL: not a single operation */
    int64_t size[4];                  /* meaning defined by the case */
    bool replayed;                    /* training: the step is captured as a graph and replayed */
    bool enqueue_only; /* only the host time until `run` returns is counted, not the wait for the device */
    int most;          /* at most this many repetitions, including the first; 0: no limit */
    bool on_request;   /* listed and run only if --only names it */
};

typedef struct bench_list {
    const bench_case *cases;
    int count;
} bench_list;

/* clang-format off */
/* The families, in the order in which they run. */
#define BENCH_FAMILIES(X) \
    X(seeds) \
    X(networks) \
    X(sequence_networks) \
    X(transformers) \
    X(gemm) \
    X(conv) \
    X(conv_nd) \
    X(pooling) \
    X(elementwise) \
    X(reduce) \
    X(index) \
    X(softmax) \
    X(sort) \
    X(random) \
    X(attention) \
    X(norm) \
    X(vision) \
    X(move) \
    X(pointwise) \
    X(fusion) \
    X(survey) \
    X(optim) \
    X(launch) \
    X(profiler) \
    X(transfer) \
    X(startup)
/* clang-format on */

#define BENCH_DECLARED(family) extern const bench_list bench_##family;
BENCH_FAMILIES(BENCH_DECLARED)
extern const bench_list *const bench_families[];
extern const int bench_family_count;

/* Is it sized for a GPU? Then its name starts with "gpu/". On a CPU it takes too long, or too much memory, and runs
 * only on request. */
bool bench_is_for_gpus(const bench_case *c);

double bench_now(void); /* seconds */

/* Runs `count` repetitions, as in a loop, and waits for the device after the last. *seconds is the time of one. */
kn_status bench_burst(const bench_case *c, bench_state *state, int count, double *seconds);

/* koine-bench --serve: answers a peer's requests (serve.c). Returns the exit status. */
int bench_serve(kn_device *device);
/* koine-bench --first-step: one training step, for the startup benchmarks (startup.c). Returns the exit status. */
int bench_first_step(kn_device *device);
extern const char *bench_program; /* argv[0] */
