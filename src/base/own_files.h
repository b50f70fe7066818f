/* base/own_files.h - files that are installed, or built, together with the library. */
#pragma once

#include <limits.h>

/* The folder of the library, or of the program that it is linked into; "" if unknown. */
void kn_own_folder(char folder[PATH_MAX]);

/* The program `koine`, for what needs a process of its own: KOINE_PROGRAM, else that beside the library (in its folder
 * or in ../bin), else the installed one. NULL: there is none. The caller frees it. */
char *kn_own_program(void);
