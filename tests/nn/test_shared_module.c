/* test_shared_module.c - several threads apply one module in evaluation mode, each to its own inputs, with the same
 * bits as alone: the guarantee of koine/nn.h about threads. */
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 12, BATCH = 3, CLASSES = 10 };
enum { RESULTS = BATCH * CLASSES };

/* How the threads apply it. */
typedef enum manner { RECORDING, WITHOUT_RECORD, OWN_STREAMS, GRAPHED } manner;

typedef struct shared {
    kn_module *net;
    manner manner;
    pthread_barrier_t start;
    int64_t parameters; /* elements */
} shared;

typedef struct worker {
    pthread_t thread;
    shared *shared;
    int number;
    float results[ROUNDS][RESULTS];
    char problem[512];
} worker;

/* --- the module ------------------------------------------------------------------------------------------------- */

/* A user-defined module around built-in layers. */
typedef struct residual {
    kn_module *body;
} residual;

static kn_tensor *residual_forward(kn_module *module, kn_tensor *x)
{
    const residual *self = kn_module_self(module);
    return kn_add_activated(x, kn_forward(self->body, x), KN_ACTIVATION_RELU);
}

static kn_module *new_residual(int64_t channels)
{
    kn_module *module = kn_module_new("Residual", residual_forward, sizeof(residual), NULL);
    residual *self = kn_module_self(module);
    self->body =
        kn_module_register_module(module, "body",
                                  kn_nn_sequential(kn_nn_conv2d(.in_channels = channels, .out_channels = channels,
                                                                .kernel_size = 3, .padding = 1),
                                                   kn_nn_batch_norm2d(.num_features = channels)));
    return module;
}

static kn_module *new_net(void)
{
    kn_manual_seed(5);
    kn_module *net = kn_nn_sequential(
        kn_nn_conv2d(.in_channels = 1, .out_channels = 8, .kernel_size = 3), kn_nn_batch_norm2d(.num_features = 8),
        kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2), new_residual(8), kn_nn_dropout(.p = 0.5), kn_nn_flatten(),
        kn_nn_linear(.in_features = 8 * 5 * 5, .out_features = 32), kn_nn_relu6(), kn_nn_dropout(.p = 0.3),
        kn_nn_layer_norm(KN_SHAPE(32)), kn_nn_linear(.in_features = 32, .out_features = CLASSES));
    CHECK_TENSOR(net);
    kn_module_train(net, false);
    return net;
}

/* --- a thread --------------------------------------------------------------------------------------------------- */

static kn_tensor *new_input(int number, int round)
{
    float values[BATCH * 12 * 12];
    for (int i = 0; i < BATCH * 12 * 12; i++)
        values[i] = (float)((i * 37 + number * 101 + round * 17) % 211) / 105.5F - 1;
    return kn_from_data(values, KN_SHAPE(BATCH, 1, 12, 12));
}

static void apply(worker *self, int round)
{
    KN_SCOPE;
    kn_tensor *y = kn_forward(self->shared->net, new_input(self->number, round));
    bool recorded = self->shared->manner == RECORDING;
    if (kn_read(y, self->results[round], sizeof self->results[round]) != KN_OK)
        snprintf(self->problem, sizeof self->problem, "round %d: %s", round, kn_error_message());
    else if (kn_requires_grad(y) != recorded)
        snprintf(self->problem, sizeof self->problem, "round %d: recorded or not, against what was asked for", round);
    if (kn_module_parameter_count(self->shared->net) != self->shared->parameters)
        snprintf(self->problem, sizeof self->problem, "round %d: the list of parameters is another", round);
}

static void all_rounds(worker *self)
{
    for (int round = 0; round < ROUNDS && self->problem[0] == '\0'; round++) {
        if (self->shared->manner == RECORDING) {
            apply(self, round);
        } else {
            KN_NO_GRAD;
            apply(self, round);
        }
    }
}

static void *work(void *user)
{
    worker *self = user;
    kn_stream *stream = NULL;
    bool ready = self->shared->manner < OWN_STREAMS ||
                 ((stream = kn_stream_new(kn_device_current())) != NULL && kn_stream_set_current(stream) == KN_OK);
    if (!ready)
        snprintf(self->problem, sizeof self->problem, "%s", kn_error_message());
    pthread_barrier_wait(&self->shared->start);
    if (ready)
        all_rounds(self);
    if (stream != NULL) {
        kn_stream_synchronize(stream);
        kn_stream_set_current(kn_stream_default(kn_device_current()));
        kn_stream_free(stream);
    }
    return NULL;
}

