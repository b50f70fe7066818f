/* ops/benchmark_disk.c - winners on disk: CACHE/benchmark/HASH.txt, each the identity of a problem, the winner's name,
 * and what was measured.
 *
 * One file per problem, written to a temporary name and renamed: processes that time at once do not disturb one
 * another. The hash names the file, the whole identity inside decides. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "ops/benchmark.h"

#define MAX_FILE_BYTES ((size_t)64 << 10)
#define WINNER "fastest: "

/* The folder; created if `create`. The caller frees it. */
static char *folder(bool create)
{
    char *root = kn_cache_directory();
    char *path = root ? kn_path_join(root, "benchmark") : NULL;
    kn_free(root);
    if (path && create && kn_make_directories(path) != KN_OK) {
        kn_free(path);
        path = NULL;
    }
    return path;
}

static char *file_of(const char *identity, bool create)
{
    char name[KN_HASH_TEXT + 4], hash[KN_HASH_TEXT];
    char *where = folder(create);
    snprintf(name, sizeof name, "%s.txt", kn_hash_format(hash, kn_hash_text(identity)));
    char *path = where ? kn_path_join(where, name) : NULL;
    kn_free(where);
    return path;
}

/* The word after WINNER, which follows the identity; NULL for a file that is none of ours. */
static char *read_winner(char *text, const char *identity)
{
    const size_t length = strlen(identity);
    if (strncmp(text, identity, length) != 0 || strncmp(text + length, WINNER, strlen(WINNER)) != 0)
        return NULL;
    char *name = text + length + strlen(WINNER), *end = strchr(name, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    return kn_strdup(name);
}

char *kn_benchmark_load(const char *identity)
{
    char *text = NULL, *winner = NULL;
    size_t size = 0;
    kn_error_state before;
    kn_error_take(&before);
    char *path = file_of(identity, false);
    if (path && kn_file_exists(path)) {
        if (kn_file_read_all(&text, &size, path, MAX_FILE_BYTES) == KN_OK)
            winner = read_winner(text, identity);
        if (!winner)
            kn_log_message(KN_LOG_INFO, "the benchmark result %s is damaged: timing again", path);
    }
    kn_error_put_back(&before);
    kn_free(text);
    kn_free(path);
    return winner;
}

static kn_status store(const char *path, const char *const pieces[4])
{
    kn_atomic_file file;
    kn_status status = KN_OK;
    KN_TRY(kn_file_begin(&file, path));
    for (int i = 0; i < 4 && status == KN_OK; i++)
        status = kn_file_write(&file, pieces[i], strlen(pieces[i]));
    if (status == KN_OK)
        return kn_file_commit(&file);
    kn_file_abandon(&file);
    return status;
}

void kn_benchmark_store(const char *identity, const char *winner, const char *report)
{
    kn_error_state before;
    kn_error_take(&before);
    char *path = file_of(identity, true), line[128];
    snprintf(line, sizeof line, WINNER "%s\n", winner);
    if (!path || store(path, (const char *const[]){identity, line, report, ""}) != KN_OK)
        kn_log_message(KN_LOG_INFO, "a benchmark result could not be kept: %s", kn_error_message());
    kn_free(path);
    kn_error_put_back(&before);
}

static bool is_result(const char *name)
{
    return strlen(name) == KN_HASH_TEXT + 3 && strcmp(name + KN_HASH_TEXT - 1, ".txt") == 0;
}

kn_status kn_benchmark_clear_disk(void)
{
    kn_status status = KN_OK;
    char *where = folder(false);
    if (!where)
        return KN_ERR_MEMORY;
    DIR *list = opendir(where);
    for (struct dirent *entry; list && status == KN_OK && (entry = readdir(list));) {
        if (!is_result(entry->d_name))
            continue;
        char *path = kn_path_join(where, entry->d_name);
        if (!path)
            status = KN_ERR_MEMORY;
        else if (unlink(path) != 0 && errno != ENOENT)
            status = kn_fail(KN_ERR_IO, "kn_benchmark_clear: %s cannot be removed: %s", path, strerror(errno));
        kn_free(path);
    }
    if (list)
        closedir(list);
    kn_free(where);
    return status;
}
