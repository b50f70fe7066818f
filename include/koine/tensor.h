/* koine/tensor.h - tensors: creation, ownership, properties, transfers, reading and printing.
 *
 * Shapes are given as `KN_SHAPE(2, 3)`, which expands to the two arguments `int ndim, const int64_t *shape`;
 * `KN_SCALAR` is the shape of a 0-dimensional tensor. At most KN_MAX_DIMS dimensions; sizes may be 0.
 *
 * Ownership. Every tensor returned by a function (unless documented as "borrowed") belongs to the calling thread's
 * innermost open scope, which releases it when it ends. If no scope is open it belongs to the caller, who calls
 * kn_release. kn_retain keeps a tensor beyond its scope:
 *
 *     for (...) {
 *         KN_SCOPE;                    // to the end of this block
 *         kn_tensor *loss = kn_cross_entropy(kn_forward(net, x), y);
 *         kn_backward(loss);
 *         kn_optim_step(opt);
 *     }                                // the step's temporaries are released here
 *
 * Operators (koine/pointwise.h, reduce.h, matmul.h, shape.h, conv.h, pool.h, norm.h, loss.h, join.h) are tensor
 * expressions: they return a new tensor, or NULL with a sticky error (koine/status.h); NULL in gives NULL out. All
 * inputs are on one device. Work is enqueued on the calling thread's current stream of that device, and the call
 * returns before it is done. They are differentiable unless stated otherwise. Semantics, names and dtype rules are
 * PyTorch's.
 *
 * Functions whose names end in "_" change their first argument in place and return it, without a new reference. The
 * change is recorded (koine/autograd.h). Where elements share memory (kn_expand) only kn_fill_ and kn_zero_ work; the
 * others are KN_ERR_STATE.
 *
 * Reference counts are atomic; a tensor's values are not protected: only one thread at a time may write them. */
#ifndef KOINE_TENSOR_H
#define KOINE_TENSOR_H

#include <koine/common.h>
#include <koine/device.h>
#include <koine/dtype.h>
#include <koine/status.h>
#include <stdio.h>

KN_BEGIN_DECLS

#define KN_SHAPE(...) ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), ((const int64_t[]){__VA_ARGS__})
#define KN_SCALAR 0, ((const int64_t *)0)

/* A list of tensors, which expands to the two arguments `kn_tensor *const *tensors, int count`: KN_TENSORS(x, y). */
#define KN_TENSORS(...)                                                                                                \
    ((kn_tensor *const[]){__VA_ARGS__}), ((int)(sizeof((kn_tensor *const[]){__VA_ARGS__}) / sizeof(kn_tensor *)))

/* --- scopes and references -------------------------------------------------------------------- */

/* Opens a scope on the calling thread; returns its depth (>= 1), or 0 with an error if out of host memory. kn_scope_end
 * closes the scope of that depth and any deeper one still open. */
KN_API int kn_scope_begin(void);
KN_API void kn_scope_end(int depth);

/* Ends the scope like kn_scope_end, but passes `tensor` (NULL is allowed) to the enclosing scope, or to the caller if
 * there is none. Returns `tensor`. For functions that build a result from temporaries. */
KN_API kn_tensor *kn_scope_return(int depth, kn_tensor *tensor);

/* For languages that count references themselves, in functions that the library calls (a module's forward, a hook):
 * until the matching resume, which takes what suspend returned, results belong to the caller although scopes are open.
 * Pairs nest, on one thread. */
KN_API int kn_scope_suspend(void);
KN_API void kn_scope_resume(int suspended);

/* A scope to the end of the enclosing block (a guard: koine/common.h). A tensor that a function returns from inside
 * must be retained first. */
#define KN_SCOPE KN_GUARD(int, kn_scope_, kn_scope_begin(), kn_scope_leave)
static inline void kn_scope_leave(int *depth) { kn_scope_end(*depth); }

/* Adds a reference, owned by the caller. Returns its argument; NULL allowed. */
KN_API kn_tensor *kn_retain(kn_tensor *tensor);
KN_API void kn_release(kn_tensor *tensor); /* drops a reference; NULL allowed */

/* --- creation --------------------------------------------------------------------------------- */

typedef struct kn_tensor_options {
    kn_dtype dtype;     /* default float32; int64 for kn_arange with integers, kn_randint, kn_randperm */
    kn_device *device;  /* default: the calling thread's current device */
    bool requires_grad; /* default false; floating dtypes only */
    bool pin_memory;    /* default false; host tensors only (the default device is then the host): see below */
    /* of random numbers (koine/random.h); default NULL: that of the device */
    kn_generator *generator;
} kn_tensor_options;
#define KN_TENSOR_DEFAULTS .dtype = KN_DTYPE_DEFAULT
KN_API kn_tensor_options kn_tensor_options_init(void);

