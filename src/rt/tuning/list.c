/* rt/tuning/list.c - results of measurements, and lists of them. */
#include "rt/tuning/list.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* --- one result --------------------------------------------------------------------------------------------------- */

void kn_tuning_free(kn_tuning_result *result)
{
    for (int i = 0; i < result->num_figures; i++)
        kn_free(result->figures[i].name);
    kn_free(result->figures);
    kn_free(result->question);
    kn_free(result->choice);
    *result = (kn_tuning_result){0};
}

double kn_tuning_seconds(const kn_tuning_result *result, const char *name)
{
    for (int i = 0; i < result->num_figures; i++)
        if (strcmp(result->figures[i].name, name) == 0)
            return result->figures[i].seconds;
    return -1;
}

kn_status kn_tuning_append(kn_tuning_result *result, const char *name, double seconds)
{
    char *copy = kn_strdup(name);
    kn_tuning_figure *figures =
        copy ? kn_realloc(result->figures, (size_t)(result->num_figures + 1) * sizeof *figures) : NULL;
    if (!figures) {
        kn_free(copy);
        return KN_ERR_MEMORY;
    }
    result->figures = figures;
    figures[result->num_figures++] = (kn_tuning_figure){copy, seconds};
    return KN_OK;
}

static kn_status choose(kn_tuning_result *result, const char *name)
{
    char *copy = kn_strdup(name);
    if (!copy)
        return KN_ERR_MEMORY;
    kn_free(result->choice);
    result->choice = copy;
    return KN_OK;
}

kn_status kn_tuning_add(kn_tuning_result *result, const char *name, double seconds, double margin)
{
    KN_TRY(kn_tuning_append(result, name, seconds));
    const double first = result->figures[0].seconds,
                 best = result->choice ? kn_tuning_seconds(result, result->choice) : HUGE_VAL;
    if (seconds < HUGE_VAL && (result->num_figures == 1 || (seconds < best && seconds < margin * first)))
        return choose(result, name);
    return KN_OK;
}

kn_status kn_tuning_copy(kn_tuning_result *copy, const kn_tuning_result *result)
{
    kn_status status = KN_OK;
    *copy = (kn_tuning_result){
        .question = kn_strdup(result->question), .choice = kn_strdup(result->choice), .complete = result->complete};
    if (!copy->question || !copy->choice)
        status = KN_ERR_MEMORY;
    for (int i = 0; i < result->num_figures && status == KN_OK; i++)
        status = kn_tuning_append(copy, result->figures[i].name, result->figures[i].seconds);
    if (status != KN_OK)
        kn_tuning_free(copy);
    return status;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static const char *question_at(const void *list, int position)
{
    return ((const kn_tuning_list *)list)->results[position].question;
}

kn_tuning_result *kn_tuning_in_list(const kn_tuning_list *list, const char *question)
{
    const int position = kn_name_index_find(&list->index, question, question_at, list);
    return position >= 0 ? &list->results[position] : NULL;
}

/* Room for one more. */
static kn_status grow(kn_tuning_list *list)
{
    if (list->count == KN_TUNING_MAX_RESULTS)
        return kn_fail(KN_ERR_STATE,
                       "there are %d tuning results of the device, more than which are not kept: delete them (the "
                       "folder `tuning` in the cache) and tune again what is needed",
                       list->count);
    return KN_GROW(list->results, list->count, list->capacity);
}

kn_status kn_tuning_put(kn_tuning_list *list, const kn_tuning_result *result)
{
    kn_tuning_result copy, *present = kn_tuning_in_list(list, result->question);
    KN_TRY(kn_tuning_copy(&copy, result));
    if (present) {
        kn_tuning_free(present);
        *present = copy;
        return KN_OK;
    }
    kn_status status = grow(list);
    if (status == KN_OK)
        status = kn_name_index_add(&list->index, copy.question, list->count);
    if (status != KN_OK) {
        kn_tuning_free(&copy);
        return status;
    }
    list->results[list->count++] = copy;
    return KN_OK;
}

kn_status kn_tuning_merge(kn_tuning_list *list, const kn_tuning_list *more)
{
    for (int i = 0; i < more->count; i++)
        KN_TRY(kn_tuning_put(list, &more->results[i]));
    return KN_OK;
}

void kn_tuning_list_free(kn_tuning_list *list)
{
    for (int i = 0; i < list->count; i++)
        kn_tuning_free(&list->results[i]);
    kn_name_index_free(&list->index);
    kn_free(list->results);
    *list = (kn_tuning_list){0};
}
