/* test_graph.c - replayed steps compute what eager ones do. */
#include "graph_case.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "support/as_gpu.h"

/* `steps` eager steps, and as many replayed from the same state: losses, parameters and the generator are equal bit for
 * bit. The learning rate changes half-way. */
static void compare(make_optim optim, kn_dtype dtype, int steps)
{
    graph_case eager, replayed;
    uint8_t states[2][KN_RNG_STATE_SIZE];
    double *losses = malloc((size_t)steps * sizeof *losses);
    case_make(&eager, optim, dtype);
    case_warm_up(&eager);
    for (int i = 0; i < steps; i++) {
        KN_SCOPE;
        case_feed(&eager, i);
        if (i == steps / 2)
            CHECK_OK(kn_optim_set_lr(eager.optim, 0.003));
        CHECK_OK(kn_item(case_step(&eager), &losses[i]));
    }
    CHECK_OK(kn_get_rng_state(kn_device_current(), states[0]));

    kn_graph *graph;
    kn_tensor *loss;
    case_make(&replayed, optim, dtype);
    case_warm_up(&replayed);
    CHECK_NEW(graph = kn_graph_new());
    case_capture(&replayed, graph, &loss);
    for (int i = 0; i < steps; i++) {
        double value;
        case_feed(&replayed, i);
        if (i == steps / 2)
            CHECK_OK(kn_optim_set_lr(replayed.optim, 0.003));
        CHECK_OK(kn_graph_replay(graph));
        CHECK_OK(kn_item(loss, &value));
        assert_true(value == losses[i]);
    }
    CHECK_OK(kn_get_rng_state(kn_device_current(), states[1]));
    assert_memory_equal(states[0], states[1], KN_RNG_STATE_SIZE);
    check_same_parameters(&eager, &replayed);

    /* the optimizers have counted the same number of steps */
    {
        KN_SCOPE;
        CHECK_TENSOR(case_step(&eager));
    }
    CHECK_OK(kn_set_rng_state(kn_device_current(), states[0]));
    {
        KN_SCOPE;
        CHECK_TENSOR(case_step(&replayed));
    }
    check_same_parameters(&eager, &replayed);
    kn_release(loss);
    kn_graph_free(graph);
    case_free(&eager);
    case_free(&replayed);
    free(losses);
}

static void adam_steps_are_the_same_bits(void **state)
{
    (void)state;
    compare(adam, KN_F32, 12);
}

static void sgd_steps_in_double_are_the_same_bits(void **state)
{
    (void)state;
    check_needs_f64();
    compare(sgd, KN_F64, 6);
}

/* CLBlast enqueues its own kernels: replays call it again. */
static void products_of_clblast_are_recorded(void **state)
{
    (void)state;
    kn_force_implementation("gemm", "clblast");
    compare(adam, KN_F32, 4);
    kn_force_implementation("gemm", NULL);
}

/* Each replay draws from the generator's current state, and the capture itself draws nothing. */
static void replays_draw_anew(void **state)
{
    (void)state;
    uint8_t before[KN_RNG_STATE_SIZE], after[KN_RNG_STATE_SIZE];
    kn_graph *graph;
    kn_tensor *x = NULL;
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_get_rng_state(kn_device_current(), before));
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        x = kn_rand(KN_SHAPE(5));
    }
    CHECK_OK(kn_get_rng_state(kn_device_current(), after));
    assert_memory_equal(before, after, KN_RNG_STATE_SIZE);
    for (int round = 0; round < 3; round++) {
        kn_manual_seed((uint64_t)(40 + round));
        CHECK_OK(kn_graph_replay(graph));
        CHECK_OK(kn_graph_replay(graph));
        kn_manual_seed((uint64_t)(40 + round));
        kn_tensor *first = kn_rand(KN_SHAPE(5)), *second = kn_rand(KN_SHAPE(5));
        double *expected = read_doubles(second), *got = read_doubles(x);
        for (int i = 0; i < 5; i++)
            assert_true(expected[i] == got[i]);
        free(expected);
        free(got);
        kn_release(first);
        kn_release(second);
    }
    kn_release(x);
    kn_graph_free(graph);
}

