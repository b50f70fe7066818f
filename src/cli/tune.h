/* cli/tune.h - `koine tune`: shared by its parts. */
#pragma once

#include "cli/cli.h"
#include "rt/rt.h"
#include "rt/tuning/tuning.h"

/* A row of the results table. */
typedef struct kn_tune_line {
    char what[64], choice[128];
    double before, after; /* GFLOP/s; 0: unknown */
} kn_tune_line;

typedef struct kn_tuner {
    kn_device *device;
    kn_stream *stream;
    const kn_limits *limits;
    const char *out; /* a file also written after every step; may be NULL */
    double deadline; /* of kn_clock_seconds */
    bool quiet;
    bool is_over;           /* out of time, or stopped by the user: start nothing more */
    bool was_busy;          /* other programs used the processors; the user has been warned */
    bool needs_new_process; /* CLBlast's own parameters are the fastest, but were replaced */
    int measured, kept;     /* steps done by this run, and by earlier ones */
    kn_tune_line *lines;
    int num_lines;
} kn_tuner;

/* True once the time is up or the user has asked to stop. Call it before anything slow. */
bool kn_tune_should_stop(kn_tuner *tuner);

/* Prints progress on stderr unless --quiet. */
void kn_tune_print(const kn_tuner *tuner, const char *format, ...) KN_PRINTF(2, 3);

/* Adds a row to the table: the rates of the result's first candidate (before) and of its choice (after), for `flops`
 * operations. */
kn_status kn_tune_report(kn_tuner *tuner, const char *what, const kn_tuning_result *result, double flops);

/* Saves a result at once, in the cache and in --out's file. */
kn_status kn_tune_keep(kn_tuner *tuner, const kn_tuning_result *result);

/* tune_load.c: the share of the time of `processors` processors that this program gets now; 1 means all of it. Takes a
 * tenth of a second. */
double kn_tune_processor_share(int processors);

/* tune_kernels.c: the parameters of CLBlast's kernels, and block shapes. */
kn_status kn_tune_clblast(kn_tuner *tuner);
kn_status kn_tune_blocks(kn_tuner *tuner);

/* tune_shapes.c: the fastest implementations for common shapes, after checking all of them against the reference. */
kn_status kn_tune_gemm(kn_tuner *tuner);
kn_status kn_tune_conv(kn_tuner *tuner);
