/* rt/rt.h - the runtime as the layers above see it: devices, streams, buffers, kernel launches, transfers. Only src/rt
 * calls OpenCL. */
#ifndef KN_RT_RT_H
#define KN_RT_RT_H

#include <koine/device.h>
#include <koine/graph.h>
#include <koine/stream.h>

#include "rt/device/limits.h"

/* --- devices ---------------------------------------------------------------------------------- */

/* As kn_device_open, without opening it: no context, no memory of the device is taken. */
kn_status kn_device_find(kn_device **device, const char *name);

const kn_limits *kn_device_limits(const kn_device *device);
bool kn_device_is_host(const kn_device *device);
int kn_device_slot(const kn_device *device); /* 0 for the host, 1 + index for the others; below KN_MAX_DEVICES */
#define KN_MAX_DEVICES 64
const char *kn_device_extensions(const kn_device *device); /* OpenCL's list, separated by blanks */

/* Calls so far that made the host wait until device work was done: reads, synchronizes, writes too large to be staged.
 */
uint64_t kn_host_wait_count(void);

/* --- buffers ---------------------------------------------------------------------------------- *
 * A block of device memory from the device's caching pool. It belongs to the stream that it was allocated on: freed, it
 * may be reused at once by later work on that stream. Launches and transfers on another stream are noted, and the block
 * then waits for them before it is reused. */

typedef struct kn_buffer kn_buffer;

/* 0 bytes gives a valid, minimal buffer */
kn_status kn_buffer_alloc(kn_buffer **buffer, kn_stream *stream, size_t bytes);
void kn_buffer_free(kn_buffer *buffer); /* NULL allowed */
kn_device *kn_buffer_device(const kn_buffer *buffer);
size_t kn_buffer_size(const kn_buffer *buffer);

/* Where a buffer is: its memory object (a cl_mem) and its first byte in it. */
void *kn_buffer_native(const kn_buffer *buffer, size_t *byte_offset);

/* Notes that `stream` uses the buffer, if it is not the buffer's own. */
void kn_buffer_mark_use(const kn_buffer *buffer, kn_stream *stream);

/* --- launching kernels ------------------------------------------------------------------------ *
 * Kernel sources are the files under cl/, named by their path there. A buffer argument becomes two kernel parameters,
 * the memory object and a byte offset into it; cl/common/koine.clh declares and binds them:
 *
 *     #include "common/koine.clh"
 *     kernel void scale(KN_IN(x), KN_OUT(y), real a, long n)
 *     {
 *         KN_BIND_IN(T, x);          // const global T *x
 *         KN_BIND_OUT(T, y);         // global T *y
 *         for (long i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = a * x[i];
 *     }
 */

typedef enum kn_arg_kind { KN_ARG_BUFFER, KN_ARG_BYTES, KN_ARG_LOCAL, KN_ARG_FAULT } kn_arg_kind;

typedef struct kn_arg {
    kn_arg_kind kind;
    size_t size;             /* of BYTES and LOCAL */
    const kn_buffer *buffer; /* of BUFFER */
    int64_t offset;          /* of BUFFER, in bytes */
    const void *pointer;     /* of BYTES larger than 8 bytes (a struct by value); must live until kn_launch returns */
    const void *variable; /* of BYTES: `pointer` points into this variable, to be read anew at each replay; or NULL */
    union {
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } value;
} kn_arg;

