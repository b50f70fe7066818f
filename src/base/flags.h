/* base/flags.h - the process-wide flags of koine/flags.h in one word: what the code that obeys them reads. */
#ifndef KN_BASE_FLAGS_H
#define KN_BASE_FLAGS_H

#include <koine/flags.h>

#define KN_FLAG_REDUCED_PRECISION 15u /* kn_reduced_precision, as they are */
#define KN_FLAG_BENCHMARK 16u
#define KN_FLAG_DETERMINISTIC 32u /* kn_set_deterministic */
#define KN_FLAG_FORBID 64u        /* kn_use_deterministic_algorithms: error */
#define KN_FLAG_WARN 128u         /* and warn */
#define KN_FLAG_MEDIUM 256u       /* float32 matmul precision was set to "medium", which means what "high" does */
#define KN_FLAG_NO_FUSION 512u
#define KN_FLAGS_DETERMINISTIC (KN_FLAG_DETERMINISTIC | KN_FLAG_FORBID | KN_FLAG_WARN)

/* All of them: one relaxed load, but for the first call of the process, which reads the environment. */
unsigned kn_flags(void);

/* What must happen before something nondeterministic runs for want of anything else: an error, a warning in the log, or
 * nothing. */
kn_status kn_check_nondeterministic(const char *what);

#endif
