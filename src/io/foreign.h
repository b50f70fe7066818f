/* io/foreign.h - files of formats that are not read here, recognised to say so. */
#ifndef KN_IO_FOREIGN_H
#define KN_IO_FOREIGN_H

#include <koine/common.h>
#include <stddef.h>

#define KN_FOREIGN_BYTES 256 /* as many as are looked at, if there are so many */

/* From a file's first bytes: what it is and what to do, to go on behind "'PATH' is "; NULL: nothing known. */
const char *kn_foreign_format(const unsigned char *bytes, size_t count);

#endif
