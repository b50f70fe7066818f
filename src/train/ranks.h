/* train/ranks.h - training by all ranks of a group (a module made by kn_nn_distributed): the data is divided, and what
 * depends on figures, signals, files and errors is decided alike on all ranks. Without a group these functions do
 * nothing, or what concerns this process alone.
 *
 * An error on one rank. That rank goes on to the next kn_ranks_agree; the others, in whatever call they make at that
 * time, fail because the ranks make different calls, and come to kn_ranks_agree, too. There all learn of the error that
 * was first, and from then on their ways are the same again. */
#pragma once

#include "data/loader.h"
#include "train/trainer.h"

/* Does this rank write the files and the progress? */
static inline bool kn_ranks_leads(const kn_trainer *trainer)
{
    return trainer->group == NULL || kn_group_rank(trainer->group) == 0;
}
static inline int kn_ranks_count(const kn_trainer *trainer)
{
    return trainer->group == NULL ? 1 : kn_group_size(trainer->group);
}

/* "rank 2 (node1): ", valid until the next call. */
const char *kn_ranks_name(kn_trainer *trainer, int rank);

/* From the module's group. KN_ERR_ARGUMENT if its `parts` and .accumulate do not fit. */
kn_status kn_ranks_join(kn_trainer *trainer);

/* Has the loader yield this rank's part of the samples, unless its sampler does; returns what kn_loader_divide takes to
 * undo it. `pad`: see kn_loader_part. */
kn_loader_part kn_ranks_divide(const kn_trainer *trainer, kn_loader *loader, bool pad);

/* The end of something that all ranks do: returns the first error of any, with its rank's name, on all of them. Also
 * shares signals and kn_trainer_stop. After an error the fit makes no more such calls, up to kn_ranks_reunite. */
kn_status kn_ranks_agree(kn_trainer *trainer, kn_status status);
void kn_ranks_reunite(kn_trainer *trainer);

/* After a step, which went as `status` says: shares errors and signals, one step late, so that nobody waits. All ranks
 * learn of them at the same step. end_votes: after the last step. */
kn_status kn_ranks_vote(kn_trainer *trainer, kn_status status);
kn_status kn_ranks_end_votes(kn_trainer *trainer, kn_status status);

/* KN_ERR_ARGUMENT if a rank's text is not that of rank 0: lines "NAME: VALUE", the first different one is named. */
kn_status kn_ranks_compare(kn_trainer *trainer, const char *text);
/* Of what the ranks must have in common: the settings, the sizes of the data. */
kn_status kn_ranks_compare_settings(kn_trainer *trainer, kn_loader *train, kn_loader *validation);

/* The module's buffers, such as running means, become rank 0's. */
kn_status kn_ranks_share_buffers(kn_trainer *trainer);

/* slow_rank.c: how long this rank's own work takes from start to stop, which gathers it from all / prints a line if one
 * rank is much slower than the others. */
void kn_ranks_start_clock(kn_trainer *trainer);
kn_status kn_ranks_stop_clock(kn_trainer *trainer, int64_t steps);
void kn_ranks_report_slow(kn_trainer *trainer);

/* The generators' states of all ranks, [ranks][KN_RNG_STATE_SIZE], into trainer->generators. */
kn_status kn_ranks_gather_generators(kn_trainer *trainer);
