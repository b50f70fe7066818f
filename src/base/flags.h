/* base/flags.h - the process-wide flags of koine/flags.h in one word, for the code that reads them. */
#pragma once

#include <koine/flags.h>

#define KN_FLAG_REDUCED_PRECISION 15u /* the bits of kn_reduced_precision */
#define KN_FLAG_BENCHMARK 16u
#define KN_FLAG_DETERMINISTIC 32u /* kn_set_deterministic */
#define KN_FLAG_FORBID 64u        /* kn_use_deterministic_algorithms: error */
#define KN_FLAG_WARN 128u         /* kn_use_deterministic_algorithms: warn */
#define KN_FLAG_MEDIUM 256u       /* float32 matmul precision was set to "medium", which means the same as "high" */
#define KN_FLAG_NO_FUSION 512u
#define KN_FLAG_DETECT_ANOMALY 1024u
#define KN_FLAGS_DETERMINISTIC (KN_FLAG_DETERMINISTIC | KN_FLAG_FORBID | KN_FLAG_WARN)

/* All flags: one relaxed load, except that the process's first call reads the environment. */
unsigned kn_flags(void);

/* To be called before running a nondeterministic algorithm that has no alternative: an error, a logged warning or
 * nothing, as the flags say. */
kn_status kn_check_nondeterministic(const char *what);
