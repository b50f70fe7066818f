/* optim/state.c - lists an optimizer's state, as PyTorch names it, and restores it. */
#include "optim/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/text.h"

#define NAME_SIZE 64

const char *kn_optim_type_name(const kn_optim *optim) { return optim->algorithm->name; }

static const char *state_name(char name[NAME_SIZE], int index, const char *state)
{
    snprintf(name, NAME_SIZE, "state.%d.%s", index, state);
    return name;
}

/* --- listing --------------------------------------------------------------------------------------------------- */

kn_status kn_optim_append_number(kn_tensor_list *list, const char *name, kn_dtype dtype, double number)
{
    kn_tensor *tensor = NULL;
    KN_TRY(kn_tensor_new(&tensor, dtype, 0, NULL, kn_device_host()));
    kn_status status = kn_tensor_fill(tensor, number);
    if (status == KN_OK)
        status = kn_tensor_list_append(list, name, tensor);
    kn_release(tensor);
    return status;
}

static kn_status append_parameter(kn_optim *optim, int index, kn_tensor_list *list)
{
    char name[NAME_SIZE];
    const kn_optim_algorithm *algorithm = optim->algorithm;
    const kn_optim_course *course = &optim->courses[index];
    if (algorithm->counts_steps)
        KN_TRY(kn_optim_append_number(list, state_name(name, index, "step"), KN_F32, (double)course->step));
    for (int c = 0; algorithm->carried != NULL && algorithm->carried[c] != NULL; c++)
        KN_TRY(
            kn_optim_append_number(list, state_name(name, index, algorithm->carried[c]), KN_F64, course->carried[c]));
    for (int s = 0; s < kn_optim_state_count(optim, index); s++) {
        kn_tensor *view = NULL;
        if (!kn_optim_has_state(optim, index, s))
            continue;
        KN_TRY(kn_optim_state_view(optim, index, s, &view));
        kn_status status =
            kn_tensor_list_append(list, state_name(name, index, kn_optim_state_name(optim, index, s)), view);
        kn_release(view);
        KN_TRY(status);
    }
    return KN_OK;
}

kn_status kn_optim_state_list(kn_optim *optim, kn_tensor_list *list)
{
    *list = (kn_tensor_list){0};
    KN_TRY(kn_optim_lay_out(optim));
    KN_TRY(kn_optim_fetch_steps(optim));
    kn_status status = KN_OK;
    if (optim->shard && optim->shard->has_whole) {
        const kn_tensor_list *whole = &optim->shard->whole;
        for (int i = 0; i < whole->count && status == KN_OK; i++)
            status = kn_tensor_list_append(list, whole->names[i], whole->tensors[i]);
        if (status != KN_OK)
            kn_tensor_list_free(list);
        return status;
    }
    for (int i = 0; i < optim->count && status == KN_OK; i++)
        if (optim->courses[i].step > 0)
            status = append_parameter(optim, i, list);
    if (status == KN_OK && optim->algorithm->whole)
        status = optim->algorithm->whole->list(optim, list);
    if (status != KN_OK)
        kn_tensor_list_free(list);
    return status;
}

void kn_optim_forget_whole(kn_optim *optim)
{
    if (!optim->shard || !optim->shard->has_whole)
        return;
    kn_tensor_list_free(&optim->shard->whole);
    optim->shard->has_whole = false;
}

bool kn_optim_is_share(const kn_optim *optim, int *rank, int *size)
{
    if (!optim->shard || optim->shard->has_whole || optim->shard->size == 1)
        return false;
    *rank = optim->shard->rank;
    *size = optim->shard->size;
    return true;
}

/* --- restoring ------------------------------------------------------------------------------------------------- */

/* A loaded state, checked before it is applied. */
typedef struct restored {
    const kn_tensor_list *from;
    const char *origin;
    int used; /* tensors of the list */
    double (*hyper)[KN_OPTIM_MAX_HYPER];
    double *initial_lr;
    kn_optim_course *courses;
    kn_tensor **tensors; /* [parameter][KN_OPTIM_MAX_STATES], as they are in the parameter's bucket; NULL: none */
    void *own;           /* the optimizer's, if its algorithm has one */
} restored;

/* NULL in `found` if there is no such tensor and it is `optional`. */
static kn_status fetch(restored *into, const char *name, int ndim, const int64_t *shape, bool optional,
                       kn_tensor **found)
{
    kn_tensor *tensor = *found = kn_tensor_list_find(into->from, name);
    if (tensor == NULL)
        return optional
                   ? KN_OK
                   : kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: \"%s\" is missing", into->origin, name);
    bool same = tensor->ndim == ndim;
    for (int d = 0; same && d < ndim; d++)
        same = tensor->shape[d] == shape[d];
    into->used++;
    if (same)
        return KN_OK;
    char a[128], b[128];
    return kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: \"%s\" is %s there and %s here", into->origin, name,
                   kn_format_shape(a, sizeof a, tensor->ndim, tensor->shape),
                   kn_format_shape(b, sizeof b, ndim, shape));
}

