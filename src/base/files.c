/* base/files.c - whole reads, atomic writes, directories. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define READ_STEP ((size_t)64 << 10) /* bytes first asked for when a file does not tell its size */

static kn_status fail_errno(const char *verb, const char *path, int error)
{
    return kn_fail(KN_ERR_IO, "cannot %s '%s': %s", verb, path, strerror(error));
}

/* --- atomic writes ---------------------------------------------------------------------------- */

/* Where the file itself lies: a link is followed, so that writing through it replaces its target and not the link. */
static char *resolve_link(const char *path)
{
    char *resolved = realpath(path, NULL);
    if (!resolved)
        return kn_strdup(path); /* does not exist yet: a plain new file */
    char *copy = kn_strdup(resolved);
    free(resolved); /* realpath's own allocation */
    return copy;
}

/* Opens a file of a name that nobody else uses, next to `path`, since rename only works within one file system. */
static int open_temporary(const char *path, char **temporary)
{
    static atomic_uint counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        kn_text name = {0};
        kn_text_format(&name, "%s.tmp-%ld-%u", path, (long)getpid(), atomic_fetch_add(&counter, 1u));
        *temporary = kn_text_finish(&name);
        if (!*temporary)
            return -1;
        int descriptor = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0)
            return descriptor;
        int error = errno;
        kn_free(*temporary);
        *temporary = NULL;
        if (error != EEXIST) { /* EEXIST: left over from a crash of a process of the same number */
            fail_errno("write next to", path, error);
            return -1;
        }
    }
    fail_errno("write next to", path, EEXIST);
    return -1;
}

kn_status kn_file_begin(kn_atomic_file *file, const char *path)
{
    if (!path || !*path)
        return kn_fail(KN_ERR_ARGUMENT, "cannot write a file: its path is empty");
    *file = (kn_atomic_file){0};
    file->path = resolve_link(path);
    if (!file->path)
        return KN_ERR_MEMORY;
    struct stat old;
    bool exists = stat(file->path, &old) == 0;
    /* Renaming over a device or a pipe would destroy it. */
    if (exists && !S_ISREG(old.st_mode)) {
        kn_status status = kn_fail(KN_ERR_IO, "cannot write '%s': it is %s, not a regular file", path,
                                   S_ISDIR(old.st_mode) ? "a directory" : "a device or a pipe");
        kn_file_abandon(file);
        return status;
    }
    int descriptor = open_temporary(file->path, &file->temporary);
    if (descriptor < 0) {
        kn_file_abandon(file);
        return kn_error_status();
    }
    if (exists && fchmod(descriptor, old.st_mode & 07777) != 0)
        kn_log_message(KN_LOG_DEBUG, "cannot give '%s' the old file's permissions: %s", file->temporary,
                       strerror(errno));
    file->stream = fdopen(descriptor, "wb");
    if (!file->stream) {
        kn_status status = fail_errno("write", path, errno);
        close(descriptor);
        kn_file_abandon(file);
        return status;
    }
    return KN_OK;
}

kn_status kn_file_write(kn_atomic_file *file, const void *data, size_t bytes)
{
    errno = 0;
    if (bytes == 0 || fwrite(data, 1, bytes, file->stream) == bytes)
        return KN_OK;
    return fail_errno("write", file->path, errno ? errno : EIO);
}

/* Makes the rename itself survive a power failure. Not every file system can, and the file is in place already, so this
 * only warns. */
static void sync_directory_of(const char *path)
{
    KN_ATTEMPT;
    char *directory = kn_strdup(path);
    if (!directory)
        return;
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory ? 1 : 0] = '\0';
    int descriptor = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        if (fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
            kn_log_message(KN_LOG_WARNING, "'%s' is written, but its directory could not be flushed: %s", path,
                           strerror(errno));
        close(descriptor);
    }
    kn_free(directory);
}

kn_status kn_file_commit(kn_atomic_file *file)
{
    errno = 0;
    /* An earlier write through file->stream may have failed unseen: the stream remembers it, though not why. */
    bool earlier = ferror(file->stream) != 0;
    int error = 0;
    if (fflush(file->stream) != 0 || fsync(fileno(file->stream)) != 0)
        error = errno ? errno : EIO;
    else if (earlier)
        error = EIO;
    if (fclose(file->stream) != 0 && !error)
        error = errno;
    file->stream = NULL;
    if (!error && rename(file->temporary, file->path) != 0)
        error = errno;
    kn_status status = KN_OK;
    if (error) {
        status = fail_errno("write", file->path, error);
    } else {
        kn_free(file->temporary); /* it bears the final name now: nothing to remove */
        file->temporary = NULL;
        sync_directory_of(file->path);
    }
    kn_file_abandon(file);
    return status;
}

void kn_file_abandon(kn_atomic_file *file)
{
    if (file->stream)
        fclose(file->stream);
    if (file->temporary)
        unlink(file->temporary);
    kn_free(file->temporary);
    kn_free(file->path);
    *file = (kn_atomic_file){0};
}

