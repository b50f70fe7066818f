/* base/integer.h - small arithmetic on sizes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline int64_t kn_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; } /* a >= 0, b > 0 */
static inline int64_t kn_round_up_i64(int64_t a, int64_t unit) { return kn_div_up(a, unit) * unit; }
static inline int64_t kn_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t kn_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Can a number of a file, which may be anything, be a count? */
static inline bool kn_is_count(double x) { return x >= 0 && x < 0x1p53; }
