/* test_opening.c - four threads use Koine for the first time concurrently, with no compiled kernels: each gets its
 * results, and the thread sanitizer reports only races within the driver's compiler. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/rt_test.h"

#define THREADS 4

static pthread_barrier_t start;

typedef struct user {
    int index;
    double sum;
} user;

static kn_tensor *log_and_exp(kn_tensor *x) { return kn_exp(kn_log(x)); }

static void *open_and_add(void *argument)
{
    user *u = argument;
    char name[16];
    kn_device *device;
    pthread_barrier_wait(&start);
    snprintf(name, sizeof name, "cpu:%d", u->index % kn_device_count());
    if ((device = kn_device_open(name)) == NULL && (device = kn_device_open("auto")) == NULL)
        return NULL;
    KN_SCOPE;
    static kn_tensor *(*const own[THREADS])(kn_tensor *) = {kn_relu, kn_sqrt, kn_abs, log_and_exp};
    kn_tensor *x = own[u->index](kn_ones(KN_SHAPE(1000), .device = device)); /* a kernel that no other thread builds */
    kn_item(kn_sum(kn_add(x, kn_exp(kn_mul_scalar(x, 0)))), &u->sum);
    return NULL;
}

static void threads_open_at_once(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    user users[THREADS] = {0};
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        users[i].index = i;
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_add, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    kn_error_clear();
    for (int i = 0; i < THREADS; i++)
        assert_true(users[i].sum == 2000);
    pthread_barrier_destroy(&start);
}

int main(void)
{
    char folder[] = "/tmp/koine-opening-XXXXXX", command[64];
    if (!mkdtemp(folder))
        return 1;
    setenv("POCL_CACHE_DIR", folder, 1);
    setenv("KOINE_CACHE_DIR", folder, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_open_at_once)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? failed : 1;
}
