/* rt/backends.c - versions of the libraries that Koine is built on. */
#include <clblast_c.h>
#include <koine/flags.h>
#include <string.h>

#include "base/error.h"
#include "rt/device/device_struct.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

#ifdef CLBLAST_VERSION_MAJOR
static const char clblast_version[] =
    TEXT(CLBLAST_VERSION_MAJOR) "." TEXT(CLBLAST_VERSION_MINOR) "." TEXT(CLBLAST_VERSION_PATCH);
#else
static const char clblast_version[] = "older than 1.5.3"; /* older ones do not report it */
#endif

const char *kn_backend_version(const char *backend)
{
    if (!backend)
        return kn_fail_argument_null("kn_backend_version", "backend"), NULL;
    if (strcmp(backend, "clblast") == 0)
        return clblast_version;
    if (strcmp(backend, "opencl") == 0) {
        const kn_device *device = kn_device_current();
        return device ? device->properties.opencl_version : NULL;
    }
    kn_fail(KN_ERR_ARGUMENT, "kn_backend_version: there is no backend `%s`; the backends are clblast and opencl",
            backend);
    return NULL;
}

bool kn_backend_is_available(const char *backend)
{
    KN_PRESERVE_ERROR;
    return backend && kn_backend_version(backend);
}
