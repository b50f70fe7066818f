/* koine/native.h - OpenCL handles, for programs that use OpenCL directly next to Koine. Handles are cl_* values as
 * `void *`, so that this header does not need OpenCL's; they are borrowed: retain what must outlive its owner. All
 * functions are thread-safe. */
#ifndef KOINE_NATIVE_H
#define KOINE_NATIVE_H

#include <koine/common.h>
#include <koine/device.h>
#include <koine/stream.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* These return NULL, with an error, for the host. */
KN_API void *kn_native_platform(kn_device *device); /* cl_platform_id */
KN_API void *kn_native_device(kn_device *device);   /* cl_device_id */
KN_API void *kn_native_context(kn_device *device);  /* cl_context; your objects must use the same one */
KN_API void *kn_native_queue(kn_stream *stream);    /* cl_command_queue; pending replays are enqueued first */

/* The cl_mem with the tensor's elements, and the byte offset of the first one: tensors share memory objects. Valid as
 * long as the tensor. If you enqueue work on a stream other than the tensor's, call kn_record_stream. */
KN_API void *kn_native_memory(kn_tensor *tensor, size_t *byte_offset);

/* Tells the pool that work on `stream` uses the tensor's memory: once freed, it is not reused before all work enqueued
 * there so far is done. Koine's operations do this automatically. */
KN_API kn_status kn_record_stream(kn_tensor *tensor, kn_stream *stream);

/* A stream that uses your command queue (torch.cuda.ExternalStream), which must be in-order, of this device and created
 * in kn_native_context. The stream retains the queue; free it like any other. Its events have times only if the queue
 * was created with CL_QUEUE_PROFILING_ENABLE. NULL with an error. */
KN_API kn_stream *kn_stream_from_native(kn_device *device, void *queue);

KN_END_DECLS

#endif
