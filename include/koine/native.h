/* koine/native.h - OpenCL's own handles, for programs with OpenCL code of their own beside Koine's. Handles are cl_*
 * values as `void *`, so that this header needs no OpenCL; they are borrowed: retain what is to outlive its owner. All
 * functions are thread-safe. */
#ifndef KOINE_NATIVE_H
#define KOINE_NATIVE_H

#include <koine/common.h>
#include <koine/device.h>
#include <koine/stream.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* NULL, with an error, for the host. */
KN_API void *kn_native_platform(kn_device *device); /* cl_platform_id */
KN_API void *kn_native_device(kn_device *device);   /* cl_device_id */
KN_API void *kn_native_context(kn_device *device);  /* cl_context: Koine's objects and yours must share it */
KN_API void *kn_native_queue(kn_stream *stream);    /* cl_command_queue; replays handed over are enqueued first */

/* The cl_mem that holds the tensor's elements, and where in it the first one is, in bytes: tensors share memory
 * objects. Valid as long as the tensor. Work that you enqueue on a stream other than the tensor's own:
 * kn_record_stream. */
KN_API void *kn_native_memory(kn_tensor *tensor, size_t *byte_offset);

/* Tells the pool that work on `stream` uses the tensor's memory: freed, it is not handed out again before all work
 * enqueued there so far is done. Koine's own operations do this themselves. */
KN_API kn_status kn_record_stream(kn_tensor *tensor, kn_stream *stream);

/* A stream that enqueues on a command queue of yours (torch.cuda.ExternalStream): in order, of this device, made in
 * kn_native_context. The stream retains the queue; destroy it as any other. Events on it tell the time only if the
 * queue was made with CL_QUEUE_PROFILING_ENABLE. */
KN_API kn_status kn_stream_from_native(kn_stream **stream, kn_device *device, void *queue);

KN_END_DECLS

#endif
