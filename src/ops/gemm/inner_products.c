/* ops/gemm/inner_products.c - batches of short rows times columns, on CPU devices: the products of their elements, and
 * a sum. To prepare a product of matrices takes longer than one of these. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/dispatch/invoke.h"
#include "ops/gemm/matmul.h"

enum { LONGEST = 256, FEWEST = 64 };

static bool suits(const kn_tensor *a, const kn_tensor *b)
{
    return a->ndim > 2 && b->ndim > 2 && a->shape[a->ndim - 2] == 1 && b->shape[b->ndim - 1] == 1 &&
           a->shape[a->ndim - 1] <= LONGEST && kn_shape_numel(a->ndim - 2, a->shape) >= FEWEST &&
           a->dtype == b->dtype && (a->dtype == KN_F32 || a->dtype == KN_F64) && kn_tensor_limits(a)->is_cpu;
}

kn_status kn_inner_products_enter(kn_entry *entry)
{
    kn_tensor *a = entry->inputs[0], *b = entry->inputs[1];
    if (!suits(a, b))
        return KN_OK;
    KN_TRY(kn_matmul_check(a, b));
    const int scope = kn_scope_begin();
    if (scope == 0)
        return kn_error_status();
    kn_tensor *products = kn_mul(a, kn_transpose(b, -2, -1));
    entry->result = kn_scope_return(scope, kn_sum_dims(products, (const int[]){-1}, 1, true));
    return entry->result ? KN_OK : kn_error_status();
}
