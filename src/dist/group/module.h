/* dist/group/module.h - back ends in libraries of their own, libkoine_NAME.so, which are loaded when a group asks for
 * them: the library itself needs no MPI. */
#pragma once

#include "dist/group/transport.h"

kn_status kn_module_transport_open(const char *name, const kn_group_params *params, kn_transport **transport);
kn_status kn_module_describe(const char *name, char *text, size_t size); /* "Open MPI v4.1.4" */
bool kn_module_is_available(const char *name, const char **reason);
