/* base/fork.h - fork. A child has its parent's memory but only the thread that forked: not the library's or the
 * drivers' threads, and whatever mutexes those held stay locked. So calls that need them fail instead of blocking
 * forever, and memory they would free is left until the process ends. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>
#include <stdatomic.h>

extern atomic_bool kn_forked;

/* From now on kn_is_forked() is true in children of this process. Called before any thread of the library or a driver
 * starts. */
void kn_fork_watch(void);

/* Was this process forked after kn_fork_watch? */
static inline bool kn_is_forked(void) { return atomic_load_explicit(&kn_forked, memory_order_relaxed); }

/* A driver's own handler in exit fails in such children, as the error then says, too. */
void kn_fork_note_exit(void);

/* KN_ERR_DEVICE: "this process was forked after Koine's first use ...", with the way out. */
kn_status kn_fail_forked(void);
