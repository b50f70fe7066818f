/* rt/tuning/tuning.c - results of measurements in memory: a list per device, filled from the files on first use. */
#include "rt/tuning/tuning.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/system.h"
#include "rt/device/device_struct.h"
#include "rt/tuning/list.h"

static kn_mutex lock = KN_MUTEX_INIT;
static struct known {
    bool loaded;
    kn_tuning_list list;
} devices[KN_MAX_DEVICES];
static atomic_uint generation = 1;

unsigned kn_tuning_generation(void) { return atomic_load_explicit(&generation, memory_order_relaxed); }

/* A file that cannot be used is ignored, with a message in the log: only speed depends on it. */
static void load_file(kn_tuning_list *list, kn_device *device, const char *path, bool own)
{
    kn_tuning_list read = {0};
    if (kn_tuning_read(&read, device, path, own) != KN_OK || kn_tuning_merge(list, &read) != KN_OK)
        kn_log_message(KN_LOG_WARNING, "tuning results are ignored: %s", kn_error_message());
    kn_tuning_list_free(&read);
}

static void load(struct known *known, kn_device *device)
{
    KN_PRESERVE_ERROR;
    const char *shared = kn_trusted_environment("KOINE_TUNE_FILE");
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
    KN_PRESERVE_ERROR;
    *result = (kn_tuning_result){0};
    kn_lock(&lock);
    const kn_tuning_result *found = kn_tuning_in_list(list_of(device), question);
    const bool copied = found && kn_tuning_copy(result, found) == KN_OK;
    kn_unlock(&lock);
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
