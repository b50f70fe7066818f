/* optim/optim.c - creates and frees optimizers; groups of parameters. */
#include "optim/optim.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <koine/autograd.h>

#include "base/error.h"
#include "base/memory.h"

/* --- hyperparameters ---------------------------------------------------------------------------------------------- */

int kn_optim_hyper_count(const kn_optim_algorithm *algorithm)
{
    int count = 0;
    while (algorithm->hyper[count].name != NULL)
        count++;
    return count;
}

void kn_optim_take_hyper(const kn_optim_algorithm *algorithm, const void *params, double *hyper)
{
    for (int i = 0; algorithm->hyper[i].name != NULL; i++) {
        const char *at = (const char *)params + algorithm->hyper[i].at;
        const kn_hyper_kind kind = algorithm->hyper[i].kind;
        hyper[i] = kind == KN_HYPER_FLAG                               ? *(const bool *)at
                   : kind == KN_HYPER_COUNT || kind == KN_HYPER_CHOICE ? *(const int *)at
                                                                       : *(const double *)at;
    }
}

static bool is_allowed(const kn_optim_hyper *row, double value, char allowed[40])
{
    int choices = 0;
    switch (row->kind) {
    case KN_HYPER_FROM_0:
        snprintf(allowed, 40, "0 or more");
        return value >= 0;
    case KN_HYPER_BELOW_1:
        snprintf(allowed, 40, "at least 0 and below 1");
        return value >= 0 && value < 1;
    case KN_HYPER_FLAG:
        snprintf(allowed, 40, "0 or 1");
        return value == 0 || value == 1;
    case KN_HYPER_OPTION:
        snprintf(allowed, 40, "0 or more, or -1 for none");
        return value >= 0 || value == -1;
    case KN_HYPER_COUNT:
        snprintf(allowed, 40, "an integer from 0 to %d", INT_MAX);
        return value >= 0 && value <= INT_MAX && value == floor(value);
    case KN_HYPER_CHOICE:
        while (row->choices[choices] == NULL || row->choices[choices][0] != '\0')
            choices++;
        snprintf(allowed, 40, "an integer from 0 to %d", choices - 1);
        return value >= 0 && value < choices && value == floor(value);
    default:
        snprintf(allowed, 40, "a number");
        return value == value;
    }
}

kn_status kn_optim_check_hyper(const kn_optim_algorithm *algorithm, const double *hyper)
{
    for (int i = 0; algorithm->hyper[i].name != NULL; i++) {
        const kn_optim_hyper *row = &algorithm->hyper[i];
        char allowed[40];
        if (!is_allowed(row, hyper[i], allowed))
            return kn_fail(KN_ERR_ARGUMENT, "%s: %s (%g) must be %s", algorithm->name, row->name, hyper[i], allowed);
    }
    return algorithm->check != NULL ? algorithm->check(hyper) : KN_OK;
}

