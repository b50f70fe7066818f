/* test_generators.c - generators of the program's own: apart from the devices', given to every random function. */
#include "support/check.h"

#include <pthread.h>
#include <string.h>

enum { DRAWN = 32 };

/* Each random function, drawn with a generator; NULL: the device's. */
static kn_tensor *draw_rand(kn_generator *g) { return kn_rand(KN_SHAPE(DRAWN), .generator = g); }
static kn_tensor *draw_randn(kn_generator *g) { return kn_randn(KN_SHAPE(DRAWN), .generator = g); }
static kn_tensor *draw_randint(kn_generator *g) { return kn_randint(0, 1000, KN_SHAPE(DRAWN), .generator = g); }
static kn_tensor *draw_randperm(kn_generator *g) { return kn_randperm(DRAWN, .generator = g); }
static kn_tensor *draw_uniform(kn_generator *g)
{
    return kn_uniform_(kn_empty(KN_SHAPE(DRAWN)), -1, 1, .generator = g);
}
static kn_tensor *draw_normal(kn_generator *g) { return kn_normal_(kn_empty(KN_SHAPE(DRAWN)), 2, 3, .generator = g); }
static kn_tensor *draw_bernoulli(kn_generator *g)
{
    return kn_bernoulli_(kn_empty(KN_SHAPE(DRAWN)), 0.5, .generator = g);
}
static kn_tensor *draw_dropout(kn_generator *g) { return kn_dropout(kn_ones(KN_SHAPE(DRAWN)), .generator = g); }
static kn_tensor *draw_dropout2d(kn_generator *g)
{
    return kn_dropout2d(kn_ones(KN_SHAPE(1, DRAWN, 1)), .generator = g);
}

static kn_tensor *draw_rand_like(kn_generator *g) { return kn_rand_like(kn_empty(KN_SHAPE(DRAWN)), .generator = g); }
static kn_tensor *draw_randn_like(kn_generator *g) { return kn_randn_like(kn_empty(KN_SHAPE(DRAWN)), .generator = g); }
static kn_tensor *draw_init_uniform(kn_generator *g)
{
    return kn_init_uniform_(kn_empty(KN_SHAPE(DRAWN)), -1, 1, .generator = g);
}
static kn_tensor *draw_init_normal(kn_generator *g)
{
    return kn_init_normal_(kn_empty(KN_SHAPE(DRAWN)), 2, 3, .generator = g);
}
static kn_tensor *draw_kaiming(kn_generator *g)
{
    return kn_init_kaiming_uniform_(kn_empty(KN_SHAPE(DRAWN, 2)), 0, .generator = g);
}
static kn_tensor *draw_xavier(kn_generator *g)
{
    return kn_init_xavier_uniform_(kn_empty(KN_SHAPE(DRAWN, 2)), 1, .generator = g);
}
static kn_tensor *draw_by_module(kn_generator *g, bool planes)
{
    kn_module *module = planes ? kn_nn_dropout2d(.generator = g) : kn_nn_dropout(.generator = g);
    kn_tensor *y = kn_forward(module, kn_ones(KN_SHAPE(1, DRAWN, 1, 1)));
    kn_module_free(module);
    return y;
}
static kn_tensor *draw_nn_dropout(kn_generator *g) { return draw_by_module(g, false); }
static kn_tensor *draw_nn_dropout2d(kn_generator *g) { return draw_by_module(g, true); }

static kn_tensor *(*const draws[])(kn_generator *) = {
    draw_rand,        draw_randn,   draw_randint,   draw_randperm,   draw_uniform,     draw_normal,
    draw_bernoulli,   draw_dropout, draw_dropout2d, draw_rand_like,  draw_randn_like,  draw_init_uniform,
    draw_init_normal, draw_kaiming, draw_xavier,    draw_nn_dropout, draw_nn_dropout2d};
enum { DRAWS = sizeof draws / sizeof draws[0] };

static bool are_equal(kn_tensor *a, kn_tensor *b)
{
    double different = 1;
    CHECK_OK(kn_item(kn_sum(kn_to_dtype(kn_ne(a, b), KN_F32)), &different));
    return different == 0;
}

TENSOR_TEST(every_random_function_takes_one)
{
    kn_generator *g = kn_generator_new(NULL);
    for (int i = 0; i < DRAWS; i++) {
        KN_SCOPE;
        uint8_t state[KN_RNG_STATE_SIZE], now[KN_RNG_STATE_SIZE];
        kn_manual_seed(5);
        kn_tensor *expected = draws[i](NULL), *next = draws[i](NULL);
        CHECK_OK(kn_get_rng_state(kn_device_current(), state));
        CHECK_OK(kn_generator_manual_seed(g, 5));
        assert_true(are_equal(draws[i](g), expected)); /* the numbers of that seed */
        assert_true(are_equal(draws[i](g), next));
        assert_false(are_equal(draws[i](g), next));
        CHECK_OK(kn_get_rng_state(kn_device_current(), now));
        assert_memory_equal(state, now, sizeof now); /* the device's stayed */
    }
    kn_generator_free(g);
}

