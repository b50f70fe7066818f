/* rt/stream/fault.c - see rt/stream/fault.h. */
#include "rt/stream/fault.h"

#include <string.h>

#include "base/memory.h"
#include "rt/device/await.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"

#define FAULT_INTS (KN_FAULT_BYTES / 4)
#define MAX_OPERATIONS 512

static struct {
    kn_mutex lock;
    const char *names[MAX_OPERATIONS];
    int count;
} operations = {.lock = KN_MUTEX_INIT};

/* Names are string constants, so the pointer is compared first and kept. */
int kn_operation_number(const char *name)
{
    kn_lock(&operations.lock);
    int number = 0;
    while (number < operations.count && operations.names[number] != name && strcmp(operations.names[number], name) != 0)
        number++;
    if (number == operations.count && number < MAX_OPERATIONS)
        operations.names[operations.count++] = name;
    kn_unlock(&operations.lock);
    return number;
}

static const char *operation_name(int number)
{
    kn_lock(&operations.lock);
    const char *name = number >= 0 && number < operations.count ? operations.names[number] : "an operation";
    kn_unlock(&operations.lock);
    return name;
}

kn_status kn_fault_record_new(kn_stream *stream, kn_device *device)
{
    cl_int error, zeros[FAULT_INTS + 1] = {0};
    if (device->limits.has_entries && !(stream->fault_start = kn_calloc(1, sizeof zeros)))
        return KN_ERR_MEMORY;
    stream->fault = clCreateBuffer(
        device->context, CL_MEM_READ_WRITE | (stream->fault_start ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR),
        sizeof zeros, stream->fault_start ? stream->fault_start : zeros, &error);
    if (error == CL_SUCCESS)
        return KN_OK;
    kn_free(stream->fault_start);
    stream->fault_start = NULL;
    return kn_cl_fail(error, device, "creating a stream's fault record");
}

void kn_fault_record_free(kn_stream *stream)
{
    clReleaseMemObject(stream->fault);
    kn_free(stream->fault_start);
    stream->fault = NULL;
    stream->fault_start = NULL;
}

/* --- of other devices ------------------------------------------------------------------------- */

/* Streams are never freed, so the pointer stays valid. */
void kn_stream_collect_faults(kn_stream *to, kn_stream *from)
{
    if (!atomic_load(&from->fault_armed) && !atomic_load(&from->has_fault_sources))
        return;
    atomic_store(&to->fault_sources[from->device->slot], from);
    atomic_store(&to->has_fault_sources, true);
}

static kn_status check_record(kn_stream *stream);

/* Values received from other streams have arrived, so the work that produced them is done. Later work of those streams
 * may not be, so they stay armed. */
static kn_status check_fault_sources(kn_stream *stream)
{
    kn_status status = KN_OK;
    if (!atomic_exchange(&stream->has_fault_sources, false))
        return KN_OK;
    for (int slot = 1; slot < KN_MAX_DEVICES; slot++) {
        kn_stream *from = atomic_exchange(&stream->fault_sources[slot], NULL);
        if (!from || !atomic_load(&from->id))
            continue;
        kn_status own = atomic_load(&from->fault_armed) ? check_record(from) : KN_OK,
                  others = check_fault_sources(from);
        status = status != KN_OK ? status : own != KN_OK ? own : others;
    }
    return status;
}

/* --- of the stream itself --------------------------------------------------------------------- */

/* The codes of cl/common/koine.clh. */
enum { NOT_POSITIVE = 2, SINGULAR, NOT_FINITE };

static kn_status report(const kn_stream *stream, const cl_int record[FAULT_INTS])
{
    const char *operation = operation_name(record[3]), *device = stream->device->label;

    if (record[0] == NOT_POSITIVE)
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s: matrix %d of the batch is not positive definite: its leading minor of order %d is not "
                       "positive (found by the kernel on %s)",
                       operation, record[1], record[2], device);
    if (record[0] == SINGULAR)
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s: matrix %d of the batch is singular: pivot %d is 0 (found by the kernel on %s)", operation,
                       record[1], record[2], device);
    if (record[0] == NOT_FINITE)
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s: matrix %d of the batch has an element that is infinite or NaN (found by the kernel on %s)",
                       operation, record[1], device);
    return kn_fail(KN_ERR_ARGUMENT, "%s: index %d is out of range for size %d (found by the kernel on %s)", operation,
                   record[1], record[2], device);
}

static kn_status check_record(kn_stream *stream)
{
    KN_TRY(kn_device_check_lost(stream->device));
    cl_int record[FAULT_INTS];
    if (stream->fault_start && !atomic_load_explicit(&kn_injecting, memory_order_relaxed)) {
        memcpy(record, stream->fault_start, sizeof record);
        if (record[0] == 0)
            return KN_OK;
        memset(stream->fault_start, 0, sizeof record);
        return report(stream, record);
    }
    cl_int error = KN_CL(KN_CL_READ, clEnqueueReadBuffer(stream->device->service, stream->fault, CL_TRUE, 0,
                                                         sizeof record, record, 0, NULL, NULL));
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "reading the fault record");
    if (record[0] == 0)
        return KN_OK;
    /* A write that blocks has only taken its data when it returns (Intel's CPU driver makes use of that): without the
     * wait it might erase the fault of a later kernel, since those run in another queue. */
    const cl_int zeros[FAULT_INTS] = {0};
    error =
        clEnqueueWriteBuffer(stream->device->service, stream->fault, CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        error = kn_await_queue(stream->device->service);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "clearing the fault record");
    return report(stream, record);
}

kn_status kn_stream_check_fault(kn_stream *stream, bool armed)
{
    kn_status own = armed ? check_record(stream) : KN_OK, others = check_fault_sources(stream);
    if (own != KN_OK && own != KN_ERR_ARGUMENT) /* the record must still be reported */
        atomic_store(&stream->fault_armed, true);
    return own == KN_OK ? others : own;
}
