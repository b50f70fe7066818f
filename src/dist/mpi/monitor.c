/* dist/mpi/monitor.c - failure detection by gossip (van Renesse, Minsky, Hayden: "A gossip-style failure detection
 * service", 1998).
 *
 * Every process keeps a table with a counter per rank and increases its own a few times a second. It sends the table to
 * the ranks 1, 2, 4, ... after it and takes over larger counters from the tables it receives, so that news reach all of
 * n ranks in log2(n) steps. A rank whose counter stands still for too long is lost. Time is counted only while this
 * process runs: after a job has been suspended as a whole nobody is lost. */
#include "dist/mpi/monitor.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PERIOD 0.2 /* seconds between two tables */
#define NEIGHBOURS 31

typedef struct entry {
    uint64_t beats; /* 0: not heard of so far */
    uint64_t calls; /* that wait for others, so far */
} entry;

static struct {
    MPI_Comm comm;
    int rank, size, neighbours;
    double lost_after;
    pthread_t thread;
    bool runs;
    atomic_bool ends;
    atomic_ullong calls;
    pthread_mutex_t lock; /* of the following */
    entry *table;
    double *heard;               /* when each counter last moved, as alive() tells it */
    double alive, looked, began; /* began: the last call, as alive() tells it */
    /* of the thread alone */
    entry *sent[NEIGHBOURS], *received[NEIGHBOURS];
    MPI_Request sends[NEIGHBOURS], receives[NEIGHBOURS];
} monitor = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void rest(double time)
{
    struct timespec span = {.tv_nsec = (long)(1e9 * time)};
    nanosleep(&span, NULL);
}

/* An entry per rank, and one whose counter is above 0 in the last table that a rank sends. */
static size_t table_entries(void) { return (size_t)monitor.size + 1; }
static int table_bytes(void) { return (int)(table_entries() * sizeof(entry)); }
static bool is_last(const entry *table) { return table[monitor.size].beats > 0; }

/* The lock is held. Seconds that this process has run: it is asked several times a second, so that a long pause was
 * none of the others' silence. */