/* Reads `count` float64 numbers, with `ndim` 0 one; `is_there` NULL: required. */
static kn_status fetch_numbers(restored *into, const char *name, int ndim, int64_t count, bool *is_there,
                               double *numbers)
{
    kn_tensor *tensor, *host = NULL;
    KN_TRY(fetch(into, name, ndim, &count, is_there != NULL, &tensor));
    if (is_there != NULL && !(*is_there = tensor != NULL))
        return KN_OK;
    KN_TRY(kn_tensor_cast(&host, tensor, KN_F64, kn_device_host()));
    memcpy(numbers, (const double *)host->storage->host + host->offset, (size_t)count * sizeof *numbers);
    kn_release(host);
    return KN_OK;
}

static kn_status fetch_state(restored *into, const kn_optim *optim, const char *name, int index, int state,
                             bool optional)
{
    kn_tensor *found;
    int64_t shape[KN_MAX_DIMS];
    const kn_tensor *parameter = optim->parameters[index];
    const int ndim = kn_optim_state_shape(optim, index, state, shape);
    if (ndim < 0)
        return KN_OK;
    KN_TRY(fetch(into, name, ndim, shape, optional, &found));
    if (found == NULL || !kn_optim_owns(optim, index))
        return KN_OK;
    return kn_tensor_cast(&into->tensors[index * KN_OPTIM_MAX_STATES + state], found, kn_compute_type(parameter->dtype),
                          parameter->storage->device);
}

/* A parameter without any state had no step. */
static bool has_any(const kn_optim *optim, const restored *into, int index)
{
    char name[NAME_SIZE];
    bool any = kn_tensor_list_find(into->from, state_name(name, index, "step")) != NULL;
    for (int s = 0; s < kn_optim_state_count(optim, index) && !any; s++)
        any = kn_tensor_list_find(into->from, state_name(name, index, kn_optim_state_name(optim, index, s))) != NULL;
    return any;
}

static kn_status take_step(restored *into, int index, double step)
{
    if (!kn_is_count(step))
        return kn_fail(KN_ERR_FORMAT, "%s: the step of parameter %d, %g, is not a count", into->origin, index, step);
    into->courses[index].step = (int64_t)step;
    return KN_OK;
}

static kn_status read_parameter(const kn_optim *optim, restored *into, int index)
{
    char name[NAME_SIZE];
    double step = 1;
    bool is_there = false;
    kn_optim_course *course = &into->courses[index];
    const kn_optim_algorithm *algorithm = optim->algorithm;
    if (!has_any(optim, into, index))
        return KN_OK;
    KN_TRY(
        fetch_numbers(into, state_name(name, index, "step"), 0, 1, algorithm->counts_steps ? NULL : &is_there, &step));
    KN_TRY(take_step(into, index, step));
    for (int c = 0; algorithm->carried != NULL && algorithm->carried[c] != NULL; c++)
        KN_TRY(fetch_numbers(into, state_name(name, index, algorithm->carried[c]), 0, 1, NULL, &course->carried[c]));
    const int own = optim->groups[optim->group_of[index]].num_states;
    for (int s = 0; s < kn_optim_state_count(optim, index); s++)
        KN_TRY(fetch_state(into, optim, state_name(name, index, kn_optim_state_name(optim, index, s)), index, s,
                           s == own));
    if (!kn_optim_owns(optim, index)) /* another rank's: only checked here */
        *course = (kn_optim_course){0};
    return KN_OK;
}

static kn_status check_groups(const kn_optim *optim, const restored *into)
{
    int rows[KN_OPTIM_OWN_STATES];
    for (int g = 0; g < optim->num_groups; g++) {
        double checked[KN_OPTIM_MAX_HYPER];
        memcpy(checked, into->hyper[g], sizeof checked);
        checked[KN_OPTIM_LR] = fmax(checked[KN_OPTIM_LR], 0); /* a schedule may have set any */
        const kn_status status = kn_optim_check_hyper(optim->algorithm, checked);
        if (status != KN_OK) {
            kn_error_prefix("%s", into->origin);
            return status;
        }
        if (kn_optim_states_in_use(optim->algorithm, into->hyper[g], rows) != optim->groups[g].num_states)
            return kn_fail(KN_ERR_FORMAT,
                           "%s does not fit this %s optimizer: it has other hyperparameters (amsgrad, momentum)",
                           into->origin, optim->algorithm->name);
    }
    return KN_OK;
}

static kn_status read_all(const kn_optim *optim, const char *groups, restored *into)
{
    KN_TRY(kn_optim_groups_from_json(optim, groups, into->origin, into->hyper, into->initial_lr));
    KN_TRY(check_groups(optim, into));
    for (int i = 0; i < optim->count; i++)
        KN_TRY(read_parameter(optim, into, i));
    if (optim->algorithm->whole)
        return optim->algorithm->whole->load(optim, into->from, into->origin, &into->own, &into->used);
    return KN_OK;
}