int kn_optim_states_in_use(const kn_optim_algorithm *algorithm, const double *hyper, int rows[KN_OPTIM_OWN_STATES])
{
    int count = 0;
    for (int s = 0; algorithm->states[s].name != NULL; s++)
        if (algorithm->states[s].needs == 0 || hyper[algorithm->states[s].needs] != 0)
            rows[count++] = s;
    return count;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static kn_status check_parameter(const kn_optim *optim, kn_parameter_list list, int index)
{
    char text[KN_DESCRIBE];
    const char *name = optim->algorithm->name;
    kn_tensor *tensor = list.tensors[index];
    if (tensor == NULL)
        return kn_fail_argument_null(name, "parameter");
    if (!kn_dtype_is_floating(tensor->dtype))
        return kn_fail(KN_ERR_DTYPE, "%s: parameter %d is %s; optimizers take floating dtypes", name,
                       optim->count + index, kn_tensor_describe(text, sizeof text, tensor));
    if (!kn_is_leaf(tensor))
        return kn_fail(KN_ERR_ARGUMENT, "%s: parameter %d (%s) is the result of an operation, not a leaf", name,
                       optim->count + index, kn_tensor_describe(text, sizeof text, tensor));
    for (int i = 0; i < optim->count + index; i++) {
        if ((i < optim->count ? optim->parameters[i] : list.tensors[i - optim->count]) == tensor)
            return kn_fail(KN_ERR_ARGUMENT, "%s: parameters %d and %d are the same tensor", name, i,
                           optim->count + index);
    }
    return optim->algorithm->check_parameter ? optim->algorithm->check_parameter(tensor, optim->count + index) : KN_OK;
}

static kn_status check_parameters(const kn_optim *optim, kn_parameter_list list)
{
    /* A further group may be empty: that of the weights without decay, say. */
    if (list.count < 0 || list.tensors == NULL || (list.count == 0 && optim->num_groups == 0)) {
        kn_fail(KN_ERR_ARGUMENT, "%s: there are no parameters to optimize", optim->algorithm->name);
        return kn_error_status(); /* a failed module constructor has left a better, sticky error */
    }
    for (int i = 0; i < list.count; i++)
        KN_TRY(check_parameter(optim, list, i));
    return KN_OK;
}

/* `*array` with room for `more` elements, zeroed, after its `count` ones. */
static kn_status grow(void *array, int count, int more, size_t size)
{
    void *old, *grown = kn_calloc((size_t)count + (size_t)more, size);
    memcpy(&old, array, sizeof old);
    if (grown == NULL)
        return KN_ERR_MEMORY;
    if (count > 0)
        memcpy(grown, old, (size_t)count * size);
    kn_free(old);
    memcpy(array, &grown, sizeof grown);
    return KN_OK;
}

static kn_status add_group(kn_optim *optim, kn_parameter_list list, const double *hyper)
{
    if (optim->algorithm->whole && optim->num_groups > 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: it has one group of parameters", optim->algorithm->name);
    KN_TRY(check_parameters(optim, list));
    KN_TRY(kn_optim_check_hyper(optim->algorithm, hyper));
    KN_TRY(grow(&optim->groups, optim->num_groups, 1, sizeof *optim->groups));
    KN_TRY(grow(&optim->parameters, optim->count, list.count, sizeof *optim->parameters));
    KN_TRY(grow(&optim->group_of, optim->count, list.count, sizeof *optim->group_of));
    KN_TRY(grow(&optim->courses, optim->count, list.count, sizeof *optim->courses));
    KN_TRY(grow(&optim->places, optim->count, list.count, sizeof *optim->places));
    kn_optim_group *group = &optim->groups[optim->num_groups];
    *group = (kn_optim_group){.initial_lr = (double)NAN, .first = optim->count, .count = list.count};
    memcpy(group->hyper, hyper, sizeof group->hyper);
    group->num_states = kn_optim_states_in_use(optim->algorithm, hyper, group->states);
    for (int i = 0; i < list.count; i++) {
        optim->parameters[optim->count] = kn_retain(list.tensors[i]);
        optim->group_of[optim->count] = optim->num_groups;
        optim->places[optim->count++].bucket = -1;
    }
    optim->num_groups++;
    const kn_status status = optim->shard ? optim->shard->extend(optim) : KN_OK;
    for (int i = 0; i < list.count && status != KN_OK; i++)
        kn_release(optim->parameters[--optim->count]);
    optim->num_groups -= status != KN_OK;
    return status;
}

static kn_status check_group(const char *function, const kn_optim *optim, int group)
{
    if (optim == NULL)
        return kn_fail_argument_null(function, "optim");
    if (group >= 0 && group < optim->num_groups)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: there is no group %d; this %s optimizer has %d", function, group,
                   optim->algorithm->name, optim->num_groups);
}

/* The index of a hyperparameter; -1 with an error. */
static int find_hyper(const char *function, const kn_optim *optim, const char *name)
{
    for (int i = 0; name != NULL && optim->algorithm->hyper[i].name != NULL; i++)
        if (strcmp(optim->algorithm->hyper[i].name, name) == 0)
            return i;
    kn_fail(KN_ERR_ARGUMENT, "%s: %s has no hyperparameter \"%s\"", function, optim->algorithm->name,
            name != NULL ? name : "NULL");
    return -1;
}

/* `master_weights` NULL: it is not an option. */
static kn_status take_options(const char *function, const kn_optim *optim, const kn_optim_option *options,
                              double *hyper, bool *master_weights)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (options->name[0] == '\0')
            continue;
        if (master_weights && optim->algorithm->master_at && strcmp(options->name, "master_weights") == 0) {
            *master_weights = options->value != 0;
            continue;
        }
        const int at = find_hyper(function, optim, options->name);
        if (at < 0)
            return kn_error_status();
        hyper[at] = options->value;
    }
    return KN_OK;
}

