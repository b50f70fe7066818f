/* tensor/generator_state.c - seeding single devices, saving and restoring the states of all devices, and forks, on top
 * of generator.c. */
#include <koine/random.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/system.h"
#include "tensor/tensor.h"

/* --- seeding ---------------------------------------------------------------------------------- */

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

uint64_t kn_seed(void)
{
    uint64_t seed = seed_of_the_system();
    kn_manual_seed(seed);
    return seed;
}

kn_status kn_manual_seed_device(kn_device *device, uint64_t seed)
{
    if (!device)
        return kn_fail_argument_null("kn_manual_seed_device", "device");
    uint8_t state[KN_RNG_STATE_SIZE] = {0}; /* the seed, little-endian, and offset 0 */
    for (int i = 0; i < 8; i++)
        state[i] = (uint8_t)(seed >> 8 * i);
    return kn_set_rng_state(device, state);
}

kn_status kn_seed_device(kn_device *device, uint64_t *seed)
{
    if (!device)
        return kn_fail_argument_null("kn_seed_device", "device");
    uint64_t chosen = seed_of_the_system();
    KN_TRY(kn_manual_seed_device(device, chosen));
    if (seed)
        *seed = chosen;
    return KN_OK;
}

/* --- all devices ------------------------------------------------------------------------------ */

static kn_status check_all(const char *function, const void *states, int count)
{
    if (!states)
        return kn_fail_argument_null(function, "states");
    if (count != kn_device_count())
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d states for %d devices: there is one per device, kn_device_count()",
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
