/* train/interrupt.c - Ctrl-C as a flag that is looked at between steps. */
#include "train/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "base/threads.h"

static struct {
    kn_mutex lock;
    int users;
    bool installed;
    struct sigaction before; /* what the program had */
} handling = {.lock = KN_MUTEX_INIT};

static volatile sig_atomic_t interrupted;

static void note(int number)
{
    (void)number;
    interrupted = 1;
}

void kn_interrupt_begin(void)
{
    kn_lock(&handling.lock);
    if (handling.users++ == 0) {
        interrupted = 0;
        /* SA_RESETHAND: whoever presses Ctrl-C twice wants out at once. SA_RESTART: files and drivers see no EINTR. */
        struct sigaction action = {.sa_handler = note, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
        sigemptyset(&action.sa_mask);
        bool known = sigaction(SIGINT, NULL, &handling.before) == 0;
        handling.installed = known && handling.before.sa_handler != SIG_IGN && sigaction(SIGINT, &action, NULL) == 0;
    }
    kn_unlock(&handling.lock);
}

void kn_interrupt_end(void)
{
    kn_lock(&handling.lock);
    if (--handling.users == 0 && handling.installed) {
        sigaction(SIGINT, &handling.before, NULL);
        handling.installed = false;
        interrupted = 0;
    }
    kn_unlock(&handling.lock);
}

bool kn_interrupted(void) { return interrupted != 0; }
