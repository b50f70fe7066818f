/* optim/groups_json.c - an optimizer's groups as JSON, in the form of PyTorch's state_dict()["param_groups"]. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "optim/state.h"

/* Settings of PyTorch's optimizers that Koine's do not have, so that PyTorch finds what it expects. */
static const char *const absent[] = {"foreach", "fused"}, *const refused[] = {"capturable", "differentiable"};

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* cJSON itself would round. JSON has no infinity and no NaN: null. */
static cJSON *number(double value)
{
    char text[KN_NUMBER_TEXT];
    return isfinite(value) ? cJSON_CreateRaw(kn_format_number(text, value)) : cJSON_CreateNull();
}

static cJSON *value_of(const kn_optim_hyper *row, double value)
{
    if (row->kind == KN_HYPER_FLAG)
        return cJSON_CreateBool(value != 0);
    if (row->kind == KN_HYPER_CHOICE && row->choices[(int)value] != NULL)
        return cJSON_CreateString(row->choices[(int)value]);
    return row->kind == KN_HYPER_CHOICE || (row->kind == KN_HYPER_OPTION && value < 0) ? cJSON_CreateNull()
                                                                                       : number(value);
}

/* Hyperparameters with the same list are one entry. */
static bool add_hyper(cJSON *into, const kn_optim_algorithm *algorithm, const double *hyper)
{
    bool good = true;
    for (int i = 0; good && algorithm->hyper[i].name != NULL; i++) {
        const kn_optim_hyper *row = &algorithm->hyper[i];
        cJSON *value = value_of(row, hyper[i]);
        cJSON *list = row->list != NULL ? cJSON_GetObjectItemCaseSensitive(into, row->list) : NULL;
        if (row->list != NULL && list == NULL)
            list = cJSON_AddArrayToObject(into, row->list);
        good = value != NULL && (row->list != NULL ? list != NULL && cJSON_AddItemToArray(list, value) != 0
                                                   : cJSON_AddItemToObject(into, row->name, value) != 0);
        if (!good)
            cJSON_Delete(value);
    }
    return good;
}

static bool add_group(cJSON *groups, const kn_optim *optim, const kn_optim_group *group)
{
    cJSON *into = cJSON_CreateObject();
    if (into == NULL || !cJSON_AddItemToArray(groups, into)) {
        cJSON_Delete(into);
        return false;
    }
    bool good = add_hyper(into, optim->algorithm, group->hyper);
    if (good && group->initial_lr == group->initial_lr)
        good = cJSON_AddItemToObject(into, "initial_lr", number(group->initial_lr)) != 0;
    for (int i = 0; i < 2 && good; i++)
        good = cJSON_AddNullToObject(into, absent[i]) != NULL && cJSON_AddFalseToObject(into, refused[i]) != NULL;
    cJSON *numbers = good ? cJSON_AddArrayToObject(into, "params") : NULL;
    good = numbers != NULL;
    for (int i = group->first; good && i < group->first + group->count; i++) {
        cJSON *number = cJSON_CreateNumber(i);
        good = number != NULL && cJSON_AddItemToArray(numbers, number);
    }
    return good;
}

char *kn_optim_groups_to_json(const kn_optim *optim)
{
    cJSON *groups = cJSON_CreateArray();
    bool good = groups != NULL;
    for (int g = 0; good && g < optim->num_groups; g++)
        good = add_group(groups, optim, &optim->groups[g]);
    char *text = good ? cJSON_PrintUnformatted(groups) : NULL, *copy = text != NULL ? kn_strdup(text) : NULL;
    if (text == NULL)
        kn_fail_host_memory(0, "an optimizer's groups as JSON");
    cJSON_free(text);
    cJSON_Delete(groups);
    return copy;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The index of a choice's name or null; false if there is none. */
static bool choice_of(const kn_optim_hyper *row, const cJSON *item, double *value)
{
    for (int i = 0; row->choices[i] == NULL || row->choices[i][0] != '\0'; i++) {
        const bool same = row->choices[i] == NULL
                              ? cJSON_IsNull(item)
                              : cJSON_IsString(item) && strcmp(row->choices[i], item->valuestring) == 0;
        if (same) {
            *value = i;
            return true;
        }
    }
    return false;
}

/* A number or a flag; JSON has no infinity, which is written as null. False for anything else. */
static bool number_of(const kn_optim_hyper *row, const cJSON *item, double *value)
{
    if (row->kind == KN_HYPER_CHOICE)
        return choice_of(row, item, value);
    if (cJSON_IsNumber(item))
        *value = item->valuedouble;
    else if (cJSON_IsBool(item))
        *value = cJSON_IsTrue(item);
    else if (cJSON_IsNull(item))
        *value = row->kind == KN_HYPER_OPTION ? -1 : (double)INFINITY;
    else
        return false;
    return true;
}

static kn_status read_hyper(const kn_optim *optim, const cJSON *group, const char *origin, double *hyper)
{
    const kn_optim_hyper *rows = optim->algorithm->hyper;
    for (int i = 0, in_list = 0; rows[i].name != NULL; i++) {
        in_list = i > 0 && rows[i].list != NULL && rows[i].list == rows[i - 1].list ? in_list + 1 : 0;
        const char *key = rows[i].list != NULL ? rows[i].list : rows[i].name;
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(group, key);
        if (item == NULL)
            continue;
        if (rows[i].list != NULL)
            item = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, in_list) : NULL;
        if (item == NULL || !number_of(&rows[i], item, &hyper[i]))
            return kn_fail(KN_ERR_FORMAT, "%s: \"%s\" of a group of parameters is not %s", origin, key,
                           rows[i].list != NULL              ? "a list of numbers"
                           : rows[i].kind == KN_HYPER_CHOICE ? "one of the names that it may be"
                                                             : "a number");
    }
    return KN_OK;
}

static kn_status read_groups(const kn_optim *optim, const cJSON *groups, const char *origin,
                             double (*hyper)[KN_OPTIM_MAX_HYPER], double *initial_lr)
{
    if (!cJSON_IsArray(groups) || cJSON_GetArraySize(groups) != optim->num_groups)
        return kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: it has %d groups of parameters, not %d", origin,
                       cJSON_IsArray(groups) ? cJSON_GetArraySize(groups) : 0, optim->num_groups);
    int g = 0;
    for (const cJSON *group = groups->child; group != NULL; group = group->next, g++) {
        const cJSON *params = cJSON_GetObjectItemCaseSensitive(group, "params");
        if (!cJSON_IsArray(params) || cJSON_GetArraySize(params) != optim->groups[g].count)
            return kn_fail(KN_ERR_FORMAT,
                           "%s does not fit this optimizer: its group %d has %d parameters there and %d here", origin,
                           g, cJSON_IsArray(params) ? cJSON_GetArraySize(params) : 0, optim->groups[g].count);
        KN_TRY(read_hyper(optim, group, origin, hyper[g]));
        const cJSON *initial = cJSON_GetObjectItemCaseSensitive(group, "initial_lr");
        initial_lr[g] = cJSON_IsNumber(initial) ? initial->valuedouble : (double)NAN;
    }
    return KN_OK;
}

kn_status kn_optim_groups_from_json(const kn_optim *optim, const char *json, const char *origin,
                                    double (*hyper)[KN_OPTIM_MAX_HYPER], double *initial_lr)
{
    cJSON *groups = cJSON_Parse(json);
    if (groups == NULL)
        return kn_fail(KN_ERR_FORMAT, "%s: \"param_groups\" is not JSON", origin);
    const kn_status status = read_groups(optim, groups, origin, hyper, initial_lr);
    cJSON_Delete(groups);
    return status;
}
