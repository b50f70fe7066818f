/* rt/team/team.c - see team.h. */
#include "rt/team/team.h"

#include <sched.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/pause.h"
#include "base/threads.h"

/* What different threads write is not in the same cache line, nor in two that are fetched together. */
#define ALIGNMENT 128
#define APART _Alignas(ALIGNMENT)

typedef struct share {
    APART atomic_long next;
    long end;
} share;

/* The gate, from its lowest bit: how many threads are inside, how many more may come, and the number of the launch.
 * While nobody is inside and none may come, the thread with the lock may change the work. */
enum { GATE_SEATS_SHIFT = 16, GATE_LAUNCH_SHIFT = 32 };
#define GATE_INSIDE 0xffffu
#define GATE_SEATS (0xffffu << GATE_SEATS_SHIFT)
#define GATE_SEAT (1u << GATE_SEATS_SHIFT)

struct kn_team {
    APART atomic_ullong gate;
    APART kn_team_work work;
    int shares; /* of this work; at most `threads` */
    APART int threads;
    bool lingers;
    atomic_int asleep;
    kn_mutex lock; /* of the launch */
    kn_mutex waking;
    pthread_cond_t wake;
    share share[];
};

enum { MOST_THREADS = 4096, STACK_BYTES = 4 << 20 };

/* --- working ------------------------------------------------------------------------------------------------------ */

static void run_item(const kn_team_work *work, long number)
{
    const int64_t size0 = (int64_t)work->size[0], size1 = (int64_t)work->size[1], row = number / size0;
    work->entry(work->call, number - row * size0, row % size1, row / size1, size0, size1);
}

/* First the share with the number `own`. */
static void run_shares(kn_team *team, int own)
{
    int s = own % team->shares;
    for (int i = 0; i < team->shares; i++) {
        share *from = &team->share[s];
        long number;
        while (atomic_load_explicit(&from->next, memory_order_relaxed) < from->end &&
               (number = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed)) < from->end)
            run_item(&team->work, number);
        s = s + 1 < team->shares ? s + 1 : 0;
    }
}

/* --- the other threads -------------------------------------------------------------------------------------------- */

typedef struct member {
    kn_team *team;
    int number; /* from 1 */
} member;

/* Is there a launch with a seat that this thread has not been in? */
static bool is_open(unsigned long long gate, unsigned long long last)
{
    return (gate & GATE_SEATS) != 0 && gate >> GATE_LAUNCH_SHIFT != last;
}

static unsigned long long sleep_until_open(kn_team *team, unsigned long long last)
{
    unsigned long long gate;
    kn_lock(&team->waking);
    atomic_fetch_add(&team->asleep, 1);
    while (gate = atomic_load(&team->gate), !is_open(gate, last))
        pthread_cond_wait(&team->wake, &team->waking);
    atomic_fetch_sub(&team->asleep, 1);
    kn_unlock(&team->waking);
    return gate;
}

/* For how long a thread stays awake, and how often meanwhile it lets other threads have its core. */
enum { LINGER_NANOSECONDS = 200000, PAUSES_PER_TURN = 64 };

static unsigned long long await_open(kn_team *team, unsigned long long last)
{
    const int64_t began = kn_clock_now();
    while (team->lingers && kn_clock_now() - began < LINGER_NANOSECONDS) {
        for (int i = 0; i < PAUSES_PER_TURN; i++) {
            const unsigned long long gate = atomic_load_explicit(&team->gate, memory_order_relaxed);
            if (is_open(gate, last))
                return gate;
            kn_pause();
        }
        sched_yield();
    }
    return sleep_until_open(team, last);
}

static void *help(void *argument)
{
    const member me = *(member *)argument;
    unsigned long long last = 0;
    kn_free(argument);
    for (;;) {
        unsigned long long gate = await_open(me.team, last);
        if (!atomic_compare_exchange_strong(&me.team->gate, &gate, gate - GATE_SEAT + 1))
            continue;
        last = gate >> GATE_LAUNCH_SHIFT;
        run_shares(me.team, me.number);
        atomic_fetch_sub(&me.team->gate, 1);
    }
    return NULL;
}

static bool start(kn_team *team, int number)
{
    member *made = kn_malloc(sizeof *made);
    pthread_attr_t attributes;
    pthread_t thread;
    if (!made)
        return false;
    *made = (member){team, number};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const bool started = pthread_create(&thread, &attributes, help, made) == 0;
    pthread_attr_destroy(&attributes);
    if (!started)
        kn_free(made);
    return started;
}

kn_team *kn_team_new(int threads, bool lingers)
{
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    unsigned char *room = kn_calloc(1, sizeof(kn_team) + (size_t)threads * sizeof(share) + ALIGNMENT);
    if (!room)
        return NULL;
    kn_team *team = (kn_team *)(void *)(room + (ALIGNMENT - (uintptr_t)room % ALIGNMENT));
    team->lingers = lingers;
    kn_mutex_init(&team->lock);
    kn_mutex_init(&team->waking);
    pthread_cond_init(&team->wake, NULL);
    team->threads = 1;
    while (team->threads < threads && start(team, team->threads))
        team->threads++;
    return team;
}

/* --- the thread that launches ------------------------------------------------------------------------------------- */

static void divide(kn_team *team, long items, int most_threads)
{
    const int threads = most_threads < team->threads ? most_threads : team->threads;
    team->shares = items < threads ? (int)items : threads;
    const long each = (items + team->shares - 1) / team->shares;
    for (int s = 0; s < team->shares; s++) {
        const long first = s * each, end = first + each;
        atomic_store_explicit(&team->share[s].next, first, memory_order_relaxed);
        team->share[s].end = end < items ? end : items;
    }
}

/* As many of those that sleep as there are seats for. */
static void wake(kn_team *team, int seats)
{
    kn_lock(&team->waking);
    if (seats >= atomic_load(&team->asleep))
        pthread_cond_broadcast(&team->wake);
    else
        for (int i = 0; i < seats; i++)
            pthread_cond_signal(&team->wake);
    kn_unlock(&team->waking);
}

static void open_gate(kn_team *team)
{
    const unsigned long long launch =
        (atomic_load_explicit(&team->gate, memory_order_relaxed) >> GATE_LAUNCH_SHIFT) + 1;
    const int seats = team->shares - 1;
    atomic_store(&team->gate, launch << GATE_LAUNCH_SHIFT | (unsigned)seats << GATE_SEATS_SHIFT);
    if (atomic_load(&team->asleep) > 0)
        wake(team, seats);
}

/* Another process may have the core of one that is inside. */
enum { PAUSES_BEFORE_YIELDING = 64 };

static void close_gate(kn_team *team)
{
    atomic_fetch_and(&team->gate, ~(unsigned long long)GATE_SEATS);
    for (int i = 0; (atomic_load_explicit(&team->gate, memory_order_acquire) & GATE_INSIDE) != 0; i++) {
        if (i < PAUSES_BEFORE_YIELDING)
            kn_pause();
        else
            sched_yield();
    }
}

void kn_team_run(kn_team *team, const kn_team_work *work, int most_threads)
{
    const long items = (long)(work->size[0] * work->size[1] * work->size[2]);
    if (items <= 1 || most_threads == 1 || team->threads == 1) {
        for (long number = 0; number < items; number++)
            run_item(work, number);
        return;
    }
    kn_lock(&team->lock);
    team->work = *work;
    divide(team, items, most_threads);
    open_gate(team);
    run_shares(team, 0);
    close_gate(team);
    kn_unlock(&team->lock);
}
