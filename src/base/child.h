/* base/child.h - programs that the library starts. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Starts a program, found on PATH unless its name has a slash, with these as standard input, output and error; -1 keeps
 * the library's. In its own process group: Ctrl-C, which ends a training run that then plots its history, does not
 * reach it, and its children can be killed with it. Returns an errno value: ENOENT if there is no such program. */
int kn_child_start(pid_t *pid, const char *const arguments[], const int descriptors[3]);

/* Waits for its end; the limit is `hurried` seconds once is_exiting (may be NULL) returns true. False on a timeout: it
 * and its children are killed then. The status is waitpid's, or -1 if the host program ignores SIGCHLD. */
bool kn_child_wait(pid_t pid, int *status, double limit, double hurried, bool (*is_exiting)(void));