/* The graph owns the memory allocated during capture: other work does not touch it, and it is freed with the graph. */
static void memory_is_the_graphs_own(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    kn_tensor *x = kn_full(KN_SHAPE(50000), 3), *y = NULL;
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    assert_null(kn_graph_pool(graph));
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        y = kn_retain(kn_add_scalar(kn_mul(kn_relu(x), x), 1));
    }
    assert_non_null(kn_graph_pool(graph));
    for (int round = 0; round < 5; round++) {
        KN_SCOPE;
        for (int i = 0; i < 10; i++) /* would reuse the graph's temporaries if they were free */
            kn_full(KN_SHAPE(50000), -1);
        CHECK_OK(kn_graph_replay(graph));
        double sum;
        CHECK_OK(kn_item(kn_sum(y), &sum));
        assert_true(sum == 50000.0 * 10);
    }
    kn_graph_free(graph);
    {
        KN_SCOPE;
        double sum; /* the result outlives the graph */
        CHECK_OK(kn_item(kn_sum(y), &sum));
        assert_true(sum == 50000.0 * 10);
    }
    kn_release(x);
    kn_release(y);
    assert_int_equal(kn_memory_allocated(device), 0);
    CHECK_OK(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 0);
}

/* Two graphs share a pool: the second reuses the memory of the first's temporaries. */
static void graphs_share_a_pool(void **state)
{
    (void)state;
    kn_tensor *x = kn_full(KN_SHAPE(1000000), 2), *results[2] = {0};
    kn_graph *graphs[2];
    uint64_t reserved[2];
    for (int g = 0; g < 2; g++) {
        CHECK_NEW(graphs[g] = kn_graph_new());
        if (g == 1)
            CHECK_OK(kn_graph_set_pool(graphs[1], kn_graph_pool(graphs[0])));
        {
            KN_GRAPH_CAPTURE(graphs[g], NULL);
            KN_SCOPE;
            results[g] = kn_retain(kn_sum(kn_mul(kn_mul(x, x), x)));
        }
        reserved[g] = kn_memory_reserved(kn_device_current());
    }
    assert_true(reserved[1] == reserved[0]);
    for (int g = 0; g < 2; g++) {
        double sum;
        CHECK_OK(kn_graph_replay(graphs[g]));
        CHECK_OK(kn_item(results[g], &sum));
        assert_true(sum == 8e6);
        kn_release(results[g]);
    }
    kn_graph_free(graphs[0]);
    kn_graph_free(graphs[1]);
    kn_release(x);
}

/* Replays go to the thread's current stream, in order whatever the stream. */
static void replays_follow_the_current_stream(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    kn_stream *side;
    kn_graph *graph;
    CHECK_NEW(side = kn_stream_new(device));
    CHECK_NEW(graph = kn_graph_new());
    kn_tensor *count = kn_zeros(KN_SHAPE(20000));
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        for (int i = 0; i < 20; i++) {
            KN_SCOPE;
            CHECK_TENSOR(kn_add_(count, kn_full(KN_SHAPE(1), 1)));
        }
    }
    for (int round = 0; round < 6; round++) {
        CHECK_OK(kn_stream_set_current(round % 2 ? side : kn_stream_default(device)));
        CHECK_OK(kn_graph_replay(graph));
    }
    {
        KN_SCOPE;
        double sum; /* on `side`, where the last replay went */
        CHECK_OK(kn_item(kn_sum(count), &sum));
        assert_true(sum == 20000.0 * 120);
    }
    CHECK_OK(kn_stream_set_current(kn_stream_default(device)));
    kn_graph_free(graph);
    kn_release(count);
    CHECK_OK(kn_stream_synchronize(side));
    CHECK_OK(kn_stream_free(side));
}

