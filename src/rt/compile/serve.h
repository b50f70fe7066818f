/* rt/compile/serve.h - a helper's work (rt/compile/helper.h), done by `koine --compile`. */
#pragma once

#include <koine/device.h>

/* Compiles what the process at the other end of the socket asks for, until it is gone. */
void kn_compile_serve(kn_device *device, int socket);
