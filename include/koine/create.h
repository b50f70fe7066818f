/* koine/create.h - tensors with regular values. Options as in koine/tensor.h; without a device the current one, without a
 * dtype float32, of indices int64. Not recorded. */
#ifndef KOINE_CREATE_H
#define KOINE_CREATE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* `steps` values from start to end, both included; of logspace the powers of base with these exponents. */
KN_API kn_tensor *kn_linspace_with(double start, double end, int64_t steps, const kn_tensor_options *options);
KN_API kn_tensor *kn_logspace_with(double start, double end, int64_t steps, double base,
                                   const kn_tensor_options *options);
#define kn_linspace(start, end, steps, ...)                                                                            \
    KN_CALL(kn_linspace_with(start, end, steps, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_logspace(start, end, steps, base, ...)                                                                      \
    KN_CALL(kn_logspace_with(start, end, steps, base, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))

/* 1 on the diagonal of a matrix [n, m], else 0. */
KN_API kn_tensor *kn_eye_with(int64_t n, int64_t m, const kn_tensor_options *options);
#define kn_eye(n, m, ...) KN_CALL(kn_eye_with(n, m, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))

/* The rows and columns of the elements of the triangle that kn_tril or kn_triu keeps of a matrix: [2, count]. */
KN_API kn_tensor *kn_tril_indices_with(int64_t rows, int64_t columns, int64_t offset, const kn_tensor_options *options);
KN_API kn_tensor *kn_triu_indices_with(int64_t rows, int64_t columns, int64_t offset, const kn_tensor_options *options);
#define kn_tril_indices(rows, columns, offset, ...)                                                                    \
    KN_CALL(kn_tril_indices_with(rows, columns, offset, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))
#define kn_triu_indices(rows, columns, offset, ...)                                                                    \
    KN_CALL(kn_triu_indices_with(rows, columns, offset, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
