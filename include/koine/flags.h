/* koine/flags.h - what torch.backends and torch.use_deterministic_algorithms set: how implementations are chosen.
 *
 * Many operations (matrix products, the passes of convolutions) have several implementations, of which a rule picks one
 * for each problem. These flags change how. They hold for the whole process and may be read and set by any thread;
 * operations that are called after the change obey it. Unless set, each starts from its environment variable. */
#ifndef KOINE_FLAGS_H
#define KOINE_FLAGS_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* --- benchmark -------------------------------------------------------------------------------- *
 * torch.backends.cudnn.benchmark; KOINE_BENCHMARK=1; default off. The first time a problem (operation, shapes, dtype)
 * is met on a device, all implementations that suit it and that the other flags allow are timed, and the fastest is
 * used from then on. The winner is kept on disk, under KOINE_CACHE_DIR/tuning, per device and driver. That first
 * time waits for the device. While a stream is being captured nothing is timed. Different implementations round
 * differently: results may differ in their last bits from those without benchmark. */
KN_API void kn_set_benchmark(bool enabled);
KN_API bool kn_get_benchmark(void);

/* Forgets the winners in memory, and those on disk if `on_disk`; returns KN_ERR_IO when a file cannot be removed. */
KN_API kn_status kn_benchmark_clear(bool on_disk);

/* --- determinism ------------------------------------------------------------------------------ *
 * Koine is deterministic by default: on one device, equal inputs give equal bits. These flags hold future, faster
 * implementations that are not to that, and user-visible promises do not change with them: none of today's
 * implementations is nondeterministic, so switching them on costs nothing. */

/* torch.backends.cudnn.deterministic; KOINE_DETERMINISTIC=1; default off. Nondeterministic implementations are not
 * chosen where a deterministic one exists. */
KN_API void kn_set_deterministic(bool enabled);
KN_API bool kn_get_deterministic(void);

/* torch.use_deterministic_algorithms(mode, warn_only=...); KOINE_DETERMINISTIC=error or =warn; default off. As above,
 * and where there is none but a nondeterministic one the operation is an error (KN_ERR_STATE), or a warning in the log.
 * KN_ERR_ARGUMENT for anything that is no mode. */
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
 * What implementations may do to float32 and float16 products to be faster, on devices with units for it. All off by
 * default, unlike in PyTorch, where convolutions may use TF32 unless told otherwise: results do not lose precision
 * unasked. An implementation that works in reduced precision is chosen only while it is allowed.
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
/* KN_ERR_ARGUMENT unless `what` is one of these, or several joined by | */
KN_API kn_status kn_set_allow_reduced_precision(unsigned what, bool allowed);
KN_API bool kn_get_allow_reduced_precision(unsigned what); /* all of `what`? */

/* torch.set_float32_matmul_precision: "highest" (float32; the default), "high" and "medium" (TF32 allowed in matrix
 * products). KN_ERR_ARGUMENT for any other text. */
KN_API kn_status kn_set_float32_matmul_precision(const char *precision);
KN_API const char *kn_get_float32_matmul_precision(void);

/* --- fusion ----------------------------------------------------------------------------------- *
 * Modules apply a ReLU or ReLU6 that follows a layer in the same pass as the layer (koine/nn.h, kn_forward_activated).
 * KOINE_FUSION=0; default on. Results are the same either way; off, each layer is an operation of its own, in profiles
 * too. */
KN_API void kn_set_fusion(bool enabled);
KN_API bool kn_get_fusion(void);

/* --- what is built in ------------------------------------------------------------------------- */

/* torch.backends.cudnn.version() and is_available(): "clblast" is the library of matrix products that Koine was built
 * with, "1.5.3" say; "opencl" the version of the calling thread's current device. NULL with an error for any other
 * name, or where there is no device. kn_backend_is_available: whether the name has a version. */
KN_API const char *kn_backend_version(const char *backend);
KN_API bool kn_backend_is_available(const char *backend);

KN_END_DECLS

#endif
