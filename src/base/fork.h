/* base/fork.h - fork. A child has its parent's memory but only the thread that forked: not the library's threads, not
 * the drivers', and what those held locked stays locked. So what needs them is refused there instead of waiting for
 * ever, and what would be freed is left to the process's end. */
#ifndef KN_BASE_FORK_H
#define KN_BASE_FORK_H

#include <koine/common.h>
#include <koine/status.h>
#include <stdatomic.h>

extern atomic_bool kn_forked;

/* From now on a child of this process knows that it is one; called before threads start, the library's or a driver's.
 */
void kn_fork_watch(void);

/* Is this process a child, forked after kn_fork_watch? */
static inline bool kn_is_forked(void) { return atomic_load_explicit(&kn_forked, memory_order_relaxed); }

/* KN_ERR_DEVICE: "a forked process cannot ...", with the way out. */
kn_status kn_fail_forked(void);

#endif
