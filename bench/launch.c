/* launch.c - host overhead: a single operation, and training steps, eager and replayed. The `launch/...` cases measure
 * the time until the work is enqueued, or has run where launches are calls, the `graph/...` cases whole steps. */
#include "bench.h"

/* --- one operation ---------------------------------------------------------------------------- */

static kn_status relu_setup(const bench_case *self, bench_state *state)
{
    kn_device_set_current(state->device);
    state->data = kn_zeros(KN_SHAPE(self->size[0]));
    return state->data ? KN_OK : kn_error_status();
}

static kn_status relu_run(const bench_case *self, bench_state *state)
{
    (void)self;
    kn_status status = KN_ERR_MEMORY;

    KN_SCOPE;
    status = kn_relu(state->data) ? KN_OK : kn_error_status();

    return status;
}

static void relu_teardown(bench_state *state) { kn_release(state->data); }

/* --- the table -------------------------------------------------------------------------------- */

#define STEP(name_, shape_, size_, setup_, replayed_, enqueue_only_)                                                   \
    {                                                                                                                  \
        .name = name_, .shape = shape_, .dtype = KN_F32, .setup = setup_, .run = bench_training_run,                   \
        .teardown = bench_training_teardown, .size = {size_}, .replayed = replayed_, .enqueue_only = enqueue_only_     \
    }

static const bench_case cases[] = {
    {.name = "launch/relu",
     .shape = "1000",
     .dtype = KN_F32,
     .setup = relu_setup,
     .run = relu_run,
     .teardown = relu_teardown,
     .size = {1000},
     .enqueue_only = true},
    STEP("launch/cnn_step/eager", "batch 128", 128, bench_cnn_setup, false, true),
    STEP("launch/cnn_step/replayed", "batch 128", 128, bench_cnn_setup, true, true),
    STEP("graph/cnn_step/eager", "batch 8", 8, bench_cnn_setup, false, false),
    STEP("graph/cnn_step/replayed", "batch 8", 8, bench_cnn_setup, true, false),
    STEP("graph/linear_regression/eager", "1000x2", 1000, bench_regression_setup, false, false),
    STEP("graph/linear_regression/replayed", "1000x2", 1000, bench_regression_setup, true, false),
};
const bench_list bench_launch = {cases, sizeof cases / sizeof cases[0]};
