/* koine/dtype.h - element types. Thread-safe. */
#ifndef KOINE_DTYPE_H
#define KOINE_DTYPE_H

#include <koine/common.h>

KN_BEGIN_DECLS

#define KN_MAX_DIMS 8

typedef enum kn_dtype {
    KN_DTYPE_DEFAULT = 0, /* in options: float32, or what the function documents */
    KN_F64,
    KN_F32,
    KN_F16, /* storage; arithmetic is in f32 if the device has none in f16 */
    KN_I64,
    KN_I32,
    KN_U8,
    KN_BOOL /* one byte, 0 or 1 */
} kn_dtype;

KN_API const char *kn_dtype_name(kn_dtype dtype); /* PyTorch's: "float32", "int64", "bool", ... */
KN_API size_t kn_dtype_size(kn_dtype dtype);      /* bytes of one element */
KN_API bool kn_dtype_is_floating(kn_dtype dtype);

/* The dtype of an operation on two tensors, by PyTorch's promotion table (torch.promote_types). */
KN_API kn_dtype kn_promote_types(kn_dtype a, kn_dtype b);

KN_END_DECLS

#endif
