/* base/atomic_file.c - atomic file writes: a file is replaced completely or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/temporaries.h"

#define BUFFER_BYTES ((size_t)64 << 10)

static kn_status fail_write(const char *path, int error)
{
    return kn_fail(KN_ERR_IO, "cannot write '%s': %s", path, strerror(error));
}

/* --- its path ----------------------------------------------------------------------------------------------------- */

/* The target of a symbolic link. In a world-writable folder a link may be a trap: writing through it would replace a
 * file that the link's creator could not. The kernel refuses to open such links (protected_symlinks), but here they are
 * resolved by name, so the check is ours. */
static kn_status follow_link(char **target, const char *path, const struct stat *link)
{
    if (link->st_uid != geteuid() && link->st_uid != 0)
        return kn_fail(KN_ERR_IO, "cannot write '%s': it is a symbolic link created by another user", path);
    char *resolved = realpath(path, NULL);
    if (!resolved)
        return kn_fail(KN_ERR_IO, "cannot write '%s': it is a broken symbolic link (%s)", path, strerror(errno));
    *target = kn_strdup(resolved);
    free(resolved); /* realpath's own allocation */
    return *target ? KN_OK : KN_ERR_MEMORY;
}

/* Renaming over a device or a pipe would destroy it. */
static kn_status check_kind(const char *path, mode_t mode)
{
    if (S_ISREG(mode))
        return KN_OK;
    return kn_fail(KN_ERR_IO, "cannot write '%s': it is %s, not a regular file", path,
                   S_ISDIR(mode) ? "a directory" : "a device or a pipe");
}

/* Sets file->path; *mode becomes the permissions of the existing file, or those of a new one. */
static kn_status find_place(kn_atomic_file *file, const char *path, bool *exists, mode_t *mode)
{
    struct stat info;
    *mode = 0666;
    *exists = kn_sys_lstat(path, &info) == 0;
    if (!*exists && errno != ENOENT)
        return fail_write(path, errno);
    if (*exists && S_ISLNK(info.st_mode)) {
        KN_TRY(follow_link(&file->path, path, &info));
        if (kn_sys_stat(file->path, &info) != 0)
            return fail_write(path, errno);
    } else {
        file->path = kn_strdup(path);
    }
    if (!file->path)
        return KN_ERR_MEMORY;
    if (*exists) {
        KN_TRY(check_kind(path, info.st_mode));
        *mode = info.st_mode & 0777;
    }
    return KN_OK;
}

static kn_status begin(kn_atomic_file *file, const char *path)
{
    bool exists;
    mode_t mode;
    KN_TRY(find_place(file, path, &exists, &mode));
    file->buffer = kn_malloc(BUFFER_BYTES);
    if (!file->buffer)
        return KN_ERR_MEMORY;
    KN_TRY(kn_temporary_open(&file->descriptor, &file->temporary, file->path, mode));
    if (exists && fchmod(file->descriptor, mode) != 0) /* the umask may have removed some bits */
        kn_log_message(KN_LOG_DEBUG, "cannot give '%s' the old file's permissions: %s", file->temporary,
                       strerror(errno));
    return KN_OK;
}

static void clear(kn_atomic_file *file)
{
    if (file->temporary)
        kn_sys_unlink(file->temporary);
    if (file->descriptor > 0)
        kn_sys_close(file->descriptor);
    kn_free(file->temporary);
    kn_free(file->path);
    kn_free(file->buffer);
    *file = (kn_atomic_file){0};
}

kn_status kn_file_begin(kn_atomic_file *file, const char *path)
{
    *file = (kn_atomic_file){0};
    if (!path || !*path)
        return kn_fail(KN_ERR_ARGUMENT, "cannot write a file: its path is empty");
    kn_status status = begin(file, path);
    if (status != KN_OK)
        clear(file);
    return status;
}

/* --- its content -------------------------------------------------------------------------------------------------- */

static kn_status write_out(kn_atomic_file *file, const void *data, size_t bytes)
{
    if (!file->error && bytes > 0 && kn_sys_write(file->descriptor, data, bytes) != 0)
        file->error = errno;
    return file->error ? fail_write(file->path, file->error) : KN_OK;
}

static kn_status flush(kn_atomic_file *file)
{
    const size_t bytes = file->buffered;
    file->buffered = 0;
    return write_out(file, file->buffer, bytes);
}

kn_status kn_file_write(kn_atomic_file *file, const void *data, size_t bytes)
{
    if (file->buffered + bytes > BUFFER_BYTES || file->error)
        KN_TRY(flush(file));
    if (bytes >= BUFFER_BYTES)
        return write_out(file, data, bytes);
    if (bytes > 0)
        memcpy(file->buffer + file->buffered, data, bytes);
    file->buffered += bytes;
    return KN_OK;
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

/* Makes the rename itself survive a power failure. Not every file system supports that, and the file is already in
 * place, so a failure is only a warning. */
static void sync_directory_of(const char *path)
{
    KN_PRESERVE_ERROR;
    char *directory = kn_folder_of(path);
    const int descriptor = directory ? kn_sys_open(directory, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (descriptor >= 0) {
        if (kn_sys_sync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
            kn_log_message(KN_LOG_WARNING, "'%s' is written, but its directory could not be flushed: %s", path,
                           strerror(errno));
        kn_sys_close(descriptor);
    }
    kn_free(directory);
}

/* The descriptor is closed after the rename: until then its lock says that the temporary is in use. close() can report
 * no write error that fsync has not. */
static kn_status put_in_place(kn_atomic_file *file)
{
    KN_TRY(flush(file));
    if (kn_sys_sync(file->descriptor) != 0 || kn_sys_rename(file->temporary, file->path) != 0)
        return fail_write(file->path, errno);
    kn_free(file->temporary); /* renamed: nothing to remove */
    file->temporary = NULL;
    return KN_OK;
}

kn_status kn_file_end(kn_atomic_file *file, kn_status status)
{
    if (status == KN_OK && (status = put_in_place(file)) == KN_OK)
        sync_directory_of(file->path);
    clear(file);
    return status;
}

kn_status kn_file_save_text(const char *path, const char *text)
{
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    return kn_file_end(&file, kn_file_write(&file, text, strlen(text)));
}