static inline kn_arg kn_arg_buffer(const kn_buffer *buffer, int64_t byte_offset)
{
    return (kn_arg){.kind = KN_ARG_BUFFER, .buffer = buffer, .offset = byte_offset};
}
static inline kn_arg kn_arg_i32(int64_t value)
{
    return (kn_arg){.kind = KN_ARG_BYTES, .size = 4, .value.i32 = (int32_t)value};
}
static inline kn_arg kn_arg_i64(int64_t value) { return (kn_arg){.kind = KN_ARG_BYTES, .size = 8, .value.i64 = value}; }
static inline kn_arg kn_arg_f32(double value)
{
    return (kn_arg){.kind = KN_ARG_BYTES, .size = 4, .value.f32 = (float)value};
}
static inline kn_arg kn_arg_f64(double value) { return (kn_arg){.kind = KN_ARG_BYTES, .size = 8, .value.f64 = value}; }
static inline kn_arg kn_arg_f64_or_f32(bool f64, double value) { return f64 ? kn_arg_f64(value) : kn_arg_f32(value); }
static inline kn_arg kn_arg_struct(const void *pointer, size_t size)
{
    return (kn_arg){.kind = KN_ARG_BYTES, .size = size, .pointer = pointer};
}
static inline kn_arg kn_arg_variable(const void *variable, size_t offset, size_t size)
{
    return (kn_arg){
        .kind = KN_ARG_BYTES, .size = size, .pointer = (const char *)variable + offset, .variable = variable};
}
static inline kn_arg kn_arg_local(size_t bytes) { return (kn_arg){.kind = KN_ARG_LOCAL, .size = bytes}; }

/* The device's fault record (KN_FAULT in the kernel): a kernel that finds an index out of range writes it there instead
 * of reading wildly, and the next synchronise or read of the stream reports it with the launch's `operation`. */
static inline kn_arg kn_arg_fault(void) { return (kn_arg){.kind = KN_ARG_FAULT}; }

typedef struct kn_launch_params {
    const char *source;    /* "pointwise/unary.cl" */
    const char *options;   /* what is compiled in: "-DT=float"; NULL for nothing */
    const char *kernel;    /* "scale" */
    const char *operation; /* for messages and profiles: "conv2d"; NULL: the kernel's name */
    int dims;              /* 1 to 3 */
    size_t global[3]; /* work-items; any 0 makes the launch a no-op. Rounded up to a multiple of `local`: kernels check
                         their range */
    size_t local[3];  /* {0}: 1 on CPU devices, else the driver's choice */
    const kn_arg *args;
    int num_args;
} kn_launch_params;

/* How many work-items a loop over `n` elements wants (KN_FOR in the kernel): a few per core on CPU devices, none with
 * less than `grain` elements; enough to fill the machine, a multiple of 64, on others. */
size_t kn_work_items(const kn_limits *limits, int64_t n, int64_t grain);

/* The one way to run a kernel: builds the program if need be (cached in memory and on disk), sets the arguments,
 * enqueues. */
kn_status kn_launch(kn_stream *stream, const kn_launch_params *params);

/* kn_run(stream, .source = "...", .kernel = "...", .dims = 1, .global = {n}, KN_ARGS(kn_arg_i64(n), ...)) */
#define KN_ARGS(...)                                                                                                   \
    .args = (const kn_arg[]){__VA_ARGS__}, .num_args = (int)(sizeof((kn_arg[]){__VA_ARGS__}) / sizeof(kn_arg))
#define kn_run(stream, ...) kn_launch(stream, &(const kn_launch_params){__VA_ARGS__})

/* --- transfers -------------------------------------------------------------------------------- *
 * Offsets and sizes in bytes. In stream order. */

/* waits */
kn_status kn_buffer_read(kn_stream *stream, const kn_buffer *buffer, size_t offset, void *destination, size_t bytes);
/* source reusable on return; waits for the stream only when it is larger than KN_STAGED_BYTES */
#define KN_STAGED_BYTES ((size_t)1 << 20)
kn_status kn_buffer_write(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *source, size_t bytes);
kn_status kn_buffer_copy(kn_stream *stream, const kn_buffer *source, size_t source_offset, kn_buffer *destination,
                         size_t destination_offset, size_t bytes);
kn_status kn_buffer_fill(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *pattern, size_t pattern_bytes,
                         size_t bytes);

