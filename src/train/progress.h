/* train/progress.h - what the person at the terminal sees: a bar with rate, time left and running figures; elsewhere a
 * line per epoch. All on stderr. */
#ifndef KN_TRAIN_PROGRESS_H
#define KN_TRAIN_PROGRESS_H

#include <koine/train.h>

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
} kn_progress;

double kn_clock(void); /* seconds that only go forward */

void kn_progress_start(kn_progress *progress, bool quiet);
void kn_progress_epoch(kn_progress *progress, int epoch, int epochs);
void kn_progress_phase(kn_progress *progress, const char *phase, int64_t steps);

/* After each step. True when it is time to read the running figures (it costs a wait): put them into loss and accuracy.
 * Looks more rarely where nothing is drawn. */
bool kn_progress_step(kn_progress *progress, int64_t samples);
void kn_progress_draw(kn_progress *progress); /* at most ten times a second */
void kn_progress_clear(kn_progress *progress);

/* The line of a finished epoch: the history's last row, seconds, rate; `best`: it is the best so far. */
void kn_progress_epoch_line(kn_progress *progress, const kn_history *history, double seconds, double rate, bool best);
void kn_progress_note(kn_progress *progress, const char *format, ...) KN_PRINTF(2, 3); /* a line of its own */

#endif
