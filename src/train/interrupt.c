/* train/interrupt.c - SIGINT and SIGTERM as a flag that is checked between steps. */
#include "train/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/threads.h"

#define NUM_SIGNALS 2
static const int signals[NUM_SIGNALS] = {SIGINT, SIGTERM};

static struct {
    kn_mutex lock;
    int users;
    bool installed[NUM_SIGNALS];
    struct sigaction before[NUM_SIGNALS]; /* the program's own handlers */
} handling = {.lock = KN_MUTEX_INIT};

/* Read by every thread that trains; lock-free, so that a handler may write it. */
static atomic_int first_signal;

/* A second Ctrl-C ends the process at once, whatever the fit is waiting for. The signal is blocked in its handler, so
 * the raised one ends the process when this returns. */
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

/* SA_RESTART: waits for files, drivers and children see no EINTR. The other signal is blocked during the handler. */
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
    const int number = first_signal; /* read after the handlers are restored */
    if (is_last)
        first_signal = 0;
    kn_unlock(&handling.lock);
    return number;
}

bool kn_interrupted(void) { return kn_interrupt_signal() != 0; }

int kn_interrupt_signal(void) { return first_signal; }
