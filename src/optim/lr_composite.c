/* optim/lr_composite.c - schedules of several schedules: SequentialLR and ChainedScheduler. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "optim/lr_scheduler.h"

static const kn_lr_row sequential = {.name = "SequentialLR"}, chained = {.name = "ChainedScheduler"};

/* Is the part already among those before it? It would be freed twice. */
static bool is_repeated(kn_lr_scheduler *const *parts, int index)
{
    for (int i = 0; i < index; i++)
        if (parts[i] == parts[index])
            return true;
    return false;
}

static kn_status check_parts(const char *name, const kn_optim *optim, kn_lr_scheduler *const *parts, int count)
{
    if (count < 1 || parts == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: expects at least one schedule", name);
    for (int i = 0; i < count; i++) {
        if (parts[i] == NULL)
            return kn_fail(KN_ERR_ARGUMENT, "%s: schedule %d is NULL", name, i);
        if (is_repeated(parts, i))
            return kn_fail(KN_ERR_ARGUMENT, "%s: schedule %d (%s) is given twice", name, i, parts[i]->row->name);
        if (parts[i]->row == &kn_lr_plateau)
            return kn_fail(KN_ERR_ARGUMENT, "%s: schedule %d is a ReduceLROnPlateau, which needs a metric", name, i);
        if (parts[i]->optim != (optim != NULL ? optim : parts[0]->optim))
            return kn_fail(KN_ERR_ARGUMENT, "%s: schedule %d (%s) is of another optimizer", name, i,
                           parts[i]->row->name);
    }
    return KN_OK;
}

/* On failure the parts are freed. */
static kn_lr_scheduler *combine(const kn_lr_row *row, kn_optim *optim, kn_lr_scheduler *const *parts, int count)
{
    kn_lr_scheduler *s = NULL, **copy = NULL;
    kn_status status = check_parts(row->name, optim, parts, count);
    if (status == KN_OK)
        copy = kn_calloc((size_t)count, sizeof *copy);
    if (copy != NULL)
        s = kn_lr_new(row, parts[0]->optim, 0, NULL, 0);
    for (int i = 0; s == NULL && parts != NULL && i < count; i++)
        if (!is_repeated(parts, i))
            kn_lr_scheduler_free(parts[i]);
    if (s == NULL) {
        kn_free(copy);
        return kn_error_make_sticky();
    }
    memcpy(copy, parts, (size_t)count * sizeof *copy);
    s->parts = copy;
    s->num_parts = count;
    kn_lr_note(s);
    return s;
}

/* The parts have made their first steps, which count one after the other: they are undone. */
static void undo(kn_lr_scheduler *s)
{
    for (int i = 0; i < s->num_parts; i++)
        undo(s->parts[i]);
    if (s->num_parts == 0)
        s->last_epoch--;
}

/* Of an epoch: how many milestones are past. */
static int part_at(const kn_lr_scheduler *s, int64_t epoch)
{
    int i = 0;
    while (i < s->num_milestones && s->milestones[i] <= epoch)
        i++;
    return i;
}

static kn_lr_scheduler *fail(kn_lr_scheduler *s)
{
    kn_lr_scheduler_free(s);
    return kn_error_make_sticky();
}

kn_lr_scheduler *kn_sequential_lr(kn_optim *optim, kn_lr_scheduler *const *schedulers, int count,
                                  const int64_t *milestones)
{
    kn_lr_scheduler *s = combine(&sequential, optim, schedulers, count);
    if (s == NULL)
        return NULL;
    if (count > 1 && milestones == NULL) {
        kn_fail_argument_null("SequentialLR", "milestones");
        return fail(s);
    }
    s->milestones = kn_calloc((size_t)count, sizeof *s->milestones);
    if (s->milestones == NULL)
        return fail(s);
    s->num_milestones = count - 1;
    for (int i = 0; i < count - 1; i++) {
        s->milestones[i] = milestones[i];
        if (i > 0 && milestones[i] < milestones[i - 1]) {
            kn_fail(KN_ERR_ARGUMENT, "SequentialLR: milestones must not fall, but %lld follows %lld",
                    (long long)milestones[i], (long long)milestones[i - 1]);
            return fail(s);
        }
    }
    for (int g = 0; g < s->groups; g++)
        s->optim->groups[g].hyper[KN_OPTIM_LR] = s->optim->groups[g].initial_lr;
    undo(s);
    if (kn_lr_initial_step(s->parts[part_at(s, 0)]) != KN_OK)
        return fail(s);
    kn_lr_note(s);
    return s;
}

kn_lr_scheduler *kn_chained_scheduler(kn_lr_scheduler *const *schedulers, int count)
{
    return combine(&chained, NULL, schedulers, count);
}

kn_status kn_lr_step_parts(kn_lr_scheduler *s)
{
    s->last_epoch++;
    if (s->row == &chained) {
        for (int i = 0; i < s->num_parts; i++)
            KN_TRY(kn_lr_scheduler_step(s->parts[i]));
    } else {
        const int i = part_at(s, s->last_epoch);
        const bool begins = i > 0 && s->milestones[i - 1] == s->last_epoch && s->parts[i]->num_parts == 0;
        KN_TRY(begins ? kn_lr_step_to(s->parts[i], 0) : kn_lr_scheduler_step(s->parts[i]));
    }
    kn_lr_note(s);
    return KN_OK;
}
