/* koine/flags.h - how implementations are chosen, as torch.backends and torch.use_deterministic_algorithms.
 *
 * Many operations (matrix products, the passes of convolutions) have several implementations, of which a rule selects
 * one for each problem. These flags influence the choice. They apply to the whole process and are thread-safe;
 * operations called after a change use the new value. Each is initialised from its environment variable. */
#ifndef KOINE_FLAGS_H
#define KOINE_FLAGS_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* --- benchmark -------------------------------------------------------------------------------- *
 * torch.backends.cudnn.benchmark; KOINE_BENCHMARK=1; default off. The first time a problem (operation, shapes, dtype)
 * runs on a device, all implementations that support it and are allowed by the other flags are timed, and the fastest
 * is used from then on. The choice is saved on disk, under KOINE_CACHE_DIR/tuning, per device and driver. That first
 * run waits for the device. Nothing is timed during a capture. Implementations round differently: results may differ in
 * their last bits from those without benchmark. */
KN_API void kn_set_benchmark(bool enabled);
KN_API bool kn_get_benchmark(void);

/* Deletes the choices in memory, and those on disk if `on_disk`; KN_ERR_IO if a file cannot be removed. */
KN_API kn_status kn_benchmark_clear(bool on_disk);

/* --- determinism ------------------------------------------------------------------------------ *
 * Koine is deterministic by default: on one device, equal inputs give equal bits. These flags are for future, faster
 * implementations that are not. No current implementation is nondeterministic, so turning them on costs nothing. */

/* torch.backends.cudnn.deterministic; KOINE_DETERMINISTIC=1; default off. Nondeterministic implementations are not
 * chosen if there is a deterministic one. */
KN_API void kn_set_deterministic(bool enabled);
KN_API bool kn_get_deterministic(void);

/* torch.use_deterministic_algorithms(mode, warn_only=...); KOINE_DETERMINISTIC=error or =warn; default off. As above,
 * and an operation that has only nondeterministic implementations is an error (KN_ERR_STATE), or logs a warning.
 * KN_ERR_ARGUMENT for an invalid mode. */
typedef enum kn_deterministic_mode {
    KN_DETERMINISTIC_OFF,
    KN_DETERMINISTIC_ERROR,
    KN_DETERMINISTIC_WARN
} kn_deterministic_mode;
KN_API kn_status kn_use_deterministic_algorithms(kn_deterministic_mode mode);
KN_API bool kn_are_deterministic_algorithms_enabled(void);
KN_API bool kn_is_deterministic_algorithms_warn_only_enabled(void);
KN_API kn_deterministic_mode kn_get_deterministic_debug_mode(void);

/* --- reduced precision ------------------------------------------------------------------------ *
 * Allows faster float32 and float16 products of reduced precision, on devices with hardware for it. All are off by
 * default, so results do not lose precision silently; in PyTorch convolutions may use TF32 by default. An
 * implementation with reduced precision is chosen only while it is allowed.
 *
 * torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32: float32 operands rounded to 10 bits of
 * mantissa, float32 sums. torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction: float16 operands summed in
 * float16. */
typedef enum kn_reduced_precision {
    KN_MATMUL_ALLOW_TF32 = 1,
    KN_MATMUL_ALLOW_FP16_REDUCTION = 2,
    KN_CONV_ALLOW_TF32 = 4,
    KN_CONV_ALLOW_FP16_REDUCTION = 8
} kn_reduced_precision;
/* KN_ERR_ARGUMENT unless `what` is one of these or a combination with | */
KN_API kn_status kn_set_allow_reduced_precision(unsigned what, bool allowed);
KN_API bool kn_get_allow_reduced_precision(unsigned what); /* all of `what`? */

/* torch.set_float32_matmul_precision: "highest" (float32; the default), "high" and "medium" (TF32 allowed in matrix
 * products). KN_ERR_ARGUMENT for any other text. */
KN_API kn_status kn_set_float32_matmul_precision(const char *precision);
KN_API const char *kn_get_float32_matmul_precision(void);

/* --- threads ---------------------------------------------------------------------------------- *
 * As torch.set_num_threads: how many threads run a kernel of a CPU device, the calling one included; no more than the
 * device has compute units. Results are the same bits with any number. By default KOINE_NUM_THREADS, else the
 * processors that this process may use, divided by the ranks that a launcher has started on the host. No effect where
 * launches are commands of a driver other than PoCL or Intel's for CPUs. KN_ERR_ARGUMENT: less than 1. */
KN_API kn_status kn_set_num_threads(int count);
KN_API int kn_get_num_threads(void);

/* --- fusion ----------------------------------------------------------------------------------- *
 * Modules fuse a ReLU or ReLU6 with the layer before it (koine/module.h, kn_forward_activated). KOINE_FUSION=0; default
 * on. Results are the same either way; when off, each layer is a separate operation, also in profiles. */
KN_API void kn_set_fusion(bool enabled);
KN_API bool kn_get_fusion(void);

/* Chains of elementwise operations run as one kernel (docs/fusion.md) while a graph is captured, unless kn_set_fusion
 * turned it off, and in a block with KN_FUSE(true), on the calling thread. KN_FUSE(false): neither, to the end of the
 * block. Results are the same bits. */
#define KN_FUSE(enabled) KN_GUARD(int, kn_fuse_guard_, kn_fuse_enter(enabled), kn_fuse_guard_leave)

/* The guard's functions: `enter` returns what `leave` restores. Leaving the outermost block enqueues what is pending;
 * an error of that is the thread's error, and sticky. */
KN_API int kn_fuse_enter(bool enabled);
KN_API void kn_fuse_leave(int before);

static inline void kn_fuse_guard_leave(int *before) { kn_fuse_leave(*before); }

/* --- anomalies -------------------------------------------------------------------------------- *
 * torch.autograd.set_detect_anomaly; KOINE_DETECT_ANOMALY=1; default off. To find where NaN comes from: a backward pass
 * ends at the first operation that makes a gradient with NaN in it, with KN_ERR_NUMERIC, which names the operation and
 * its input. Each operation of the pass waits for the device. */
KN_API void kn_set_detect_anomaly(bool enabled);
KN_API bool kn_is_anomaly_enabled(void);

/* --- what is built in ------------------------------------------------------------------------- */

/* torch.backends.cudnn.version() and is_available(): "clblast" is the version of the matrix product library that Koine
 * was built with, such as "1.5.3"; "opencl" the version of the calling thread's current device. NULL with an error for
 * any other name, or if there is no device. kn_backend_is_available: whether the name has a version. */
KN_API const char *kn_backend_version(const char *backend);
KN_API bool kn_backend_is_available(const char *backend);

KN_END_DECLS

#endif
