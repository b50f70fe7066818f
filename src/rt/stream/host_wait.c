/* rt/stream/host_wait.c - counting and, on request, rejecting calls that make the host wait for a device. */
#include "rt/stream/wait.h"

#include <stdatomic.h>

#include "base/error.h"
#include "base/log.h"

static atomic_ullong waits;
static atomic_int mode = KN_SYNC_DEBUG_OFF;

uint64_t kn_host_wait_count(void) { return atomic_load(&waits); }

void kn_set_sync_debug_mode(kn_sync_debug_mode wanted) { atomic_store(&mode, (int)wanted); }
kn_sync_debug_mode kn_get_sync_debug_mode(void) { return (kn_sync_debug_mode)atomic_load(&mode); }

kn_status kn_note_host_wait(const char *what)
{
    atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
    switch ((kn_sync_debug_mode)atomic_load_explicit(&mode, memory_order_relaxed)) {
    case KN_SYNC_DEBUG_ERROR:
        return kn_fail(KN_ERR_STATE, "%s makes the host wait for the device, which kn_set_sync_debug_mode forbids",
                       what);
    case KN_SYNC_DEBUG_WARN:
        kn_log_message(KN_LOG_WARNING, "%s makes the host wait for the device", what);
        return KN_OK;
    default:
        return KN_OK;
    }
}
