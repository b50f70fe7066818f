/* rt/compile/wire.c - see rt/compile/wire.h. */
#include "rt/compile/wire.h"

#include <errno.h>
#include <koine/koine.h>
#include <sys/socket.h>

#include "rt/device/device_struct.h"

/* MSG_NOSIGNAL: no SIGPIPE for the host program. */
bool kn_wire_send(int socket, const void *data, size_t bytes)
{
    const char *next = data;
    while (bytes > 0) {
        const ssize_t sent = send(socket, next, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            next += sent;
            bytes -= (size_t)sent;
        }
    }
    return true;
}

bool kn_wire_receive(int socket, void *data, size_t bytes)
{
    char *next = data;
    while (bytes > 0) {
        const ssize_t got = recv(socket, next, bytes, 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0) {
            next += got;
            bytes -= (size_t)got;
        }
    }
    return true;
}

kn_hash kn_wire_identity(const kn_device *device)
{
    const kn_device_properties *p = &device->properties;
    const char *const parts[] = {p->name, p->platform, p->driver_version};
    kn_hash hash = kn_hash_text(kn_version());
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = kn_hash_combine(hash, kn_hash_text(parts[i]));
    return hash;
}