TENSOR_TEST(states_and_seeds)
{
    kn_generator *g = kn_generator_new(NULL), *copy;
    uint8_t state[KN_RNG_STATE_SIZE];
    uint64_t seed = 0;
    assert_true(kn_generator_initial_seed(g) == UINT64_C(67280421310721)); /* torch.Generator().initial_seed() */
    assert_ptr_equal(kn_generator_device(g), kn_device_current());
    draw_rand(g);
    assert_int_equal(kn_generator_offset(g), DRAWN / 4);
    CHECK_OK(kn_generator_get_state(g, state));
    copy = kn_generator_clone(g);
    kn_tensor *after = draw_randn(g);
    assert_true(are_equal(draw_randn(copy), after));
    CHECK_OK(kn_generator_set_state(g, state));
    assert_true(are_equal(draw_randn(g), after));
    CHECK_OK(kn_generator_set_offset(g, DRAWN / 4));
    assert_true(are_equal(draw_randn(g), after));
    CHECK_OK(kn_generator_seed(g, &seed));
    assert_true(kn_generator_initial_seed(g) == seed && kn_generator_offset(g) == 0);
    CHECK_OK(kn_generator_seed(g, NULL));
    assert_true(kn_generator_initial_seed(g) != seed); /* alike once in 2^64 runs */
    kn_generator_free(copy);
    kn_generator_free(g);
}

TENSOR_TEST(the_default_one_is_the_devices)
{
    kn_generator *g = kn_generator_default(NULL), *host = kn_generator_default(kn_device_host());
    assert_ptr_equal(g, kn_generator_default(kn_device_current()));
    assert_ptr_not_equal(g, host);
    kn_manual_seed(9);
    assert_int_equal(kn_generator_initial_seed(g), 9);
    kn_tensor *expected = draw_rand(NULL);
    kn_manual_seed(9);
    assert_true(are_equal(draw_rand(g), expected));
    kn_generator_free(g); /* no effect */
    assert_int_equal(kn_generator_initial_seed(g), 9);
    CHECK_OK(kn_generator_manual_seed(host, 3));
    assert_int_equal(kn_initial_seed(kn_device_host()), 3);
    kn_tensor *on_host = kn_rand(KN_SHAPE(4), .device = kn_device_host(), .generator = host);
    assert_int_equal(kn_generator_offset(host), 1);
    CHECK_TENSOR(on_host);
}

/* The mask of backward is that of forward. */
TENSOR_TEST(dropout_keeps_its_mask)
{
    kn_generator *g = kn_generator_new(NULL);
    kn_tensor *x = kn_ones(KN_SHAPE(100), .requires_grad = true), *y = kn_dropout(x, .p = 0.5, .generator = g);
    kn_generator_free(g); /* the record does not need it */
    CHECK_OK(kn_backward(kn_sum(y)));
    assert_true(are_equal(kn_grad(x), kn_detach(y)));
}

/* Replays advance the generator, which lives as long as the graph. */
TENSOR_TEST(graphs_draw_from_it)
{
    kn_generator *g = kn_generator_new(NULL), *same = kn_generator_new(NULL);
    kn_graph *graph = kn_graph_new();
    kn_tensor *y = kn_retain(kn_zeros(KN_SHAPE(DRAWN)));
    CHECK_TENSOR(kn_uniform_(y, 0, 1, .generator = same)); /* builds the kernels */
    CHECK_OK(kn_generator_manual_seed(same, kn_generator_initial_seed(g)));
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        kn_uniform_(y, 0, 1, .generator = g);
    }
    assert_int_equal(kn_generator_offset(g), 0);
    kn_generator_free(g);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(kn_graph_replay(graph));
        assert_true(are_equal(y, kn_uniform_(kn_empty(KN_SHAPE(DRAWN)), 0, 1, .generator = same)));
    }
    kn_graph_free(graph);
    kn_release(y);
    kn_generator_free(same);
}

static void *draw_often(void *generator)
{
    for (int i = 0; i < 200; i++) {
        KN_SCOPE;
        kn_rand(KN_SHAPE(8), .generator = generator);
    }
    return NULL;
}

TENSOR_TEST(threads_share_one)
{
    kn_generator *g = kn_generator_new(NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw_often, g), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(kn_generator_offset(g), 4 * 200 * 2);
    kn_generator_free(g);
}

TENSOR_TEST(what_is_refused)
{
    uint8_t state[KN_RNG_STATE_SIZE] = {0};
    kn_generator *host = kn_generator_new(kn_device_host()), *g = kn_generator_new(NULL);
    for (int i = 0; i < DRAWS; i++) {
        assert_null(draws[i](host));
        CHECK_ERROR(KN_ERR_DEVICE, "the generator belongs to host", "kn_generator_new");
    }
    kn_generator_free(NULL);
    assert_null(kn_generator_device(NULL));
    assert_null(kn_generator_clone(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_clone", "`generator` is NULL");
    assert_int_equal(kn_generator_manual_seed(NULL, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_manual_seed");
    assert_int_equal(kn_generator_seed(NULL, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_seed");
    assert_int_equal(kn_generator_initial_seed(NULL), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_initial_seed");
    assert_int_equal(kn_generator_offset(NULL), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_offset");
    assert_int_equal(kn_generator_set_offset(NULL, 0), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_set_offset");
    assert_int_equal(kn_generator_get_state(NULL, state), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_get_state", "`generator`");
    assert_int_equal(kn_generator_get_state(g, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_get_state", "`state`");
    assert_int_equal(kn_generator_set_state(g, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_generator_set_state", "`state`");
    kn_generator_free(host);
    kn_generator_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_random_function_takes_one),
        TEST(states_and_seeds),
        TEST(the_default_one_is_the_devices),
        TEST(dropout_keeps_its_mask),
        TEST(graphs_draw_from_it),
        TEST(threads_share_one),
        TEST(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
