/* profiler.c - the profiler's overhead: a step of the CNN with it off, on, and with all options; whole steps, and the
 * host's time to enqueue one. */
#include "bench.h"

enum { OFF, ON, FULL };

static kn_status setup(const bench_case *self, bench_state *state)
{
    kn_status status = bench_cnn_setup(self, state);
    for (int i = 0; i < 2 && status == KN_OK; i++) /* compiles the kernels and creates the optimizer's state */
        status = bench_training_run(self, state);
    if (status != KN_OK || self->size[1] == OFF)
        return status;
    bool full = self->size[1] == FULL;
    return kn_profiler_start(.record_shapes = full, .with_flops = full, .profile_memory = full);
}

static void teardown(bench_state *state)
{
    if (kn_profiler_is_running())
        kn_profiler_stop();
    kn_profiler_clear();
    bench_training_teardown(state);
}

#define STEP(name_, size_, mode_, enqueue_only_)                                                                       \
    {                                                                                                                  \
        .name = name_, .shape = "batch " #size_, .dtype = KN_F32, .setup = setup, .run = bench_training_run,           \
        .teardown = teardown, .size = {size_, mode_}, .enqueue_only = enqueue_only_                                    \
    }

static const bench_case cases[] = {
    STEP("profiler/step/off", 128, OFF, false),   STEP("profiler/step/on", 128, ON, false),
    STEP("profiler/step/full", 128, FULL, false), STEP("profiler/enqueue/off", 8, OFF, true),
    STEP("profiler/enqueue/on", 8, ON, true),     STEP("profiler/enqueue/full", 8, FULL, true),
};
const bench_list bench_profiler = {cases, sizeof cases / sizeof cases[0]};