/* The form of earlier versions, of SGD and Adam with one group; its hyperparameters are the first of today's. */
static kn_status read_earlier(const kn_optim *optim, restored *into)
{
    double *steps = kn_calloc((size_t)optim->count, sizeof *steps);
    kn_tensor *hyper = kn_tensor_list_find(into->from, "hyperparameters");
    const int64_t count = hyper != NULL && hyper->ndim == 1 ? hyper->shape[0] : 0;
    kn_status status = steps != NULL ? fetch_numbers(into, "step", 1, optim->count, NULL, steps) : KN_ERR_MEMORY;
    if (status == KN_OK && (optim->num_groups > 1 || count > kn_optim_hyper_count(optim->algorithm)))
        status = kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: it has one group of parameters", into->origin);
    if (status == KN_OK)
        status = fetch_numbers(into, "hyperparameters", 1, count, NULL, into->hyper[0]);
    if (status == KN_OK)
        status = check_groups(optim, into);
    for (int i = 0; i < optim->count && status == KN_OK; i++) {
        status = take_step(into, i, steps[i]);
        for (int s = 0; s < optim->groups[0].num_states && status == KN_OK; s++) {
            char name[NAME_SIZE];
            snprintf(name, sizeof name, "%s.%d", kn_optim_state_name(optim, i, s), i);
            status = fetch_state(into, optim, name, i, s, false);
        }
    }
    kn_free(steps);
    return status;
}

/* Master weights that the file does not have are the parameters; other state, as it is before the first step. */
static kn_status take_state(kn_optim *optim, int index, int state, const kn_tensor *loaded)
{
    const kn_optim_group *group = &optim->groups[optim->group_of[index]];
    kn_tensor *view = NULL;
    if (!kn_optim_has_state(optim, index, state))
        return KN_OK;
    KN_TRY(kn_optim_state_view(optim, index, state, &view));
    kn_status status = KN_OK;
    if (loaded != NULL || state == group->num_states)
        status = kn_tensor_copy(view, loaded != NULL ? loaded : optim->parameters[index]);
    else
        status = kn_tensor_fill(view, optim->algorithm->initial != NULL
                                          ? optim->algorithm->initial(group->hyper, group->states[state])
                                          : 0);
    kn_release(view);
    return status;
}

static kn_status take_over(kn_optim *optim, restored *from)
{
    for (int g = 0; g < optim->num_groups; g++) {
        memcpy(optim->groups[g].hyper, from->hyper[g], sizeof optim->groups[g].hyper);
        optim->groups[g].initial_lr = from->initial_lr[g];
    }
    for (int i = 0; i < optim->count; i++)
        for (int s = 0; s < kn_optim_state_count(optim, i); s++)
            KN_TRY(take_state(optim, i, s, from->tensors[i * KN_OPTIM_MAX_STATES + s]));
    memcpy(optim->courses, from->courses, (size_t)optim->count * sizeof *optim->courses);
    kn_optim_forget_whole(optim);
    kn_release(optim->device_steps); /* made again, from these counts, with the next step */
    optim->device_steps = NULL;
    void *own = optim->own; /* freed with `from` */
    optim->own = from->own;
    from->own = own;
    return KN_OK;
}

kn_status kn_optim_state_load(kn_optim *optim, const kn_tensor_list *state, const char *groups, const char *origin)
{
    KN_TRY(kn_optim_lay_out(optim));
    const size_t count = (size_t)optim->count, num_groups = (size_t)optim->num_groups;
    restored from = {
        .from = state,
        .origin = origin,
        .hyper = kn_calloc(num_groups, sizeof *from.hyper),
        .initial_lr = kn_calloc(num_groups, sizeof *from.initial_lr),
        .courses = kn_calloc(count, sizeof *from.courses),
        .tensors = kn_calloc(count * KN_OPTIM_MAX_STATES, sizeof(kn_tensor *)),
    };
    const bool made = from.hyper != NULL && from.initial_lr != NULL && from.courses != NULL && from.tensors != NULL;
    kn_status status = made ? KN_OK : KN_ERR_MEMORY;
    for (int g = 0; g < optim->num_groups && made; g++) {
        memcpy(from.hyper[g], optim->groups[g].hyper, sizeof from.hyper[g]);
        from.initial_lr[g] = (double)NAN;
    }
    if (status == KN_OK)
        status = groups != NULL ? read_all(optim, groups, &from) : read_earlier(optim, &from);
    /* More would belong to another optimizer, or to this one with amsgrad. */
    if (status == KN_OK && state->count != from.used)
        status = kn_fail(KN_ERR_FORMAT, "%s does not fit this %s optimizer: it holds %d tensors, expected %d", origin,
                         optim->algorithm->name, state->count, from.used);
    if (status == KN_OK)
        status = take_over(optim, &from);
    for (size_t i = 0; from.tensors != NULL && i < count * KN_OPTIM_MAX_STATES; i++)
        kn_release(from.tensors[i]);
    if (optim->algorithm->whole)
        optim->algorithm->whole->free(from.own);
    kn_free(from.tensors);
    kn_free(from.courses);
    kn_free(from.initial_lr);
    kn_free(from.hyper);
    return status;
}