/* --- together and alone ----------------------------------------------------------------------------------------- */

static void graph_if_asked(kn_module *net, manner how)
{
    if (how != GRAPHED)
        return;
    KN_SCOPE;
    CHECK_OK(kn_make_graphed_callable(net, new_input(0, 0)));
}

/* Each thread alone, one after the other, with its own module. */
static void run_alone(worker *workers)
{
    shared alone = {.net = new_net(), .manner = WITHOUT_RECORD};
    alone.parameters = kn_module_parameter_count(alone.net);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.shared = &alone, .number = i};
        all_rounds(&workers[i]);
        assert_string_equal(workers[i].problem, "");
    }
    kn_module_free(alone.net);
}

/* The module is new, so the threads perform its first-use initialisation concurrently. */
static void run_together(worker *workers, manner how)
{
    shared all = {.net = new_net(), .manner = how};
    /* Counted here: querying the module would create its list before the threads do. */
    all.parameters = 8 * 9 + 8 + 16 + 8 * 8 * 9 + 8 + 16 + 200 * 32 + 32 + 64 + 32 * 10 + 10;
    graph_if_asked(all.net, how);
    CHECK_OK(kn_synchronize(kn_device_current()));
    assert_int_equal(pthread_barrier_init(&all.start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.shared = &all, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&all.start);
    kn_module_free(all.net);
}

static void compare(manner how)
{
    worker *alone = calloc(THREADS, sizeof *alone), *together = calloc(THREADS, sizeof *together);
    assert_non_null(alone);
    assert_non_null(together);
    run_alone(alone);
    for (int repeat = 0; repeat < 3; repeat++) {
        run_together(together, how);
        for (int i = 0; i < THREADS; i++) {
            assert_string_equal(together[i].problem, "");
            assert_memory_equal(together[i].results, alone[i].results, sizeof alone[i].results);
        }
    }
    /* Different inputs give different results, so the comparison above can fail. */
    assert_memory_not_equal(alone[0].results, alone[1].results, sizeof alone[0].results);
    assert_memory_not_equal(alone[0].results[0], alone[0].results[1], sizeof alone[0].results[0]);
    free(alone);
    free(together);
}

static void threads_without_a_record_share_a_module(void **state)
{
    (void)state;
    compare(WITHOUT_RECORD);
}

static void threads_that_record_share_a_module(void **state)
{
    (void)state;
    compare(RECORDING);
}

static void threads_with_streams_of_their_own_share_a_module(void **state)
{
    (void)state;
    compare(OWN_STREAMS);
}

static void threads_share_a_graphed_module(void **state)
{
    (void)state;
    compare(GRAPHED);
}

/* --- recording a parameter ---------------------------------------------------------------------------------- */

enum { LEAVES = 300 };

typedef struct recorder {
    pthread_t thread;
    pthread_barrier_t *start;
    kn_tensor **leaves;
    int recorded;
} recorder;

/* Views need no kernel, so only recording itself synchronises the threads. */
static void *record_views(void *user)
{
    recorder *self = user;
    KN_SCOPE;
    pthread_barrier_wait(self->start);
    for (int i = 0; i < LEAVES; i++) {
        kn_tensor *view = kn_unsqueeze(self->leaves[i], 0);
        self->recorded += kn_requires_grad(view) && !kn_is_leaf(view);
    }
    return NULL;
}

static void threads_record_operations_on_one_parameter(void **state)
{
    (void)state;
    kn_tensor *leaves[LEAVES];
    recorder recorders[THREADS];
    pthread_barrier_t start;
    KN_SCOPE;
    for (int i = 0; i < LEAVES; i++)
        leaves[i] = kn_ones(KN_SHAPE(2), .requires_grad = true);
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        recorders[i] = (recorder){.start = &start, .leaves = leaves};
        assert_int_equal(pthread_create(&recorders[i].thread, NULL, record_views, &recorders[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(recorders[i].thread, NULL);
        assert_int_equal(recorders[i].recorded, LEAVES);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_record_operations_on_one_parameter),
        TEST(threads_without_a_record_share_a_module),
        TEST(threads_that_record_share_a_module),
        TEST(threads_with_streams_of_their_own_share_a_module),
        TEST(threads_share_a_graphed_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
