/* rt/tuning/tuning.c - results of measurements in memory: per device a list, filled from the files at the first
 * question. */
#include "rt/tuning/tuning.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "rt/internal.h"
#include "rt/tuning/file.h"

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

static kn_status copy_result(kn_tuning_result *copy, const kn_tuning_result *result)
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
    if (list->count < list->capacity)
        return KN_OK;
    const int capacity = list->capacity ? 2 * list->capacity : 16;
    kn_tuning_result *results = kn_realloc(list->results, (size_t)capacity * sizeof *results);
    if (!results)
        return KN_ERR_MEMORY;
    list->results = results;
    list->capacity = capacity;
    return KN_OK;
}

kn_status kn_tuning_put(kn_tuning_list *list, const kn_tuning_result *result)
{
    kn_tuning_result copy, *present = kn_tuning_in_list(list, result->question);
    KN_TRY(copy_result(&copy, result));
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

/* --- what is known of each device --------------------------------------------------------------------------------- */

static kn_mutex lock = KN_MUTEX_INIT;
static struct known {
    bool loaded;
    kn_tuning_list list;
} devices[KN_MAX_DEVICES];
static atomic_uint generation = 1;

unsigned kn_tuning_generation(void) { return atomic_load_explicit(&generation, memory_order_relaxed); }

/* A file that cannot be used is left alone, and said so: nothing depends on it but speed. */
static void load_file(kn_tuning_list *list, kn_device *device, const char *path, bool own)
{
    kn_tuning_list read = {0};
    if (kn_tuning_read(&read, device, path, own) != KN_OK || kn_tuning_merge(list, &read) != KN_OK)
        kn_log_message(KN_LOG_WARNING, "tuning results are ignored: %s", kn_error_message());
    kn_tuning_list_free(&read);
}

static void load(struct known *known, kn_device *device)
{
    const char *shared = kn_trusted_environment("KOINE_TUNE_FILE");
    kn_error_state before;
    kn_error_take(&before);
    known->loaded = true;
    char *path = kn_tuning_path(device);
    bool exists;
    if (path && kn_file_look_up(path, &exists) != KN_OK)
        kn_log_message(KN_LOG_WARNING, "tuning results are ignored: %s", kn_error_message());
    else if (path && exists)
        load_file(&known->list, device, path, true);
    if (shared && *shared)
        load_file(&known->list, device, shared, false);
    kn_free(path);
    kn_error_put_back(&before);
}

/* Called with the lock held. */
static kn_tuning_list *list_of(kn_device *device)
{
    struct known *known = &devices[kn_device_slot(device)];
    if (!known->loaded)
        load(known, device);
    return &known->list;
}

bool kn_tuning_find(kn_tuning_result *result, kn_device *device, const char *question)
{
    kn_error_state before;
    *result = (kn_tuning_result){0};
    kn_error_take(&before);
    kn_lock(&lock);
    const kn_tuning_result *found = kn_tuning_in_list(list_of(device), question);
    const bool copied = found && copy_result(result, found) == KN_OK;
    kn_unlock(&lock);
    kn_error_put_back(&before);
    return copied;
}

kn_status kn_tuning_store(kn_device *device, const kn_tuning_result *result)
{
    kn_tuning_list one = {.results = (kn_tuning_result *)(uintptr_t)result, .count = 1};
    kn_lock(&lock);
    kn_status status = kn_tuning_put(list_of(device), result);
    kn_unlock(&lock);
    atomic_fetch_add(&generation, 1);
    char *path = status == KN_OK ? kn_tuning_path(device) : NULL;
    if (!path)
        return status == KN_OK ? kn_error_status() : status;
    status = kn_tuning_write(&one, device, path, true);
    kn_free(path);
    return status;
}

kn_status kn_tuning_export(kn_device *device, const char *path)
{
    kn_tuning_list all = {0};
    kn_lock(&lock);
    kn_status status = kn_tuning_merge(&all, list_of(device));
    kn_unlock(&lock);
    if (status == KN_OK)
        status = kn_tuning_write(&all, device, path, false);
    kn_tuning_list_free(&all);
    return status;
}

kn_status kn_tuning_import(kn_device *device, const char *path)
{
    kn_tuning_list read = {0};
    char *own = kn_tuning_path(device);
    kn_status status = own ? kn_tuning_read(&read, device, path, false) : KN_ERR_IO;
    if (status == KN_OK)
        status = kn_tuning_write(&read, device, own, true);
    if (status == KN_OK) {
        kn_lock(&lock);
        status = kn_tuning_merge(list_of(device), &read);
        kn_unlock(&lock);
        atomic_fetch_add(&generation, 1);
    }
    kn_tuning_list_free(&read);
    kn_free(own);
    return status;
}

void kn_tuning_forget(void)
{
    kn_lock(&lock);
    for (int i = 0; i < KN_MAX_DEVICES; i++) {
        kn_tuning_list_free(&devices[i].list);
        devices[i].loaded = false;
    }
    kn_unlock(&lock);
    atomic_fetch_add(&generation, 1);
}
