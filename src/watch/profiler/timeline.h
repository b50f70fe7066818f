/* watch/profiler/timeline.h - the trace of one rank among several, for dist. */
#pragma once

#include "base/text.h"

typedef struct kn_trace_rank {
    int rank;
    const char *host;
    int64_t origin; /* of the trace's times, on this process's CLOCK_MONOTONIC */
} kn_trace_rank;

/* Appends the events of this process's profile, with commas between them. `function` is for messages. */
kn_status kn_profile_trace_of_rank(kn_text *text, const kn_trace_rank *rank, const char *function);

/* When the profile began. KN_ERR_STATE if there is none. */
kn_status kn_profile_started(int64_t *started, const char *function);

/* What comes before and after the events. */
extern const char kn_trace_opening[], kn_trace_closing[];