/* A capture on a side stream, replayed on it. */
static void captures_on_a_side_stream(void **state)
{
    (void)state;
    kn_stream *side;
    kn_graph *graph;
    kn_tensor *y = NULL, *x = kn_full(KN_SHAPE(100), 4);
    CHECK_NEW(side = kn_stream_new(kn_device_current()));
    CHECK_OK(kn_stream_wait_stream(side, kn_stream_default(kn_device_current())));
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_STREAM(side);
        assert_false(kn_is_current_stream_capturing(NULL));
        {
            KN_GRAPH_CAPTURE(graph, side);
            assert_true(kn_is_current_stream_capturing(NULL));
            y = kn_mul(x, x);
        }
        CHECK_OK(kn_graph_replay(graph));

        KN_SCOPE;
        CHECK_VALUES(kn_sum(y), 1600);
    }
    kn_release(x);
    kn_release(y);
    kn_graph_free(graph);
    CHECK_OK(kn_stream_synchronize(side));
    CHECK_OK(kn_stream_free(side));
}

/* A graphed module inside an eager step: the same losses and parameters as without graphs. */
static void graphed_modules_learn_alike(void **state)
{
    (void)state;
    graph_case eager, graphed;
    double losses[6], value;
    case_make(&eager, adam, KN_F32);
    for (int i = 0; i < 6; i++) {
        KN_SCOPE;
        case_feed(&eager, i);
        CHECK_OK(kn_item(case_step(&eager), &losses[i]));
    }
    case_make(&graphed, adam, KN_F32);
    CHECK_OK(kn_make_graphed_callable(graphed.net, graphed.x));
    assert_null(kn_grad(kn_module_parameters(graphed.net).tensors[0]));
    for (int i = 0; i < 6; i++) {
        KN_SCOPE;
        case_feed(&graphed, i);
        CHECK_OK(kn_item(case_step(&graphed), &value));
        assert_true(value == losses[i]);
    }
    check_same_parameters(&eager, &graphed);

    /* gradients accumulate over passes, as without graphs */
    kn_tensor *sums[2];
    graph_case *cases[2] = {&eager, &graphed};
    for (int c = 0; c < 2; c++) {
        kn_manual_seed(3);
        kn_optim_zero_grad(cases[c]->optim);
        for (int i = 0; i < 2; i++) {
            KN_SCOPE;
            CHECK_OK(kn_backward(kn_sum(kn_forward(cases[c]->net, cases[c]->x))));
        }

        KN_SCOPE;
        sums[c] = kn_retain(kn_clone(kn_grad(kn_module_parameters(cases[c]->net).tensors[0])));
    }
    double *one = read_doubles(sums[0]), *two = read_doubles(sums[1]);
    for (int64_t i = 0; i < kn_numel(sums[0]); i++)
        assert_true(one[i] == two[i]);
    free(one);
    free(two);
    kn_release(sums[0]);
    kn_release(sums[1]);

    /* in evaluation mode the module runs eagerly; inputs unlike the recorded ones are rejected */
    {
        KN_SCOPE;
        kn_module_train(graphed.net, false);
        CHECK_TENSOR(kn_forward(graphed.net, kn_rand(KN_SHAPE(3, 1, 12, 12))));
        kn_module_train(graphed.net, true);
        assert_null(kn_forward(graphed.net, kn_rand(KN_SHAPE(3, 1, 12, 12))));
        CHECK_ERROR(KN_ERR_SHAPE, "like those it was recorded with", "[16, 1, 12, 12]", "[3, 1, 12, 12]");
        assert_int_equal(kn_make_graphed_callable(graphed.net, graphed.x), KN_ERR_STATE);
        CHECK_ERROR(KN_ERR_STATE, "is graphed already");
    }
    case_free(&eager);
    case_free(&graphed);
}

/* Saved tensors are stored once: a backward pass that would read another call's is an error, not a wrong gradient. */
static void graphed_modules_keep_one_call(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = 3, .out_features = 2), kn_nn_tanh());
    kn_tensor *x = kn_rand(KN_SHAPE(4, 3)), *weight = kn_module_parameters(net).tensors[0];
    CHECK_OK(kn_make_graphed_callable(net, x));
    kn_tensor *first = kn_sum(kn_forward(net, x)), *second = kn_sum(kn_forward(net, kn_neg(x)));
    assert_int_equal(kn_backward(first), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "graphed_module", "applied again");
    CHECK_OK(kn_backward(second));
    kn_tensor *third = kn_sum(kn_forward(net, x));
    {
        KN_NO_GRAD;
        kn_fill_(weight, 1);
    }
    assert_int_equal(kn_backward(third), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "graphed_module", "changed in place");
    CHECK_OK(kn_module_to_dtype(net, KN_F16));
    assert_null(kn_forward(net, x));
    CHECK_ERROR(KN_ERR_STATE, "moved or converted");
    kn_module_free(net);
}

