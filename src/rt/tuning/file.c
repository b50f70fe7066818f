/* rt/tuning/file.c - results of measurements on disk:
 *
 *     {"format": "koine tuning 1", "library": "0.1.0", "device": "...", "platform": "...", "driver": "...",
 *      "opencl": "...", "compute_units": 132,
 *      "results": [{"question": "...", "choice": "...", "complete": true, "seconds": {"...": 0.0012, "...": null}}]}
 *
 * null means a candidate that failed. Files may come from anywhere: an invalid one is rejected as a whole. */
#include "rt/tuning/list.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <koine/version.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"
#include "rt/device/device_struct.h"

#define FORMAT "koine tuning 1"
#define MAX_FILE_BYTES ((size_t)16 << 20)
enum { MAX_FIGURES = 256, MAX_TEXT = 1024 };

int kn_tuning_lock_seconds = 10;

/* --- whose results they are --------------------------------------------------------------------------------------- */

typedef struct field {
    const char *key, *value;
} field;

enum { FIELDS = 5 };
static void fields_of(field fields[FIELDS], const kn_device *device)
{
    const kn_device_properties *p = &device->properties;
    fields[0] = (field){"device", p->name};
    fields[1] = (field){"library", KN_VERSION};
    fields[2] = (field){"platform", p->platform};
    fields[3] = (field){"driver", p->driver_version};
    fields[4] = (field){"opencl", p->opencl_version};
}

/* The folder; created if `create`. The caller frees it. */
static char *folder(bool create)
{
    char *root = kn_cache_directory();
    char *path = root ? kn_path_join(root, "tuning") : NULL;
    kn_free(root);
    if (path && create && kn_make_private_directories(path) != KN_OK) {
        kn_free(path);
        path = NULL;
    }
    return path;
}

char *kn_tuning_path(kn_device *device)
{
    field fields[FIELDS];
    kn_text identity = {0};
    char name[KN_HASH_TEXT + 5], hash[KN_HASH_TEXT];
    fields_of(fields, device);
    for (int i = 0; i < FIELDS; i++)
        kn_text_format(&identity, "%s: %s\n", fields[i].key, fields[i].value);
    kn_text_format(&identity, "compute units: %d\n", device->properties.multi_processor_count);
    char *text = kn_text_finish(&identity), *where = text ? folder(false) : NULL;
    if (text)
        snprintf(name, sizeof name, "%s.json", kn_hash_format(hash, kn_hash_text(text)));
    char *path = where ? kn_path_join(where, name) : NULL;
    kn_free(text);
    kn_free(where);
    return path;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text && strlen(text) <= MAX_TEXT ? text : NULL;
}

/* Results of another driver, or of another version of the library, may be slower than necessary, but not wrong. */
static kn_status check_device(const cJSON *root, const kn_device *device, const char *path, bool own)
{
    field fields[FIELDS];
    fields_of(fields, device);
    const cJSON *units = cJSON_GetObjectItemCaseSensitive(root, "compute_units");
    for (int i = 0; i < FIELDS; i++) {
        const char *value = text_of(root, fields[i].key);
        if (!value)
            return kn_fail(KN_ERR_FORMAT, "%s is damaged: it does not tell its %s", path, fields[i].key);
        if (strcmp(value, fields[i].value) == 0)
            continue;
        if (own || i == 0)
            return kn_fail(KN_ERR_FORMAT, "%s was made for the %s `%s`, this is `%s`", path, fields[i].key, value,
                           fields[i].value);
        kn_log_message(KN_LOG_INFO, "%s was made with the %s `%s`, this is `%s`", path, fields[i].key, value,
                       fields[i].value);
    }
    if (!cJSON_IsNumber(units) || units->valuedouble != device->properties.multi_processor_count)
        return kn_fail(KN_ERR_FORMAT,
                       "%s was made for a device with another number of compute units than this one's %d", path,
                       device->properties.multi_processor_count);
    return KN_OK;
}

