/* mpi_loss.c - what the survivors see when a rank is lost: mpirun -n 3 mpi_loss HOW, where HOW says what rank 1 does in
 * its fifth all_reduce: die (SIGKILL), stop (SIGSTOP), leave (exit without freeing its group) or sleep (longer than the
 * time-out). Survivors print the error and the seconds that it took, and end with 0 if it names rank 1. */
#include <koine/koine.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void be_lost(const char *how)
{
    if (strcmp(how, "die") == 0)
        raise(SIGKILL);
    if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    if (strcmp(how, "leave") == 0)
        _exit(0);
    sleep(6);
}

int main(int argc, char **argv)
{
    kn_group *group = kn_group_open(.backend = "mpi", .lost_after = 2, .timeout = 4);
    if (argc < 2 || !group) {
        fprintf(stderr, "%s\n", argc < 2 ? "mpi_loss die|stop|leave|sleep" : kn_error_message());
        return 2;
    }
    KN_SCOPE;
    kn_tensor *x = kn_ones(KN_SHAPE(1000), .device = kn_device_host());
    const double began = seconds();
    for (int i = 0; i < 100; i++) {
        if (i == 5 && kn_group_rank(group) == 1)
            be_lost(argv[1]);
        if (kn_group_all_reduce(group, x) != KN_OK)
            break;
    }
    char message[1024];
    snprintf(message, sizeof message, "%s", kn_error_message());
    printf("rank %d after %.1f s: %s\n", kn_group_rank(group), seconds() - began, message);
    fflush(stdout);
    const bool again = kn_group_barrier(group) == KN_ERR_DEVICE && strstr(kn_error_message(), "the group has failed");
    const bool survives = kn_group_rank(group) != 1;
    kn_group_free(group);
    return survives && strstr(message, "rank 1 ") && again ? 0 : 1;
}
