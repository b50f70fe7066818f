/* rt/compile/serve.c - see rt/compile/serve.h. */
#include "rt/compile/serve.h"

#include <koine/stream.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "rt/compile/compile.h"
#include "rt/compile/request.h"
#include "rt/compile/wire.h"
#include "rt/program/program.h"
#include "rt/program/user_source.h"

/* The name in "written/HASH/NAME". */
static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What fails here fails again in the process that asked, which then reports it. */
static void compile(kn_stream *stream, const char *bytes, size_t size)
{
    kn_request request;
    kn_user_source source;
    if (kn_request_read(&request, bytes, size) != KN_OK)
        return;
    const kn_status status =
        request.text ? kn_user_source_add(&source, name_in(request.params.source), request.text, false) : KN_OK;
    if (status == KN_OK)
        kn_compile_launch(stream, &request.params, request.global, request.local);
    kn_free(request.args);
}

static bool serve_one(kn_stream *stream, int socket)
{
    size_t size;
    if (!kn_wire_receive(socket, &size, sizeof size) || size > KN_WIRE_MOST_BYTES)
        return false;
    char *bytes = kn_malloc(size);
    bool going = bytes && kn_wire_receive(socket, bytes, size);
    if (going) {
        compile(stream, bytes, size);
        kn_error_clear();
        going = kn_wire_send(socket, "", 1);
    }
    kn_free(bytes);
    return going;
}

/* PoCL reads its library of functions with the first program, which takes as long as compiling a kernel: one that draws
 * the parameters of almost all modules. */
static void prepare(kn_device *device)
{
    KN_PRESERVE_ERROR;
    kn_kernel *kernel;
    if (device->quirks.compiles_at_first_launch)
        kn_kernel_get(&kernel, device, "tensor/random.cl", "-DT=float", "uniform", NULL);
}

void kn_compile_serve(kn_device *device, int socket)
{
    const kn_hash identity = kn_wire_identity(device);
    kn_stream *stream = kn_stream_current(device);
    bool going = stream && kn_wire_send(socket, &identity, sizeof identity);
    if (going)
        prepare(device);
    while (going)
        going = serve_one(stream, socket);
}
