/* train/progress.h - what the person at the terminal sees: a bar with rate, time left and running figures; elsewhere a
 * line per epoch. All on stderr. */
#ifndef KN_TRAIN_PROGRESS_H
#define KN_TRAIN_PROGRESS_H

#include <koine/train.h>

#include "base/terminal.h"
#include "rt/program/build_progress.h"

typedef struct kn_progress {
    bool lines, bar; /* is anything printed? is it a terminal? */
    int epoch, epochs;
    const char *phase; /* "" or "validation" */
    int64_t steps, steps_done;
    int64_t samples_done;
    double started; /* of the phase; seconds of kn_clock */
    double epoch_started;
    double drawn;          /* when the bar was last drawn */
    double looked;         /* when the figures were last read */
    double loss, accuracy; /* as last read; NaN: not yet, or none */

    /* Kernels that are being built: see rt/program/build_progress.h. */
    bool watches_builds;
    kn_build_observer outer; /* whoever watched before */
    double build_seconds;    /* waited for so far */
    bool shows_build;        /* the line that stands there is about them */
    double build_told;       /* of these, when a line was last printed */

    bool is_table; /* epochs are rows of a table, whose headings have been printed */
} kn_progress;

double kn_clock(void); /* seconds that only go forward */

/* From start to stop the bar also says when kernels are being compiled, and how many are ready; where there is none, a
 * line does after some seconds. Start and stop on the same thread. */
void kn_progress_start(kn_progress *progress, bool quiet);
void kn_progress_stop(kn_progress *progress); /* nothing before start */
void kn_progress_epoch(kn_progress *progress, int epoch, int epochs);
void kn_progress_phase(kn_progress *progress, const char *phase, int64_t steps);

/* After each step. True when it is time to read the running figures (it costs a wait): put them into loss and accuracy.
 * Looks more rarely where nothing is drawn. */
bool kn_progress_step(kn_progress *progress, int64_t samples);
void kn_progress_draw(kn_progress *progress); /* at most ten times a second */
void kn_progress_clear(kn_progress *progress);

/* The line of a finished epoch: the history's last row, seconds, rate; `best`: it is the best so far. Where the
 * terminal is too narrow for it, a row of a table with the columns that fit. */
void kn_progress_epoch_line(kn_progress *progress, const kn_history *history, double seconds, double rate, bool best);
void kn_progress_note(kn_progress *progress, const char *format, ...) KN_PRINTF(2, 3); /* a line of its own */

#endif
