/* tensor/generator.c - one Philox generator per device: a seed and an offset, counted in blocks of four words. */
#include <koine/random.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/threads.h"
#include "tensor/tensor.h"

#define DEFAULT_SEED UINT64_C(67280421310721) /* PyTorch's: a prime, so that it is not mistaken for a count */

static struct {
    kn_mutex lock;
    bool seeded; /* else every state is the default */
    kn_philox states[KN_MAX_DEVICES];
} generators = {.lock = KN_MUTEX_INIT};

static kn_philox *state_locked(kn_device *device)
{
    if (!generators.seeded) {
        for (int i = 0; i < KN_MAX_DEVICES; i++)
            generators.states[i] = (kn_philox){DEFAULT_SEED, 0};
        generators.seeded = true;
    }
    return &generators.states[kn_device_slot(device)];
}

void kn_manual_seed(uint64_t seed)
{
    kn_lock(&generators.lock);
    for (int i = 0; i < KN_MAX_DEVICES; i++)
        generators.states[i] = (kn_philox){seed, 0};
    generators.seeded = true;
    kn_unlock(&generators.lock);
}

uint64_t kn_seed(void)
{
    uint64_t seed = 0;
    FILE *source = fopen("/dev/urandom", "rb");
    size_t got = source ? fread(&seed, sizeof seed, 1, source) : 0;
    if (source)
        fclose(source);
    if (got != 1) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    }
    kn_manual_seed(seed);
    return seed;
}

uint64_t kn_initial_seed(kn_device *device)
{
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
    *state_locked(device) = (kn_philox){get_u64(state), get_u64(state + 8)};
    kn_unlock(&generators.lock);
    return KN_OK;
}

kn_philox kn_generator_take(kn_device *device, uint64_t count)
{
    kn_lock(&generators.lock);
    kn_philox *state = state_locked(device), taken = *state;
    state->offset += (count + 3) / 4;
    kn_unlock(&generators.lock);
    return taken;
}
