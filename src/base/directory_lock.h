/* base/directory_lock.h - a directory that one user at a time writes into. */
#ifndef KN_BASE_DIRECTORY_LOCK_H
#define KN_BASE_DIRECTORY_LOCK_H

#include <stdbool.h>

#define KN_NOT_LOCKED (-1)

/* Locks the directory for its holder among all that ask by this function, in this process and in others, without
 * waiting; the operating system gives the lock up when the process ends, however it does. False: somebody else holds
 * it. Where the file system has no locks for directories the answer is true, and *lock KN_NOT_LOCKED. */
bool kn_directory_lock(const char *path, int *lock);
void kn_directory_unlock(int *lock); /* KN_NOT_LOCKED allowed, and set */

#endif
