/* rt/device/inject.h - makes chosen OpenCL calls fail, to test running out of resources and lost devices. When off, it
 * costs one relaxed load per call.
 *
 *     cl_int error = KN_CL(KN_CL_READ, clEnqueueReadBuffer(...));
 *
 * A call that is made to fail does not reach OpenCL. Whole programs: KOINE_FAIL_CL=launch:100:-36 makes the hundredth
 * launch and every later call fail with CL_INVALID_COMMAND_QUEUE, as after a device was lost. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "rt/device/opencl.h"

typedef enum kn_cl_call {
    KN_CL_LAUNCH, /* running a kernel */
    KN_CL_READ,   /* from device to host, including the fault record */
    KN_CL_WRITE,
    KN_CL_COPY, /* on the device, including fills */
    KN_CL_WAIT, /* for a queue or an event */
    KN_CL_MARK, /* markers, barriers */
    KN_CL_ALLOC,
    KN_CL_BUILD, /* building a program */
    KN_CL_PROBE, /* the query whether a device still answers (rt/device/lost.c) */
    KN_CL_KINDS
} kn_cl_call;

/* The `nth` call of the kind from now on (1: the next) returns `error`; with `for_good` so does every later call of any
 * kind. Replaces an earlier injection. */
void kn_inject(kn_cl_call kind, int nth, cl_int error, bool for_good);
void kn_inject_stop(void);

/* How many calls of any kind were made since the injected failure: a library should stop calling then. */
int kn_inject_calls_after(void);

/* Reads KOINE_FAIL_CL; an invalid value is logged as an error. */
void kn_inject_from_environment(void);

/* --- for KN_CL -------------------------------------------------------------------------------- */

extern atomic_bool kn_injecting;
bool kn_inject_hits(kn_cl_call kind);
cl_int kn_injected_error(void);

#define KN_CL(kind, call)                                                                                              \
    (atomic_load_explicit(&kn_injecting, memory_order_relaxed) && kn_inject_hits(kind) ? kn_injected_error() : (call))
