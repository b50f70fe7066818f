/* io/foreign.h - recognises known file formats that Koine does not read, for better messages. */
#pragma once

#include <koine/common.h>
#include <stddef.h>

#define KN_FOREIGN_BYTES 256 /* the most bytes examined */

/* What a file with these first bytes is and what to do with it, as a continuation of "'PATH' is "; NULL if unknown. */
const char *kn_foreign_format(const unsigned char *bytes, size_t count);
