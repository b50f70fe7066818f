/* rt/device/num_threads.c - how many threads run a kernel that is called (rt/direct/direct.h). */
#include <koine/flags.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/system.h"
#include "rt/device/ranks_beside.h"

static atomic_int wanted; /* 0: not set */

/* Other ranks of a launcher use the same processors. */
static int usual_threads(void)
{
    const int own = kn_sys_processors() / kn_ranks_beside();
    return own > 1 ? own : 1;
}

static void read_environment(void)
{
    const char *text = kn_trusted_environment("KOINE_NUM_THREADS");
    char *end;
    const long number = text ? strtol(text, &end, 10) : 0;
    if (text && *text && (*end || number < 1 || number > INT_MAX))
        kn_log_message(KN_LOG_ERROR, "KOINE_NUM_THREADS: '%s' is not a number of 1 or more; %d threads are used", text,
                       usual_threads());
    else if (number > 0)
        atomic_store(&wanted, (int)number);
}

static int find_wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int none = 0;
    pthread_once(&once, read_environment);
    atomic_compare_exchange_strong(&wanted, &none, usual_threads());
    return atomic_load(&wanted);
}

int kn_get_num_threads(void)
{
    const int threads = atomic_load_explicit(&wanted, memory_order_relaxed);
    return threads > 0 ? threads : find_wanted();
}

kn_status kn_set_num_threads(int count)
{
    if (count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_set_num_threads: %d threads are none; at least 1 is needed", count);
    find_wanted(); /* the environment is read no later than now */
    atomic_store(&wanted, count);
    return KN_OK;
}
