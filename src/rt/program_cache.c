/* rt/program_cache.c - program binaries on disk: CACHE/programs/KEY.bin, each a header, the hash of the binary, and the
 * binary.
 *
 * Written to a temporary name and renamed, so a reader sees a whole file or none; checked against its hash when read,
 * and removed when it does not match. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "rt/internal.h"

#define MAGIC "KNPROG1"
#define MAX_BINARY_BYTES ((size_t)256 << 20)

typedef struct header {
    char magic[8];
    kn_hash hash;
} header;

/* The file of `key`; creates the folder if `create`. The caller frees it. */
static char *file_of(const char *key, bool create)
{
    char *root = kn_cache_directory();
    char *folder = root ? kn_path_join(root, "programs") : NULL;
    char *path = NULL;
    if (folder && (!create || kn_make_directories(folder) == KN_OK)) {
        char name[KN_HASH_TEXT + 8];
        snprintf(name, sizeof name, "%s.bin", key);
        path = kn_path_join(folder, name);
    }
    kn_free(root);
    kn_free(folder);
    return path;
}

unsigned char *kn_program_cache_load(const char *key, size_t *size)
{
    char *path = file_of(key, false);
    if (!path || !kn_file_exists(path)) {
        kn_free(path);
        return NULL;
    }
    char *data = NULL;
    size_t bytes = 0;
    header head;
    bool whole = kn_file_read_all(&data, &bytes, path, MAX_BINARY_BYTES) == KN_OK && bytes > sizeof head;
    if (whole) {
        memcpy(&head, data, sizeof head);
        kn_hash hash = kn_hash_bytes(data + sizeof head, bytes - sizeof head);
        whole = memcmp(head.magic, MAGIC, sizeof head.magic) == 0 && memcmp(&head.hash, &hash, sizeof hash) == 0;
    }
    if (whole) {
        *size = bytes - sizeof head;
        memmove(data, data + sizeof head, *size);
    } else {
        kn_log_message(KN_LOG_WARNING, "the cached program %s is damaged: building it again", path);
        unlink(path);
        kn_free(data);
        data = NULL;
    }
    kn_free(path);
    return (unsigned char *)data;
}

static kn_status store(const char *path, const unsigned char *binary, size_t size)
{
    header head = {.magic = MAGIC, .hash = kn_hash_bytes(binary, size)};
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    kn_status status = kn_file_write(&file, &head, sizeof head);
    if (status == KN_OK)
        status = kn_file_write(&file, binary, size);
    if (status == KN_OK)
        return kn_file_commit(&file);
    kn_file_abandon(&file);
    return status;
}

void kn_program_cache_store(const char *key, const unsigned char *binary, size_t size)
{
    char *path = file_of(key, true);
    if (!path || store(path, binary, size) != KN_OK) {
        kn_log_message(KN_LOG_INFO, "a compiled program could not be cached: %s", kn_error_message());
        kn_error_clear();
    }
    kn_free(path);
}
