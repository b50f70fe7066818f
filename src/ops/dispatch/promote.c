/* ops/dispatch/promote.c - see promote.h. The rules are those of torch.result_type. */
#include "ops/dispatch/promote.h"

#include "tensor/liveness.h"

static int category(kn_dtype dtype) { return kn_dtype_is_floating(dtype) ? 2 : dtype == KN_BOOL ? 0 : 1; }

kn_dtype kn_result_type(const kn_tensor *a, const kn_tensor *b)
{
    if (a->ndim > 0 && b->ndim == 0 && category(a->dtype) >= category(b->dtype))
        return a->dtype;
    if (b->ndim > 0 && a->ndim == 0 && category(b->dtype) >= category(a->dtype))
        return b->dtype;
    return kn_promote_types(a->dtype, b->dtype);
}

kn_dtype kn_result_type_of(kn_tensor *const *tensors, int count)
{
    kn_dtype result[2] = {KN_BOOL, KN_BOOL}; /* of those with dimensions, and of those without */
    bool seen[2] = {false, false};
    for (int i = 0; i < count; i++) {
        const int kind = tensors[i]->ndim == 0;
        result[kind] = kn_promote_types(result[kind], tensors[i]->dtype);
        seen[kind] = true;
    }
    if (!seen[0] || !seen[1])
        return result[seen[1]];
    return category(result[1]) > category(result[0]) ? kn_promote_types(result[0], result[1]) : result[0];
}

kn_dtype kn_result_type_scalar(kn_dtype dtype, kn_scalar number)
{
    if (kn_dtype_is_floating(dtype))
        return dtype;
    if (!number.is_whole)
        return KN_F32;
    return dtype == KN_BOOL ? KN_I64 : dtype;
}

kn_dtype kn_real_type(kn_dtype dtype) { return kn_dtype_is_floating(dtype) ? dtype : KN_F32; }

bool kn_check_argument(const char *function, const char *name, const kn_tensor *tensor)
{
    if (kn_check_tensor(function, name, tensor) == KN_OK)
        return true;
    kn_error_make_sticky();
    return false;
}
