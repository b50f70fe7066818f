/* optim/lr_scheduler.c - what all schedules do: steps and state. */
#include "optim/lr_scheduler.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/text.h"

/* --- life --------------------------------------------------------------------------------------------------------- */

double *kn_lr_per_group(const kn_optim *optim, double value, const double *list)
{
    double *copy = kn_calloc((size_t)optim->num_groups, sizeof *copy);
    for (int g = 0; copy && g < optim->num_groups; g++)
        copy[g] = list ? list[g] : value;
    return copy ? copy : kn_error_make_sticky();
}

/* The base learning rates are those from before the optimizer's first schedule, unless the schedule has its own. */
static kn_status find_base(kn_lr_scheduler *s)
{
    for (int g = 0; g < s->groups; g++) {
        kn_optim_group *group = &s->optim->groups[g];
        if (isnan(group->initial_lr) && s->last_epoch != -1)
            return kn_fail(KN_ERR_STATE,
                           "%s: group %d has no initial_lr, which last_epoch (%lld) needs: load the optimizer's state",
                           s->row->name, g, (long long)s->last_epoch);
        if (isnan(group->initial_lr))
            group->initial_lr = group->hyper[KN_OPTIM_LR];
        if (!s->has_bases)
            s->base_lrs[g] = group->initial_lr;
    }
    return KN_OK;
}

kn_lr_scheduler *kn_lr_new(const kn_lr_row *row, kn_optim *optim, int64_t last_epoch, const double *numbers, int count)
{
    if (optim == NULL)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: optim is NULL", row->name);
    if (last_epoch < -1)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: last_epoch (%lld) must be -1 or more", row->name,
                            (long long)last_epoch);
    kn_lr_scheduler *s = kn_calloc(1, sizeof *s);
    if (s == NULL)
        return kn_error_make_sticky();
    *s = (kn_lr_scheduler){.row = row, .optim = optim, .groups = optim->num_groups, .last_epoch = last_epoch};
    s->base_lrs = kn_lr_per_group(optim, 0, NULL);
    s->last_lrs = kn_lr_per_group(optim, 0, NULL);
    if (count > 0)
        memcpy(s->numbers, numbers, (size_t)count * sizeof *numbers);
    if (s->base_lrs != NULL && s->last_lrs != NULL)
        return s;
    kn_lr_scheduler_free(s);
    return NULL;
}

kn_lr_scheduler *kn_lr_start(kn_lr_scheduler *s)
{
    if (s == NULL)
        return NULL;
    if (find_base(s) == KN_OK && kn_lr_initial_step(s) == KN_OK)
        return s;
    kn_lr_scheduler_free(s);
    return kn_error_make_sticky();
}

void kn_lr_scheduler_free(kn_lr_scheduler *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < s->num_parts; i++)
        kn_lr_scheduler_free(s->parts[i]);
    kn_free(s->parts);
    kn_free(s->base_lrs);
    kn_free(s->last_lrs);
    kn_free(s->max_lrs);
    kn_free(s->milestones);
    kn_free(s);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

void kn_lr_note(kn_lr_scheduler *s)
{
    for (int g = 0; g < s->groups; g++)
        s->last_lrs[g] = s->optim->groups[g].hyper[KN_OPTIM_LR];
}

/* Sets the learning rates of last_epoch; as in PyTorch, whatever the formula gives. */
static kn_status apply(kn_lr_scheduler *s, bool closed)
{
    if (s->optim->num_groups != s->groups)
        return kn_fail(KN_ERR_STATE, "%s: the optimizer had %d groups when the schedule was made and has %d now",
                       s->row->name, s->groups, s->optim->num_groups);
    if (s->row->check != NULL)
        KN_TRY(s->row->check(s));
    for (int g = 0; g < s->groups; g++) {
        double *lr = &s->optim->groups[g].hyper[KN_OPTIM_LR];
        *lr = closed && s->row->closed != NULL ? s->row->closed(s, g) : s->row->chained(s, g, *lr);
        if (s->momentum != NULL)
            KN_TRY(kn_optim_set(s->optim, g, s->momentum, s->row->momentum(s, g)));
    }
    kn_lr_note(s);
    return KN_OK;
}

static kn_status step_on(kn_lr_scheduler *s)
{
    s->step_count++;
    s->last_epoch++;
    if (s->row->advance != NULL)
        s->row->advance(s);
    kn_status status = apply(s, false);
    if (status != KN_OK)
        s->last_epoch--;
    return status;
}

kn_status kn_lr_initial_step(kn_lr_scheduler *s)
{
    s->step_count = 0;
    s->is_initial = true;
    kn_status status = s->num_parts > 0 ? kn_lr_scheduler_step(s) : step_on(s);
    s->is_initial = false;
    return status;
}

kn_status kn_lr_step_to(kn_lr_scheduler *s, int64_t epoch)
{
    s->last_epoch = epoch;
    return apply(s, true);
}

kn_status kn_lr_scheduler_step(kn_lr_scheduler *s)
{
    if (s == NULL)
        return kn_fail_argument_null("lr_scheduler_step", "scheduler");
    if (s->row == &kn_lr_plateau)
        return kn_fail(KN_ERR_STATE,
                       "ReduceLROnPlateau: a step needs the monitored value: call kn_lr_scheduler_step_metric");
    return s->num_parts > 0 ? kn_lr_step_parts(s) : step_on(s);
}

