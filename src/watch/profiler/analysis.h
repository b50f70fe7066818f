/* watch/profiler/analysis.h - figures of a profile's records, and the rows shown. */
#pragma once

#include "rt/trace/profile.h"

/* --- the analysis: derived once for the table or the trace. Arrays parallel to spans and commands. -------------- */

typedef struct kn_span_figures {
    double self_cpu, cpu, self_device, device; /* microseconds */
    double flops, bytes;                       /* for a range: of the operations inside it */
    double ideal_compute, ideal_memory;        /* microseconds at the device's peaks; 0: not known */
    double own_flops, own_bytes;               /* for an operation: without those inside it */
    double own_compute, own_memory;            /* the same at the peaks */
} kn_span_figures;

typedef struct kn_command_figures {
    double start, time; /* microseconds: since the profile's start, on the host's clock */
    double flops, bytes, ideal_compute, ideal_memory;
} kn_command_figures;

typedef struct kn_analysis {
    kn_span_figures *spans;
    kn_command_figures *commands;
    double wall, self_cpu, device;               /* microseconds */
    double step_cpu, step_self_cpu, step_device; /* of the schedule's steps, included in self_cpu; microseconds */
    double end;                                  /* the end of the last event, microseconds since the start */
} kn_analysis;

/* Before an analysis with peaks: measures those of the devices with recorded flops, if possible; failures leave them
 * unknown, with a warning. Launches kernels, so the lock must not be held. watch/profiler/peaks.c */
void kn_profile_measure_peaks(void);

/* `with_peak`: compares the work with the known peaks. The lock is held; recording must have stopped. */
kn_status kn_profile_analyse(kn_analysis *analysis, const kn_profile *profile, bool with_peak);
void kn_analysis_free(kn_analysis *analysis);

/* Fails unless there are records and recording has stopped; `function` is for the message. */
kn_status kn_profile_check_results(const kn_profile *profile, const char *function);

/* Rows for the table, largest self device time first; watch/profiler/rows.c. */
kn_status kn_profile_rows(kn_profiler_row **rows, int *count, const kn_profile *profile, const kn_analysis *analysis,
                          bool by_shapes);

/* From the clock of a record's times to the host's; a device is asked at the first use. Initialise with {0}. */
typedef struct kn_clock_offsets {
    bool known[KN_MAX_DEVICES];
    int64_t offset[KN_MAX_DEVICES];
} kn_clock_offsets;
int64_t kn_clock_offset(kn_clock_offsets *offsets, const kn_profile *profile, const kn_command_record *record);

/* "Memcpy HtoD" etc., or a kernel's name. */
const char *kn_command_name(const kn_command_record *command);