/* Uninitialised / all zeros / all ones / all `value`. */
KN_API kn_tensor *kn_empty_with(int ndim, const int64_t *shape, const kn_tensor_options *options);
KN_API kn_tensor *kn_zeros_with(int ndim, const int64_t *shape, const kn_tensor_options *options);
KN_API kn_tensor *kn_ones_with(int ndim, const int64_t *shape, const kn_tensor_options *options);
KN_API kn_tensor *kn_full_with(int ndim, const int64_t *shape, kn_scalar value, const kn_tensor_options *options);

/* A copy of `data`: the elements in row-major order, of the options' dtype. */
KN_API kn_tensor *kn_from_data_with(const void *data, int ndim, const int64_t *shape, const kn_tensor_options *options);

/* start, start + step, ... below `end` (above it for a negative step); ceil((end - start) / step) elements. */
KN_API kn_tensor *kn_arange_with(double start, double end, double step, const kn_tensor_options *options);

#define kn_empty(shape, ...) KN_CALL(kn_empty_with(shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_zeros(shape, ...) KN_CALL(kn_zeros_with(shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_ones(shape, ...) KN_CALL(kn_ones_with(shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_full(shape, value, ...)                                                                                     \
    KN_CALL(kn_full_with(shape, KN_NUMBER(value), &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_from_data(data, shape, ...)                                                                                 \
    KN_CALL(kn_from_data_with(data, shape, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_arange(start, end, step, ...)                                                                               \
    KN_CALL(kn_arange_with(start, end, step, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))

/* Shape, dtype and device of `like`; values uninitialised, 0, 1 or `value`, which is converted to the dtype. Random
 * ones: kn_rand_like, kn_randn_like (koine/random.h). */
KN_API kn_tensor *kn_empty_like(const kn_tensor *like);
KN_API kn_tensor *kn_zeros_like(const kn_tensor *like);
KN_API kn_tensor *kn_ones_like(const kn_tensor *like);
KN_API kn_tensor *kn_full_like_with(const kn_tensor *like, kn_scalar value);
#define kn_full_like(like, value) kn_full_like_with(like, KN_NUMBER(value))

/* --- properties ------------------------------------------------------------------------------- */

KN_API int kn_ndim(const kn_tensor *tensor);                /* 0 for NULL */
KN_API const int64_t *kn_shape(const kn_tensor *tensor);    /* borrowed; NULL for NULL */
KN_API int64_t kn_size(const kn_tensor *tensor, int dim);   /* a negative dim counts from the end; -1 outside */
KN_API int64_t kn_stride(const kn_tensor *tensor, int dim); /* in elements */
KN_API int64_t kn_numel(const kn_tensor *tensor);           /* number of elements; 0 for NULL */
KN_API kn_dtype kn_dtype_of(const kn_tensor *tensor);
KN_API kn_device *kn_device_of(const kn_tensor *tensor);
KN_API bool kn_is_contiguous(const kn_tensor *tensor); /* row-major without gaps */

/* A pointer to the first element of a host tensor, for reading and writing; NULL with an error for other devices.
 * Borrowed. Waits for pending copies between the tensor's memory and devices (see below). */
KN_API void *kn_data(kn_tensor *tensor);

/* --- transfers and reading ----------------------------------------------------------------------- */

/* The tensor on `device`, or as `dtype`: a differentiable copy, or the tensor itself (with one more reference, owned
 * like any result) if nothing changes. */
KN_API kn_tensor *kn_to(kn_tensor *tensor, kn_device *device);
KN_API kn_tensor *kn_to_dtype(kn_tensor *tensor, kn_dtype dtype);

/* --- asynchronous copies ---------------------------------------------------------------------- *
 * Pinned memory is host memory that a device can access asynchronously. A non_blocking copy between a device and a
 * contiguous pinned tensor is only enqueued on the current stream; any other copy is an ordinary one even with
 * non_blocking (pageable memory has been read when the call returns).
 *
 * It cannot corrupt data: pinned memory, which a tensor's views share, tracks its pending copies. kn_data waits for all
 * of them, since the caller may write; kn_read, kn_item and copies from the tensor wait for those that write it;
 * kn_write and kn_copy_ into it wait for all; another non_blocking copy waits for those that conflict, on the device if
 * they use the same one. A failed copy to the host is reported once, by whichever of these comes first. Releasing the
 * tensor does not wait: its memory is kept until the copies are done. Accesses through pointers cannot be tracked: do
 * not use a pointer from kn_data after a later non_blocking copy; call kn_data again. An index error found by a kernel
 * before a non_blocking copy to the host is reported by the next call that synchronises the stream. */

/* A copy in pinned memory, or the tensor itself if it is already pinned; for transfers with the calling thread's
 * current device. torch.Tensor.pin_memory. Host tensors only (KN_ERR_DEVICE otherwise). */
KN_API kn_tensor *kn_pin_memory(kn_tensor *tensor);
KN_API bool kn_is_pinned(const kn_tensor *tensor); /* false for NULL and for device tensors */

/* torch.Tensor.to. A differentiable copy, or the tensor itself if nothing changes. With non_blocking a copy from a
 * device to the host is in new pinned memory.
 *
 *     kn_tensor *x = kn_to_device(batch, device, .non_blocking = true); */
typedef struct kn_to_params {
    kn_device *device; /* default NULL: the tensor's */
    kn_dtype dtype;    /* default: the tensor's */
    bool non_blocking; /* default false */
    bool copy;         /* default false; true: copy even if nothing changes */
} kn_to_params;
#define KN_TO_DEFAULTS .device = NULL, .dtype = KN_DTYPE_DEFAULT
KN_API kn_to_params kn_to_params_init(void);
KN_API kn_tensor *kn_to_with(kn_tensor *tensor, const kn_to_params *params);
#define kn_to_device(tensor, to, ...)                                                                                  \
    KN_CALL(kn_to_with(tensor, &(kn_to_params){KN_TO_DEFAULTS, .device = (to), __VA_ARGS__}))

/* Copies all elements, in row-major order and the tensor's dtype, to / from host memory. `bytes` must be the exact
 * size. kn_read waits for the work that computes the values and reports errors detected by kernels. kn_write may return
 * before the copy is done, but `source` may be reused at once; it is not recorded (gradients are those of the old
 * values) and does not accept expanded tensors. */
KN_API kn_status kn_read(const kn_tensor *tensor, void *destination, size_t bytes);
KN_API kn_status kn_write(kn_tensor *tensor, const void *source, size_t bytes);

/* The value of a tensor with one element, as torch.Tensor.item. */
KN_API kn_status kn_item(const kn_tensor *tensor, double *value);
KN_API kn_status kn_item_i64(const kn_tensor *tensor, int64_t *value);

/* destination[...] = source, with broadcasting and conversion, also across devices. Not recorded: KN_ERR_STATE if
 * either requires a gradient, outside KN_NO_GRAD. */
KN_API kn_status kn_copy_(kn_tensor *destination, const kn_tensor *source);

typedef struct kn_copy_params {
    bool non_blocking; /* default false */
} kn_copy_params;
#define KN_COPY_DEFAULTS .non_blocking = false
KN_API kn_copy_params kn_copy_params_init(void);
/* kn_copy_ with options: kn_copy(pinned, x, .non_blocking = true). torch.Tensor.copy_. */
KN_API kn_status kn_copy_with(kn_tensor *destination, const kn_tensor *source, const kn_copy_params *params);
#define kn_copy(destination, source, ...)                                                                              \
    KN_CALL(kn_copy_with(destination, source, &(kn_copy_params){KN_COPY_DEFAULTS, __VA_ARGS__}))

/* --- printing --------------------------------------------------------------------------------- */

/* torch.set_printoptions: what kn_to_string writes, in all threads. */
typedef enum kn_sci_mode { KN_SCI_AUTO, KN_SCI_ALWAYS, KN_SCI_NEVER } kn_sci_mode;
typedef struct kn_print_options {
    int precision;        /* default 4: digits after the point; from 0 to 50 */
    int64_t threshold;    /* default 1000: a tensor of more elements is abridged */
    int edge_items;       /* default 3: elements at each end of a dimension that is; at least 1 */
    int line_width;       /* default 80; at least 1 */
    kn_sci_mode sci_mode; /* default KN_SCI_AUTO: scientific where the magnitudes need it */
} kn_print_options;
#define KN_PRINT_DEFAULTS .precision = 4, .threshold = 1000, .edge_items = 3, .line_width = 80
KN_API kn_print_options kn_print_options_init(void);
KN_API kn_print_options kn_get_print_options(void);
KN_API kn_status kn_set_print_options_with(const kn_print_options *options); /* NULL: the defaults */
#define kn_set_print_options(...)                                                                                      \
    KN_CALL(kn_set_print_options_with(&(kn_print_options){KN_PRINT_DEFAULTS, __VA_ARGS__}))

/* The text that PyTorch prints for the tensor, with `device='...'` unless it is on the host. The caller frees it with
 * kn_free; NULL with an error on failure. */
KN_API char *kn_to_string(const kn_tensor *tensor);
KN_API kn_status kn_print(const kn_tensor *tensor, FILE *file); /* that text and a newline */

KN_END_DECLS

#endif
