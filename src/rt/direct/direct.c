/* rt/direct/direct.c - see direct.h. */
#include "rt/direct/direct.h"

#include <koine/flags.h>
#include <string.h>

#include "base/error.h"
#include "base/float_env.h"
#include "base/fork.h"
#include "base/system.h"
#include "rt/device/await.h"
#include "rt/device/inject.h"
#include "rt/device/ranks_beside.h"
#include "rt/device/table.h"
#include "rt/direct/stack.h"
#include "rt/stream/submit.h"

/* --- whether ------------------------------------------------------------------------------------------------------ */

static bool wanted;

static void read_wish(void)
{
    const char *wish = kn_trusted_environment("KOINE_DIRECT");
    wanted = !wish || strcmp(wish, "0") != 0;
}

bool kn_direct_is_wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_wish);
    return wanted;
}

/* Is the queue empty? A thread does not wait where a callback, or work on other streams before which there may be one,
 * could wait for this thread in turn. */
static bool comes_to_rest(kn_stream *stream)
{
    if (kn_stream_rests(stream))
        return true;
    if (atomic_load(&stream->is_shared) || atomic_load(&stream->callbacks) > 0 || kn_stream_awaits_others(stream) ||
        kn_is_submitter())
        return false;
    return kn_stream_finish(stream) == CL_SUCCESS && kn_stream_rests(stream);
}

static bool may(kn_stream *stream)
{
    return kn_direct_is_wanted() && !atomic_load_explicit(&kn_injecting, memory_order_relaxed) && !kn_is_forked() &&
           comes_to_rest(stream);
}

bool kn_direct_may_copy(kn_stream *stream, const void *start) { return start && may(stream); }

/* --- the team ----------------------------------------------------------------------------------------------------- */

/* Threads that stay awake would keep those of other devices, or processes, from the same cores. */
static bool may_linger(const kn_device *device)
{
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        const kn_device *other = kn_device_slot_at(slot);
        if (other != device && other->limits.is_cpu)
            return false;
    }
    return !kn_wait_sleeps() && kn_ranks_beside() == 1;
}

static kn_team *team_of(kn_device *device)
{
    kn_team *team = atomic_load_explicit(&device->team, memory_order_acquire);
    if (team)
        return team;
    kn_lock(&device->lock);
    team = atomic_load(&device->team);
    if (!team) {
        KN_PRESERVE_ERROR;
        team = kn_team_new(device->limits.compute_units, may_linger(device));
        atomic_store_explicit(&device->team, team, memory_order_release);
    }
    kn_unlock(&device->lock);
    return team;
}

bool kn_direct_may_run(kn_stream *stream, kn_entry entry)
{
    return entry && kn_stack_has_room() && may(stream) && team_of(stream->device);
}

void kn_direct_run(kn_stream *stream, kn_entry entry, const kn_values *values, int dims, const size_t global[3])
{
    const kn_team_work work = {.entry = entry,
                               .call = (int64_t)(uintptr_t)&values->head,
                               .size = {global[0], dims > 1 ? global[1] : 1, dims > 2 ? global[2] : 1}};
    const kn_float_env before = kn_float_begin();
    kn_team_run(team_of(stream->device), &work, kn_get_num_threads());
    kn_float_end(before);
}
