/* train/interrupt.c - Ctrl-C and a request to end as a flag that is looked at between steps. */
#include "train/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/threads.h"

#define NUM_SIGNALS 2
static const int signals[NUM_SIGNALS] = {SIGINT, SIGTERM};

static struct {
    kn_mutex lock;
    int users;
    bool installed[NUM_SIGNALS];
    struct sigaction before[NUM_SIGNALS]; /* what the program had */
} handling = {.lock = KN_MUTEX_INIT};

static volatile sig_atomic_t first_signal;

/* Whoever presses Ctrl-C twice wants out at once, whatever the fit waits for. The signal is blocked in here: raised, it
 * ends the process when this returns. */
static void note(int number)
{
    if (first_signal != 0) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigemptyset(&standard.sa_mask);
        sigaction(number, &standard, NULL);
        raise(number);
        return;
    }
    first_signal = number;
}

/* SA_RESTART: files, drivers and children that are waited for see no EINTR. Other signals wait while one is noted. */
static void install(int i)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int other = 0; other < NUM_SIGNALS; other++)
        sigaddset(&action.sa_mask, signals[other]);
    bool known = sigaction(signals[i], NULL, &handling.before[i]) == 0;
    handling.installed[i] =
        known && handling.before[i].sa_handler != SIG_IGN && sigaction(signals[i], &action, NULL) == 0;
}

void kn_interrupt_begin(void)
{
    kn_lock(&handling.lock);
    if (handling.users++ == 0) {
        first_signal = 0;
        for (int i = 0; i < NUM_SIGNALS; i++)
            install(i);
    }
    kn_unlock(&handling.lock);
}

int kn_interrupt_end(void)
{
    kn_lock(&handling.lock);
    const bool is_last = --handling.users == 0;
    for (int i = 0; i < NUM_SIGNALS && is_last; i++) {
        if (handling.installed[i])
            sigaction(signals[i], &handling.before[i], NULL);
        handling.installed[i] = false;
    }
    const int number = first_signal; /* after the last moment in which one is noted */
    first_signal = is_last ? 0 : number;
    kn_unlock(&handling.lock);
    return number;
}

bool kn_interrupted(void) { return kn_interrupt_signal() != 0; }

int kn_interrupt_signal(void) { return first_signal; }