kn_status kn_optim_add_group_with(kn_optim *optim, kn_parameter_list parameters, const kn_optim_option *options)
{
    if (optim == NULL)
        return kn_fail_argument_null("optim_add_group", "optim");
    if (optim->device_steps != NULL)
        KN_TRY(kn_optim_fetch_steps(optim));
    double hyper[KN_OPTIM_MAX_HYPER];
    memcpy(hyper, optim->defaults, sizeof hyper);
    KN_TRY(take_options("optim_add_group", optim, options, hyper, NULL));
    KN_TRY(add_group(optim, parameters, hyper));
    kn_release(optim->device_steps); /* made again with the next step, longer */
    optim->device_steps = NULL;
    return KN_OK;
}

int kn_optim_num_groups(const kn_optim *optim) { return optim == NULL ? 0 : optim->num_groups; }

kn_parameter_list kn_optim_group_parameters(const kn_optim *optim, int group)
{
    if (optim == NULL || group < 0 || group >= optim->num_groups)
        return (kn_parameter_list){0};
    return (kn_parameter_list){.tensors = optim->parameters + optim->groups[group].first,
                               .count = optim->groups[group].count};
}

kn_status kn_optim_get(const kn_optim *optim, int group, const char *name, double *value)
{
    KN_TRY(check_group("optim_get", optim, group));
    if (value == NULL)
        return kn_fail_argument_null("optim_get", "value");
    if (name != NULL && strcmp(name, "initial_lr") == 0) {
        *value = optim->groups[group].initial_lr;
        return KN_OK;
    }
    const int at = find_hyper("optim_get", optim, name);
    if (at < 0)
        return kn_error_status();
    *value = optim->groups[group].hyper[at];
    return KN_OK;
}

/* After the first step a change must not ask for other states than there are. */
kn_status kn_optim_set(kn_optim *optim, int group, const char *name, double value)
{
    KN_TRY(check_group("optim_set", optim, group));
    if (name != NULL && strcmp(name, "initial_lr") == 0) {
        optim->groups[group].initial_lr = value;
        return KN_OK;
    }
    const int at = find_hyper("optim_set", optim, name);
    if (at < 0)
        return kn_error_status();
    kn_optim_group *changed = &optim->groups[group];
    double hyper[KN_OPTIM_MAX_HYPER];
    int rows[KN_OPTIM_OWN_STATES];
    memcpy(hyper, changed->hyper, sizeof hyper);
    hyper[at] = value;
    KN_TRY(kn_optim_check_hyper(optim->algorithm, hyper));
    const int num_states = kn_optim_states_in_use(optim->algorithm, hyper, rows);
    if (num_states != changed->num_states) {
        if (optim->buckets != NULL)
            return kn_fail(KN_ERR_STATE,
                           "%s: %s (%g) cannot become %g after the first step, because other state would be needed",
                           optim->algorithm->name, name, changed->hyper[at], value);
        memcpy(changed->states, rows, sizeof rows);
        changed->num_states = num_states;
    }
    changed->hyper[at] = value;
    return KN_OK;
}

double kn_optim_lr(const kn_optim *optim) { return optim == NULL ? 0 : optim->groups[0].hyper[KN_OPTIM_LR]; }