static kn_status fail_damaged(const char *path, int number)
{
    return kn_fail(KN_ERR_FORMAT, "%s is damaged: its result %d makes no sense", path, number);
}

static kn_status read_result(kn_tuning_list *list, const cJSON *item, int number, const char *path)
{
    const char *question = text_of(item, "question"), *choice = text_of(item, "choice");
    const cJSON *figure, *seconds = cJSON_GetObjectItemCaseSensitive(item, "seconds"),
                         *complete = cJSON_GetObjectItemCaseSensitive(item, "complete");
    kn_tuning_result result = {.complete = cJSON_IsTrue(complete)};
    if (!question || !choice || !cJSON_IsBool(complete) || !cJSON_IsObject(seconds) ||
        cJSON_GetArraySize(seconds) > MAX_FIGURES)
        return fail_damaged(path, number);
    kn_status status = KN_OK;
    cJSON_ArrayForEach(figure, seconds)
    {
        const bool failed = cJSON_IsNull(figure);
        if (!failed && !(cJSON_IsNumber(figure) && figure->valuedouble > 0 && figure->valuedouble < 1e9))
            status = fail_damaged(path, number);
        if (status == KN_OK)
            status = kn_tuning_append(&result, figure->string, failed ? HUGE_VAL : figure->valuedouble);
    }
    result.question = status == KN_OK ? kn_strdup(question) : NULL;
    result.choice = result.question ? kn_strdup(choice) : NULL;
    if (status == KN_OK)
        status = result.choice ? kn_tuning_put(list, &result) : KN_ERR_MEMORY;
    kn_tuning_free(&result);
    return status;
}

static kn_status read_root(kn_tuning_list *list, const cJSON *root, const char *path)
{
    const char *format = text_of(root, "format");
    const cJSON *item, *results = cJSON_GetObjectItemCaseSensitive(root, "results");
    if (!format || strcmp(format, FORMAT) != 0 || !cJSON_IsArray(results))
        return kn_fail(KN_ERR_FORMAT, "%s is no tuning file of this library (\"format\": \"" FORMAT "\")", path);
    int number = 0;
    cJSON_ArrayForEach(item, results)
    {
        if (++number > KN_TUNING_MAX_RESULTS)
            return kn_fail(KN_ERR_FORMAT,
                           "%s holds more than %d results, which is as many as are kept: take out those "
                           "that are not needed",
                           path, KN_TUNING_MAX_RESULTS);
        KN_TRY(read_result(list, item, number, path));
    }
    return KN_OK;
}

/* `device` NULL: of any. */
static kn_status read_file(kn_tuning_list *list, cJSON **root, const char *path)
{
    char *text;
    size_t size;
    KN_TRY(kn_file_read_all(&text, &size, path, MAX_FILE_BYTES));
    *root = cJSON_ParseWithLength(text, size);
    kn_free(text);
    kn_status status = *root ? read_root(list, *root, path)
                             : kn_fail(KN_ERR_FORMAT, "%s is no tuning file, or a damaged one: it is not JSON", path);
    if (status != KN_OK) {
        kn_tuning_list_free(list);
        cJSON_Delete(*root);
        *root = NULL;
    }
    return status;
}