/* Host memory that the device can copy from without the driver's own staging (mapped CL_MEM_ALLOC_HOST_PTR). */
typedef struct kn_pinned kn_pinned;
kn_status kn_pinned_alloc(kn_pinned **pinned, kn_device *device, size_t bytes);
void *kn_pinned_data(kn_pinned *pinned);
void kn_pinned_free(kn_pinned *pinned); /* NULL allowed; no copy from it may be under way */
kn_status kn_buffer_write_pinned(
    kn_stream *stream, kn_buffer *buffer, size_t offset, kn_pinned *source, size_t source_offset,
    size_t bytes); /* returns at once: keep the source unchanged until an event after it has passed */
/* returns at once: the values are there when an event after it has passed */
kn_status kn_buffer_read_pinned(kn_stream *stream, const kn_buffer *buffer, size_t offset, kn_pinned *destination,
                                size_t destination_offset, size_t bytes);

/* --- from device to device -------------------------------------------------------------------- *
 * Each device has a context of its own, so the bytes go by way of pinned host memory: the source's stream fills it, and
 * the streams of any number of other devices take them from there, each in its order. Nothing here waits. */
typedef struct kn_crossing kn_crossing;
kn_status kn_crossing_start(kn_crossing **crossing, kn_stream *from, const kn_buffer *source, size_t offset,
                            size_t bytes);
/* to the device of `to`; at most KN_MAX_DEVICES times */
kn_status kn_crossing_deliver(kn_crossing *crossing, kn_stream *to, kn_buffer *destination, size_t offset);
/* after the last delivery: the memory is used again once all are done; NULL allowed */
void kn_crossing_end(kn_crossing *crossing);

/* --- events ----------------------------------------------------------------------------------- *
 * koine/stream.h has the rest. */

kn_status kn_event_new_recorded(kn_event **event, kn_stream *stream); /* made and recorded */
bool kn_event_has_passed(kn_event *event);                            /* does not wait; failed work is over, too */
bool kn_event_has_failed(const kn_event *event);                      /* the work before it; or the device was lost */
kn_status kn_event_await(kn_event *event); /* waits; not counted as a wait of the user's wish (kn_host_wait_count) */

/* Waits for all that was enqueued on the stream, whatever becomes of it: for memory that is about to go. Never refused,
 * not counted as a wait of the user's wish, no error. */
void kn_stream_settle(kn_stream *stream);

/* --- graphs ----------------------------------------------------------------------------------- *
 * Some arguments of a recorded launch change from replay to replay: where random numbers go on, the step of an
 * optimizer. They live in variables of the recording. While a stream is captured, kn_capture_variable gives memory that
 * stays where it is as long as the graph (and whoever holds it by rt/graph/variable.h); an argument made by
 * kn_arg_variable has at each replay the value that is there once the functions given to kn_capture_on_replay have run,
 * in their order, on the thread that replays. */

/* NULL with an error when memory is exhausted */
void *kn_capture_variable(kn_stream *stream, size_t bytes);
/* fails the capture with the thread's error; returns `status` */
kn_status kn_capture_fail(kn_stream *stream, kn_status status);
/* `drop` (NULL allowed) is called with `user` when the graph is gone, also when this fails */
kn_status kn_capture_on_replay(kn_stream *stream, kn_status (*prepare)(void *user), void *user,
                               void (*drop)(void *user));

/* --- CLBlast ---------------------------------------------------------------------------------- *
 * Row-major C[m,n] = alpha op(A) op(B) + beta C, `batch` times at the given element strides; f32 or f64. Offsets in
 * elements. */

typedef struct kn_gemm_operand {
    kn_buffer *buffer;
    int64_t offset;       /* elements */
    int64_t ld;           /* elements from one row to the next, as stored */
    int64_t batch_stride; /* elements from one matrix to the next */
    bool transposed;      /* op(X) = X^T: stored [k,m] for A, [n,k] for B */
} kn_gemm_operand;

typedef struct kn_gemm_params {
    bool f64;
    int64_t m, n, k, batch;
    double alpha, beta;
    kn_gemm_operand a, b, c; /* c.transposed is false */
} kn_gemm_params;

kn_status kn_clblast_gemm(kn_stream *stream, const kn_gemm_params *params);

#endif
