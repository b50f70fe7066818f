/* A process may end while work is queued, also when kernels have just been compiled for the first time, and when
 * replays of a graph are not enqueued yet. */
#include "rt/rt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Enqueues work without waiting, with an empty driver cache, and exits as main does. */
static void queue_and_exit(void)
{
    char folder[] = "/tmp/koine-exit-XXXXXX";
    if (!mkdtemp(folder))
        _exit(2);
    setenv("POCL_CACHE_DIR", folder, 1);
    setenv("KOINE_CACHE_DIR", folder, 1);
    static kn_tensor *x, *y;
    x = kn_rand(KN_SHAPE(1000));
    y = kn_relu(x);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    int removed = system(command);
    exit(y && removed == 0 ? 0 : 1);
}

static void replay_and_exit(void)
{
    static kn_graph *graph; /* static: not a leak at exit */
    static kn_tensor *x, *y;
    x = kn_ones(KN_SHAPE(128, 128));
    bool fine = (graph = kn_graph_new()) != NULL;
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        kn_tensor *product = x;
        for (int i = 0; i < 30; i++)
            product = kn_matmul(product, x);
        y = kn_retain(product);
    }
    for (int i = 0; i < 5; i++)
        fine = fine && kn_graph_replay(graph) == KN_OK;
    exit(fine && y ? 0 : 1);
}

static void exits_well(void (*child_main)(void))
{
    for (int run = 0; run < 3; run++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            child_main();
        int status = -1;
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void exit_waits_for_what_is_queued(void **state)
{
    (void)state;
    exits_well(queue_and_exit);
}

static void exit_waits_for_replays(void **state)
{
    (void)state;
    exits_well(replay_and_exit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exit_waits_for_what_is_queued),
                                       cmocka_unit_test(exit_waits_for_replays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
