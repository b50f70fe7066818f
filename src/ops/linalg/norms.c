/* ops/linalg/norms.c - norms of vectors and matrices, and the condition number. Compositions. */
#include <koine/index.h>
#include <koine/logic.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "base/error.h"
#include "ops/linalg/linalg.h"
#include "ops/shape/reduce.h"

/* --- of matrices -------------------------------------------------------------------------------------------------- */

/* The sum, largest or smallest of the singular values. */
static kn_tensor *norm_of_values(kn_tensor *a, kn_matrix_norm norm, int row, int column, bool keepdim)
{
    int dims[KN_MAX_DIMS], count = 0;

    for (int d = 0; d < a->ndim; d++)
        if (d != row && d != column)
            dims[count++] = d;
    dims[count++] = row;
    dims[count++] = column;
    kn_tensor *s = kn_linalg_svdvals(kn_permute(a, dims)), *result;
    if (norm == KN_MATRIX_NORM_NUC)
        result = kn_sum_dims(s, (int[]){-1}, 1, false);
    else
        result = (norm == KN_MATRIX_NORM_2 ? kn_amax : kn_amin)(s, (int[]){-1}, 1, false);
    if (!keepdim)
        return result;
    return kn_unsqueeze(kn_unsqueeze(result, row < column ? row : column), row < column ? column : row);
}

/* Of the matrices of two dimensions, counted from the front. */
static kn_tensor *matrix_norm(kn_tensor *a, kn_matrix_norm norm, int row, int column, bool keepdim)
{
    const bool is_by_column = norm == KN_MATRIX_NORM_1 || norm == KN_MATRIX_NORM_MINUS_1;
    const bool is_largest = norm == KN_MATRIX_NORM_1 || norm == KN_MATRIX_NORM_INF;

    switch (norm) {
    case KN_MATRIX_NORM_FRO:
        return kn_norm_dims(a, 2, (int[]){row, column}, 2, keepdim);
    case KN_MATRIX_NORM_NUC:
    case KN_MATRIX_NORM_2:
    case KN_MATRIX_NORM_MINUS_2:
        return norm_of_values(a, norm, row, column, keepdim);
    default:
        break;
    }
    kn_tensor *sums = kn_sum_dims(kn_abs(a), (int[]){is_by_column ? row : column}, 1, true);
    return (is_largest ? kn_amax : kn_amin)(sums, (int[]){row, column}, 2, keepdim);
}

kn_tensor *kn_linalg_matrix_norm(kn_tensor *a, kn_matrix_norm norm, bool keepdim)
{
    return kn_has_matrices("linalg_matrix_norm", a) ? matrix_norm(a, norm, a->ndim - 2, a->ndim - 1, keepdim) : NULL;
}

/* --- of either, by PyTorch's rules -------------------------------------------------------------------------------- */

static kn_status find_matrix_norm(kn_matrix_norm *norm, const kn_linalg_norm_args *args)
{
    static const double ords[] = {2, -2, 1, -1, (double)INFINITY, -(double)INFINITY};
    static const kn_matrix_norm norms[] = {KN_MATRIX_NORM_2,       KN_MATRIX_NORM_MINUS_2, KN_MATRIX_NORM_1,
                                           KN_MATRIX_NORM_MINUS_1, KN_MATRIX_NORM_INF,     KN_MATRIX_NORM_MINUS_INF};
    *norm = args->kind == KN_NORM_NUC ? KN_MATRIX_NORM_NUC : KN_MATRIX_NORM_FRO;
    if (args->kind != KN_NORM_ORD)
        return KN_OK;
    for (size_t i = 0; i < sizeof ords / sizeof *ords; i++)
        if (args->ord == ords[i]) {
            *norm = norms[i];
            return KN_OK;
        }
    return kn_fail(KN_ERR_ARGUMENT, "ord of a matrix must be 1, -1, 2, -2, inf or -inf, or the kind fro or nuc, not %g",
                   args->ord);
}

