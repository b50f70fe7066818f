/* ops/linalg/matrix_exp.c - the exponential of matrices. A composition: its gradients are those of the products. */
#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "ops/linalg/linalg.h"

/* Taylor polynomials of degree p^2, which take 2 (p - 1) products of matrices (Paterson and Stockmeyer). Of matrices of
 * norm `most` they are exact to the rounding of a: the exponentials of matrices that differ from a by less. */
typedef struct polynomial {
    int p;
    double most, most_f64;
} polynomial;
static const polynomial polynomials[] = {{2, 5.1e-2, 3.3e-4}, {3, 0.77, 8.9e-2}, {4, 2.4, 0.78}};
enum { MOST_P = 4 };

static double most_of(const polynomial *poly, kn_dtype dtype) { return dtype == KN_F64 ? poly->most_f64 : poly->most; }

/* The polynomial, and s of a / 2^s, whose exponential is squared s times: by the largest norm of the batch, for which
 * the call waits. */
static kn_status choose(kn_tensor *a, const polynomial **poly, int *squares)
{
    double norm = 0;
    kn_tensor *sums = kn_sum_dims(kn_abs(kn_detach(a)), (const int[]){-1}, 1, false);
    if (!sums)
        return kn_error_status();
    KN_TRY(kn_item(kn_max(sums), &norm));
    size_t i = 0;
    while (i + 1 < sizeof polynomials / sizeof *polynomials && !(norm <= most_of(&polynomials[i], a->dtype)))
        i++;
    const double most = most_of(&polynomials[i], a->dtype);
    *poly = &polynomials[i];
    *squares = norm > most && isfinite(norm) ? (int)ceil(log2(norm / most)) : 0;
    return KN_OK;
}

/* Row j, of p: the coefficients of 1, a, ..., a^p in the polynomial's terms from degree j p on, of which the last row
 * has one more. */
static kn_tensor *coefficients(int p, kn_dtype dtype, kn_device *device)
{
    float values[MOST_P * (MOST_P + 1)] = {0};
    double wide[MOST_P * (MOST_P + 1)] = {0}, factorial = 1;

    for (int k = 0; k <= p * p; k++) {
        const int row = k < p * p ? k / p : p - 1, at = row * (p + 1) + k - row * p;
        factorial *= k > 0 ? k : 1;
        wide[at] = 1 / factorial;
        values[at] = (float)wide[at];
    }
    return kn_from_data_with(dtype == KN_F64 ? (const void *)wide : values, 2, (int64_t[]){p, p + 1},
                             &(kn_tensor_options){.dtype = dtype, .device = device});
}

/* The polynomial of a: Horner's scheme in a^p. */
static kn_tensor *evaluate(kn_tensor *a, int p)
{
    kn_tensor *powers[MOST_P + 1] = {kn_expand(kn_identity(kn_rows(a), a->dtype, kn_device_of(a)), a->ndim, a->shape),
                                     a};
    for (int i = 2; i <= p; i++)
        powers[i] = kn_matmul(powers[i / 2], powers[i - i / 2]);
    kn_tensor *rows = kn_reshape(kn_stack(powers, p + 1, 0), 2, (int64_t[]){p + 1, kn_numel(a)});
    kn_tensor *terms = kn_matmul(coefficients(p, a->dtype, kn_device_of(a)), rows), *y = NULL;
    for (int j = p - 1; j >= 0; j--) {
        kn_tensor *part = kn_reshape(kn_select(terms, 0, j), a->ndim, a->shape);
        y = j == p - 1 ? part : kn_add(part, kn_matmul(powers[p], y));
    }
    return y;
}

static kn_status matrix_exp_enter(kn_entry *entry)
{
    kn_tensor *a = entry->inputs[0];
    const polynomial *poly = NULL;
    char text[KN_DESCRIBE];
    int squares = 0;

    if (a->ndim < 2 || kn_rows(a) != kn_columns(a))
        return kn_fail(KN_ERR_SHAPE, "a must be batches of square matrices, not %s",
                       kn_tensor_describe(text, sizeof text, a));
    if (kn_numel(a) == 0)
        return kn_status_of(entry->result = kn_mul_scalar(a, 1));
    KN_TRY(choose(a, &poly, &squares));
    kn_tensor *y = evaluate(squares > 0 ? kn_mul_scalar(a, ldexp(1, -squares)) : a, poly->p);
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
