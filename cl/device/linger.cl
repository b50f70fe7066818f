/* device/linger.cl - keeps threads of a CPU device awake between launches (src/rt/command/linger.h).
 *
 * A thread that finds no work sleeps, and in a virtual machine it takes 30 to 50 us to wake it. After each launch of
 * several work-groups there is one of this kernel, in a queue of its own. Threads that have nothing else to do take its
 * work-items, and stay in them until the next launch starts, or is enqueued. */
#include "common/koine.clh"

#if defined(__x86_64__) || defined(__i386__)
#define KN_PAUSE __builtin_ia32_pause() /* 40 to 140 cycles */
#else
#define KN_PAUSE
#endif

/* For at most so many pauses: until a launch that was enqueued already starts; until the host enqueues another. */
enum { MOST_FOR_START = 20000, MOST_FOR_HOST = 2000 };

/* `call`: the address of the queue's kn_affinity, and the number of the launch before this one, which has none. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void linger(const long2 call)
{
    volatile global kn_affinity *a = (volatile global kn_affinity *)(ulong)call.x;
    const long after = call.y;
    const long started = a->started, enqueued = a->enqueued;
    const bool more = started < enqueued;
    /* Another work-item of this launch has been told already; there is no telling when a silent kernel starts; or this
     * is one of those that were not needed. */
    if (a->lingered >= after || started < a->silent || (!more && after < enqueued))
        return;
    KN_NOT_UNROLLED
    for (int i = more ? MOST_FOR_START : MOST_FOR_HOST; i > 0; i--) {
        if (a->started != started || (!more && a->enqueued != enqueued))
            break;
        KN_PAUSE;
    }
    a->lingered = after;
}
