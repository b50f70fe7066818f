/* base/flags.c - the flags' storage and their environment variables. */
#include "base/flags.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

#define READ (1u << 31) /* the environment has been read */

static atomic_uint flags;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- the environment ---------------------------------------------------------------------------------------------- */

static bool is_on(const char *value) { return value && *value && strcmp(value, "0") != 0; }

static void read_environment(void)
{
    const char *deterministic = getenv("KOINE_DETERMINISTIC"), *fusion = getenv("KOINE_FUSION");
    unsigned start = READ | (is_on(getenv("KOINE_BENCHMARK")) ? KN_FLAG_BENCHMARK : 0);
    if (fusion && *fusion && !is_on(fusion))
        start |= KN_FLAG_NO_FUSION;
    if (is_on(getenv("KOINE_DETECT_ANOMALY")))
        start |= KN_FLAG_DETECT_ANOMALY;
    if (deterministic && strcmp(deterministic, "error") == 0)
        start |= KN_FLAG_FORBID;
    else if (deterministic && strcmp(deterministic, "warn") == 0)
        start |= KN_FLAG_WARN;
    else if (is_on(deterministic))
        start |= KN_FLAG_DETERMINISTIC;
    if ((start & KN_FLAG_DETERMINISTIC) && strcmp(deterministic, "1") != 0)
        kn_log_message(KN_LOG_WARNING, "KOINE_DETERMINISTIC=%s is taken as 1; the values are 0, 1, error and warn",
                       deterministic);
    atomic_store(&flags, start);
}

unsigned kn_flags(void)
{
    unsigned now = atomic_load_explicit(&flags, memory_order_relaxed);
    if (now & READ)
        return now & ~READ;
    pthread_once(&once, read_environment);
    return atomic_load(&flags) & ~READ;
}

static void change(unsigned clear, unsigned set)
{
    kn_flags();
    unsigned before = atomic_load(&flags);
    while (!atomic_compare_exchange_weak(&flags, &before, (before & ~clear) | set))
        ;
}

/* --- the flags ---------------------------------------------------------------------------------------------------- */

void kn_set_benchmark(bool enabled) { change(KN_FLAG_BENCHMARK, enabled ? KN_FLAG_BENCHMARK : 0); }
bool kn_get_benchmark(void) { return kn_flags() & KN_FLAG_BENCHMARK; }

void kn_set_fusion(bool enabled) { change(KN_FLAG_NO_FUSION, enabled ? 0 : KN_FLAG_NO_FUSION); }
bool kn_get_fusion(void) { return !(kn_flags() & KN_FLAG_NO_FUSION); }

void kn_set_detect_anomaly(bool enabled) { change(KN_FLAG_DETECT_ANOMALY, enabled ? KN_FLAG_DETECT_ANOMALY : 0); }
bool kn_is_anomaly_enabled(void) { return kn_flags() & KN_FLAG_DETECT_ANOMALY; }

void kn_set_deterministic(bool enabled) { change(KN_FLAG_DETERMINISTIC, enabled ? KN_FLAG_DETERMINISTIC : 0); }
bool kn_get_deterministic(void) { return kn_flags() & KN_FLAG_DETERMINISTIC; }

kn_status kn_use_deterministic_algorithms(kn_deterministic_mode mode)
{
    static const unsigned bits[] = {
        [KN_DETERMINISTIC_OFF] = 0, [KN_DETERMINISTIC_ERROR] = KN_FLAG_FORBID, [KN_DETERMINISTIC_WARN] = KN_FLAG_WARN};
    if ((size_t)mode >= sizeof bits / sizeof bits[0])
        return kn_fail(KN_ERR_ARGUMENT, "kn_use_deterministic_algorithms: %d is not a kn_deterministic_mode",
                       (int)mode);
    change(KN_FLAG_FORBID | KN_FLAG_WARN, bits[mode]);
    return KN_OK;
}

kn_deterministic_mode kn_get_deterministic_debug_mode(void)
{
    const unsigned now = kn_flags();
    return now & KN_FLAG_FORBID ? KN_DETERMINISTIC_ERROR
           : now & KN_FLAG_WARN ? KN_DETERMINISTIC_WARN
                                : KN_DETERMINISTIC_OFF;
}

bool kn_are_deterministic_algorithms_enabled(void) { return kn_get_deterministic_debug_mode() != KN_DETERMINISTIC_OFF; }
bool kn_is_deterministic_algorithms_warn_only_enabled(void)
{
    return kn_get_deterministic_debug_mode() == KN_DETERMINISTIC_WARN;
}

kn_status kn_check_nondeterministic(const char *what)
{
    const unsigned now = kn_flags();
    if (now & KN_FLAG_FORBID)
        return kn_fail(KN_ERR_STATE,
                       "%s has no deterministic implementation for this problem, and kn_use_deterministic_algorithms "
                       "forbids others; KN_DETERMINISTIC_WARN allows it with a warning",
                       what);
    if (now & KN_FLAG_WARN)
        kn_log_message(KN_LOG_WARNING, "%s runs without a deterministic implementation", what);
    return KN_OK;
}

kn_status kn_set_allow_reduced_precision(unsigned what, bool allowed)
{
    if (what == 0 || (what & ~KN_FLAG_REDUCED_PRECISION))
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_set_allow_reduced_precision: %u is not a combination of kn_reduced_precision flags", what);
    change(what, allowed ? what : 0);
    return KN_OK;
}

bool kn_get_allow_reduced_precision(unsigned what)
{
    return what != 0 && (kn_flags() & KN_FLAG_REDUCED_PRECISION & what) == what;
}

kn_status kn_set_float32_matmul_precision(const char *precision)
{
    const bool highest = precision && strcmp(precision, "highest") == 0;
    const bool medium = precision && strcmp(precision, "medium") == 0;
    if (!highest && !medium && (!precision || strcmp(precision, "high") != 0))
        return kn_fail(KN_ERR_ARGUMENT, "kn_set_float32_matmul_precision: `%s` is not highest, high or medium",
                       precision ? precision : "NULL");
    change(KN_MATMUL_ALLOW_TF32 | KN_FLAG_MEDIUM, (highest ? 0 : KN_MATMUL_ALLOW_TF32) | (medium ? KN_FLAG_MEDIUM : 0));
    return KN_OK;
}

const char *kn_get_float32_matmul_precision(void)
{
    const unsigned now = kn_flags();
    return !(now & KN_MATMUL_ALLOW_TF32) ? "highest" : now & KN_FLAG_MEDIUM ? "medium" : "high";
}
