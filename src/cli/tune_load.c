/* cli/tune_load.c - is the machine busy? Then timings mean little. Measured by spinning on the processors for a moment:
 * a load average covers the last minute and includes this program. */
#define _GNU_SOURCE /* CLOCK_THREAD_CPUTIME_ID */
#include <pthread.h>
#include <time.h>

#include "cli/tune.h"

enum { MAX_THREADS = 256 };
static const double moment = 0.1; /* seconds */

static double read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sets *share to the fraction of the moment during which this thread ran. */
static void *spin(void *share)
{
    const double start = read_clock(CLOCK_MONOTONIC), used = read_clock(CLOCK_THREAD_CPUTIME_ID);
    double now = start;
    while (now < start + moment)
        now = read_clock(CLOCK_MONOTONIC);
    *(double *)share = (read_clock(CLOCK_THREAD_CPUTIME_ID) - used) / (now - start);
    return NULL;
}

double kn_tune_processor_share(int processors)
{
    pthread_t threads[MAX_THREADS];
    double shares[MAX_THREADS], sum = 0;
    int count = 0;
    processors = processors < 1 ? 1 : processors < MAX_THREADS ? processors : MAX_THREADS;
    while (count < processors && pthread_create(&threads[count], NULL, spin, &shares[count]) == 0)
        count++;
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum += shares[i];
    }
    return count > 0 ? sum / count : 1;
}
