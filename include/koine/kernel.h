/* koine/kernel.h - runs user-defined OpenCL kernels on tensors.
 *
 *     static const char source[] = "#include \"common/koine.clh\"\n"
 *                                  "kernel void scale(KN_OUT(y), KN_IN(x), float factor, long n)\n"
 *                                  "{\n"
 *                                  "    KN_BIND_OUT(float, y);           // global float *y\n"
 *                                  "    KN_BIND_IN(float, x);            // const global float *x\n"
 *                                  "    KN_FOR(i, n) y[i] = factor * x[i];\n"
 *                                  "}\n";
 *     kn_user_kernel *scale = kn_kernel_new(source, "scale", NULL);
 *     kn_kernel_run(scale, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(x), kn_kernel_f32(3), kn_kernel_i64(n)),
 *                   .global = {n});
 *
 * A tensor is passed as two kernel parameters, a memory object and the byte offset of its first element (many tensors
 * share an object): KN_IN(x) and KN_OUT(y) declare them, KN_BIND_IN and KN_BIND_OUT turn them into typed pointers.
 * Elements are laid out as given by kn_stride: pass strides as numbers, or use contiguous tensors. Declare a tensor
 * that is both read and written, or that shares memory with another argument, as KN_INOUT(y), which is neither const
 * nor restrict. The element types are those of docs/dtypes.md; bfloat16 is ushort, which KN_BFLOAT_TO_FLOAT(bits) and
 * kn_float_to_bfloat(value) of "common/bfloat.clh" convert.
 *
 * Kernels run on the calling thread's current stream of the tensors' device, in order with all other operations. They
 * are not recorded: no gradient flows through them. A kernel that writes outside its tensors corrupts memory, as in
 * C. */
#ifndef KOINE_KERNEL_H
#define KOINE_KERNEL_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* A kernel's source, name and options. Immutable: any number of threads may run it at once. */
typedef struct kn_user_kernel kn_user_kernel;

/* The kernel `name` of `source`, OpenCL C 1.2, compiled with `options` (NULL: none). It may include the library's
 * headers, usually "common/koine.clh". It is compiled at its first run on each device, once per process, and stored in
 * the program cache on disk; a compile error is returned by that run, with the line. The strings are copied; the caller
 * frees it. NULL with an error. */
KN_API kn_user_kernel *kn_kernel_new(const char *source, const char *name, const char *options);
KN_API void kn_kernel_free(kn_user_kernel *kernel); /* NULL allowed; pending runs are not affected */

typedef enum kn_kernel_arg_kind {
    KN_KERNEL_INPUT,  /* a tensor that is only read */
    KN_KERNEL_OUTPUT, /* a tensor that is written, or read and written */
    KN_KERNEL_NUMBER, /* by value */
    KN_KERNEL_LOCAL   /* local memory */
} kn_kernel_arg_kind;

/* An argument; created by the functions below. */
typedef struct kn_kernel_arg {
    kn_kernel_arg_kind kind;
    size_t size; /* bytes; for numbers and local memory */
    kn_tensor *tensor;
    const void *pointer; /* for numbers larger than 8 bytes; NULL: `value` */
    union {
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } value;
} kn_kernel_arg;

static inline kn_kernel_arg kn_kernel_input(kn_tensor *tensor)
{
    kn_kernel_arg arg = {KN_KERNEL_INPUT, 0, tensor, NULL, {0}};
    return arg;
}
static inline kn_kernel_arg kn_kernel_output(kn_tensor *tensor)
{
    kn_kernel_arg arg = {KN_KERNEL_OUTPUT, 0, tensor, NULL, {0}};
    return arg;
}
static inline kn_kernel_arg kn_kernel_i32(int32_t value) /* int, uint */
{
    kn_kernel_arg arg = {KN_KERNEL_NUMBER, 4, NULL, NULL, {0}};
    arg.value.i32 = value;
    return arg;
}
static inline kn_kernel_arg kn_kernel_i64(int64_t value) /* long, ulong */
{
    kn_kernel_arg arg = {KN_KERNEL_NUMBER, 8, NULL, NULL, {0}};
    arg.value.i64 = value;
    return arg;
}
static inline kn_kernel_arg kn_kernel_f32(float value)
{
    kn_kernel_arg arg = {KN_KERNEL_NUMBER, 4, NULL, NULL, {0}};
    arg.value.f32 = value;
    return arg;
}
static inline kn_kernel_arg kn_kernel_f64(double value)
{
    kn_kernel_arg arg = {KN_KERNEL_NUMBER, 8, NULL, NULL, {0}};
    arg.value.f64 = value;
    return arg;
}
/* A struct or vector by value; `pointer` must stay valid until kn_kernel_run returns. */
static inline kn_kernel_arg kn_kernel_struct(const void *pointer, size_t bytes)
{
    kn_kernel_arg arg = {KN_KERNEL_NUMBER, bytes, NULL, pointer, {0}};
    return arg;
}
static inline kn_kernel_arg kn_kernel_local(size_t bytes) /* `local T *` */
{
    kn_kernel_arg arg = {KN_KERNEL_LOCAL, bytes, NULL, NULL, {0}};
    return arg;
}

typedef struct kn_kernel_run_params {
    const kn_kernel_arg *args;
    int num_args;
    size_t global[3]; /* work-items; rounded up to a multiple of `local`, so kernels check their range */
    size_t local[3];  /* default 0: 1 on CPU devices, else the driver's choice, on PoCL's GPUs up to 64 */
    int dims;         /* default 0: the number of sizes in `global` before its first 0, at least 1 */
} kn_kernel_run_params;
#define KN_KERNEL_RUN_DEFAULTS .dims = 0
KN_API kn_kernel_run_params kn_kernel_run_params_init(void);

#define KN_KERNEL_ARGS(...)                                                                                            \
    .args = (const kn_kernel_arg[]){__VA_ARGS__},                                                                      \
    .num_args = (int)(sizeof((const kn_kernel_arg[]){__VA_ARGS__}) / sizeof(kn_kernel_arg))

/* Enqueues the kernel. A global size of 0 runs nothing. At least one argument must be a tensor; all tensors must be on
 * the same device, which is not the host. Outputs count as changed in place: backward passes that need their old values
 * fail; an output that requires a gradient is KN_ERR_STATE outside KN_NO_GRAD. KN_ERR_ARGUMENT if the number or kinds
 * of arguments do not match the kernel, or the sizes exceed the device's limits; KN_ERR_DEVICE if the source does not
 * build, or a number does not have its parameter's size. */
KN_API kn_status kn_kernel_run_with(const kn_user_kernel *kernel, const kn_kernel_run_params *params);
#define kn_kernel_run(kernel, ...)                                                                                     \
    KN_CALL(kn_kernel_run_with(kernel, &(const kn_kernel_run_params){KN_KERNEL_RUN_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
