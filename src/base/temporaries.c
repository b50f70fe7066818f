/* base/temporaries.c - temporary files next to their targets, and the removal of abandoned ones.
 *
 * The writing process holds a flock on its temporary, which the kernel releases when the process ends, however it ends.
 * So getting the lock means that no process is writing the file, on this machine or, over NFS, on another. Process IDs,
 * which are reused and differ between containers, and file ages cannot tell that. On a file system without locks, only
 * temporaries untouched for a day are removed. */
#include "base/temporaries.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"
#include "base/threads.h"

#define PREFIX ".koine-tmp-"
enum { DIGITS = 16, FOLDERS = 32, ATTEMPTS = 100 };
#define OLD_SECONDS (24 * 60 * 60)

char *kn_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = kn_strdup(slash ? path : ".");
    if (folder && slash)
        folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* --- abandoned ---------------------------------------------------------------------------------------------------- */

static bool is_temporary(const char *name)
{
    const size_t prefix = sizeof PREFIX - 1;
    return strncmp(name, PREFIX, prefix) == 0 && strlen(name) == prefix + DIGITS &&
           strspn(name + prefix, "0123456789abcdef") == DIGITS;
}

/* Over NFS locking needs write permission, and the temporary may stand for a read-only file. */
static int open_leftover(const char *path)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK, descriptor = kn_sys_open(path, O_RDWR | flags, 0);
    return descriptor < 0 && errno == EACCES ? kn_sys_open(path, O_RDONLY | flags, 0) : descriptor;
}

static void remove_if_abandoned(const char *path)
{
    struct stat info;
    const int descriptor = open_leftover(path);
    if (descriptor < 0)
        return;
    if (kn_sys_fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()) {
        const bool locked = kn_sys_lock(descriptor, false) == 0;
        const bool old = errno != EWOULDBLOCK && info.st_mtime < time(NULL) - OLD_SECONDS;
        if ((locked || old) && kn_sys_unlink(path) == 0)
            kn_log_message(KN_LOG_DEBUG, "'%s', left behind by a killed program, is removed", path);
    }
    kn_sys_close(descriptor);
}

static void sweep(const char *folder)
{
    KN_PRESERVE_ERROR;
    DIR *list = kn_sys_opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        char *path = is_temporary(entry->d_name) ? kn_path_join(folder, entry->d_name) : NULL;
        if (path)
            remove_if_abandoned(path);
        kn_free(path);
    }
    if (list)
        closedir(list);
}

/* A folder may hold very many files, so each is searched once per process (more often only if more than 32 folders are
 * used in turn). */
static bool is_first_use(const char *folder)
{
    static kn_mutex lock = KN_MUTEX_INIT;
    static struct {
        dev_t device;
        ino_t number;
    } known[FOLDERS];
    static int next;
    struct stat info;
    if (kn_sys_stat(folder, &info) != 0)
        return false;
    bool first = true;
    kn_lock(&lock);
    for (int i = 0; i < FOLDERS; i++)
        first = first && !(known[i].device == info.st_dev && known[i].number == info.st_ino);
    if (first) {
        known[next].device = info.st_dev;
        known[next].number = info.st_ino;
        next = (next + 1) % FOLDERS;
    }
    kn_unlock(&lock);
    return first;
}

/* --- new ---------------------------------------------------------------------------------------------------------- */

static char *new_name(const char *folder)
{
    uint64_t number = 0;
    kn_text name = {0};
    if (!kn_sys_random(&number, sizeof number)) /* predictable, but O_EXCL still protects it */
        number = (uint64_t)getpid() << 32 ^ (uint64_t)clock();
    kn_text_format(&name, "%s/" PREFIX "%016" PRIx64, folder, number);
    return kn_text_finish(&name);
}

/* Between its creation and its locking a temporary looks abandoned: false if another process has removed it or is about
 * to. */
static bool is_kept(int descriptor)
{
    struct stat info;
    if (kn_sys_lock(descriptor, false) != 0 && errno == EWOULDBLOCK)
        return false;
    return kn_sys_fstat(descriptor, &info) != 0 || info.st_nlink > 0;
}

static kn_status open_in(int *descriptor, char **name, const char *folder, const char *path, mode_t mode)
{
    int error = EEXIST;
    for (int attempt = 0; attempt < ATTEMPTS && error == EEXIST; attempt++) {
        char *tried = new_name(folder);
        if (!tried)
            return KN_ERR_MEMORY;
        const int opened = kn_sys_open(tried, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        error = opened < 0 ? errno : EEXIST;
        if (opened >= 0 && is_kept(opened)) {
            *descriptor = opened;
            *name = tried;
            return KN_OK;
        }
        if (opened >= 0)
            kn_sys_close(opened);
        kn_free(tried);
    }
    return kn_fail(KN_ERR_IO, "cannot write next to '%s': %s", path, strerror(error));
}

kn_status kn_temporary_open(int *descriptor, char **name, const char *path, mode_t mode)
{
    char *folder = kn_folder_of(path);
    if (!folder)
        return KN_ERR_MEMORY;
    if (is_first_use(folder))
        sweep(folder);
    kn_status status = open_in(descriptor, name, folder, path, mode);
    kn_free(folder);
    return status;
}
