/* rt/quirks.h - what a driver does and no query tells. The one table where drivers are told apart by name. */
#ifndef KN_RT_QUIRKS_H
#define KN_RT_QUIRKS_H

#include <koine/common.h>

typedef struct kn_quirks {
    /* Keeps compiled programs itself, and makes its binaries slowly: fetching one costs more than building again from
     * its cache. */
    bool caches_programs;
    /* Compiles a kernel in a thread of its own when it first runs. A process that exits meanwhile crashes: the
     * compiler's global objects are destroyed under it. */
    bool compiles_at_first_launch;
    /* Does f16 arithmetic although it does not announce the extension. */
    bool f16_unannounced;
} kn_quirks;

/* The quirks of a platform's driver: all rows of the table that match. */
kn_quirks kn_quirks_of(const char *platform, const char *driver_version);

#endif
