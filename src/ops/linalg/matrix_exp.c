/* ops/linalg/matrix_exp.c - the exponential of matrices. A composition: its gradients are those of the products. */
#include <koine/autograd.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <math.h>

#include "ops/linalg/linalg.h"

/* A Taylor polynomial of a / 2^s, whose norm is at most 1/2, squared s times: the remainder, (1/2)^16 / 16!, is below
 * float64's rounding. */
enum { DEGREE = 15 };

/* s, of the largest norm of the batch, for which the call waits. */
static kn_status count_squares(kn_tensor *a, int *squares)
{
    double most = 0;
    kn_tensor *sums = kn_sum_dims(kn_abs(kn_detach(a)), (const int[]){-1}, 1, false);
    if (!sums)
        return kn_error_status();
    if (kn_numel(sums) > 0)
        KN_TRY(kn_item(kn_max(sums), &most));
    *squares = most > 0.5 && isfinite(most) ? (int)ceil(log2(2 * most)) : 0;
    return KN_OK;
}

static kn_status matrix_exp_enter(kn_entry *entry)
{
    kn_tensor *a = entry->inputs[0];
    char text[KN_DESCRIBE];
    int squares = 0;

    if (a->ndim < 2 || kn_rows(a) != kn_columns(a))
        return kn_fail(KN_ERR_SHAPE, "a must be batches of square matrices, not %s",
                       kn_tensor_describe(text, sizeof text, a));
    KN_TRY(count_squares(a, &squares));
    a = kn_mul_scalar(a, ldexp(1, -squares));
    kn_tensor *one = kn_identity(kn_rows(a), a->dtype, kn_device_of(a)), *y = one;
    for (int k = DEGREE; k >= 1 && y; k--) /* Horner: 1 + a / k (...) */
        y = kn_add(one, kn_mul_scalar(k == DEGREE ? a : kn_matmul(a, y), 1.0 / k));
    for (int k = 0; k < squares && y; k++)
        y = kn_matmul(y, y);
    return kn_status_of(entry->result = y);
}

const kn_op kn_linalg_matrix_exp_op = {.name = "linalg_matrix_exp",
                                       .inputs = {"a"},
                                       .dtypes = {KN_DTYPES_REAL},
                                       .composes = true,
                                       .enter = matrix_exp_enter};
kn_tensor *kn_linalg_matrix_exp(kn_tensor *a) { return kn_invoke(&kn_linalg_matrix_exp_op, NULL, a); }
