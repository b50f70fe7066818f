/* watch/profiler/communication.h - the calls of groups among the records, and how much of them kernels hide. */
#pragma once

#include "watch/profiler/analysis.h"

/* A span that is a group's call; times in microseconds since the profile's start. */
typedef struct kn_call_figures {
    int64_t span;
    double start, end; /* of its last copy too */
    double wait, copy_down, exchange, copy_up;
} kn_call_figures;

typedef struct kn_communication {
    kn_call_figures *calls;
    int count;
    double time, hidden; /* microseconds during which a call was under way; and a kernel ran */
} kn_communication;

/* The lock is held; the analysis is of this profile. */
kn_status kn_profile_communication(kn_communication *communication, const kn_profile *profile,
                                   const kn_analysis *analysis);
void kn_communication_free(kn_communication *communication);

/* The calls of each name combined, the longest first. */
kn_status kn_communication_rows(kn_profiler_call **rows, int *count, const kn_profile *profile,
                                const kn_communication *communication);