kn_status kn_file_save_text(const char *path, const char *text)
{
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    kn_status status = kn_file_write(&file, text, strlen(text));
    if (status == KN_OK)
        return kn_file_commit(&file);
    kn_file_abandon(&file);
    return status;
}

/* --- whole reads ------------------------------------------------------------------------------ */

/* Reads to the end or until more than `limit` bytes have come. The block grows as data arrives: a size that the file
 * system claims is only where it starts. */
static kn_status read_stream(FILE *stream, const char *path, size_t expected, size_t limit, char **data, size_t *size)
{
    size_t capacity = expected, length = 0;
    char *block = kn_malloc(capacity + 1);
    while (block) {
        length += fread(block + length, 1, capacity - length, stream);
        if (length < capacity || length > limit)
            break;
        capacity = capacity > SIZE_MAX / 4 ? SIZE_MAX - 1 : capacity * 2;
        capacity = limit < SIZE_MAX - 1 && capacity > limit + 1 ? limit + 1 : capacity;
        char *larger = kn_realloc(block, capacity + 1);
        if (!larger)
            kn_free(block);
        block = larger;
    }
    if (!block)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    if (ferror(stream))
        status = fail_errno("read", path, errno);
    else if (length > limit)
        status = kn_fail(KN_ERR_FORMAT, "'%s' is larger than the %zu bytes expected at most", path, limit);
    if (status != KN_OK) {
        kn_free(block);
        return status;
    }
    block[length] = '\0';
    *data = block;
    *size = length;
    return KN_OK;
}

kn_status kn_file_read_all(char **data, size_t *size, const char *path, size_t limit)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return fail_errno("open", path, errno);
    struct stat info;
    kn_status status = KN_OK;
    size_t expected = READ_STEP;
    if (fstat(fileno(stream), &info) != 0) {
        status = fail_errno("read", path, errno);
    } else if (S_ISDIR(info.st_mode)) {
        status = fail_errno("read", path, EISDIR);
    } else if (S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uint64_t)info.st_size > limit)
            status = kn_fail(KN_ERR_FORMAT, "'%s' is %lld bytes large, more than the %zu bytes expected at most", path,
                             (long long)info.st_size, limit);
        expected = (size_t)info.st_size + 1; /* one more, so that the end of the file shows in the first read */
    }
    if (status == KN_OK)
        status = read_stream(stream, path, expected, limit, data, size);
    fclose(stream);
    return status;
}

/* --- directories and paths -------------------------------------------------------------------- */

bool kn_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static kn_status make_directory(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0)
        return KN_OK;
    int error = errno;
    struct stat info;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return KN_OK;
        error = ENOTDIR;
    }
    return fail_errno("make the directory", path, error);
}

static kn_status make_directories(const char *path, mode_t mode)
{
    if (!path || !*path)
        return kn_fail(KN_ERR_ARGUMENT, "cannot make a directory: its path is empty");
    char *partial = kn_strdup(path);
    if (!partial)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    for (char *slash = strchr(partial + 1, '/'); slash && status == KN_OK; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_directory(partial, mode);
        *slash = '/';
    }
    if (status == KN_OK)
        status = make_directory(partial, mode);
    kn_free(partial);
    return status;
}

kn_status kn_make_directories(const char *path) { return make_directories(path, 0777); }
kn_status kn_make_private_directories(const char *path) { return make_directories(path, 0700); }

static const char *objection_to(const char *path, mode_t excused_by)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return NULL;
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) && !(info.st_mode & excused_by))
        return "others may write to it";
    return info.st_uid == geteuid() || info.st_uid == 0 ? NULL : "it belongs to another user";
}

const char *kn_folder_objection(const char *path)
{
    char *parent = kn_path_join(path, "..");
    const char *objection = objection_to(path, 0);
    if (!objection && parent && objection_to(parent, S_ISVTX))
        objection = "the folder above it is another user's to change";
    kn_free(parent);
    return objection;
}

char *kn_path_join(const char *directory, const char *name)
{
    size_t length = strlen(directory);
    kn_text path = {0};
    kn_text_append(&path, directory);
    if (length > 0 && directory[length - 1] != '/')
        kn_text_append(&path, "/");
    kn_text_append(&path, name);
    return kn_text_finish(&path);
}

/* $HOME, else what the password database says; NULL where neither is known. The caller frees it. */
static char *home_directory(void)
{
    const char *home = getenv("HOME");
    if (home && *home)
        return kn_strdup(home);
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found && found->pw_dir && *found->pw_dir)
        return kn_strdup(found->pw_dir);
    kn_fail(KN_ERR_IO, "there is no place for the cache: set KOINE_CACHE_DIR or HOME");
    return NULL;
}

char *kn_cache_directory(void)
{
    const char *own = getenv("KOINE_CACHE_DIR");
    if (own && *own)
        return kn_strdup(own);
    const char *xdg = getenv("XDG_CACHE_HOME");
    if (xdg && xdg[0] == '/') /* the XDG specification: a relative path is to be ignored */
        return kn_path_join(xdg, "koine");
    char *home = home_directory();
    char *cache = home ? kn_path_join(home, ".cache/koine") : NULL;
    kn_free(home);
    return cache;
}
