/* test_device_scope.c - opening the device table, scoped devices, indices, supported program types, peers; with two
 * PoCL devices. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs first: devices have not been enumerated yet. */
static void the_table_is_opened(void **state)
{
    (void)state;
    assert_false(kn_is_initialized());
    assert_ok(kn_init());
    assert_true(kn_is_initialized());
    assert_ok(kn_init());
}

static void indices_count_devices(void **state)
{
    (void)state;
    for (int i = 0; i < kn_device_count(); i++)
        assert_int_equal(kn_device_index(kn_device_at(i)), i);
    assert_int_equal(kn_device_index(kn_device_host()), -1);
    assert_int_equal(kn_device_index(NULL), -1);
}

static void leave_by_return(kn_device *device)
{
    KN_DEVICE(device);
    assert_ptr_equal(kn_device_current(), device);
    return;
}

static void blocks_set_and_restore(void **state)
{
    (void)state;
    kn_device *first = kn_device_at(0), *second = kn_device_at(1);
    assert_ok(kn_device_set_current(first));
    int ran = 0;
    {
        KN_DEVICE(second);
        ran++;
        {
            KN_SCOPE;
            assert_ptr_equal(kn_device_of(kn_zeros(KN_SHAPE(2))), second);
        }
        {
            KN_DEVICE(first);
            assert_ptr_equal(kn_device_current(), first);
        }
        {
            KN_DEVICE(kn_device_host());
            assert_ptr_equal(kn_device_current(), kn_device_host());
        }
        assert_ptr_equal(kn_device_current(), second);
    }
    assert_int_equal(ran, 1);
    assert_ptr_equal(kn_device_current(), first);
    leave_by_return(second);
    assert_ptr_equal(kn_device_current(), first);
    for (int i = 0; i < 2; i++) {
        KN_DEVICE(second);
        ran++;
        break; /* leaves the loop and the guard */
    }
    assert_int_equal(ran, 2);
    assert_ptr_equal(kn_device_current(), first);
}

static void without_a_device_nothing_runs_to_the_end_of_the_block(void **state)
{
    (void)state;
    assert_ok(kn_device_set_current(kn_device_at(1)));
    for (int i = 0; i < 2; i++) {
        KN_DEVICE(kn_device_at(99));
        {
            KN_DEVICE(kn_device_at(0)); /* a valid inner guard does not help */
            assert_null(kn_zeros(KN_SHAPE(2)));
        }
        assert_null(kn_zeros(KN_SHAPE(2)));
        assert_message("KN_DEVICE: argument `device` is NULL"); /* the first error */
        assert_null(kn_zeros(KN_SHAPE(2)));
        assert_message("guard");
        kn_error_clear();
    }
    assert_ptr_equal(kn_device_current(), kn_device_at(1));
    kn_tensor *x = kn_zeros(KN_SHAPE(2));
    assert_non_null(x);
    kn_release(x);
}

/* A thread that never chose a device goes back to "auto" after a block. */
static void *on_a_thread(void *user)
{
    kn_device **seen = user;
    {
        KN_DEVICE(kn_device_at(1));
        seen[0] = kn_device_current();
    }
    seen[1] = kn_device_current();
    return NULL;
}

static void each_thread_has_its_own(void **state)
{
    (void)state;
    kn_device *seen[2], *automatic;
    pthread_t thread;
    assert_ok(kn_device_set_current(kn_device_at(1)));
    assert_new(automatic = kn_device_open("auto"));
    assert_int_equal(pthread_create(&thread, NULL, on_a_thread, seen), 0);
    pthread_join(thread, NULL);
    assert_ptr_equal(seen[0], kn_device_at(1));
    assert_ptr_equal(seen[1], automatic);
}

static void programs_are_told(void **state)
{
    (void)state;
    char *list = kn_device_arch_list(test_device());
    assert_new(list);
    assert_non_null(strstr(list, "CL1.2"));
    kn_free(list);
    assert_int_equal(kn_status_of(list = kn_device_arch_list(kn_device_host())), KN_ERR_DEVICE);
    assert_message("host");
    assert_int_equal(kn_status_of(list = kn_device_arch_list(NULL)), KN_ERR_ARGUMENT);
    assert_message("device");
}

static void peers_are_told(void **state)
{
    (void)state;
    kn_device *first = kn_device_at(0), *second = kn_device_at(1);
    assert_true(kn_can_device_access_peer(first, second)); /* both use the host's memory */
    assert_true(kn_can_device_access_peer(second, first));
    assert_false(kn_can_device_access_peer(first, first));
    assert_false(kn_can_device_access_peer(first, kn_device_host()));
    assert_false(kn_can_device_access_peer(kn_device_host(), first));
    assert_false(kn_can_device_access_peer(first, NULL));
    assert_message("peer");
    assert_false(kn_can_device_access_peer(NULL, first));
    assert_message("device");
}

static void more_properties_are_told(void **state)
{
    (void)state;
    kn_device_properties p;
    assert_ok(kn_device_get_properties(kn_device_at(0), &p));
    assert_true(p.max_work_items[0] > 0 && p.max_work_items[1] > 0 && p.max_work_items[2] > 0);
    assert_true(p.constant_memory >= 65536 && p.memory_align >= 16);
    assert_true(p.capability_major >= 1);
    assert_int_equal(p.warp_size, 0); /* a CPU's work-items run sequentially */
    assert_string_equal(p.pci_address, "");
    assert_non_null(p.uuid);
    assert_ok(kn_device_get_properties(kn_device_host(), &p));
    assert_string_equal(p.pci_address, "");
    assert_string_equal(p.uuid, "");
}

/* In a separate process, because the first test needs the device table to be unopened. */
static bool two_cpu_devices_here(void)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0)
        _exit(!two_cpu_devices());
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    if (!two_cpu_devices_here()) /* the test uses it */
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_opened),
        cmocka_unit_test(indices_count_devices),
        cmocka_unit_test(blocks_set_and_restore),
        cmocka_unit_test(without_a_device_nothing_runs_to_the_end_of_the_block),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(programs_are_told),
        cmocka_unit_test(peers_are_told),
        cmocka_unit_test(more_properties_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
