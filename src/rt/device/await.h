/* rt/device/await.h - how the host waits for a device: KOINE_WAIT.
 *
 * Some drivers spin while they wait (NVIDIA's keeps a core busy, https://github.com/openmm/openmm/issues/1541), others
 * wake up late. With `sleep` the library asks the driver again and again, with pauses that grow from 20 us to 1 ms;
 * with `spin` without; `driver`, the default, leaves it to the driver. */
#pragma once

#include <stdbool.h>

#include "rt/device/opencl.h"

/* Does the library wait itself? Then no call of OpenCL should block. */
bool kn_awaits_itself(void);

/* KOINE_WAIT=sleep: who waits leaves the core to others. */
bool kn_wait_sleeps(void);

/* The event's command was submitted (clFlush). */
cl_int kn_await_event(cl_event event);

/* All commands so far: an event for their end, submitted; and waiting for it. */
cl_int kn_mark_queue(cl_command_queue queue, cl_event *last);
cl_int kn_await_queue(cl_command_queue queue);
