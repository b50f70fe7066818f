/* rt/compile/request.c - see rt/compile/request.h. */
#include "rt/compile/request.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "rt/device/device_struct.h"
#include "rt/memory/place.h"
#include "rt/program/user_source.h"

/* --- the kernel --------------------------------------------------------------------------------------------------- */

/* PoCL's grid_width_specialization_limit. */
#define SMALL_GRID USHRT_MAX

bool kn_is_large_grid(const size_t global[3], const size_t local[3])
{
    for (int i = 0; i < 3; i++)
        if (local[i] > 0 && global[i] / local[i] >= SMALL_GRID)
            return true;
    return false;
}

static kn_hash hash_program(const kn_launch_params *params)
{
    return kn_hash_combine(kn_hash_text(params->source), kn_hash_text(params->options ? params->options : ""));
}

uint64_t kn_request_program(const kn_launch_params *params) { return hash_program(params).low; }

uint64_t kn_request_key(const kn_device *device, const kn_launch_params *params, const size_t global[3],
                        const size_t local[3])
{
    char sizes[100] = "";
    if (device->quirks.compiles_at_first_launch)
        snprintf(sizes, sizeof sizes, "%s %zu %zu %zu %d", params->kernel, local[0], local[1], local[2],
                 kn_is_large_grid(global, local));
    return kn_hash_combine(hash_program(params), kn_hash_text(sizes)).low;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

enum { SOURCE, OPTIONS, KERNEL, TEXT, STRINGS };

/* Then the strings with their NULs, then the arguments, each followed by its bytes. */
typedef struct head {
    int32_t dims, num_args;
    uint64_t global[3], local[3];
    uint64_t lengths[STRINGS]; /* with the NUL; 0: no string */
} head;

typedef struct packed_arg {
    int32_t kind;
    uint32_t follow; /* bytes that follow */
    uint64_t size, before, pointer, start;
    int64_t value; /* or offset */
} packed_arg;

kn_arg kn_arg_as_memory(const kn_arg *arg)
{
    if (arg->kind != KN_ARG_BUFFER || !arg->buffer)
        return *arg;
    return (kn_arg){.kind = KN_ARG_MEMORY,
                    .size = kn_buffer_size(arg->buffer) - (size_t)arg->offset,
                    .before = (size_t)arg->offset,
                    .offset = (int64_t)kn_buffer_offset(arg->buffer) + arg->offset,
                    .start = kn_buffer_start(arg->buffer),
                    .pointer = kn_buffer_memory(arg->buffer)};
}

static packed_arg pack(const kn_arg *given)
{
    const kn_arg arg = kn_arg_as_memory(given);
    packed_arg p = {.kind = arg.kind, .size = arg.size, .before = arg.before};
    if (arg.kind == KN_ARG_MEMORY) {
        p.pointer = (uintptr_t)arg.pointer;
        p.start = (uintptr_t)arg.start;
        p.value = arg.offset;
    } else if (arg.kind == KN_ARG_BYTES) {
        p.value = arg.value.i64;
        p.follow = arg.pointer ? (uint32_t)arg.size : 0;
    }
    return p;
}

static void append(kn_text *bytes, const void *data, size_t size) { kn_text_append_bytes(bytes, data, size); }

kn_status kn_request_write(kn_text *bytes, const kn_launch_params *params, const size_t global[3],
                           const size_t local[3])
{
    kn_text text = {0};
    if (kn_user_source_is(params->source))
        KN_TRY(kn_user_source_append(&text, params->source));
    const char *const strings[STRINGS] = {
        [SOURCE] = params->source, [OPTIONS] = params->options, [KERNEL] = params->kernel, [TEXT] = text.data};
    head h = {.dims = params->dims, .num_args = params->num_args};
    for (int i = 0; i < 3; i++) {
        h.global[i] = global[i];
        h.local[i] = local[i];
    }
    for (int i = 0; i < STRINGS; i++)
        h.lengths[i] = strings[i] ? strlen(strings[i]) + 1 : 0;
    append(bytes, &h, sizeof h);
    for (int i = 0; i < STRINGS; i++)
        append(bytes, strings[i] ? strings[i] : "", h.lengths[i]);
    for (int i = 0; i < params->num_args; i++) {
        const packed_arg p = pack(&params->args[i]);
        append(bytes, &p, sizeof p);
        append(bytes, p.follow ? params->args[i].pointer : "", p.follow);
    }
    const bool failed = text.failed || bytes->failed;
    kn_text_free(&text);
    return failed ? KN_ERR_MEMORY : KN_OK;
}

/* What is left to read. */
typedef struct input {
    const char *next;
    size_t left;
} input;

/* NULL: it ends before. */
static const void *take(input *in, uint64_t bytes)
{
    const char *taken = in->next;
    if (bytes > in->left)
        return NULL;
    in->next += bytes;
    in->left -= (size_t)bytes;
    return taken;
}

static bool read_strings(kn_request *request, input *in, const head *h)
{
    const char *strings[STRINGS];
    for (int i = 0; i < STRINGS; i++) {
        strings[i] = h->lengths[i] ? take(in, h->lengths[i]) : NULL;
        if (h->lengths[i] && (!strings[i] || strings[i][h->lengths[i] - 1] != '\0'))
            return false;
    }
    request->params.source = strings[SOURCE];
    request->params.options = strings[OPTIONS];
    request->params.kernel = strings[KERNEL];
    request->params.operation = "compiling ahead"; /* a launch's is kept (rt/stream/fault.h), which the bytes are not */
    request->text = strings[TEXT];
    return strings[SOURCE] && strings[KERNEL];
}

static bool read_arg(kn_arg *arg, input *in)
{
    packed_arg p;
    const void *packed = take(in, sizeof p);
    if (!packed)
        return false;
    memcpy(&p, packed, sizeof p);
    if (p.kind != KN_ARG_BYTES && p.kind != KN_ARG_LOCAL && p.kind != KN_ARG_FAULT && p.kind != KN_ARG_MEMORY)
        return false;
    *arg = (kn_arg){.kind = (kn_arg_kind)p.kind, .size = (size_t)p.size, .value.i64 = p.value};
    if (p.kind == KN_ARG_MEMORY) {
        arg->pointer = (const void *)(uintptr_t)p.pointer; /* of this process, or not to be used */
        arg->start = (const char *)(uintptr_t)p.start;     /* likewise */
        arg->offset = p.value;
        arg->before = (size_t)p.before;
    }
    if (p.follow == 0)
        return p.kind != KN_ARG_BYTES || p.size <= sizeof arg->value;
    arg->pointer = take(in, p.follow);
    return arg->pointer && p.kind == KN_ARG_BYTES && p.follow == p.size;
}

kn_status kn_request_read(kn_request *request, const char *bytes, size_t size)
{
    input in = {bytes, size};
    head h;
    const void *first = take(&in, sizeof h);
    bool whole = first != NULL;
    *request = (kn_request){.args = NULL};
    if (whole) {
        memcpy(&h, first, sizeof h);
        whole = h.dims >= 1 && h.dims <= 3 && h.num_args >= 0 && (size_t)h.num_args <= size / sizeof(packed_arg) &&
                read_strings(request, &in, &h);
    }
    if (whole && !(request->args = kn_calloc((size_t)h.num_args + 1, sizeof *request->args)))
        return KN_ERR_MEMORY;
    for (int i = 0; whole && i < h.num_args; i++)
        whole = read_arg(&request->args[i], &in);
    if (!whole || in.left > 0) {
        kn_free(request->args);
        request->args = NULL;
        return kn_fail(KN_ERR_FORMAT, "%zu bytes are not a request to compile a kernel", size);
    }
    request->params.dims = h.dims;
    request->params.num_args = h.num_args;
    request->params.args = request->args;
    for (int i = 0; i < 3; i++) {
        request->global[i] = (size_t)h.global[i];
        request->local[i] = (size_t)h.local[i];
    }
    return KN_OK;
}
