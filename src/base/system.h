/* base/system.h - the system calls for files, as used throughout the library.
 *
 * Descriptors are 3 or more and close-on-exec: if the program's standard streams are closed, its output must not end up
 * in a file. Calls interrupted by a signal are retried. Tests can make the n-th call fail: KOINE_FAIL_IO=n, or n:ERRNO.
 * Failures are -1 or NULL with errno, as in the C library. */
#pragma once

#include <dirent.h>
#include <koine/common.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

int kn_sys_open(const char *path, int flags, mode_t mode);
int kn_sys_close(int descriptor);
/* All bytes from `offset`; fewer only at the end of the file. */
ssize_t kn_sys_read(int descriptor, void *data, size_t bytes, uint64_t offset);
int kn_sys_write(int descriptor, const void *data, size_t bytes); /* all bytes, or it fails */
int kn_sys_sync(int descriptor);
int kn_sys_lock(int descriptor, bool wait); /* exclusive flock; EWOULDBLOCK: already held */
void kn_sys_unlock(int descriptor);
int kn_sys_fstat(int descriptor, struct stat *info);
int kn_sys_stat(const char *path, struct stat *info);
int kn_sys_lstat(const char *path, struct stat *info); /* does not follow a link */
int kn_sys_rename(const char *from, const char *to);
int kn_sys_unlink(const char *path);
int kn_sys_mkdir(const char *path, mode_t mode);
DIR *kn_sys_opendir(const char *path);
int kn_sys_memory_file(const char *name); /* an anonymous file (memfd) */
int kn_sys_pipe(int ends[2]);             /* the one to read from, the one to write to */
int kn_sys_socket_pair(int ends[2]);      /* a stream in both directions */

/* For reading lines, of /proc for instance: NULL unless it is a regular file. Close with fclose. */
FILE *kn_sys_open_lines(const char *path);

/* The number of processors that this process may use. */
int kn_sys_processors(void);

/* Fills `data` with random bytes from the system; false if there are none. */
bool kn_sys_random(void *data, size_t bytes);

/* For environment variables that name files or programs to use: NULL in a program that runs with more privileges than
 * its user (set-user-ID and the like), since the user could misuse them. */
const char *kn_trusted_environment(const char *name);

/* For tests: the n-th of these calls from now fails with `error`, and if `sticky` all later ones too; 0: none.
 * kn_fail_io_left: the calls left until then, 0 once it has failed. */
void kn_fail_io_after(long n, int error, bool sticky);
long kn_fail_io_left(void);
