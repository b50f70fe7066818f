/* train/progress.h - the output on stderr: on a terminal a progress bar with rate, time left and running figures,
 * elsewhere a line per epoch. */
#pragma once

#include <koine/train.h>

#include "base/terminal.h"
#include "rt/program/build_progress.h"
#include "train/history.h"

typedef struct kn_progress {
    bool lines, bar; /* print lines at all; draw a bar, on a terminal */
    int epoch, epochs;
    const char *phase; /* "" or "validation" */
    int64_t steps, steps_done;
    int64_t samples_done;
    double started; /* start of the phase, in seconds of kn_clock_seconds */
    double epoch_started;
    double drawn;  /* when the bar was last drawn */
    double looked; /* when the figures were last read */
    double loss;   /* as last read; NaN: none yet, or not computed */
    int num_metrics;
    const char *names[KN_TRAINER_METRICS]; /* of metrics: borrowed */
    double metrics[KN_TRAINER_METRICS];    /* likewise */

    /* Kernels being compiled: see rt/program/build_progress.h. */
    bool watches_builds;
    kn_build_observer outer; /* the previous observer */
    double build_seconds;    /* time spent compiling so far */
    bool shows_build;        /* the current line shows the compilation */
    double build_told;       /* build_seconds when a line was last printed */

    bool is_table; /* epochs are table rows; the headings have been printed */
} kn_progress;

/* From start to stop the bar also shows the compilation of kernels and how many are done; without a bar a line is
 * printed after some seconds. Start and stop on the same thread. */
void kn_progress_start(kn_progress *progress, bool quiet);
void kn_progress_stop(kn_progress *progress); /* no effect before start */
void kn_progress_epoch(kn_progress *progress, int epoch, int epochs);
void kn_progress_phase(kn_progress *progress, const char *phase, int64_t steps);

/* After each step. Returns true when it is time to read the running figures, which costs a wait, into loss and
 * metrics; less often when nothing is drawn. */
bool kn_progress_step(kn_progress *progress, int64_t samples);
void kn_progress_draw(kn_progress *progress); /* at most ten times a second */
void kn_progress_clear(kn_progress *progress);

/* Prints the line of a finished epoch: the history's last row, seconds, rate; `best`: the best so far. On a narrow
 * terminal it is a table row with the columns that fit. */
void kn_progress_epoch_line(kn_progress *progress, const kn_history *history, double seconds, double rate, bool best);
void kn_progress_note(kn_progress *progress, const char *format, ...) KN_PRINTF(2, 3); /* on its own line */
