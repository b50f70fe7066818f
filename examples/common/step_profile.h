/* common/step_profile.h - a profile of a few training steps of a trainer: a table on stdout and a trace in a folder. */
#pragma once

#include <koine/koine.h>

typedef struct step_profile {
    const char *directory; /* NULL: no profile */
    int width;             /* width of the table, as for kn_profiler_table */
    bool is_written;
    kn_status status; /* of writing the profile */
} step_profile;

/* Creates the folder, starts the profiler and makes the trainer report each step to it. The struct must live until
 * step_profile_end. */
kn_status step_profile_begin(step_profile *profile, kn_trainer *trainer);

/* Stops the profiler; returns the status of writing the profile. */
kn_status step_profile_end(step_profile *profile);
