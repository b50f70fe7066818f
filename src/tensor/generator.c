/* tensor/generator.c - one Philox generator per device: a seed and an offset, counted in blocks of four words. */
#include <koine/random.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "tensor/tensor.h"

#define DEFAULT_SEED UINT64_C(67280421310721) /* PyTorch's default */

static struct {
    kn_mutex lock;
    bool seeded; /* false: all states are the default */
    kn_philox states[KN_MAX_DEVICES];
} generators = {.lock = KN_MUTEX_INIT};

static kn_philox *state_locked(kn_device *device)
{
    if (!generators.seeded) {
        for (int i = 0; i < KN_MAX_DEVICES; i++)
            generators.states[i] = (kn_philox){.seed = DEFAULT_SEED};
        generators.seeded = true;
    }
    return &generators.states[kn_device_slot(device)];
}

void kn_manual_seed(uint64_t seed)
{
    kn_lock(&generators.lock);
    for (int i = 0; i < KN_MAX_DEVICES; i++)
        generators.states[i] = (kn_philox){.seed = seed};
    generators.seeded = true;
    kn_unlock(&generators.lock);
}

uint64_t kn_initial_seed(kn_device *device)
{
    if (!device) {
        kn_fail_argument_null("kn_initial_seed", "device");
        return 0;
    }
    kn_lock(&generators.lock);
    uint64_t seed = state_locked(device)->seed;
    kn_unlock(&generators.lock);
    return seed;
}

static void put_u64(uint8_t *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

kn_status kn_get_rng_state(kn_device *device, uint8_t state[KN_RNG_STATE_SIZE])
{
    if (!device || !state)
        return kn_fail_argument_null("kn_get_rng_state", device ? "state" : "device");
    kn_lock(&generators.lock);
    kn_philox now = *state_locked(device);
    kn_unlock(&generators.lock);
    put_u64(state, now.seed);
    put_u64(state + 8, now.offset);
    return KN_OK;
}

kn_status kn_set_rng_state(kn_device *device, const uint8_t state[KN_RNG_STATE_SIZE])
{
    if (!device || !state)
        return kn_fail_argument_null("kn_set_rng_state", device ? "state" : "device");
    kn_lock(&generators.lock);
    *state_locked(device) = (kn_philox){.seed = get_u64(state), .offset = get_u64(state + 8)};
    kn_unlock(&generators.lock);
    return KN_OK;
}

static kn_philox take(kn_device *device, uint64_t blocks)
{
    kn_lock(&generators.lock);
    kn_philox *state = state_locked(device), taken = *state;
    state->offset += blocks;
    kn_unlock(&generators.lock);
    return taken;
}

/* --- draws in a graph ------------------------------------------------------------------------- *
 * A capture advances no generator: each replay draws what the step would have drawn. */

typedef struct recorded_draw {
    kn_device *device;
    uint64_t blocks;
    kn_philox *variable; /* the recording's variable */
} recorded_draw;

static kn_status replay_draw(void *user)
{
    const recorded_draw *draw = user;
    *draw->variable = take(draw->device, draw->blocks);
    return KN_OK;
}

/* If memory is short, returns the state at capture time; the capture fails then. If another thread is capturing,
 * nothing is recorded: the launch that would use the draw fails. */
static kn_philox record_draw(kn_stream *stream, kn_device *device, uint64_t blocks)
{
    kn_philox now = take(device, 0);
    recorded_draw *draw = kn_malloc(sizeof *draw);
    kn_philox *variable = draw ? kn_capture_variable(stream, sizeof *variable) : NULL;
    if (!variable) {
        kn_free(draw);
        kn_capture_fail(stream, kn_error_status());
        return now;
    }
    *draw = (recorded_draw){device, blocks, variable};
    *variable = now;
    if (kn_capture_on_replay(stream, replay_draw, draw, kn_free) == KN_OK)
        now.live = variable;
    else
        kn_capture_fail(stream, kn_error_status());
    return now;
}

kn_philox kn_generator_reserve(kn_device *device, uint64_t count)
{
    uint64_t blocks = (count + 3) / 4;
    kn_stream *stream = kn_device_is_host(device) ? NULL : kn_stream_current(device);
    return kn_stream_is_capturing(stream) ? record_draw(stream, device, blocks) : take(device, blocks);
}
