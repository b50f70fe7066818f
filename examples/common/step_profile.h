/* common/step_profile.h - a profile of a few training steps of a trainer: a table on stdout and a trace in a folder. */
#ifndef EXAMPLES_COMMON_STEP_PROFILE_H
#define EXAMPLES_COMMON_STEP_PROFILE_H

#include <koine/koine.h>

typedef struct step_profile {
    const char *directory; /* NULL: no profile */
    int width;             /* of the table, as kn_profiler_table takes it */
    bool is_written;
    kn_status status; /* of writing it */
} step_profile;

/* Makes the folder, starts the profiler and has the trainer tell it of each step. The struct must live until
 * step_profile_end. */
kn_status step_profile_begin(step_profile *profile, kn_trainer *trainer);

/* Stops the profiler; the status of what was written. */
kn_status step_profile_end(step_profile *profile);

#endif
