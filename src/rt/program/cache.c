/* rt/program/cache.c - program binaries on disk: CACHE/programs/KEY.bin, a header with the key and the hash of the
 * binary, then the binary.
 *
 * A binary is code that this process runs, so it is only read from folders that nobody else can write to. Files are
 * written under a temporary name and renamed, so that a reader sees a whole file or none; they are checked against key
 * and hash when read, and removed when these do not match. A failure here costs a compilation and is not an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "rt/program/program.h"

#define MAGIC "KNPROG2"
#define MAX_BINARY_BYTES ((size_t)256 << 20)

typedef struct header {
    char magic[8];
    char key[40]; /* ended by zeros */
    kn_hash hash; /* of the binary */
} header;

/* May the folder be trusted? If not, that is logged once. */
static bool is_trusted(const char *folder)
{
    static atomic_bool warned;
    const char *objection = kn_folder_objection(folder);
    if (objection && !atomic_exchange(&warned, true))
        kn_log_message(KN_LOG_WARNING,
                       "compiled kernels are not cached in '%s', because %s: set KOINE_CACHE_DIR to a private folder",
                       folder, objection);
    return !objection;
}

/* The path of `key`'s file; creates the folder if `create`. The caller frees it. NULL if there is none. */
static char *file_of(const char *key, bool create)
{
    char *root = kn_cache_directory();
    char *folder = root ? kn_path_join(root, "programs") : NULL;
    char *path = NULL;
    if (folder && (!create || kn_make_private_directories(folder) == KN_OK) && is_trusted(folder)) {
        char name[KN_HASH_TEXT + 8];
        snprintf(name, sizeof name, "%s.bin", key);
        path = kn_path_join(folder, name);
    }
    kn_free(root);
    kn_free(folder);
    return path;
}

static header header_of(const char *key, const void *binary, size_t size)
{
    header head = {.magic = MAGIC, .hash = kn_hash_bytes(binary, size)};
    snprintf(head.key, sizeof head.key, "%s", key);
    return head;
}

static bool is_whole(const char *data, size_t bytes, const char *key)
{
    if (bytes <= sizeof(header))
        return false;
    const header wanted = header_of(key, data + sizeof(header), bytes - sizeof(header));
    return memcmp(data, &wanted, sizeof wanted) == 0;
}

/* Only damaged files are removed. One that cannot be opened or read now (no descriptors, permission or memory) may be
 * valid. */
static char *read_entry(const char *path, const char *key, size_t *bytes)
{
    char *data = NULL;
    kn_status status = kn_file_read_all(&data, bytes, path, MAX_BINARY_BYTES);
    if (status == KN_OK && is_whole(data, *bytes, key))
        return data;
    kn_free(data);
    if (status == KN_OK || status == KN_ERR_FORMAT) {
        kn_log_message(KN_LOG_WARNING, "the cached program %s is damaged: rebuilding it", path);
        unlink(path);
    } else {
        kn_log_message(KN_LOG_INFO, "rebuilding a cached program: %s", kn_error_message());
    }
    return NULL;
}

unsigned char *kn_program_cache_load(const char *key, size_t *size)
{
    KN_PRESERVE_ERROR;
    char *path = file_of(key, false);
    size_t bytes = 0;
    char *data = path && kn_file_exists(path) ? read_entry(path, key, &bytes) : NULL;
    if (data) {
        *size = bytes - sizeof(header);
        memmove(data, data + sizeof(header), *size);
    }
    kn_free(path);
    return (unsigned char *)data;
}

static kn_status store(const char *path, const char *key, const unsigned char *binary, size_t size)
{
    const header head = header_of(key, binary, size);
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    kn_status status = kn_file_write(&file, &head, sizeof head);
    if (status == KN_OK)
        status = kn_file_write(&file, binary, size);
    return kn_file_end(&file, status);
}

void kn_program_cache_store(const char *key, const unsigned char *binary, size_t size)
{
    KN_PRESERVE_ERROR;
    char *path = file_of(key, true);
    if (path ? store(path, key, binary, size) != KN_OK : kn_error_status() != KN_OK)
        kn_log_message(KN_LOG_INFO, "a compiled program could not be cached: %s", kn_error_message());
    kn_free(path);
}

kn_status kn_program_cache_check(void)
{
    const char *wanted = getenv("KOINE_PROGRAM_CACHE");
    if (wanted && strcmp(wanted, "0") == 0)
        return kn_fail(KN_ERR_STATE, "compiled kernels are not kept, because KOINE_PROGRAM_CACHE is 0");
    char *root = kn_cache_directory(), *folder = root ? kn_path_join(root, "programs") : NULL;
    kn_status status = folder ? kn_make_private_directories(folder)
                              : kn_fail(KN_ERR_IO, "there is no folder for compiled kernels: set KOINE_CACHE_DIR");
    if (folder && status != KN_OK)
        kn_error_prefix("compiled kernels cannot be written (set KOINE_CACHE_DIR to a writable folder)");
    const char *objection = folder && status == KN_OK ? kn_folder_objection(folder) : NULL;
    if (objection)
        status = kn_fail(KN_ERR_IO,
                         "compiled kernels are not kept in '%s', because %s: set KOINE_CACHE_DIR to a private folder",
                         folder, objection);
    else if (folder && status == KN_OK && access(folder, W_OK | X_OK) != 0)
        status = kn_fail(KN_ERR_IO,
                         "compiled kernels cannot be kept in '%s', because it is not writable: make it so, or set "
                         "KOINE_CACHE_DIR to a folder that is",
                         folder);
    kn_free(root);
    kn_free(folder);
    return status;
}
