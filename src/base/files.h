/* base/files.h - files: whole reads, atomic writes, directories. Errors name the file and what the operating system
 * said. */
#ifndef KN_BASE_FILES_H
#define KN_BASE_FILES_H

#include <koine/common.h>
#include <koine/status.h>
#include <stddef.h>

/* A file being written under a temporary name in the folder of its own. kn_file_commit flushes, fsyncs and renames it;
 * kn_file_abandon removes it. After either the struct is spent. A crash or a full disk leaves the old file as it was.
 *
 * The temporary has a name that nobody can foresee, is made anew (O_EXCL), and is locked as long as its process lives:
 * what a killed one left behind goes when its folder is next written to (base/temporaries.c).
 *
 * A symbolic link as `path` is followed: the file that it leads to is replaced and the link stays. One that leads
 * nowhere, or that another user has made, is an error, and so is what is no regular file. */
typedef struct kn_atomic_file {
    char *path, *temporary;
    int descriptor; /* 0: none; whoever writes to it directly writes nothing by kn_file_write */
    int error;      /* of the first write that failed: errno's value */
    char *buffer;
    size_t buffered;
} kn_atomic_file;

kn_status kn_file_begin(kn_atomic_file *file, const char *path);
kn_status kn_file_write(kn_atomic_file *file, const void *data, size_t bytes); /* checks for a full disk */
kn_status kn_file_commit(kn_atomic_file *file);
void kn_file_abandon(kn_atomic_file *file);

/* A file that holds just this text, written the same way. */
kn_status kn_file_save_text(const char *path, const char *text);

/* Opens a regular file for reading: kn_sys_read reads it, kn_sys_close closes it. Anything else, a pipe say, that might
 * wait for ever or never end is an error that says what it is. */
kn_status kn_file_open(int *descriptor, uint64_t *size, const char *path);

/* The whole of a file, NUL-terminated beyond `size`; the caller frees it. KN_ERR_FORMAT when it is larger than `limit`
 * bytes. */
kn_status kn_file_read_all(char **data, size_t *size, const char *path, size_t limit);

bool kn_file_exists(const char *path);
/* Whether anything has this name, a link that leads nowhere included. An error where that cannot be found out. */
kn_status kn_file_look_up(const char *path, bool *exists);
/* Calls `visit` for each name in a folder but "." and "..", in their order. False, without an error, where it cannot be
 * looked through. */
bool kn_visit_directory(const char *path, void (*visit)(const char *name, void *user), void *user);
kn_status kn_make_directories(const char *path);             /* as mkdir -p */
kn_status kn_make_private_directories(const char *path);     /* the same; what it makes is for this user alone */
char *kn_path_join(const char *directory, const char *name); /* the caller frees it */

/* Why files in the folder may be another user's doing: "others may write to it", "it belongs to another user". NULL
 * when it and the folder that it lies in are this user's or root's to change, and when there is no such folder. (It may
 * lie in a folder with the sticky bit, /tmp say: others write there, but cannot exchange what is not theirs.) */
const char *kn_folder_objection(const char *path);

/* Where compiled kernels and tuning results live: $KOINE_CACHE_DIR, else $XDG_CACHE_HOME/koine, else ~/.cache/koine.
 * The caller frees it. */
char *kn_cache_directory(void);

#endif
