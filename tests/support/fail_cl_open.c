/* support/fail_cl_open.c - finds the layer in this process. */
#include "support/fail_cl.h"

#include <dlfcn.h>
#include <stddef.h>

bool fail_cl_open(fail_cl *layer, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    const fail_cl *functions = library ? dlsym(library, "fail_cl_functions") : NULL;
    if (functions)
        *layer = *functions;
    return functions != NULL;
}
