/* train/ranks.c - what the ranks that train together agree on. */
#include "train/ranks.h"

#include <stdio.h>
#include <string.h>

#include <koine/autograd.h>
#include <koine/random.h>

#include "base/text.h"
#include "data/sampler.h"
#include "dist/distributed.h"
#include "dist/group/bytes.h"
#include "dist/group/call.h"
#include "train/interrupt.h"

const char *kn_ranks_name(kn_trainer *trainer, int rank)
{
    snprintf(trainer->rank_name, sizeof trainer->rank_name, "rank %d (%s): ", rank,
             kn_group_host(trainer->group, rank));
    return trainer->rank_name;
}

kn_status kn_ranks_join(kn_trainer *trainer)
{
    kn_module *module = trainer->params.module;
    kn_group *group = kn_distributed_group(module);
    const int size = kn_group_size(group);
    trainer->group = size > 1 ? group : NULL;
    const int parts = group != NULL ? kn_distributed_of("trainer", module)->params.parts : 0;
    trainer->has_parts = parts > 0;
    if (parts == 0 || trainer->params.accumulate == parts / size)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT,
                   "trainer: the distributed module adds up %d parts per step, %d on each of %d ranks, so .accumulate "
                   "must be %d, not %d",
                   parts, parts / size, size, parts / size, trainer->params.accumulate);
}

kn_loader_part kn_ranks_divide(const kn_trainer *trainer, kn_loader *loader, bool pad)
{
    if (trainer->group == NULL || loader->sampler->is_part)
        return loader->part;
    const kn_loader_part part = {.index = kn_group_rank(trainer->group),
                                 .parts = kn_group_size(trainer->group),
                                 .pad = pad,
                                 .by_batch = trainer->has_parts};
    return kn_loader_divide(loader, part);
}

/* --- agreeing ----------------------------------------------------------------------------------------------------- */

/* What a rank tells the others. */
typedef struct ballot {
    int32_t status, signal;
    bool stop;
    bool is_consequence; /* of another rank's error */
    char message[1000];
} ballot;

static int own_signal(const kn_trainer *trainer)
{
    return trainer->signal != 0 ? trainer->signal : trainer->params.keep_interrupt ? 0 : kn_interrupt_signal();
}

/* Whoever fails leaves the calls that the others make: this error of theirs has a cause elsewhere. Errors have nothing
 * but their text to tell it by. */
static bool is_consequence(const kn_trainer *trainer, kn_status status)
{
    return status == KN_ERR_STATE && (trainer->others_failed || strstr(kn_error_message(), KN_DIFFERENT_CALLS) != NULL);
}

/* The other ranks may still be in calls of a step, which fail one by one while this rank tries to gather. */
static ballot *gather_ballots(kn_group *group, const ballot *mine)
{
    ballot *all;
    do {
        kn_error_clear();
        all = kn_group_gather_bytes(group, mine, sizeof *mine);
    } while (all == NULL && kn_error_status() == KN_ERR_STATE);
    return all;
}

/* The rank whose error is everyone's; -1: none has one. */
static int first_to_fail(const ballot *all, int size)
{
    int first = -1;
    for (int r = size - 1; r >= 0; r--)
        if (all[r].status != KN_OK && (first < 0 || !all[r].is_consequence || all[first].is_consequence))
            first = r;
    return first;
}

static kn_status report(kn_trainer *trainer, const ballot *all, int rank)
{
    const ballot *one = &all[rank];
    bool is_common = true;
    for (int r = 0; r < kn_ranks_count(trainer); r++)
        is_common = is_common && all[r].status == one->status && strcmp(all[r].message, one->message) == 0;
    if (is_common || one->status == KN_ERR_INTERRUPTED)
        return kn_fail((kn_status)one->status, "%s", one->message);
    return kn_fail((kn_status)one->status, "%s%s", kn_ranks_name(trainer, rank), one->message);
}

