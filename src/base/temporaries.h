/* base/temporaries.h - temporary files that are renamed to their targets; shared by atomic_file.c and temporaries.c. */
#pragma once

#include <koine/status.h>
#include <sys/types.h>

/* Creates, opens and locks one in the folder of `path`. The caller frees *name. */
kn_status kn_temporary_open(int *descriptor, char **name, const char *path, mode_t mode);

/* The folder of `path`: "." if it names none. The caller frees it. */
char *kn_folder_of(const char *path);
