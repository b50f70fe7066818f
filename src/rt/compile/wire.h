/* rt/compile/wire.h - what a process and its helpers (rt/compile/helper.h) send each other through a socket: the
 * helper its kn_wire_identity, then for each request, as bytes after their number, one byte when it is through. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "rt/device/device.h"

#define KN_WIRE_MOST_BYTES ((size_t)64 << 20) /* of a request */

/* All bytes, or false: the other side is gone. */
bool kn_wire_send(int socket, const void *data, size_t bytes);
bool kn_wire_receive(int socket, void *data, size_t bytes);

/* Alike in processes with the same version of the library, for the same device and driver. */
kn_hash kn_wire_identity(const kn_device *device);