kn_status kn_ranks_agree(kn_trainer *trainer, kn_status status)
{
    if (trainer->group == NULL || trainer->is_apart)
        return status;
    ballot mine = {.status = (int32_t)status,
                   .signal = own_signal(trainer),
                   .stop = trainer->stop,
                   .is_consequence = is_consequence(trainer, status)};
    if (status != KN_OK)
        snprintf(mine.message, sizeof mine.message, "%s", kn_error_message());
    ballot *all = gather_ballots(trainer->group, &mine);
    if (all == NULL) { /* a rank is lost */
        trainer->is_apart = true;
        return status == KN_OK || mine.is_consequence ? kn_error_status() : kn_fail(status, "%s", mine.message);
    }
    const int failed = first_to_fail(all, kn_ranks_count(trainer));
    for (int r = 0; r < kn_ranks_count(trainer); r++) {
        trainer->signal = all[r].signal > trainer->signal ? all[r].signal : trainer->signal;
        trainer->stop = trainer->stop || all[r].stop;
    }
    trainer->is_apart = failed >= 0;
    status = failed >= 0 ? report(trainer, all, failed) : KN_OK;
    kn_free(all);
    return status;
}

void kn_ranks_reunite(kn_trainer *trainer) { trainer->is_apart = trainer->others_failed = false; }

/* --- voting ------------------------------------------------------------------------------------------------------- */

enum { VOTE_SIGNAL, VOTE_FAILED, VOTES };

/* Takes in the result of the vote that is under way, if there is one. */
static kn_status finish_vote(kn_trainer *trainer)
{
    if (trainer->vote == NULL)
        return KN_OK;
    kn_status status = kn_work_wait(trainer->vote);
    kn_work_free(trainer->vote);
    trainer->vote = NULL;
    KN_TRY(status);
    const int64_t *result = kn_data(trainer->votes);
    trainer->signal = result[VOTE_SIGNAL] > trainer->signal ? (int)result[VOTE_SIGNAL] : trainer->signal;
    trainer->others_failed = result[VOTE_FAILED] != 0;
    return KN_OK;
}

static kn_status start_vote(kn_trainer *trainer, bool failed)
{
    if (trainer->votes == NULL)
        KN_TRY(kn_tensor_new(&trainer->votes, KN_I64, 1, &(int64_t){VOTES}, kn_device_host()));
    int64_t *mine = kn_data(trainer->votes);
    mine[VOTE_SIGNAL] = own_signal(trainer);
    mine[VOTE_FAILED] = failed;
    return kn_group_all_reduce(trainer->group, trainer->votes, .op = KN_REDUCE_MAX, .work = &trainer->vote);
}

/* This rank's error is kept until all know of it. */
static void keep_error(kn_trainer *trainer, kn_status status)
{
    if (status != KN_OK && trainer->kept_status == KN_OK) {
        trainer->kept_status = status;
        snprintf(trainer->kept_message, sizeof trainer->kept_message, "%s", kn_error_message());
    }
    kn_error_clear();
}

/* All ranks fail together, those without an error with this one. */
static kn_status fail_together(kn_trainer *trainer)
{
    const kn_status status = trainer->kept_status;
    trainer->kept_status = KN_OK;
    if (status == KN_OK)
        return kn_fail(KN_ERR_STATE, "another rank has failed");
    trainer->others_failed = false; /* the error is this rank's own */
    return kn_fail(status, "%s", trainer->kept_message);
}

kn_status kn_ranks_vote(kn_trainer *trainer, kn_status status)
{
    if (trainer->group == NULL)
        return status;
    keep_error(trainer, status);
    KN_TRY(finish_vote(trainer));
    if (trainer->others_failed)
        return fail_together(trainer);
    return trainer->signal == 0 ? start_vote(trainer, trainer->kept_status != KN_OK) : KN_OK;
}

