/* rt/command/launch.h - running kernels.
 *
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
#pragma once

#include "rt/device/device.h"
#include "rt/memory/buffer.h"

/* Of rt/compile: MEMORY is a buffer by its memory object, the cl_mem `pointer`, with `before` bytes before the offset
 * and `size` from there on; and a FAULT with a pointer has another record than the stream's. `start` is the object's
 * address in kernels, where they get addresses. */
typedef enum kn_arg_kind { KN_ARG_BUFFER, KN_ARG_BYTES, KN_ARG_LOCAL, KN_ARG_FAULT, KN_ARG_MEMORY } kn_arg_kind;

typedef struct kn_arg {
    kn_arg_kind kind;
    size_t size;             /* of BYTES, LOCAL and MEMORY */
    size_t before;           /* of MEMORY */
    const kn_buffer *buffer; /* of BUFFER */
    int64_t offset;          /* of BUFFER and MEMORY, in bytes */
    const char *start;       /* of MEMORY and FAULT */
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

/* The stream's fault record (KN_FAULT in the kernel): a kernel that finds an index out of range writes it there instead
 * of accessing memory out of bounds, and the next synchronize or read of the stream reports it with the launch's
 * `operation`. */
static inline kn_arg kn_arg_fault(void) { return (kn_arg){.kind = KN_ARG_FAULT}; }

/* `source`, `kernel` and `operation` are kept, not copied, by launches that are put off until their kernels are
 * compiled, and by the faults that kernels report: they live as long as the program. Names of the program's own code
 * are those of its kn_user_source, which do. */
typedef struct kn_launch_params {
    const char *source;    /* "pointwise/unary.cl" */
    const char *options;   /* build options: "-DT=float"; NULL: none */
    const char *kernel;    /* "scale" */
    const char *operation; /* for messages and profiles: "conv2d"; NULL: the kernel's name */
    int dims;              /* 1 to 3 */
    size_t global[3]; /* work-items; any 0 makes the launch a no-op. Rounded up to a multiple of `local`: kernels check
                         their range */
    size_t local[3];  /* {0}: 1 on CPU devices, else the driver's choice */
    const kn_arg *args;
    int num_args;
} kn_launch_params;

/* The number of work-items for a loop over `n` elements (KN_FOR in the kernel): on CPU devices a few per core, each
 * with at least `grain` elements; on others enough to fill the device, a multiple of 64. */
size_t kn_work_items(const kn_limits *limits, int64_t n, int64_t grain);

/* The only way to run a kernel: builds the program if necessary (cached in memory and on disk), sets the arguments,
 * enqueues. */
kn_status kn_launch(kn_stream *stream, const kn_launch_params *params);

/* kn_run(stream, .source = "...", .kernel = "...", .dims = 1, .global = {n}, KN_ARGS(kn_arg_i64(n), ...)) */
#define KN_ARGS(...)                                                                                                   \
    .args = (const kn_arg[]){__VA_ARGS__}, .num_args = (int)(sizeof((kn_arg[]){__VA_ARGS__}) / sizeof(kn_arg))
#define kn_run(stream, ...) kn_launch(stream, &(const kn_launch_params){__VA_ARGS__})