static kn_tensor *peek(kn_module *module, kn_tensor *x)
{
    (void)module;
    double sum;
    return kn_item(kn_sum(x), &sum) == KN_OK ? kn_mul_scalar(x, sum) : NULL;
}

/* A pass that reads a value cannot be captured: the module is unchanged. */
static void modules_that_read_values_are_not_graphed(void **state)
{
    (void)state;
    kn_module *module = kn_module_new("Peek", peek, 0, NULL);
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(2));
        assert_int_equal(kn_make_graphed_callable(module, x), KN_ERR_STATE);
        CHECK_ERROR(KN_ERR_STATE, "make_graphed_callable", "reading a tensor cannot be part of a graph");
        CHECK_VALUES(kn_forward(module, x), 2, 2);
    }
    kn_module_free(module);
}

/* --- threads ---------------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    int number;
    double result;
    char problem[256];
} worker;

static void count_in_graph(worker *self, kn_tensor *count, kn_graph *graph)
{
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        for (int i = 0; i < 10; i++) {
            KN_SCOPE;
            kn_add_(count, kn_full(KN_SHAPE(1), self->number));
        }
    }
    for (int round = 0; round < 30; round++)
        if (kn_graph_replay(graph) != KN_OK)
            return;
    kn_item(kn_sum(count), &self->result);
}

static void *replay_alone(void *user)
{
    worker *self = user;
    kn_stream *stream = NULL;
    kn_graph *graph = NULL;
    kn_device *device = kn_device_current();
    if ((stream = kn_stream_new(device)) != NULL && kn_stream_set_current(stream) == KN_OK &&
        (graph = kn_graph_new()) != NULL) {
        KN_SCOPE;
        count_in_graph(self, kn_zeros(KN_SHAPE(1000)), graph);
    }
    snprintf(self->problem, sizeof self->problem, "%s", kn_error_message());
    kn_graph_free(graph);
    kn_stream_synchronize(stream);
    kn_stream_free(stream);
    return NULL;
}

static void threads_replay_side_by_side(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, replay_alone, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_string_equal(workers[i].problem, "");
        assert_true(workers[i].result == 1000.0 * 300 * workers[i].number);
    }
}

static void the_dump_names_what_is_recorded(void **state)
{
    (void)state;
    kn_graph *graph;
    kn_tensor *x = kn_zeros(KN_SHAPE(8)), *y;
    CHECK_NEW(graph = kn_graph_new());
    assert_int_equal(kn_graph_command_count(graph), 0);
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        y = kn_relu(x);
    }
    assert_int_equal(kn_graph_command_count(graph), 1);
    char *dump = kn_graph_debug_dump(graph);
    assert_non_null(strstr(dump, "relu"));
    kn_free(dump);
    CHECK_OK(kn_graph_reset(graph));
    assert_int_equal(kn_graph_command_count(graph), 0);
    kn_graph_free(graph);
    kn_release(x);
    kn_release(y);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(adam_steps_are_the_same_bits),
        TEST(sgd_steps_in_double_are_the_same_bits),
        TEST(products_of_clblast_are_recorded),
        TEST(replays_draw_anew),
        TEST(memory_is_the_graphs_own),
        TEST(graphs_share_a_pool),
        TEST(replays_follow_the_current_stream),
        TEST(captures_on_a_side_stream),
        TEST(graphed_modules_keep_one_call),
        TEST(graphed_modules_learn_alike),
        TEST(modules_that_read_values_are_not_graphed),
        TEST(threads_replay_side_by_side),
        TEST(the_dump_names_what_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
