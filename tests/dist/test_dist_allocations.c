/* test_dist_allocations.c - each host allocation in turn fails in a data-parallel step and in the collectives: an error
 * that says so, no leaks, and the next step works. */
#include "dist_case.h"

#include "support/faults.h"

static void fail_each(fault_work run, void *user) { fault_each_allocation(run, user, 5000, 1, 20); }

static kn_status step(void *user)
{
    kn_module *net = user;
    kn_tensor *x = kn_ones(KN_SHAPE(5, 3));
    bool fine = x && kn_backward(kn_sum(kn_forward(net, x))) == KN_OK;
    kn_module_zero_grad(net);
    return fault_status(fine);
}

TENSOR_TEST(a_step_of_data_parallelism)
{
    kn_device *const *devices = case_devices(3);
    kn_module *net =
        kn_nn_data_parallel(kn_nn_sequential(kn_nn_linear(.in_features = 3, .out_features = 4), kn_nn_relu(),
                                             kn_nn_linear(.in_features = 4, .out_features = 2)),
                            .devices = devices, .num_devices = 3);
    fail_each(step, net);
    kn_module_free(net);
}

static kn_status collectives(void *user)
{
    kn_device *const *devices = user;
    kn_tensor *leaves[2] = {kn_ones(KN_SHAPE(6), .requires_grad = true), kn_ones(KN_SHAPE(4), .dtype = KN_F64)};
    kn_tensor *copies[6], *chunks[3], *sums[2];
    if (!leaves[0] || !leaves[1] || kn_comm_broadcast_coalesced(leaves, 2, devices, 3, 0, copies) != KN_OK ||
        kn_comm_reduce_add_coalesced(copies, 3, 2, devices[1], 0, sums) != KN_OK ||
        kn_comm_scatter(sums[0], devices, 3, NULL, 0, chunks) != KN_OK)
        return fault_status(false);
    kn_tensor *whole = kn_comm_gather(chunks, 3, 0, devices[2]);
    kn_tensor *distinct[3];
    for (int i = 0; i < 3; i++)
        if (!(distinct[i] = kn_clone(copies[2 * i + 1])))
            return fault_status(false);
    return fault_status(kn_backward(kn_sum(whole)) == KN_OK &&
                        kn_comm_all_reduce(distinct, 3, KN_REDUCE_MEAN) == KN_OK);
}

TENSOR_TEST_F64(the_collectives)
{
    kn_device *devices[3];
    for (int i = 0; i < 3; i++)
        devices[i] = case_devices(3)[i];
    fail_each(collectives, devices);
}

/* If creating a wrapper fails, the given module is freed. */
static kn_status make(void *user)
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
    return fault_status(fine);
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