static kn_status norm_enter(kn_entry *entry)
{
    const kn_linalg_norm_args *args = entry->params;
    kn_tensor *x = entry->inputs[0];
    int dims[KN_MAX_DIMS], count = args->dims.count;
    char text[KN_DESCRIBE];

    for (int i = 0; i < count; i++)
        KN_TRY(kn_dim_from_front(&dims[i], args->dims.values[i], x->ndim));
    if (args->kind == KN_NORM_DEFAULT)
        return kn_status_of(entry->result = kn_norm_dims(x, 2, dims, count, args->keepdim));
    if (count > 2)
        return kn_fail(KN_ERR_ARGUMENT, "dims must be 1 dimension of vectors, or 2 of matrices, not %d", count);
    if (count == 0 && (x->ndim < 1 || x->ndim > 2))
        return kn_fail(KN_ERR_SHAPE, "without dims x must be a vector or a matrix, not %s",
                       kn_tensor_describe(text, sizeof text, x));
    for (; args->dims.count == 0 && count < x->ndim; count++)
        dims[count] = count;
    if (count == 1 && args->kind != KN_NORM_ORD)
        return kn_fail(KN_ERR_ARGUMENT, "the norm %s is one of matrices: it takes 2 dims, not 1",
                       args->kind == KN_NORM_FRO ? "fro" : "nuc");
    if (count == 1)
        return kn_status_of(entry->result = kn_norm_dims(x, args->ord, dims, 1, args->keepdim));
    if (dims[0] == dims[1])
        return kn_fail(KN_ERR_ARGUMENT, "dims must be two different dimensions, not %d twice", dims[0]);
    kn_matrix_norm norm;
    KN_TRY(find_matrix_norm(&norm, args));
    return kn_status_of(entry->result = matrix_norm(x, norm, dims[0], dims[1], args->keepdim));
}

static const char *const kinds[] = {"default", "ord", "fro", "nuc", NULL};
static const kn_op_param norm_rows[] = {KN_PARAM(kn_linalg_norm_args, kind, .values = kinds),
                                        KN_PARAM(kn_linalg_norm_args, ord), KN_PARAM(kn_linalg_norm_args, dims),
                                        KN_PARAM(kn_linalg_norm_args, keepdim)};
const kn_op kn_linalg_norm_op = {.name = "linalg_norm",
                                 .inputs = {"x"},
                                 .dtypes = {KN_DTYPES_FLOATING},
                                 .params = KN_PARAMS(kn_linalg_norm_args, norm_rows, .ord = 2),
                                 .composes = true,
                                 .enter = norm_enter};

kn_tensor *kn_linalg_norm(kn_tensor *x, kn_norm_kind kind, double ord, const int *dims, int num_dims, bool keepdim)
{
    kn_linalg_norm_args args = {.kind = kind, .ord = ord, .keepdim = keepdim};

    return kn_reduce_named(&args.dims, "linalg_norm", dims, num_dims) ? kn_invoke(&kn_linalg_norm_op, &args, x) : NULL;
}

/* --- the condition number ----------------------------------------------------------------------------------------- */

/* The largest singular value divided by the smallest, or the reverse. */
static kn_tensor *ratio_of_values(kn_tensor *a, bool is_reverse)
{
    kn_tensor *s = kn_linalg_svdvals(a);
    kn_tensor *largest = kn_amax(s, (int[]){-1}, 1, false), *smallest = kn_amin(s, (int[]){-1}, 1, false);
    return is_reverse ? kn_div(smallest, largest) : kn_div(largest, smallest);
}

kn_tensor *kn_linalg_cond(kn_tensor *a, kn_matrix_norm norm)
{
    kn_tensor *info;

    if (!kn_has_matrices("linalg_cond", a))
        return NULL;
    if (norm == KN_MATRIX_NORM_2 || norm == KN_MATRIX_NORM_MINUS_2)
        return ratio_of_values(a, norm == KN_MATRIX_NORM_MINUS_2);
    kn_tensor *inverse = kn_linalg_inv_ex(a, &info);
    kn_tensor *product = kn_mul(kn_linalg_matrix_norm(a, norm, false), kn_linalg_matrix_norm(inverse, norm, false));
    return kn_masked_fill(product, kn_ne_scalar(info, 0), (double)INFINITY);
}
