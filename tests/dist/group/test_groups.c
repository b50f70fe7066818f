/* test_groups.c - groups of threads, on the host and on a device. */
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/group_cases.h"
#include "dist/group/profile_cases.h"
#include "dist/group/trainer_cases.h"
#include "dist/group/unified.h"

typedef struct rank {
    pthread_t thread;
    kn_group *group;
    kn_device *device;
    int (*cases)(kn_group *group, kn_device *device);
    int failures;
} rank;

static void *run_rank(void *argument)
{
    rank *r = argument;
    r->failures = r->cases(r->group, r->device);
    kn_group_free(r->group);
    return NULL;
}

static int run_ranks(int size, kn_device *device, int (*cases)(kn_group *group, kn_device *device))
{
    kn_group *groups[8];
    rank ranks[8];
    int failures = 0;
    assert_int_equal(kn_group_open_threads(size, NULL, groups), KN_OK);
    for (int r = 0; r < size; r++) {
        ranks[r] = (rank){.group = groups[r], .device = device, .cases = cases};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(ranks[r].thread, NULL);
        failures += ranks[r].failures;
    }
    return failures;
}

static void threads_exchange_host_memory(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(run_ranks(sizes[i], kn_device_host(), group_cases), 0);
}

static void threads_exchange_device_memory(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(3, kn_device_current(), group_cases), 0);
}

static void threads_exchange_mapped_memory(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    const bool shares = set_shared_memory(device, false);
    assert_int_equal(run_ranks(3, device, group_cases), 0);
    set_shared_memory(device, shares);
}

static void threads_exchange_copies_of_device_memory(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    set_unified_memory(device, false);
    assert_int_equal(run_ranks(3, device, group_cases), 0);
    assert_int_equal(run_ranks(3, device, profile_cases), 0);
    set_unified_memory(device, true);
}

static void threads_train_as_one(void **state)
{
    (void)state;
    check_needs_f64();
    for (int size = 1; size <= 4; size *= 2)
        assert_int_equal(run_ranks(size, kn_device_current(), distributed_cases), 0);
}

static int trainer_cases_in_folder(kn_group *group, kn_device *device)
{
    return trainer_cases(group, device, KOINE_BINARY_DIR "/tests/group-trainer");
}

static void threads_train_with_the_trainer(void **state)
{
    (void)state;
    check_needs_f64();
    for (int size = 1; size <= 4; size *= 2)
        assert_int_equal(run_ranks(size, kn_device_current(), trainer_cases_in_folder), 0);
}

static void threads_train_with_options(void **state)
{
    (void)state;
    check_needs_f64();
    for (int size = 1; size <= 4; size++)
        assert_int_equal(run_ranks(size, kn_device_current(), option_cases), 0);
}

static void threads_with_fewer_batches_join(void **state)
{
    (void)state;
    check_needs_f64();
    for (int size = 1; size <= 3; size++)
        assert_int_equal(run_ranks(size, kn_device_current(), join_cases), 0);
}

static void threads_normalise_joint_batches(void **state)
{
    (void)state;
    check_needs_f64();
    for (int size = 1; size <= 3; size++)
        assert_int_equal(run_ranks(size, kn_device_current(), sync_batch_norm_cases), 0);
}

static void threads_divide_optimizers(void **state)
{
    (void)state;
    check_needs_f64();
    for (int size = 1; size <= 4; size++)
        assert_int_equal(run_ranks(size, kn_device_current(), zero_cases), 0);
}

static void threads_are_profiled(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, kn_device_current(), profile_cases), 0);
    assert_int_equal(run_ranks(3, kn_device_host(), profile_cases), 0);
    assert_int_equal(run_ranks(3, kn_device_current(), profile_cases), 0);
}

static void a_program_without_launcher_is_a_group_of_one(void **state)
{
    (void)state;
    kn_group *group = kn_group_open();
    assert_non_null(group);
    assert_string_equal(kn_group_backend(group), "local");
    assert_int_equal(kn_group_size(group), 1);
    assert_int_equal(group_cases(group, kn_device_current()), 0);
    kn_group_free(group);
}

