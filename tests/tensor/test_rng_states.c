/* test_rng_states.c - seeding one device and all, states of one and all, forks. With POCL_DEVICES="pthread pthread"
 * there are two devices. */
#include "support/check.h"

#include <string.h>

enum { DRAWN = 5, MOST = 64 };

static void draw(kn_device *device, float drawn[DRAWN])
{
    KN_SCOPE;
    CHECK_OK(kn_read(kn_rand(KN_SHAPE(DRAWN), .device = device), drawn, DRAWN * sizeof *drawn));
}

static bool draws_equal(kn_device *a, kn_device *b)
{
    float x[DRAWN], y[DRAWN];
    draw(a, x);
    draw(b, y);
    return memcmp(x, y, sizeof x) == 0;
}

TENSOR_TEST(test_one_device_is_seeded)
{
    kn_device *device = kn_device_at(kn_device_count() - 1), *host = kn_device_host();
    float first[DRAWN], again[DRAWN];
    kn_manual_seed(1);
    CHECK_OK(kn_manual_seed_device(device, UINT64_C(0xfedcba9876543210)));
    assert_true(kn_initial_seed(device) == UINT64_C(0xfedcba9876543210));
    assert_int_equal(kn_initial_seed(host), 1);
    if (kn_device_count() > 1)
        assert_int_equal(kn_initial_seed(kn_device_at(0)), 1);
    draw(device, first);
    assert_false(draws_equal(device, host));
    kn_manual_seed(UINT64_C(0xfedcba9876543210)); /* the same stream through the other function */
    draw(device, again);
    assert_memory_equal(first, again, sizeof first);
}

TENSOR_TEST(test_seeds_of_the_system)
{
    kn_device *device = kn_device_current();
    uint64_t one, two;
    uint64_t all = kn_seed();
    assert_true(kn_initial_seed(device) == all && kn_initial_seed(kn_device_host()) == all);
    CHECK_OK(kn_seed_device(device, &one));
    assert_true(kn_initial_seed(device) == one && kn_initial_seed(kn_device_host()) == all);
    CHECK_OK(kn_seed_device(device, &two));
    CHECK_OK(kn_seed_device(device, NULL));
    assert_true(one != two && two != kn_initial_seed(device)); /* equal with probability 2^-63 */
}

TENSOR_TEST(test_states_of_all)
{
    uint8_t states[MOST * KN_RNG_STATE_SIZE];
    float before[MOST][DRAWN], after[DRAWN];
    int count = kn_device_count();
    for (int i = 0; i < count; i++)
        CHECK_OK(kn_manual_seed_device(kn_device_at(i), (uint64_t)i));
    CHECK_OK(kn_get_rng_state_all(states, count));
    for (int i = 0; i < count; i++)
        draw(kn_device_at(i), before[i]);
    kn_manual_seed(77);
    CHECK_OK(kn_set_rng_state_all(states, count));
    for (int i = 0; i < count; i++) {
        assert_int_equal(kn_initial_seed(kn_device_at(i)), i);
        draw(kn_device_at(i), after);
        assert_memory_equal(before[i], after, sizeof after);
    }
    assert_int_equal(kn_initial_seed(kn_device_host()), 77);
}

/* Leaves the block by `return`; the state is restored nevertheless. */
static void leave_early(kn_device *device)
{
    KN_FORK_RNG;
    kn_manual_seed(123);
    float drawn[DRAWN];
    draw(device, drawn);
    return;
}

TENSOR_TEST(test_forks)
{
    kn_device *device = kn_device_current();
    float expected[DRAWN], drawn[DRAWN], inner[DRAWN];
    kn_manual_seed(9);
    draw(device, drawn);
    draw(device, expected); /* the values of the second draw */
    for (int way = 0; way < 4; way++) {
        kn_manual_seed(9);
        draw(device, drawn);
        int ran = 0;
        if (way == 0) {
            {
                KN_FORK_RNG;
                ran++;
                draw(device, inner);
                assert_memory_equal(inner, expected, sizeof inner); /* the fork continues from the state at its start */
                kn_manual_seed(4);
                {
                    KN_FORK_RNG;
                    draw(device, inner);
                }
                assert_true(kn_initial_seed(device) == 4);
            }
            assert_int_equal(ran, 1);
        } else if (way == 1) {
            leave_early(device);
        } else if (way == 2) {
            while (ran++ < 3) {
                KN_FORK_RNG;
                kn_seed();
                break; /* leaves the loop and the fork */
            }
            assert_int_equal(ran, 1);
        } else {
            kn_rng_fork *fork = kn_fork_rng_begin();
            kn_seed();
            CHECK_OK(kn_fork_rng_end(fork));
        }
        assert_int_equal(kn_initial_seed(kn_device_host()), 9);
        draw(device, drawn);
        assert_memory_equal(drawn, expected, sizeof drawn);
    }
    CHECK_OK(kn_fork_rng_end(NULL));
}

TENSOR_TEST(test_wrong_arguments)
{
    uint8_t states[MOST * KN_RNG_STATE_SIZE];
    assert_int_equal(kn_manual_seed_device(NULL, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_manual_seed_device", "device");
    assert_int_equal(kn_seed_device(NULL, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_seed_device", "device");
    assert_int_equal(kn_initial_seed(NULL), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_initial_seed", "device");
    assert_int_equal(kn_get_rng_state_all(NULL, kn_device_count()), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "states");
    assert_int_equal(kn_get_rng_state_all(states, kn_device_count() + 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_get_rng_state_all", "kn_device_count");
    assert_int_equal(kn_set_rng_state_all(states, -1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_set_rng_state_all", "-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_device_is_seeded), TEST(test_seeds_of_the_system), TEST(test_states_of_all), TEST(test_forks),
        TEST(test_wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
