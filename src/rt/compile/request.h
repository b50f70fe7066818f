/* rt/compile/request.h - a launch as a string of bytes: for another process, which compiles its kernel, or for later.
 * Bytes are of one version of the library on one machine. */
#pragma once

#include "base/text.h"
#include "rt/command/launch.h"

/* Appends the launch to `bytes`. Its buffers become KN_ARG_MEMORY; they may be freed, their memory objects not. */
kn_status kn_request_write(kn_text *bytes, const kn_launch_params *params, const size_t global[3],
                           const size_t local[3]);

/* A buffer as KN_ARG_MEMORY; other arguments, and a buffer that is gone, as they are. */
kn_arg kn_arg_as_memory(const kn_arg *arg);

typedef struct kn_request {
    kn_launch_params params; /* all it points to is in the bytes, except `args` and the operation, a constant */
    size_t global[3], local[3];
    kn_arg *args;     /* to be freed */
    const char *text; /* of a source that was written by this library (rt/program/user_source.h), else NULL */
} kn_request;

/* An error if the bytes are not a whole request. */
kn_status kn_request_read(kn_request *request, const char *bytes, size_t size);

/* Two launches with the same key are of the same kernel, compiled for the same. */
uint64_t kn_request_key(const kn_device *device, const kn_launch_params *params, const size_t global[3],
                        const size_t local[3]);

/* The same of their programs. */
uint64_t kn_request_program(const kn_launch_params *params);

/* PoCL compiles a kernel once more for large grids. */
bool kn_is_large_grid(const size_t global[3], const size_t local[3]);
