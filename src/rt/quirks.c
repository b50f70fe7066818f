/* rt/quirks.c - the table of quirks: which drivers, which versions, and the evidence. */
#include "rt/quirks.h"

#include <stdlib.h>

#include "base/text.h"

typedef struct quirk_row {
    const char *platform; /* part of the platform's name */
    double first, last;   /* driver versions it holds for; 0: open */
    kn_quirks quirks;
    const char *evidence;
} quirk_row;

static const quirk_row rows[] = {
    {"Portable Computing Language",
     0,
     0,
     {.caches_programs = true},
     "PoCL 3.1: a 30-kernel program builds from PoCL's own cache in 18 ms; clGetProgramInfo(CL_PROGRAM_BINARIES) first "
     "compiles every "
     "kernel for all local sizes, 925 ms. docs/platforms.md"},
    {"NVIDIA CUDA",
     520,
     0,
     {.f16_unannounced = true},
     "Half arithmetic works with `#define cl_khr_fp16` from driver 520 on though the extension is not listed. "
     "docs/platforms.md"},
};

kn_quirks kn_quirks_of(const char *platform, const char *vendor, const char *driver_version)
{
    (void)vendor;
    kn_quirks found = {0};
    double version = strtod(driver_version, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const quirk_row *row = &rows[i];
        if (!kn_text_contains_nocase(platform, row->platform))
            continue;
        if ((row->first > 0 && version < row->first) || (row->last > 0 && version > row->last))
            continue;
        found.caches_programs |= row->quirks.caches_programs;
        found.f16_unannounced |= row->quirks.f16_unannounced;
    }
    return found;
}