kn_status kn_lr_scheduler_step_to(kn_lr_scheduler *s, double epoch)
{
    if (s == NULL)
        return kn_fail_argument_null("lr_scheduler_step_to", "scheduler");
    if (s->row == &kn_lr_plateau || s->num_parts > 0)
        return kn_fail(KN_ERR_STATE, "%s: steps to its next epoch only", s->row->name);
    if (!kn_is_count(epoch) || (s->row->seek == NULL && epoch != floor(epoch)))
        return kn_fail(KN_ERR_ARGUMENT, "%s: epoch (%g) must be 0 or more%s", s->row->name, epoch,
                       s->row->seek == NULL ? ", and a whole number" : "");
    s->step_count++;
    if (s->row->seek != NULL)
        s->row->seek(s, epoch);
    return kn_lr_step_to(s, (int64_t)epoch);
}

bool kn_lr_scheduler_takes_metric(const kn_lr_scheduler *s) { return s != NULL && s->row == &kn_lr_plateau; }
int64_t kn_lr_scheduler_last_epoch(const kn_lr_scheduler *s) { return s != NULL ? s->last_epoch : -1; }

double kn_lr_scheduler_last_lr(const kn_lr_scheduler *s, int group)
{
    return s != NULL && group >= 0 && group < s->groups ? s->last_lrs[group] : (double)NAN;
}

/* --- state -------------------------------------------------------------------------------------------------------- *
 * One float64 tensor: last_epoch, step_count, what steps change, the base and the last learning rates. */

#define FIXED (2 + KN_LR_MUTABLE)

static char *part_name(const char *name, int part)
{
    kn_text text = {0};
    kn_text_format(&text, "%s.%d", name, part);
    return kn_text_finish(&text);
}

kn_status kn_lr_state_list(const kn_lr_scheduler *s, const char *name, kn_tensor_list *list)
{
    const int64_t count = FIXED + 2 * (int64_t)s->groups;
    kn_tensor *tensor = NULL;
    KN_TRY(kn_tensor_new(&tensor, KN_F64, 1, &count, kn_device_host()));
    double *values = kn_data(tensor);
    values[0] = (double)s->last_epoch;
    values[1] = (double)s->step_count;
    memcpy(values + 2, s->state, sizeof s->state);
    memcpy(values + FIXED, s->base_lrs, (size_t)s->groups * sizeof *values);
    memcpy(values + FIXED + s->groups, s->last_lrs, (size_t)s->groups * sizeof *values);
    kn_status status = kn_tensor_list_append(list, name, tensor);
    kn_release(tensor);
    for (int i = 0; i < s->num_parts && status == KN_OK; i++) {
        char *part = part_name(name, i);
        status = part != NULL ? kn_lr_state_list(s->parts[i], part, list) : KN_ERR_MEMORY;
        kn_free(part);
    }
    return status;
}

/* All tensors are checked before any is taken over. */
static kn_status check_tensors(const kn_lr_scheduler *s, const kn_tensor_list *list, const char *name,
                               const char *origin)
{
    kn_tensor *tensor = kn_tensor_list_find(list, name);
    if (tensor == NULL || kn_dtype_of(tensor) != KN_F64 || kn_numel(tensor) != FIXED + 2 * s->groups)
        return kn_fail(KN_ERR_FORMAT, "%s: \"%s\" is not the state of a %s of %d groups", origin, name, s->row->name,
                       s->groups);
    const double *values = kn_data(tensor);
    if (!kn_is_count(values[0] + 1) ||
        !kn_is_count(values[1])) /* a part that has not begun is before its first epoch */
        return kn_fail(KN_ERR_FORMAT, "%s: \"%s\" has the epoch %g and the step %g, which are no counts", origin, name,
                       values[0], values[1]);
    kn_status status = KN_OK;
    for (int i = 0; i < s->num_parts && status == KN_OK; i++) {
        char *part = part_name(name, i);
        status = part != NULL ? check_tensors(s->parts[i], list, part, origin) : KN_ERR_MEMORY;
        kn_free(part);
    }
    return status;
}

static kn_status take_over(kn_lr_scheduler *s, const kn_tensor_list *list, const char *name)
{
    const double *values = kn_data(kn_tensor_list_find(list, name));
    s->last_epoch = (int64_t)values[0];
    s->step_count = (int64_t)values[1];
    memcpy(s->state, values + 2, sizeof s->state);
    memcpy(s->base_lrs, values + FIXED, (size_t)s->groups * sizeof *values);
    memcpy(s->last_lrs, values + FIXED + s->groups, (size_t)s->groups * sizeof *values);
    kn_status status = KN_OK;
    for (int i = 0; i < s->num_parts && status == KN_OK; i++) {
        char *part = part_name(name, i);
        status = part != NULL ? take_over(s->parts[i], list, part) : KN_ERR_MEMORY;
        kn_free(part);
    }
    return status;
}

kn_status kn_lr_state_load(kn_lr_scheduler *s, const char *name, const kn_tensor_list *list, const char *origin)
{
    KN_TRY(check_tensors(s, list, name, origin));
    return take_over(s, list, name);
}
