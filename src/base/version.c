/* base/version.c - the library's version. */
#include <koine/version.h>

const char *kn_version(void) { return KN_VERSION; }
