/* rt/device/device_struct.h - the fields of a device, for the runtime. Streams, memory and programs belong to other
 * folders of rt, which depend on this one; here they are only pointers. */
#pragma once

#include <stdatomic.h>

#include "base/threads.h"
#include "rt/device/device.h"
#include "rt/device/opencl.h"
#include "rt/device/quirks.h"

typedef struct kn_cold kn_cold;                   /* rt/program/cold.h */
typedef struct kn_pool kn_pool;                   /* rt/memory/pool.h */
typedef struct kn_program_table kn_program_table; /* rt/program/program.h */
typedef struct kn_staging kn_staging;             /* rt/command/staging.h */
typedef struct kn_team kn_team;                   /* rt/team/team.h */

struct kn_device {
    int slot;                 /* 0: the host */
    int gpu_rank;             /* 0: the best GPU, ...; -1: not a GPU */
    const kn_device *twin_of; /* while devices are enumerated: the same GPU under a better driver */
    char label[32];           /* its string for kn_device_open: "gpu:0", "cpu:0" */
    kn_device_properties properties;
    kn_limits limits;
    kn_quirks quirks;
    const char *extensions;

    cl_platform_id platform;
    cl_device_id id;

    kn_mutex lock; /* guards opening and the lists of streams */
    atomic_bool is_open;
    cl_context context;
    cl_command_queue service; /* for the runtime's own commands, never for user work */
    cl_mem probe;             /* a few bytes, read to check whether the device still responds */

    atomic_int times;          /* what the driver's times are good for: rt/stream/timing.c */
    kn_stream *default_stream; /* made when the device is opened */
    kn_stream *streams;        /* all of them, the default one last */
    kn_stream *destroyed;      /* kept for reuse */
    kn_pool *pool;
    void (*leave_pool)(kn_stream *stream); /* called for a finished stream that is being destroyed */
    kn_program_table *programs;
    kn_cold *cold;       /* NULL: kernels are compiled by the threads that launch them */
    int struct_copies;   /* whether its compiler keeps them: rt/device/struct_copies.c */
    kn_staging *staging; /* made at the first use */
    kn_mutex staging_lock;
    _Atomic(kn_team *) team; /* made at the first launch that is run directly */

    atomic_bool is_lost;   /* rt/device/lost.h; for good */
    atomic_bool is_losing; /* lost_when is being written */
    char lost_when[256];   /* "running kernel `x` failed with CL_OUT_OF_RESOURCES, -5" */
};
