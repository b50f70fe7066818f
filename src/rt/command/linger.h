/* rt/command/linger.h - keeps the threads of a CPU device awake between launches, as OpenMP's are.
 *
 * PoCL's threads sleep as soon as there is no work, which with launches one after the other is after each, when the
 * thread that ends last has not yet prepared the next, and in a virtual machine it takes 30 to 50 us to wake one. So
 * each launch is followed by one of cl/device/linger.cl in another queue, for all threads but one, which are back at
 * once when the next starts. But not a launch of one work-group: where such launches follow each other, one thread runs
 * them all without going to sleep, and the second launch would take as long as the first. */
#pragma once

#include "rt/stream/queue.h"

#define KN_LINGER_SOURCE "device/linger.cl"
#define KN_LINGER_KERNEL "linger"

/* After a launch in the turn was enqueued. Does nothing if launches are not numbered; where others may need the cores:
 * if PoCL's threads are not bound to cores of their own (rt/device/driver_threads.h), if there are several CPU devices,
 * with KOINE_WAIT=sleep; and once kernels were launched on several streams of the device: a thread that waits for one's
 * would be missed on another. */
void kn_linger(kn_stream *stream, kn_turn turn, bool is_one_group);
