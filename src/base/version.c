/* base/version.c - the version that the library was built as. */
#include <koine/version.h>

const char *kn_version(void) { return KN_VERSION; }
