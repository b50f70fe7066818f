/* told_driver.h - the layer told_driver.c, for tests: use_told_driver() before the first OpenCL call. */
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum told_times { TOLD_TIMES, TOLD_NO_TIMES, TOLD_ZEROS, TOLD_IN_OTHER_UNITS, TOLD_OUT_OF_ORDER } told_times;

typedef struct told_driver {
    long launches[2];          /* counted: on queues without and with CL_QUEUE_PROFILING_ENABLE */
    long waits;                /* counted: clFinish, clWaitForEvents, reads and writes that block */
    told_times markers, times; /* what clGetEventProfilingInfo gives of markers, and of other commands */
    size_t group;              /* CL_KERNEL_WORK_GROUP_SIZE of kernels that require no size; 0: the driver's */
    bool is_stubborn;          /* and of those that do */
    size_t bytes, room;        /* of all buffers; above which creating one fails, 0: no limit */
    long refused;              /* counted: buffers for which there was no room */
} told_driver;

#ifdef TOLD_DRIVER_LAYER
static inline void use_told_driver(void) { setenv("OPENCL_LAYERS", TOLD_DRIVER_LAYER, 1); }

/* NULL if the OpenCL loader has no layers. */
static inline told_driver *find_told_driver(void)
{
    void *layer = dlopen(TOLD_DRIVER_LAYER, RTLD_NOW | RTLD_NOLOAD);
    told_driver *found = layer ? dlsym(layer, "told") : NULL;
    if (!found)
        printf("skipped: this OpenCL loader has no layers\n");
    return found;
}
#endif
