/* base/system.h - the operating system's calls for files, as all of the library makes them.
 *
 * Descriptors are 3 or more and closed on exec: where the program's standard streams are closed, what somebody prints
 * must not land in a file. Calls that a signal interrupts are made again. Each call may be made to fail, for tests:
 * KOINE_FAIL_IO=n, or n:ERRNO. Failures are -1 or NULL with errno, as in C's library. */
#ifndef KN_BASE_SYSTEM_H
#define KN_BASE_SYSTEM_H

#include <dirent.h>
#include <koine/common.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

int kn_sys_open(const char *path, int flags, mode_t mode);
int kn_sys_close(int descriptor);
/* All bytes from `offset`; fewer only at the end of the file. */
ssize_t kn_sys_read(int descriptor, void *data, size_t bytes, uint64_t offset);
int kn_sys_write(int descriptor, const void *data, size_t bytes); /* all, or it has failed */
int kn_sys_sync(int descriptor);
int kn_sys_lock(int descriptor, bool wait); /* flock's exclusive lock; EWOULDBLOCK: somebody else has it */
void kn_sys_unlock(int descriptor);
int kn_sys_fstat(int descriptor, struct stat *info);
int kn_sys_stat(const char *path, struct stat *info);
int kn_sys_lstat(const char *path, struct stat *info); /* of a link itself */
int kn_sys_rename(const char *from, const char *to);
int kn_sys_unlink(const char *path);
int kn_sys_mkdir(const char *path, mode_t mode);
DIR *kn_sys_opendir(const char *path);
int kn_sys_memory_file(const char *name); /* without a place in the file system */

/* For reading lines, of /proc and the like: NULL unless it is a regular file. fclose ends it. */
FILE *kn_sys_open_lines(const char *path);

/* Bytes that nobody can foresee; false where the system gives none. */
bool kn_sys_random(void *data, size_t bytes);

/* The value of an environment variable that says which files or programs are used: NULL in a program that has more
 * rights than its user (set-user-ID and the like), who could lead it astray. */
const char *kn_trusted_environment(const char *name);

/* For tests: the n-th of these calls from now on fails with `error`, and, with `sticky`, all after it. 0: none.
 * kn_fail_io_left: how many are left until then, 0 when it has failed. */
void kn_fail_io_after(long n, int error, bool sticky);
long kn_fail_io_left(void);

#endif
