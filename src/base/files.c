/* base/files.c - reading whole files; directories. */
#include "base/files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"

#define READ_STEP ((size_t)64 << 10) /* first allocation when a file reports no size */

static kn_status fail_errno(const char *verb, const char *path, int error)
{
    return kn_fail(KN_ERR_IO, "cannot %s '%s': %s", verb, path, strerror(error));
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Reading a pipe without a writer, a terminal or a socket would block, and some devices never end. */
static kn_status check_kind(const char *path, mode_t mode)
{
    if (S_ISREG(mode))
        return KN_OK;
    if (S_ISDIR(mode))
        return fail_errno("read", path, EISDIR);
    return kn_fail(KN_ERR_IO, "cannot read '%s': it is %s, not a regular file; copy its content to a file first", path,
                   S_ISFIFO(mode)   ? "a pipe"
                   : S_ISSOCK(mode) ? "a socket"
                                    : "a device");
}

/* O_NONBLOCK: without it, opening a pipe waits for the other end. It makes no difference for regular files. */
kn_status kn_file_open(int *descriptor, uint64_t *size, const char *path)
{
    struct stat info;
    const int opened = kn_sys_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (opened < 0)
        return errno == ENXIO ? check_kind(path, S_IFSOCK) : fail_errno("open", path, errno);
    kn_status status =
        kn_sys_fstat(opened, &info) == 0 ? check_kind(path, info.st_mode) : fail_errno("read", path, errno);
    if (status != KN_OK) {
        kn_sys_close(opened);
        return status;
    }
    *descriptor = opened;
    *size = (uint64_t)info.st_size;
    return KN_OK;
}

/* Reads to the end, or until more than `limit` bytes have arrived. The buffer grows as needed: the size the file system
 * reports is only the initial guess. */
static kn_status read_content(int descriptor, const char *path, size_t expected, size_t limit, char **data,
                              size_t *size)
{
    size_t capacity = expected, length = 0;
    char *block = kn_malloc(capacity + 1);
    ssize_t got = 0;
    while (block) {
        got = kn_sys_read(descriptor, block + length, capacity - length, length);
        length += got > 0 ? (size_t)got : 0;
        if (got < 0 || length < capacity || length > limit)
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
    if (got < 0)
        status = fail_errno("read", path, errno);
    else if (length > limit)
        status = kn_fail(KN_ERR_FORMAT, "'%s' is larger than the limit of %zu bytes", path, limit);
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
    int descriptor;
    uint64_t claimed;
    KN_TRY(kn_file_open(&descriptor, &claimed, path));
    /* One byte more, so that the first read sees the end of the file; files in /proc report a size of 0. */
    size_t expected = claimed > 0 ? (size_t)claimed + 1 : READ_STEP;
    kn_status status = KN_OK;
    if (claimed > limit)
        status = kn_fail(KN_ERR_FORMAT, "'%s' has %llu bytes, more than the limit of %zu", path,
                         (unsigned long long)claimed, limit);
    else
        status = read_content(descriptor, path, expected, limit, data, size);
    kn_sys_close(descriptor);
    return status;
}

bool kn_file_first_line(const char *path, char *line, size_t size)
{
    FILE *file = kn_sys_open_lines(path);
    const bool read = file && fgets(line, (int)size, file);
    if (file)
        fclose(file);
    if (!read)
        return false;
    size_t start = strspn(line, " \t\r\n"), end = strlen(line);
    while (end > start && isspace((unsigned char)line[end - 1]))
        end--;
    memmove(line, line + start, end - start);
    line[end - start] = '\0';
    return end > start;
}

/* --- directories and paths -------------------------------------------------------------------- */

bool kn_file_exists(const char *path)
{
    struct stat info;
    return kn_sys_stat(path, &info) == 0;
}

kn_status kn_file_look_up(const char *path, bool *exists)
{
    struct stat info;
    *exists = kn_sys_lstat(path, &info) == 0;
    return *exists || errno == ENOENT ? KN_OK : fail_errno("look up", path, errno);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names in a folder, one per line. */
static bool read_names(const char *path, kn_text *names, size_t *count)
{
    DIR *list = kn_sys_opendir(path);
    if (!list)
        return false;
    for (struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            kn_text_append_bytes(names, entry->d_name, strlen(entry->d_name) + 1);
            ++*count;
        }
    closedir(list);
    return true;
}

bool kn_visit_directory(const char *path, void (*visit)(const char *name, void *user), void *user)
{
    kn_text names = {0};
    kn_error_state before;
    size_t count = 0;
    kn_error_save(&before);
    char **sorted = read_names(path, &names, &count) && !names.failed ? kn_calloc(count, sizeof *sorted) : NULL;
    char *name = names.data;
    for (size_t i = 0; sorted && i < count; i++, name += strlen(name) + 1)
        sorted[i] = name;
    if (sorted && count > 1)
        qsort(sorted, count, sizeof *sorted, compare_names);
    kn_error_restore(&before);
    for (size_t i = 0; sorted && i < count; i++)
        visit(sorted[i], user);
    const bool done = sorted != NULL;
    kn_free(sorted);
    kn_text_free(&names);
    return done;
}

static kn_status make_directory(const char *path, mode_t mode)
{
    if (kn_sys_mkdir(path, mode) == 0)
        return KN_OK;
    int error = errno;
    struct stat info;
    if (kn_sys_stat(path, &info) == 0) {
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
        objection = "another user may change its parent folder";
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

/* $HOME, else the password database's entry; NULL if neither is known. The caller frees it. */
static char *home_directory(void)
{
    const char *home = kn_trusted_environment("HOME");
    if (home && *home)
        return kn_strdup(home);
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found && found->pw_dir && *found->pw_dir)
        return kn_strdup(found->pw_dir);
    kn_fail(KN_ERR_IO, "no cache directory is known: set KOINE_CACHE_DIR or HOME");
    return NULL;
}

char *kn_cache_directory(void)
{
    const char *own = kn_trusted_environment("KOINE_CACHE_DIR");
    if (own && *own)
        return kn_strdup(own);
    const char *xdg = kn_trusted_environment("XDG_CACHE_HOME");
    if (xdg && xdg[0] == '/') /* the XDG specification says to ignore relative paths */
        return kn_path_join(xdg, "koine");
    char *home = home_directory();
    char *cache = home ? kn_path_join(home, ".cache/koine") : NULL;
    kn_free(home);
    return cache;
}
