/* rt/stream/affinity.h - numbers of launches on CPU devices, which their kernels need so that the parts of their work
 * stay with the same threads from launch to launch (cl/common/affinity.clh), and so that threads that wait for a launch
 * learn that it starts (rt/command/linger.h). */
#pragma once

#include "rt/stream/calls.h"

/* The states of a stream's two queues, on devices that have them (kn_limits.has_affinity). Like the struct, they are
 * never freed, unless that or the device could not be opened: kernels may still run. */
kn_status kn_affinity_new(kn_stream *stream, const kn_device *device);
void kn_affinity_free(kn_stream *stream);

/* The last parameter of a kernel, if launches set it. */
typedef struct kn_affinity_parameter {
    int index;        /* -1: the kernel has none */
    bool is_gathered; /* it stands for all arguments, too (cl/common/gathered.clh) */
} kn_affinity_parameter;
cl_int kn_affinity_find(kn_affinity_parameter *parameter, cl_kernel kernel, const kn_device *device);

/* Numbers a launch in the turn, and sets the parameter, with the lock of the turn's calls. `values`: of a gathered
 * one. */
cl_int kn_affinity_set(cl_kernel kernel, kn_affinity_parameter parameter, const kn_values *values, kn_stream *stream,
                       kn_turn *turn);
