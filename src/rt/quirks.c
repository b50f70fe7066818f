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
    {.platform = "Portable Computing Language",
     .quirks = {.caches_programs = true},
     .evidence = "PoCL 3.1: a 30-kernel program builds from PoCL's cache in 18 ms; fetching its binary first compiles "
                 "every kernel for all local sizes, 925 ms. docs/platforms.md"},
    {.platform = "Portable Computing Language",
     .quirks = {.compiles_at_first_launch = true},
     .evidence = "PoCL 3.1: a program that launches one new kernel and returns from main ended in SIGSEGV, 40 times "
                 "of 40, inside clang in a thread of PoCL's. tests/rt/test_exit.c, docs/platforms.md"},
    {.platform = "NVIDIA CUDA",
     .first = 520,
     .quirks = {.f16_unannounced = true},
     .evidence = "Half arithmetic works with `#define cl_khr_fp16` from driver 520 on though the extension is not "
                 "listed. docs/platforms.md"},
};

kn_quirks kn_quirks_of(const char *platform, const char *driver_version)
{
    kn_quirks found = {0};
    double version = strtod(driver_version, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const quirk_row *row = &rows[i];
        if (!kn_text_contains_nocase(platform, row->platform))
            continue;
        if ((row->first > 0 && version < row->first) || (row->last > 0 && version > row->last))
            continue;
        found.caches_programs |= row->quirks.caches_programs;
        found.compiles_at_first_launch |= row->quirks.compiles_at_first_launch;
        found.f16_unannounced |= row->quirks.f16_unannounced;
    }
    return found;
}
