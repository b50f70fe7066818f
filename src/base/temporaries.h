/* base/temporaries.h - between atomic_file.c and temporaries.c: the files that become others by a rename. */
#ifndef KN_BASE_TEMPORARIES_H
#define KN_BASE_TEMPORARIES_H

#include <koine/status.h>
#include <sys/types.h>

/* Makes and opens one in the folder of `path`, locked; its name, which the caller frees, in *name. */
kn_status kn_temporary_open(int *descriptor, char **name, const char *path, mode_t mode);

/* The folder of `path`: "." where it names none. The caller frees it. */
char *kn_folder_of(const char *path);

#endif
