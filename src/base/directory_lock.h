/* base/directory_lock.h - exclusive access to a directory. */
#pragma once

#include <stdbool.h>

#define KN_NOT_LOCKED (-1)

/* Takes an advisory lock on the directory, without waiting. It excludes all other callers of this function, in this and
 * other processes; the operating system releases it when the process ends, however it ends. Returns false if the lock
 * is held elsewhere. If the file system cannot lock directories, returns true with *lock KN_NOT_LOCKED. */
bool kn_directory_lock(const char *path, int *lock);
void kn_directory_unlock(int *lock); /* accepts KN_NOT_LOCKED; sets *lock to it */
