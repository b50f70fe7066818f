/* base/child.c - see base/child.h. */
#include "base/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

extern char **environ;

/* Signal dispositions and the mask are reset to their defaults. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    const int numbers[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&usual, numbers[i]);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &usual);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

int kn_child_start(pid_t *pid, const char *const arguments[], const int descriptors[3])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        for (int i = 0; i < 3 && error == 0; i++)
            if (descriptors[i] >= 0)
                error = posix_spawn_file_actions_adddup2(&actions, descriptors[i], i);
        if (error == 0)
            error = set_signals(&attributes);
        if (error == 0)
            error = posix_spawnp(pid, arguments[0], &actions, &attributes, (char *const *)(uintptr_t)arguments,
                                 environ); /* which it does not write to */
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool kn_child_wait(pid_t pid, int *status, double limit, double hurried, bool (*is_exiting)(void))
{
    const double started = kn_clock_seconds();
    for (long pause = 1000000;; pause = pause < 20000000 ? pause * 2 : pause) { /* nanoseconds */
        const pid_t waited = waitpid(pid, status, WNOHANG);
        if (waited == pid)
            return true;
        if (waited < 0 && errno == ECHILD) {
            *status = -1;
            return true;
        }
        if (kn_clock_seconds() - started > (is_exiting && is_exiting() ? hurried : limit))
            break;
        const struct timespec time = {0, pause};
        nanosleep(&time, NULL);
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return false;
}