kn_status kn_tuning_read(kn_tuning_list *list, const kn_device *device, const char *path, bool own)
{
    cJSON *root;
    KN_TRY(read_file(list, &root, path));
    kn_status status = check_device(root, device, path, own);
    if (status != KN_OK)
        kn_tuning_list_free(list);
    cJSON_Delete(root);
    return status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static bool add_result(cJSON *results, const kn_tuning_result *r)
{
    cJSON *item = cJSON_CreateObject();
    if (!item || !cJSON_AddItemToArray(results, item)) {
        cJSON_Delete(item);
        return false;
    }
    bool ok = cJSON_AddStringToObject(item, "question", r->question) &&
              cJSON_AddStringToObject(item, "choice", r->choice) &&
              cJSON_AddBoolToObject(item, "complete", r->complete);
    cJSON *seconds = cJSON_AddObjectToObject(item, "seconds");
    for (int i = 0; i < r->num_figures && ok && seconds; i++)
        ok = (r->figures[i].seconds < HUGE_VAL
                  ? cJSON_AddNumberToObject(seconds, r->figures[i].name, r->figures[i].seconds)
                  : cJSON_AddNullToObject(seconds, r->figures[i].name)) != NULL;
    return ok && seconds;
}

/* `root` as text, with its results replaced by these; NULL with an error. */
static char *print(cJSON *root, const kn_tuning_list *list)
{
    cJSON_DeleteItemFromObjectCaseSensitive(root, "results");
    cJSON *results = cJSON_AddArrayToObject(root, "results");
    bool ok = results != NULL;
    for (int i = 0; i < list->count && ok; i++)
        ok = add_result(results, &list->results[i]);
    char *text = ok ? cJSON_Print(root) : NULL;
    if (!text)
        kn_fail(KN_ERR_MEMORY, "out of host memory while writing tuning results");
    return text;
}

static kn_status save(cJSON *root, const kn_tuning_list *list, const char *path)
{
    char *text = print(root, list);
    kn_status status = KN_ERR_MEMORY;
    if (text && strlen(text) > MAX_FILE_BYTES) /* it could not be read again */
        status = kn_fail(KN_ERR_STATE,
                         "tuning results for %s take %zu bytes, more than the %zu that are kept: delete "
                         "the file and tune again what is needed",
                         path, strlen(text), MAX_FILE_BYTES);
    else if (text)
        status = kn_file_save_text(path, text);
    cJSON_free(text);
    return status;
}

static kn_status describe_device(cJSON **root, const kn_device *device)
{
    field fields[FIELDS];
    fields_of(fields, device);
    *root = cJSON_CreateObject();
    bool ok = *root && cJSON_AddStringToObject(*root, "format", FORMAT);
    for (int i = 0; i < FIELDS && ok; i++)
        ok = cJSON_AddStringToObject(*root, fields[i].key, fields[i].value);
    if (ok && cJSON_AddNumberToObject(*root, "compute_units", device->properties.multi_processor_count))
        return KN_OK;
    cJSON_Delete(*root);
    *root = NULL;
    return kn_fail(KN_ERR_MEMORY, "out of host memory while writing tuning results");
}

/* Serialises concurrent writers; -1 if locks are unavailable or another process holds this one too long: then the last
 * writer wins. */
static int lock_file(const char *path)
{
    const struct timespec pause = {0, 20000000};
    kn_text name = {0};
    kn_text_format(&name, "%s.lock", path);
    char *file = kn_text_finish(&name);
    int descriptor = file ? kn_sys_open(file, O_CREAT | O_RDWR | O_NOFOLLOW, 0666) : -1;
    bool busy = true;
    for (int i = 0; descriptor >= 0 && busy && i < kn_tuning_lock_seconds * 50; i++) {
        busy = kn_sys_lock(descriptor, false) != 0 && errno == EWOULDBLOCK;
        if (busy)
            nanosleep(&pause, NULL);
    }
    if (descriptor >= 0 && busy)
        kn_log_message(KN_LOG_WARNING, "%s is locked by another process for %d seconds now: not waiting for it", file,
                       kn_tuning_lock_seconds);
    kn_free(file);
    return descriptor;
}

/* Keeps the file on disk unless it is damaged: a temporarily unreadable file may be valid. */
static kn_status read_present(kn_tuning_list *list, const kn_device *device, const char *path)
{
    bool exists;
    kn_error_state before;
    KN_TRY(kn_file_look_up(path, &exists));
    if (!exists)
        return KN_OK;
    kn_error_save(&before);
    kn_status status = kn_tuning_read(list, device, path, true);
    if (status == KN_ERR_FORMAT) {
        kn_log_message(KN_LOG_WARNING, "tuning results are discarded: %s", kn_error_message());
        status = KN_OK;
    }
    if (status == KN_OK || (before.status != KN_OK && before.sticks))
        kn_error_restore(&before);
    return status;
}

static kn_status write_merged(const kn_tuning_list *list, const kn_device *device, const char *path)
{
    kn_tuning_list all = {0};
    cJSON *root = NULL;
    kn_status status = read_present(&all, device, path);
    if (status == KN_OK)
        status = kn_tuning_merge(&all, list);
    if (status == KN_OK)
        status = describe_device(&root, device);
    if (status == KN_OK)
        status = save(root, &all, path);
    kn_tuning_list_free(&all);
    cJSON_Delete(root);
    return status;
}

kn_status kn_tuning_write(const kn_tuning_list *list, const kn_device *device, const char *path, bool merge)
{
    cJSON *root;
    if (merge) {
        char *where = folder(true);
        if (!where)
            return kn_error_status();
        kn_free(where);
        const int locked = lock_file(path);
        kn_status status = write_merged(list, device, path);
        if (locked >= 0)
            kn_sys_close(locked);
        return status;
    }
    KN_TRY(describe_device(&root, device));
    kn_status status = save(root, list, path);
    cJSON_Delete(root);
    return status;
}

/* --- clearing ----------------------------------------------------------------------------------------------------- */

/* A damaged file counts as empty and is removed; an unreadable one is kept, with an error. */
static kn_status read_to_clear(kn_tuning_list *list, cJSON **root, const char *path)
{
    kn_error_state before;
    kn_error_save(&before);
    kn_status status = read_file(list, root, path);
    if (status == KN_ERR_FORMAT || (before.status != KN_OK && before.sticks))
        kn_error_restore(&before);
    return status == KN_ERR_FORMAT ? KN_OK : status;
}

static kn_status clear_file(const char *path, const char *prefix)
{
    kn_tuning_list all = {0}, kept = {0};
    cJSON *root = NULL;
    kn_status status = read_to_clear(&all, &root, path);
    for (int i = 0; i < all.count && status == KN_OK; i++)
        if (strncmp(all.results[i].question, prefix, strlen(prefix)) != 0)
            status = kn_tuning_put(&kept, &all.results[i]);
    if (status == KN_OK && kept.count > 0 && kept.count < all.count)
        status = save(root, &kept, path);
    else if (status == KN_OK && kept.count == 0 && kn_sys_unlink(path) != 0 && errno != ENOENT)
        status = kn_fail(KN_ERR_IO, "%s cannot be removed: %s", path, strerror(errno));
    kn_tuning_list_free(&all);
    kn_tuning_list_free(&kept);
    cJSON_Delete(root);
    return status;
}

static bool is_ours(const char *name)
{
    return strlen(name) == KN_HASH_TEXT + 4 && strcmp(name + KN_HASH_TEXT - 1, ".json") == 0;
}

kn_status kn_tuning_clear_disk(const char *prefix)
{
    kn_status status = KN_OK;
    char *where = folder(false);
    if (!where)
        return KN_ERR_MEMORY;
    DIR *list = kn_sys_opendir(where);
    if (!list && errno != ENOENT)
        status = kn_fail(KN_ERR_IO, "cannot look through '%s': %s", where, strerror(errno));
    for (struct dirent *entry; list && status == KN_OK && (entry = readdir(list));) {
        if (!is_ours(entry->d_name))
            continue;
        char *path = kn_path_join(where, entry->d_name);
        status = path ? clear_file(path, prefix) : KN_ERR_MEMORY;
        kn_free(path);
    }
    if (list)
        closedir(list);
    kn_free(where);
    return status;
}
