/* test_driver_threads.c - PoCL's threads are bound to a core each where they have the machine to themselves, and only
 * there (rt/device/driver_threads.h). The cases run this program as `--count`: it counts the threads that may run on
 * one core only. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_program.h"
#include "rt/rt_test.h"

static int cores_of(long thread)
{
    cpu_set_t set;
    return sched_getaffinity((pid_t)thread, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

static int count_bound_threads(void)
{
    int bound = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        bound += entry->d_name[0] != '.' && cores_of(strtol(entry->d_name, NULL, 10)) == 1;
    if (threads)
        closedir(threads);
    return bound;
}

static int print_count(void)
{
    kn_tensor *x = kn_ones(KN_SHAPE(3)); /* threads may be started with the first context */
    if (!x || kn_synchronize(kn_device_of(x)) != KN_OK)
        return 1;
    printf("%d\n", count_bound_threads());
    kn_release(x);
    return 0;
}

static void expect(const char *settings, long bound)
{
    char expected[16];
    run_result r = run_shell("env -u POCL_AFFINITY %s /proc/%ld/exe --count", settings, (long)getpid());
    snprintf(expected, sizeof expected, "%ld\n", bound);
    assert_status(r, 0);
    assert_string_equal(r.output, expected);
    run_free(&r);
}

static void each_thread_has_a_core(void **state)
{
    (void)state;
    expect("", sysconf(_SC_NPROCESSORS_ONLN));
}

static void a_setting_of_the_user_is_kept(void **state)
{
    (void)state;
    expect("POCL_AFFINITY=0", 0);
}

static void not_with_fewer_threads(void **state)
{
    (void)state;
    expect("POCL_MAX_PTHREAD_COUNT=1", 0);
}

static void not_with_other_ranks_on_the_host(void **state)
{
    (void)state;
    expect("OMPI_COMM_WORLD_LOCAL_SIZE=2", 0);
    expect("MPI_LOCALNRANKS=2", 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--count") == 0)
        return print_count();
    kn_device_properties p;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < 2 || cores_of(0) != cores || kn_device_count() == 0 ||
        kn_device_get_properties(kn_device_at(0), &p) != KN_OK || !strstr(p.platform, "Portable Computing Language"))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_has_a_core),
        cmocka_unit_test(a_setting_of_the_user_is_kept),
        cmocka_unit_test(not_with_fewer_threads),
        cmocka_unit_test(not_with_other_ranks_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
