/* test_dist_allocations.c - each host allocation in turn fails in a step of data parallelism and in the collectives: an
 * error that says so, nothing left behind, and the next step works. */
#include "dist_case.h"

#include "base/memory.h"

typedef bool (*work)(void *user);

/* Whether fewer than n allocations have been made since kn_fail_alloc_after(n): then one of the next n fails. */
static bool still_armed(long n)
{
    for (long i = 0; i < n; i++) {
        void *block = kn_malloc(1);
        if (!block)
            return true;
        kn_free(block);
    }
    return false;
}

/* Runs `run` with its n-th allocation failing, for every n there is. Some failures are made good (the pool tries
 * again); one that is not is told as what it is. */
static void fail_each(work run, void *user)
{
    int failures = 0;
    bool over = false;
    for (long n = 1; n < 5000 && !over; n++) {
        bool fine = false;
        {
            KN_SCOPE;
            kn_fail_alloc_after(n, 0);
            fine = run(user);
            over = still_armed(n) && fine;
            kn_fail_alloc_after(0, 0);
        }
        failures += !fine;
        if (!fine && kn_error_status() != KN_ERR_MEMORY)
            fail_msg("allocation %ld: %s, \"%s\"", n, kn_status_name(kn_error_status()), kn_error_message());
        kn_error_clear();
    }
    assert_true(over);
    assert_true(failures > 20);

    KN_SCOPE;
    assert_true(run(user));
}

static bool step(void *user)
{
    kn_module *net = user;
    kn_tensor *x = kn_ones(KN_SHAPE(5, 3));
    bool fine = x && kn_backward(kn_sum(kn_forward(net, x))) == KN_OK;
    kn_module_zero_grad(net);
    return fine;
}

TENSOR_TEST(a_step_of_data_parallelism)
{
    kn_device *const *devices = case_devices(3);
    kn_module *net =
        kn_nn_data_parallel(kn_nn_sequential(kn_nn_linear(.in_features = 3, .out_features = 4), kn_nn_relu(),
                                             kn_nn_linear(.in_features = 4, .out_features = 2)),
                            .devices = devices, .num_devices = 3);
    {
        KN_SCOPE;
        assert_true(step(net));
    }
    fail_each(step, net);
    kn_module_free(net);
}

static bool collectives(void *user)
{
    kn_device *const *devices = user;
    kn_tensor *leaves[2] = {kn_ones(KN_SHAPE(6), .requires_grad = true), kn_ones(KN_SHAPE(4), .dtype = KN_F64)};
    kn_tensor *copies[6], *chunks[3], *sums[2];
    if (!leaves[0] || !leaves[1] || kn_comm_broadcast_coalesced(leaves, 2, devices, 3, 0, copies) != KN_OK ||
        kn_comm_reduce_add_coalesced(copies, 3, 2, devices[1], 0, sums) != KN_OK ||
        kn_comm_scatter(sums[0], devices, 3, NULL, 0, chunks) != KN_OK)
        return false;
    kn_tensor *whole = kn_comm_gather(chunks, 3, 0, devices[2]);
    kn_tensor *distinct[3];
    for (int i = 0; i < 3; i++)
        if (!(distinct[i] = kn_clone(copies[2 * i + 1])))
            return false;
    return kn_backward(kn_sum(whole)) == KN_OK && kn_comm_all_reduce(distinct, 3, KN_REDUCE_MEAN) == KN_OK;
}

TENSOR_TEST(the_collectives)
{
    kn_device *devices[3];
    for (int i = 0; i < 3; i++)
        devices[i] = case_devices(3)[i];
    {
        KN_SCOPE;
        assert_true(collectives(devices));
    }
    fail_each(collectives, devices);
}

/* Failing while a wrapper is made frees the module that was given. */
static bool make(void *user)
{
    kn_device *const *devices = user;
    kn_module *net = kn_nn_data_parallel(kn_nn_sequential(kn_nn_linear(.in_features = 3, .out_features = 4),
                                                          kn_nn_linear(.in_features = 4, .out_features = 4)),
                                         .devices = devices, .num_devices = 3);
    kn_module *replicas[3];
    bool fine = net && kn_module_replicate(kn_data_parallel_inner(net), devices, 3, replicas) == KN_OK;
    for (int i = 0; i < 3 && fine; i++)
        kn_module_free(replicas[i]);
    kn_module_free(net);
    return fine;
}

TENSOR_TEST(making_wrappers_and_replicas)
{
    kn_device *devices[3];
    for (int i = 0; i < 3; i++)
        devices[i] = case_devices(3)[i];
    fail_each(make, devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_of_data_parallelism),
        TEST(the_collectives),
        TEST(making_wrappers_and_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
