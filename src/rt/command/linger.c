/* rt/command/linger.c - see linger.h. */
#include "rt/command/linger.h"

#include "base/error.h"
#include "common/affinity.h"
#include "rt/device/await.h"
#include "rt/device/driver_threads.h"
#include "rt/device/lost.h"
#include "rt/device/table.h"
#include "rt/program/program.h"

/* Devices of the same cores would keep them from each other. */
static bool is_alone(const kn_device *device)
{
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        const kn_device *other = kn_device_slot_at(slot);
        if (other != device && other->limits.is_cpu)
            return false;
    }
    return true;
}

static bool is_wanted(const kn_device *device)
{
    return device->limits.compute_units > 1 && kn_driver_threads_are_bound() && !kn_wait_sleeps() && is_alone(device);
}

static kn_status prepare(kn_lingering *lingering, kn_device *device)
{
    static const size_t group[3] = {1, 1, 1};
    kn_kernel *kernel;
    cl_int error;
    KN_TRY(kn_kernel_get(&kernel, device, KN_LINGER_SOURCE, NULL, KN_LINGER_KERNEL, group));
    lingering->kernel = kernel->handle;
    lingering->queue = kn_queue_new(device, 0, false, &error);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, device, "creating a queue");
}

/* At the device's first launch. It is an optimisation: where it fails, launches go on without it. */
static void begin(kn_lingering *lingering, kn_stream *stream)
{
    KN_PRESERVE_ERROR;
    lingering->stream = stream;
    lingering->is_off = !is_wanted(stream->device) || prepare(lingering, stream->device) != KN_OK;
}

static cl_int enqueue(const kn_lingering *lingering, kn_turn turn, size_t threads)
{
    static const size_t one = 1;
    const cl_long values[2] = {(cl_long)(uintptr_t)turn.affinity, turn.launch};
    const cl_int error = clSetKernelArg(lingering->kernel, 0, sizeof values, values);
    return error != CL_SUCCESS
               ? error
               : clEnqueueNDRangeKernel(lingering->queue, lingering->kernel, 1, NULL, &threads, &one, 0, NULL, NULL);
}

void kn_linger(kn_stream *stream, kn_turn turn, bool is_one_group)
{
    kn_device *device = stream->device;
    kn_lingering *lingering = &device->lingering;
    if (!turn.affinity)
        return;
    __atomic_store_n(&turn.affinity->enqueued, turn.launch, __ATOMIC_RELAXED); /* threads that share the stream race */
    kn_lock(&lingering->lock);
    if (!lingering->stream)
        begin(lingering, stream);
    if (lingering->stream != stream)
        lingering->is_off = true;
    if (!lingering->is_off && !is_one_group)
        lingering->is_off = enqueue(lingering, turn, (size_t)device->limits.compute_units - 1) != CL_SUCCESS;
    kn_unlock(&lingering->lock);
}
