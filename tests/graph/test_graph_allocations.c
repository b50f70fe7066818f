/* test_graph_allocations.c - each host allocation in turn fails while a step is captured and replayed: an error that
 * says so, no leaks, only successful steps counted, and the next capture works. */
#include "graph_case.h"

#include <string.h>

#include "optim/optim.h"
#include "support/faults.h"

/* The state that a replay advances. */
typedef struct progress {
    int64_t steps;
    uint8_t generator[KN_RNG_STATE_SIZE];
} progress;

static progress progress_of(const graph_case *c)
{
    progress now = {.steps = c->optim->courses[0].step};
    CHECK_OK(kn_get_rng_state(kn_device_current(), now.generator));
    return now;
}

/* A failed replay does not advance the generator or the optimizer. */
static bool replay(const graph_case *c, kn_graph *graph)
{
    progress before = progress_of(c), after;
    bool done = kn_graph_replay(graph) == KN_OK;
    after = progress_of(c);
    assert_int_equal(after.steps, before.steps + done);
    assert_int_equal(memcmp(after.generator, before.generator, sizeof before.generator) == 0, !done);
    return done;
}

static kn_status capture_and_replay(void *user)
{
    graph_case *c = user;
    kn_graph *graph = NULL;
    kn_tensor *loss = NULL;
    bool done = (graph = kn_graph_new()) != NULL && kn_graph_capture_begin(graph, NULL) == KN_OK;
    if (done) {
        {
            KN_SCOPE;
            loss = kn_retain(case_step(c));
        }
        done = kn_graph_capture_end(graph) == KN_OK && loss != NULL;
    }
    double value = -1;
    for (int i = 0; i < 3 && done; i++)
        done = replay(c, graph);
    done = done && kn_item(loss, &value) == KN_OK;
    kn_graph_free(graph);
    kn_release(loss);
    kn_optim_zero_grad(c->optim); /* gradients left by a failed capture */
    return fault_status(done);
}

static kn_status make_graphed(void *user)
{
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = 12, .out_features = 5), kn_nn_relu(),
                                      kn_nn_dropout(.p = 0.5), kn_nn_linear(.in_features = 5, .out_features = 2));
    kn_tensor *x = kn_ones(KN_SHAPE(4, 12), .requires_grad = true), *y = NULL;
    (void)user;
    bool done = net != NULL && x != NULL && kn_make_graphed_callable(net, x) == KN_OK;
    y = done ? kn_forward(net, x) : NULL;
    done = y != NULL && kn_backward(kn_sum(y)) == KN_OK && kn_grad(x) != NULL;
    kn_module_free(net);
    return fault_status(done);
}

static void fail_each(fault_work body)
{
    graph_case c;
    case_make(&c, adam, KN_F32);
    case_warm_up(&c);
    fault_each_allocation(body, &c, 200, 7, 20);
    case_free(&c);
}

static void captures_and_replays(void **state)
{
    (void)state;
    fail_each(capture_and_replay);
}

static void graphed_modules(void **state)
{
    (void)state;
    fail_each(make_graphed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(captures_and_replays), TEST(graphed_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
