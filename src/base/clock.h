/* base/clock.h - CLOCK_MONOTONIC, the clock of all measurements. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t kn_clock_now(void) /* nanoseconds */
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double kn_clock_seconds(void) { return 1e-9 * (double)kn_clock_now(); }
