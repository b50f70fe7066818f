/* rt/command/rehearsing.h - whether commands are rehearsed (rt/compile/rehearsal.h) instead of run. */
#pragma once

#include <stdatomic.h>

#include "rt/command/launch.h"

typedef struct kn_rehearsal kn_rehearsal;

/* What kn_launch calls instead: with the work sizes that it would enqueue. */
typedef kn_status (*kn_rehearsed_launch)(const kn_rehearsal *rehearsal, kn_stream *stream,
                                         const kn_launch_params *params, const size_t global[3], const size_t local[3]);

struct kn_rehearsal {
    kn_rehearsed_launch launch; /* set by kn_rehearse */
    bool (*takes)(uint64_t kernel, void *user);
    void *user;
};

extern _Atomic(const kn_rehearsal *) kn_rehearsal_now; /* NULL: commands run */

static inline const kn_rehearsal *kn_rehearsal_current(void)
{
    return atomic_load_explicit(&kn_rehearsal_now, memory_order_acquire);
}
