/* test_graph_allocations.c - each host allocation in turn fails while a step is captured and replayed: an error that
 * says so, nothing left behind, no step counted that was not made, and the next capture works. */
#include "graph_case.h"

#include <string.h>

#include "base/memory.h"
#include "optim/optim.h"

/* Whether fewer than n allocations have been made since kn_fail_alloc_after(n): then one of the next n fails. */
static bool still_armed(long n)
{
    for (long i = 0; i < n; i++) {
        void *block = kn_malloc(1);
        if (block == NULL)
            return true;
        kn_free(block);
    }
    return false;
}

/* What a replay moves on. */
typedef struct progress {
    int64_t steps;
    uint8_t generator[KN_RNG_STATE_SIZE];
} progress;

static progress progress_of(const graph_case *c)
{
    progress now = {.steps = c->optim->steps[0]};
    CHECK_OK(kn_get_rng_state(kn_device_current(), now.generator));
    return now;
}

/* A replay that fails leaves the generator and the optimizer where they were. */
static bool replay(const graph_case *c, kn_graph *graph)
{
    progress before = progress_of(c), after;
    bool done = kn_graph_replay(graph) == KN_OK;
    after = progress_of(c);
    assert_int_equal(after.steps, before.steps + done);
    assert_int_equal(memcmp(after.generator, before.generator, sizeof before.generator) == 0, !done);
    return done;
}

static bool capture_and_replay(graph_case *c)
{
    kn_graph *graph = NULL;
    kn_tensor *loss = NULL;
    bool done = kn_graph_create(&graph) == KN_OK && kn_graph_capture_begin(graph, NULL) == KN_OK;
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
    kn_optim_zero_grad(c->optim); /* gradients that a failed capture left */
    return done;
}

static bool make_graphed(graph_case *c)
{
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = 12, .out_features = 5), kn_nn_relu(),
                                      kn_nn_dropout(.p = 0.5), kn_nn_linear(.in_features = 5, .out_features = 2));
    kn_tensor *x = kn_ones(KN_SHAPE(4, 12), .requires_grad = true), *y = NULL;
    (void)c;
    bool done = net != NULL && x != NULL && kn_make_graphed_callable(net, x) == KN_OK;
    y = done ? kn_forward(net, x) : NULL;
    done = y != NULL && kn_backward(kn_sum(y)) == KN_OK && kn_grad(x) != NULL;
    kn_module_free(net);
    return done;
}

/* Runs `body` with its n-th allocation failing, for every n there is (beyond 200, every seventh). */
static void fail_each(bool (*body)(graph_case *c))
{
    graph_case c;
    bool over = false;
    int failures = 0;
    case_make(&c, adam, KN_F32);
    case_warm_up(&c);
    {
        KN_SCOPE;
        assert_true(body(&c));
    }
    for (long n = 1; n < 5000 && !over; n += n < 200 ? 1 : 7) {
        bool done = false;
        {
            KN_SCOPE;
            kn_fail_alloc_after(n, 0);
            done = body(&c);
            over = still_armed(n) && done;
            kn_fail_alloc_after(0, 0);
        }
        failures += !done;
        if (!done && kn_error_status() != KN_ERR_MEMORY)
            fail_msg("allocation %ld: %s, \"%s\"", n, kn_status_name(kn_error_status()), kn_error_message());
        kn_error_clear();
    }
    assert_true(over);
    assert_true(failures > 20);
    {
        KN_SCOPE;
        assert_true(body(&c));
    }
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