static double alive(void)
{
    const double most = 1, now = seconds(), pause = now - monitor.looked;
    monitor.alive += pause < most ? pause : most;
    monitor.looked = now;
    return monitor.alive;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

static void merge(const entry *news)
{
    pthread_mutex_lock(&monitor.lock);
    const double now = alive();
    for (int r = 0; r < monitor.size; r++)
        if (news[r].beats > monitor.table[r].beats) {
            monitor.table[r] = news[r];
            monitor.heard[r] = now;
        }
    pthread_mutex_unlock(&monitor.lock);
}

static void receive_tables(void)
{
    for (int i = 0; i < monitor.neighbours; i++) {
        int there = monitor.receives[i] != MPI_REQUEST_NULL;
        while (there && MPI_Test(&monitor.receives[i], &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there) {
            merge(monitor.received[i]);
            if (is_last(monitor.received[i])) {
                there = 0; /* the request stays null */
                continue;
            }
            const int from = (monitor.rank - (1 << i) + monitor.size) % monitor.size;
            MPI_Irecv(monitor.received[i], table_bytes(), MPI_BYTE, from, i, monitor.comm, &monitor.receives[i]);
        }
    }
}

/* To a neighbour that has not taken the last table none is sent. */
static void send_tables(void)
{
    pthread_mutex_lock(&monitor.lock);
    entry *mine = &monitor.table[monitor.rank];
    *mine = (entry){mine->beats + 1, atomic_load(&monitor.calls)};
    monitor.heard[monitor.rank] = alive();
    pthread_mutex_unlock(&monitor.lock);
    for (int i = 0; i < monitor.neighbours; i++) {
        int gone = 1;
        if (MPI_Test(&monitor.sends[i], &gone, MPI_STATUS_IGNORE) != MPI_SUCCESS || !gone)
            continue;
        memcpy(monitor.sent[i], monitor.table, (size_t)table_bytes());
        MPI_Isend(monitor.sent[i], table_bytes(), MPI_BYTE, (monitor.rank + (1 << i)) % monitor.size, i, monitor.comm,
                  &monitor.sends[i]);
    }
}

static int lost_rank(void);

/* Everyone sends a last table and takes everything up to the others' last: no message is left over. */
static bool say_goodbye(void)
{
    monitor.table[monitor.size].beats = 1;
    for (int i = 0; i < monitor.neighbours; i++) {
        if (MPI_Wait(&monitor.sends[i], MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        memcpy(monitor.sent[i], monitor.table, (size_t)table_bytes());
        MPI_Isend(monitor.sent[i], table_bytes(), MPI_BYTE, (monitor.rank + (1 << i)) % monitor.size, i, monitor.comm,
                  &monitor.sends[i]);
    }
    for (int i = 0; i < monitor.neighbours; i++) {
        while (monitor.receives[i] != MPI_REQUEST_NULL) {
            receive_tables();
            rest(0.001);
        }
        MPI_Wait(&monitor.sends[i], MPI_STATUS_IGNORE);
    }
    return true;
}

/* Until all ranks have come to the end: meanwhile they need this one's tables. False: one is lost. */
static bool end_together(void)
{
    MPI_Request all_here;
    int here = 0;
    MPI_Ibarrier(monitor.comm, &all_here);
    while (!here) {
        receive_tables();
        send_tables();
        if (lost_rank() >= 0 || MPI_Test(&all_here, &here, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        rest(0.02);
    }
    return say_goodbye();
}

static void *watch(void *argument)
{
    bool *in_order = argument;
    double next = seconds();
    while (!atomic_load(&monitor.ends)) {
        receive_tables();
        if (seconds() >= next) {
            send_tables();
            next += PERIOD;
        }
        rest(PERIOD / 4);
    }
    *in_order = end_together();
    return NULL;
}

/* --- starting and stopping ---------------------------------------------------------------------------------------- */

static bool ended_in_order;

static bool allocate(void)
{
    const size_t size = table_entries(), tables = 1 + 2 * (size_t)monitor.neighbours;
    entry *entries = calloc(size * tables, sizeof *entries);
    monitor.heard = calloc(size, sizeof *monitor.heard);
    if (!entries || !monitor.heard) {
        free(entries);
        return false;
    }
    monitor.table = entries;
    for (int i = 0; i < monitor.neighbours; i++) {
        monitor.sent[i] = entries + size * (size_t)(1 + 2 * i);
        monitor.received[i] = entries + size * (size_t)(2 + 2 * i);
        monitor.sends[i] = MPI_REQUEST_NULL;
    }
    monitor.looked = seconds();
    return true;
}

static bool start_thread(void)
{
    sigset_t all, before; /* signals are for the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    monitor.runs = pthread_create(&monitor.thread, NULL, watch, &ended_in_order) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return monitor.runs;
}

kn_status kn_mpi_monitor_start(MPI_Comm comm, double lost_after)
{
    int provided;
    MPI_Query_thread(&provided);
    MPI_Comm_rank(comm, &monitor.rank);
    MPI_Comm_size(comm, &monitor.size);
    if (provided < MPI_THREAD_MULTIPLE || monitor.size == 1 || monitor.runs)
        return KN_OK;
    monitor.lost_after = lost_after;
    while (1 << monitor.neighbours < monitor.size)
        monitor.neighbours++;
    kn_status status = kn_mpi_check(MPI_Comm_dup(comm, &monitor.comm), "watching the ranks");
    if (status != KN_OK)
        return status;
    MPI_Comm_set_errhandler(monitor.comm, MPI_ERRORS_RETURN);
    if (!allocate())
        return kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: watching the ranks");
    for (int i = 0; i < monitor.neighbours; i++)
        MPI_Irecv(monitor.received[i], table_bytes(), MPI_BYTE, (monitor.rank - (1 << i) + monitor.size) % monitor.size,
                  i, monitor.comm, &monitor.receives[i]);
    return start_thread() ? KN_OK : kn_mpi_host->fail(KN_ERR_MEMORY, "cannot start the thread that watches the ranks");
}

bool kn_mpi_monitor_stop(void)
{
    if (!monitor.runs)
        return true;
    atomic_store(&monitor.ends, true);
    pthread_join(monitor.thread, NULL);
    monitor.runs = false;
    return ended_in_order;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

void kn_mpi_monitor_count_call(void)
{
    atomic_fetch_add(&monitor.calls, 1);
    pthread_mutex_lock(&monitor.lock);
    monitor.began = alive();
    pthread_mutex_unlock(&monitor.lock);
}

static bool is_silent(int rank, double now)
{
    return rank != monitor.rank && now - monitor.heard[rank] > monitor.lost_after;
}

/* -1: none */
static int lost_rank(void)
{
    int lost = -1;
    pthread_mutex_lock(&monitor.lock);
    const double now = alive();
    for (int r = 0; r < monitor.size && lost < 0; r++)
        if (is_silent(r, now))
            lost = r;
    pthread_mutex_unlock(&monitor.lock);
    return lost;
}

/* The rank with the fewest calls. */
static int last_rank(uint64_t *calls)
{
    int last = 0;
    pthread_mutex_lock(&monitor.lock);
    monitor.table[monitor.rank].calls = atomic_load(&monitor.calls); /* the thread may not have come to it */
    for (int r = 1; r < monitor.size; r++)
        if (monitor.table[r].calls < monitor.table[last].calls)
            last = r;
    *calls = monitor.table[last].calls;
    pthread_mutex_unlock(&monitor.lock);
    return last;
}

static kn_status fail_late(const kn_transport *self, double waited)
{
    uint64_t calls = 0;
    const int last = monitor.runs && self->size == monitor.size ? last_rank(&calls) : -1;
    if (last < 0 || calls >= atomic_load(&monitor.calls))
        return kn_mpi_host->fail(KN_ERR_DEVICE, "not finished after %.3g s", waited);
    return kn_mpi_host->fail(
        KN_ERR_DEVICE, "not finished after %.3g s: rank %d (%s) is behind; it has made %llu calls, this rank %llu",
        waited, last, self->hosts[last], (unsigned long long)calls, (unsigned long long)atomic_load(&monitor.calls));
}

kn_status kn_mpi_monitor_check(kn_transport *self, double waited)
{
    const kn_mpi_transport *transport = (const kn_mpi_transport *)self;
    int lost = -1;
    double silence = 0;
    if (monitor.runs) {
        pthread_mutex_lock(&monitor.lock);
        const double now = alive();
        for (int r = 0; r < self->size; r++) { /* the one that is silent for longest: others may have left after it */
            const int world = transport->world_ranks[r];
            if (is_silent(world, now) && now - monitor.heard[world] > silence) {
                lost = r;
                silence = now - monitor.heard[world];
            }
        }
        if (now - monitor.began < waited) /* while this process did not run, the others' answers could not come */
            waited = now - monitor.began;
        pthread_mutex_unlock(&monitor.lock);
    }
    if (lost >= 0)
        return kn_mpi_host->fail(KN_ERR_DEVICE, "rank %d (%s) is lost: nothing has been heard from it for %.1f s", lost,
                                 self->hosts[lost], silence);
    return waited > transport->timeout ? fail_late(self, waited) : KN_OK;
}

kn_status kn_mpi_monitor_await_loss(kn_transport *self)
{
    kn_status status = KN_OK;
    for (const double end = seconds() + monitor.lost_after + 1; monitor.runs && status == KN_OK && seconds() < end;) {
        rest(PERIOD / 4);
        status = kn_mpi_monitor_check(self, 0);
    }
    return status;
}
