/* base/files.h - reading whole files, atomic writes, directories. Errors name the file and quote the operating system's
 * message. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>
#include <stddef.h>

/* A file being written under a temporary name in its target's folder. kn_file_end flushes, fsyncs and renames it if
 * `status` is KN_OK, else removes it, and returns the status; the struct is empty then, and ending it again has no
 * effect on a failure. A crash or a full disk leaves the old file unchanged.
 *
 * The temporary has an unpredictable name, is newly created (O_EXCL), and stays locked while its process lives. One
 * left behind by a killed process is removed when its folder is next written to (base/temporaries.c).
 *
 * A symbolic link as `path` is followed: its target is replaced and the link stays. A broken link, a link created by
 * another user and anything that is not a regular file are errors. */
typedef struct kn_atomic_file {
    char *path, *temporary;
    int descriptor; /* 0: none. Write either directly to it or with kn_file_write, not both */
    int error;      /* errno of the first write that failed */
    char *buffer;
    size_t buffered;
} kn_atomic_file;

kn_status kn_file_begin(kn_atomic_file *file, const char *path);
kn_status kn_file_write(kn_atomic_file *file, const void *data, size_t bytes); /* checks for a full disk */
kn_status kn_file_end(kn_atomic_file *file, kn_status status);

/* Writes a file with this content, the same way. */
kn_status kn_file_save_text(const char *path, const char *text);

/* Opens a regular file for reading with kn_sys_read; close it with kn_sys_close. Anything else, such as a pipe, might
 * block or never end: an error says what it is. */
kn_status kn_file_open(int *descriptor, uint64_t *size, const char *path);

/* The whole content of a file, with a NUL after its `size` bytes; the caller frees it. KN_ERR_FORMAT if it is larger
 * than `limit` bytes. */
kn_status kn_file_read_all(char **data, size_t *size, const char *path, size_t limit);

/* The first line of a small file, as those of /proc and /sys are, without blanks around it; false, without setting an
 * error, if it cannot be read or is empty. */
bool kn_file_first_line(const char *path, char *line, size_t size);

bool kn_file_exists(const char *path);
/* Whether anything has this name, broken links included. An error if that cannot be determined. */
kn_status kn_file_look_up(const char *path, bool *exists);
/* Calls `visit` for each name in a folder except "." and "..", sorted. Returns false, without setting an error, if the
 * folder cannot be read. */
bool kn_visit_directory(const char *path, void (*visit)(const char *name, void *user), void *user);
kn_status kn_make_directories(const char *path);             /* like mkdir -p */
kn_status kn_make_private_directories(const char *path);     /* the same, accessible to this user only */
char *kn_path_join(const char *directory, const char *name); /* the caller frees it */

/* Why the folder's files cannot be trusted: "others may write to it", "it belongs to another user". NULL if only this
 * user and root may change the folder and its parent, and if there is no such folder. (The parent may have the sticky
 * bit, as /tmp does: others write there, but cannot replace what is not theirs.) */
const char *kn_folder_objection(const char *path);

/* Where compiled kernels and tuning results are stored: $KOINE_CACHE_DIR, else $XDG_CACHE_HOME/koine, else
 * ~/.cache/koine. The caller frees it. */
char *kn_cache_directory(void);
