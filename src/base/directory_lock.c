/* base/directory_lock.c - a directory that one user at a time writes into: flock on the directory itself, which leaves
 * no file behind that outlives its holder. */
#include "base/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "base/system.h"

bool kn_directory_lock(const char *path, int *lock)
{
    *lock = KN_NOT_LOCKED;
    int directory = kn_sys_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (directory >= 0 && kn_sys_lock(directory, false) == 0) {
        *lock = directory;
        return true;
    }
    bool is_taken = directory >= 0 && errno == EWOULDBLOCK;
    if (!is_taken) /* some network file systems lock files only */
        kn_log_message(KN_LOG_INFO, "'%s' cannot be locked: %s", path, strerror(errno));
    if (directory >= 0)
        kn_sys_close(directory);
    return !is_taken;
}

/* Unlocked explicitly: a child that the program forked meanwhile shares the lock, and would keep it. */
void kn_directory_unlock(int *lock)
{
    if (*lock == KN_NOT_LOCKED)
        return;
    kn_sys_unlock(*lock);
    kn_sys_close(*lock);
    *lock = KN_NOT_LOCKED;
}