/* As `srun -n SIZE` starts it, where there is no libkoine_mpi.so. */
static kn_group *open_launched(const char *size)
{
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", size, 1);
    setenv("SLURM_STEP_NUM_TASKS", size, 1);
    kn_group *group = kn_group_open();
    unsetenv("PMI_RANK");
    unsetenv("PMI_SIZE");
    unsetenv("SLURM_STEP_NUM_TASKS");
    return group;
}

static void a_process_launched_alone_needs_no_mpi(void **state)
{
    (void)state;
    const char *path = getenv("KOINE_MODULE_PATH");
    char *before = path ? strdup(path) : NULL;
    setenv("KOINE_MODULE_PATH", "/nowhere", 1);
    kn_group *alone = open_launched("1"), *several = open_launched("2");
    CHECK_ERROR(KN_ERR_DEVICE, "the back end \"mpi\" cannot be loaded");
    assert_null(several);
    assert_non_null(alone);
    assert_int_equal(kn_group_size(alone), 1);
    assert_string_equal(kn_group_backend(alone), "local");
    assert_int_equal(kn_group_barrier(alone), KN_OK);
    kn_group_free(alone);
    if (before)
        setenv("KOINE_MODULE_PATH", before, 1);
    else
        unsetenv("KOINE_MODULE_PATH");
    free(before);
}

static void bad_parameters_are_refused(void **state)
{
    (void)state;
    const char *reason = NULL;
    kn_group *groups[2];
    assert_null(kn_group_open(.backend = "nccl"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "backend is \"nccl\"");
    assert_null(kn_group_open(.timeout = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "timeout is 0");
    assert_int_equal(kn_group_open_threads(0, NULL, groups), KN_ERR_ARGUMENT);
    assert_false(kn_group_backend_is_available("none", &reason));
    assert_non_null(strstr(reason, "\"none\" cannot be loaded"));
    assert_int_equal(kn_group_rank(NULL), -1);
    assert_null(kn_group_backend(NULL));
    assert_true(kn_work_is_done(NULL));
}

static void *leave_at_once(void *argument)
{
    kn_group_free(argument);
    return NULL;
}

/* The others are told who is missing. */
static void a_rank_that_leaves_fails_the_group(void **state)
{
    (void)state;
    kn_group *groups[2];
    pthread_t other;
    assert_int_equal(kn_group_open_threads(2, NULL, groups), KN_OK);
    pthread_create(&other, NULL, leave_at_once, groups[1]);
    assert_int_equal(kn_group_barrier(groups[0]), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "rank 1 has left the group");
    assert_int_equal(kn_group_barrier(groups[0]), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "the group has failed");
    pthread_join(other, NULL);
    kn_group_free(groups[0]);
}

static void a_rank_that_does_not_come_is_named(void **state)
{
    (void)state;
    kn_group *groups[2];
    kn_group_params params = kn_group_params_init();
    params.timeout = 0.2;
    assert_int_equal(kn_group_open_threads(2, &params, groups), KN_OK);
    assert_int_equal(kn_group_barrier(groups[0]), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "rank 1 did not answer in time");
    kn_group_free(groups[0]);
    kn_group_free(groups[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_exchange_host_memory),
        cmocka_unit_test(threads_exchange_device_memory),
        cmocka_unit_test(threads_exchange_mapped_memory),
        cmocka_unit_test(threads_exchange_copies_of_device_memory),
        cmocka_unit_test(threads_train_as_one),
        cmocka_unit_test(threads_train_with_the_trainer),
        cmocka_unit_test(threads_train_with_options),
        cmocka_unit_test(threads_with_fewer_batches_join),
        cmocka_unit_test(threads_normalise_joint_batches),
        cmocka_unit_test(threads_divide_optimizers),
        cmocka_unit_test(threads_are_profiled),
        cmocka_unit_test(a_program_without_launcher_is_a_group_of_one),
        cmocka_unit_test(a_process_launched_alone_needs_no_mpi),
        cmocka_unit_test(bad_parameters_are_refused),
        cmocka_unit_test(a_rank_that_leaves_fails_the_group),
        cmocka_unit_test(a_rank_that_does_not_come_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
