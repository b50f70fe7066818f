/* cli/tune.h - `koine tune`: what its parts share. */
#ifndef KN_CLI_TUNE_H
#define KN_CLI_TUNE_H

#include "cli/cli.h"
#include "rt/rt.h"
#include "rt/tuning/tuning.h"

/* A line of the table of results. */
typedef struct kn_tune_line {
    char what[64], choice[128];
    double before, after; /* GFLOP/s; 0: not known */
} kn_tune_line;

typedef struct kn_tuner {
    kn_device *device;
    kn_stream *stream;
    const kn_limits *limits;
    const char *out; /* a file that is written after every step too; NULL: none */
    double deadline; /* as kn_tune_now counts */
    bool quiet;
    bool is_over;           /* the budget is spent, or the user stopped it: nothing more is begun */
    bool was_busy;          /* other programs took a part of the processors, which was told */
    bool needs_new_process; /* CLBlast's own parameters are the best, and were replaced */
    int measured, kept;     /* steps done by this run, and by those before it */
    kn_tune_line *lines;
    int num_lines;
} kn_tuner;

double kn_tune_now(void);

/* True from when time is up or the user has asked to stop. Asked before anything that takes long. */
bool kn_tune_is_over(kn_tuner *tuner);

/* Progress, on stderr, unless --quiet. */
void kn_tune_say(const kn_tuner *tuner, const char *format, ...) KN_PRINTF(2, 3);

/* Adds a line to the table: the result's first candidate before, its choice after, for so many operations. */
kn_status kn_tune_report(kn_tuner *tuner, const char *what, const kn_tuning_result *result, double flops);

/* Keeps a result at once: in the cache, and in --out's file. */
kn_status kn_tune_keep(kn_tuner *tuner, const kn_tuning_result *result);

/* tune_load.c: how much of so many processors' time this program gets just now, 1 for all of it. Takes a tenth of a
 * second. */
double kn_tune_processor_share(int processors);

/* tune_kernels.c: the parameters of CLBlast's kernels, and the shapes of blocks. */
kn_status kn_tune_clblast(kn_tuner *tuner);
kn_status kn_tune_blocks(kn_tuner *tuner);

/* tune_shapes.c: the fastest implementations for common shapes, once all are known to compute what the reference
 * does. */
kn_status kn_tune_gemm(kn_tuner *tuner);
kn_status kn_tune_conv(kn_tuner *tuner);

#endif
