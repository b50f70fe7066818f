/* base/directory_lock.c - exclusive access to a directory: flock on the directory itself, so no lock file outlives its
 * holder. */
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
    if (!is_taken) /* some network file systems can lock only files */
        kn_log_message(KN_LOG_INFO, "'%s' cannot be locked: %s", path, strerror(errno));
    if (directory >= 0)
        kn_sys_close(directory);
    return !is_taken;
}

/* Unlocked explicitly: a child forked in the meantime shares the lock and would keep it. */
void kn_directory_unlock(int *lock)
{
    if (*lock == KN_NOT_LOCKED)
        return;
    kn_sys_unlock(*lock);
    kn_sys_close(*lock);
    *lock = KN_NOT_LOCKED;
}