kn_status kn_ranks_end_votes(kn_trainer *trainer, kn_status status)
{
    if (trainer->group == NULL)
        return status;
    if (status == KN_OK) {
        status = finish_vote(trainer);
        return status == KN_OK && (trainer->others_failed || trainer->kept_status != KN_OK) ? fail_together(trainer)
                                                                                            : status;
    }
    kn_work_free(trainer->vote); /* it goes on, and nobody waits for it */
    trainer->vote = NULL;
    kn_release(trainer->votes);
    trainer->votes = NULL;
    trainer->kept_status = KN_OK;
    return status;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

#define COMPARED 4000

/* The first line of `mine` that `theirs` does not have in its place. */
static int different_line(const char **mine, const char **theirs)
{
    for (;;) {
        const size_t a = strcspn(*mine, "\n"), b = strcspn(*theirs, "\n");
        if (a != b || strncmp(*mine, *theirs, a) != 0 || (*mine)[a] == '\0')
            return (int)a;
        *mine += a + 1;
        *theirs += b + 1;
    }
}

kn_status kn_ranks_compare(kn_trainer *trainer, const char *text)
{
    char mine[COMPARED] = "";
    if (trainer->group == NULL)
        return KN_OK;
    snprintf(mine, sizeof mine, "%s", text);
    char *all = kn_group_gather_bytes(trainer->group, mine, sizeof mine);
    if (all == NULL)
        return kn_error_status();
    kn_status status = KN_OK;
    for (int r = 1; r < kn_ranks_count(trainer) && status == KN_OK; r++) {
        const char *first = all, *other = all + (size_t)r * COMPARED;
        if (strcmp(first, other) == 0)
            continue;
        const int length = different_line(&first, &other);
        status = kn_fail(KN_ERR_ARGUMENT,
                         "trainer: the ranks must be alike, but rank 0 has \"%.*s\" where rank %d (%s) has \"%.*s\"",
                         length, first, r, kn_group_host(trainer->group, r), (int)strcspn(other, "\n"), other);
    }
    kn_free(all);
    return status;
}

static void describe_data(kn_text *text, const char *name, const kn_loader *loader)
{
    kn_text_format(text, "%s samples: %lld\n%s batches of a rank: %lld\n", name, (long long)loader->sampler->length,
                   name, (long long)kn_loader_batches(loader));
}

kn_status kn_ranks_compare_settings(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    const kn_trainer_params *params = &trainer->params;
    kn_text text = {0};
    if (trainer->group == NULL)
        return KN_OK;
    kn_text_format(&text, "epochs: %d\npatience: %d\noutput: %s\nresume: %d\nlog_every: %d\n", params->epochs,
                   params->patience, params->output != NULL ? "files" : "none", params->resume, params->log_every);
    describe_data(&text, "training", train);
    if (validation != NULL)
        kn_text_format(&text, "validation samples: %lld\n", (long long)validation->sampler->length);
    for (int i = 0; i < trainer->settings.count; i++) {
        const kn_setting *setting = &trainer->settings.all[i];
        const bool may_differ = strcmp(setting->name, "device") == 0 || strcmp(setting->name, "sampler") == 0;
        if (!may_differ)
            kn_text_format(&text, "%s: %s\n", setting->name, setting->value);
    }
    kn_status status = text.failed ? KN_ERR_MEMORY : kn_ranks_compare(trainer, text.data);
    kn_text_free(&text);
    return status;
}

/* --- states ------------------------------------------------------------------------------------------------------- */

kn_status kn_ranks_share_buffers(kn_trainer *trainer)
{
    if (trainer->group == NULL)
        return KN_OK;
    KN_NO_GRAD;
    const kn_parameter_list buffers = kn_module_buffers(trainer->params.module);
    return buffers.count > 0 ? kn_group_broadcast_list(trainer->group, buffers.tensors, buffers.count, 0) : KN_OK;
}

kn_status kn_ranks_gather_generators(kn_trainer *trainer)
{
    uint8_t mine[KN_RNG_STATE_SIZE];
    if (trainer->group == NULL)
        return KN_OK;
    KN_TRY(kn_get_rng_state(kn_trainer_device(trainer), mine));
    kn_free(trainer->generators);
    trainer->generators = kn_group_gather_bytes(trainer->group, mine, sizeof mine);
    return trainer->generators != NULL ? KN_OK : kn_error_status();
}
