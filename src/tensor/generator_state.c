/* tensor/generator_state.c - seeding generators, saving and restoring their states, those of all devices, and forks, on
 * top of generator.c. */
#include <koine/random.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/system.h"
#include "tensor/tensor.h"

/* --- one generator ------------------------------------------------------------------------------------------------ */

static kn_status check(const kn_generator *generator, const char *function)
{
    return generator ? KN_OK : kn_fail_argument_null(function, "generator");
}

kn_status kn_generator_manual_seed(kn_generator *generator, uint64_t seed)
{
    KN_TRY(check(generator, "kn_generator_manual_seed"));
    kn_generator_assign(generator, (kn_philox){.seed = seed});
    return KN_OK;
}

/* A random seed from the system, or from the clock if there is none. */
static uint64_t seed_of_the_system(void)
{
    uint64_t seed = 0;
    if (!kn_sys_random(&seed, sizeof seed)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    }
    return seed;
}

kn_status kn_generator_seed(kn_generator *generator, uint64_t *seed)
{
    KN_TRY(check(generator, "kn_generator_seed"));
    const uint64_t chosen = seed_of_the_system();
    if (seed)
        *seed = chosen;
    return kn_generator_manual_seed(generator, chosen);
}

uint64_t kn_generator_initial_seed(const kn_generator *generator)
{
    return check(generator, "kn_generator_initial_seed") == KN_OK ? kn_generator_state(generator).seed : 0;
}

uint64_t kn_generator_offset(const kn_generator *generator)
{
    return check(generator, "kn_generator_offset") == KN_OK ? kn_generator_state(generator).offset : 0;
}

kn_status kn_generator_set_offset(kn_generator *generator, uint64_t offset)
{
    KN_TRY(check(generator, "kn_generator_set_offset"));
    kn_generator_assign(generator, (kn_philox){.seed = kn_generator_state(generator).seed, .offset = offset});
    return KN_OK;
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

kn_status kn_generator_get_state(const kn_generator *generator, uint8_t state[KN_RNG_STATE_SIZE])
{
    KN_TRY(check(generator, "kn_generator_get_state"));
    if (!state)
        return kn_fail_argument_null("kn_generator_get_state", "state");
    const kn_philox now = kn_generator_state(generator);
    put_u64(state, now.seed);
    put_u64(state + 8, now.offset);
    return KN_OK;
}

kn_status kn_generator_set_state(kn_generator *generator, const uint8_t state[KN_RNG_STATE_SIZE])
{
    KN_TRY(check(generator, "kn_generator_set_state"));
    if (!state)
        return kn_fail_argument_null("kn_generator_set_state", "state");
    kn_generator_assign(generator, (kn_philox){.seed = get_u64(state), .offset = get_u64(state + 8)});
    return KN_OK;
}

/* --- one device's default ----------------------------------------------------------------------------------------- */

kn_status kn_manual_seed_device(kn_device *device, uint64_t seed)
{
    return device ? kn_generator_manual_seed(kn_generator_default(device), seed)
                  : kn_fail_argument_null("kn_manual_seed_device", "device");
}

kn_status kn_seed_device(kn_device *device, uint64_t *seed)
{
    return device ? kn_generator_seed(kn_generator_default(device), seed)
                  : kn_fail_argument_null("kn_seed_device", "device");
}

uint64_t kn_initial_seed(kn_device *device)
{
    if (device)
        return kn_generator_initial_seed(kn_generator_default(device));
    kn_fail_argument_null("kn_initial_seed", "device");
    return 0;
}

kn_status kn_get_rng_state(kn_device *device, uint8_t state[KN_RNG_STATE_SIZE])
{
    if (!device || !state)
        return kn_fail_argument_null("kn_get_rng_state", device ? "state" : "device");
    return kn_generator_get_state(kn_generator_default(device), state);
}

kn_status kn_set_rng_state(kn_device *device, const uint8_t state[KN_RNG_STATE_SIZE])
{
    if (!device || !state)
        return kn_fail_argument_null("kn_set_rng_state", device ? "state" : "device");
    return kn_generator_set_state(kn_generator_default(device), state);
}

/* --- all devices ------------------------------------------------------------------------------ */

uint64_t kn_seed(void)
{
    uint64_t seed = seed_of_the_system();
    kn_manual_seed(seed);
    return seed;
}

static kn_status check_all(const char *function, const void *states, int count)
{
    if (!states)
        return kn_fail_argument_null(function, "states");
    if (count != kn_device_count())
        return kn_fail(KN_ERR_ARGUMENT, "%s: got %d states for %d devices: pass one per device (kn_device_count)",
                       function, count, kn_device_count());
    return KN_OK;
}

kn_status kn_get_rng_state_all(uint8_t *states, int count)
{
    KN_TRY(check_all("kn_get_rng_state_all", states, count));
    for (int i = 0; i < count; i++)
        KN_TRY(kn_get_rng_state(kn_device_at(i), states + (ptrdiff_t)i * KN_RNG_STATE_SIZE));
    return KN_OK;
}

kn_status kn_set_rng_state_all(const uint8_t *states, int count)
{
    KN_TRY(check_all("kn_set_rng_state_all", states, count));
    for (int i = 0; i < count; i++)
        KN_TRY(kn_set_rng_state(kn_device_at(i), states + (ptrdiff_t)i * KN_RNG_STATE_SIZE));
    return KN_OK;
}

/* --- forks ------------------------------------------------------------------------------------ */

struct kn_rng_fork {
    int devices;
    uint8_t host[KN_RNG_STATE_SIZE];
    uint8_t states[KN_MAX_DEVICES * KN_RNG_STATE_SIZE];
};

kn_rng_fork *kn_fork_rng_begin(void)
{
    kn_rng_fork *fork = kn_calloc(1, sizeof *fork);
    if (!fork)
        return kn_error_make_sticky();
    fork->devices = kn_device_count();
    if (kn_get_rng_state(kn_device_host(), fork->host) == KN_OK &&
        kn_get_rng_state_all(fork->states, fork->devices) == KN_OK)
        return fork;
    kn_free(fork);
    return kn_error_make_sticky(); /* KN_FORK_RNG skips its block then */
}

kn_status kn_fork_rng_end(kn_rng_fork *fork)
{
    if (!fork)
        return KN_OK;
    kn_status status = kn_set_rng_state(kn_device_host(), fork->host);
    kn_status all = kn_set_rng_state_all(fork->states, fork->devices);
    kn_free(fork);
    return status == KN_OK ? all : status;
}
