/* rt/team/team.h - the threads that run a kernel of a CPU device together with the thread that launches it.
 *
 * Work-items are numbered, the first dimension fastest. Each thread has a share of the numbers, one after the other and
 * the same in every launch of as many, so that it finds in its core's caches what it had there; done with its own, it
 * takes from the others' shares. See E. P. Markatos and T. J. LeBlanc, Using Processor Affinity in Loop Scheduling on
 * Shared-Memory Multiprocessors, 1994.
 *
 * Nobody waits for a thread that comes late: the thread that launches goes through all shares, and waits only for those
 * that have begun. After a launch threads stay awake for a moment, as OpenMP's do: to wake one takes 30 to 50 us in a
 * virtual machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel's code, for one work-item (cl/common/gathered.clh). `call`: the address of its arguments. */
typedef void (*kn_entry)(int64_t call, int64_t id0, int64_t id1, int64_t id2, int64_t size0, int64_t size1);

typedef struct kn_team_work {
    kn_entry entry;
    int64_t call;
    size_t size[3]; /* work-items */
} kn_team_work;

typedef struct kn_team kn_team;

/* A team of so many threads, the one that launches included. Never freed: its threads live as long as the process. With
 * fewer than wanted if the system starts no more. `lingers`: its threads stay awake after a launch. NULL: no memory. */
kn_team *kn_team_new(int threads, bool lingers);

/* Returns when the work is done, by at most so many threads, of which the calling one is the first. Threads may call it
 * at the same time: one after the other has the team. */
void kn_team_run(kn_team *team, const kn_team_work *work, int most_threads);
