/* base/fork.c - marks a forked child as one. */
#include "base/fork.h"

#include "base/error.h"
#include "base/threads.h"

atomic_bool kn_forked;
static atomic_bool exit_fails;

static void in_child(void) { atomic_store(&kn_forked, true); }

static void watch(void) { pthread_atfork(NULL, NULL, in_child); }

void kn_fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

void kn_fork_note_exit(void) { atomic_store(&exit_fails, true); }

kn_status kn_fail_forked(void)
{
    return kn_fail(KN_ERR_DEVICE,
                   "this process was forked after Koine's first use, and neither devices nor worker threads survive a "
                   "fork: fork earlier, or call exec in the child%s",
                   atomic_load(&exit_fails) ? " (end it with _exit: exit may hang or crash in this driver)" : "");
}
