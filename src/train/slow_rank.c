/* train/slow_rank.c - which rank the others wait for: each measures how long it worked itself, without waiting for the
 * others and for compilers. */
#include <string.h>

#include "base/clock.h"
#include "dist/group/bytes.h"
#include "train/ranks.h"

#define SLOW 1.25         /* times the others' time */
#define FEWEST_STEPS 10   /* fewer say little */
#define LEAST_SECONDS 0.1 /* lost per epoch; less is noise */

static double now(const kn_trainer *trainer)
{
    return kn_clock_seconds() - kn_group_waited(trainer->group) - trainer->progress.build_seconds;
}

void kn_ranks_start_clock(kn_trainer *trainer)
{
    if (trainer->group != NULL)
        trainer->own_seconds = now(trainer);
}

kn_status kn_ranks_stop_clock(kn_trainer *trainer, int64_t steps)
{
    if (trainer->group == NULL)
        return KN_OK;
    const double mine = (now(trainer) - trainer->own_seconds) / (double)steps;
    kn_free(trainer->step_seconds);
    trainer->step_seconds = kn_group_gather_bytes(trainer->group, &mine, sizeof mine);
    trainer->timed_steps = steps;
    return trainer->step_seconds != NULL ? KN_OK : kn_error_status();
}

/* Of all but one; the lower of the two in the middle. */
static double median_of_others(const double *values, int count, int except)
{
    for (int i = 0; i < count; i++) {
        int below = 0, equal_before = 0;
        for (int j = 0; j < count; j++) {
            below += j != except && values[j] < values[i];
            equal_before += j != except && values[j] == values[i] && j < i;
        }
        if (i != except && below + equal_before == (count - 2) / 2)
            return values[i];
    }
    return values[except];
}

void kn_ranks_report_slow(kn_trainer *trainer)
{
    const double *seconds = trainer->step_seconds;
    if (trainer->group == NULL || seconds == NULL || trainer->timed_steps < FEWEST_STEPS)
        return;
    int slowest = 0;
    for (int r = 1; r < kn_ranks_count(trainer); r++)
        slowest = seconds[r] > seconds[slowest] ? r : slowest;
    const double others = median_of_others(seconds, kn_ranks_count(trainer), slowest);
    const double lost = (seconds[slowest] - others) * (double)trainer->timed_steps;
    if (seconds[slowest] > SLOW * others && others > 0 && lost > LEAST_SECONDS)
        kn_progress_note(&trainer->progress,
                         "%sits own work takes %.1f times as long per step as that of the other ranks, which wait for "
                         "it (%.3g s, theirs %.3g s)",
                         kn_ranks_name(trainer, slowest), seconds[slowest] / others, seconds[slowest], others);
}