kn_status kn_optim_set_lr(kn_optim *optim, double lr)
{
    if (optim == NULL)
        return kn_fail_argument_null("optim_set_lr", "optim");
    for (int g = 0; g < optim->num_groups; g++)
        KN_TRY(kn_optim_set(optim, g, "lr", lr));
    return KN_OK;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

kn_optim *kn_optim_new(const kn_optim_algorithm *algorithm, kn_parameter_list parameters, const void *params,
                       const kn_optim_option *options)
{
    kn_optim *optim = kn_calloc(1, sizeof *optim);
    if (optim == NULL)
        return kn_error_make_sticky();
    params = params != NULL ? params : algorithm->params;
    optim->algorithm = algorithm;
    optim->master_weights = algorithm->master_at && *(const bool *)((const char *)params + algorithm->master_at);
    kn_optim_take_hyper(algorithm, params, optim->defaults);
    kn_status status = take_options("optim_named", optim, options, optim->defaults, &optim->master_weights);
    if (algorithm->complete)
        algorithm->complete(optim->defaults);
    if (status != KN_OK || add_group(optim, parameters, optim->defaults) != KN_OK) {
        kn_optim_free(optim);
        return kn_error_make_sticky();
    }
    return optim;
}

kn_optim *kn_optim_named_with(const char *name, kn_parameter_list parameters, const kn_optim_option *options)
{
    static const kn_optim_algorithm *const all[] = {
        &kn_optim_row_sgd,     &kn_optim_row_adam,      &kn_optim_row_adamw, &kn_optim_row_rmsprop,
        &kn_optim_row_adagrad, &kn_optim_row_adadelta,  &kn_optim_row_nadam, &kn_optim_row_radam,
        &kn_optim_row_adamax,  &kn_optim_row_asgd,      &kn_optim_row_rprop, &kn_optim_row_lamb,
        &kn_optim_row_lion,    &kn_optim_row_adafactor, &kn_optim_row_muon,  &kn_optim_row_lbfgs,
    };
    for (size_t i = 0; name != NULL && i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i]->name, name) == 0)
            return kn_optim_new(all[i], parameters, NULL, options);
    kn_fail(KN_ERR_ARGUMENT, "optim_named: there is no optimizer \"%s\"", name != NULL ? name : "NULL");
    return kn_error_make_sticky();
}

void kn_optim_free_buckets(kn_optim_bucket *buckets, int count)
{
    for (int i = 0; i < count; i++) {
        for (int s = 0; s < KN_OPTIM_MAX_STATES; s++)
            kn_release(buckets[i].states[s]);
    }
    kn_free(buckets);
}

void kn_optim_free(kn_optim *optim)
{
    if (optim == NULL)
        return;
    kn_optim_forget_recorded(optim);
    if (optim->shard)
        optim->shard->free(optim->shard);
    if (optim->algorithm->whole)
        optim->algorithm->whole->free(optim->own);
    kn_optim_free_buckets(optim->buckets, optim->num_buckets);
    for (int i = 0; i < optim->count; i++)
        kn_release(optim->parameters[i]);
    kn_release(optim->device_steps);
    kn_free(optim->groups);
    kn_free(optim->parameters);
    kn_free(optim->group_of);
    kn_free(optim->courses);
    kn_free(optim->places);
    kn_free(optim);
}

int64_t kn_optim_state_bytes(const kn_optim *optim)
{
    int64_t bytes = 0;
    for (int b = 0; optim != NULL && b < optim->num_buckets; b++)
        for (int s = 0; s < KN_OPTIM_MAX_STATES; s++)
            if (optim->buckets[b].states[s] != NULL)
                bytes += (int64_t)optim->buckets[b].states[s]->storage->bytes;
    return bytes;
}

void kn_optim_zero_grad(kn_optim *optim)
{
    for (int i = 0; optim != NULL && i < optim->count; i++)
        kn_set_grad(optim->parameters[i], NULL);
}
