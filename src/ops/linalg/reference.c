/* ops/linalg/reference.c - linear algebra in plain C, on one matrix of a batch at a time. */
#include <string.h>

#include "base/memory.h"
#include "ops/dispatch/reference.h"
#include "ops/linalg/linalg.h"

static double *matrix(const kn_tensor *t, int64_t index)
{
    return kn_reference_values(t) + index * kn_rows(t) * kn_columns(t);
}

static void copy(kn_tensor *to, const kn_tensor *from)
{
    memcpy(kn_reference_values(to), kn_reference_values(from), (size_t)kn_numel(from) * sizeof(double));
}

/* --- Cholesky and triangular systems ------------------------------------------------------------------------------ */

static int64_t cholesky(double *l, const double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            if (i == j && !(sum > 0))
                return i + 1;
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    return 0;
}

kn_status kn_cholesky_reference(const kn_call *call)
{
    for (int64_t m = 0; m < kn_matrices(call->inputs[0]); m++) {
        const int64_t failed =
            cholesky(matrix(call->outputs[0], m), matrix(call->inputs[0], m), kn_rows(call->inputs[0]));
        if (call->num_outputs > 1 && call->outputs[1])
            kn_reference_set(call->outputs[1], m, (double)failed);
    }
    return KN_OK;
}

/* x [n, columns], b at first, becomes a^-1 b. */
static void solve_triangular(const double *a, double *x, int64_t n, int64_t columns, bool upper, bool unit)
{
    for (int64_t c = 0; c < columns; c++)
        for (int64_t step = 0; step < n; step++) {
            const int64_t i = upper ? n - 1 - step : step;
            double sum = x[i * columns + c];
            for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); k++)
                sum -= a[i * n + k] * x[k * columns + c];
            x[i * columns + c] = unit ? sum : sum / a[i * n + i];
        }
}

kn_status kn_solve_triangular_reference(const kn_call *call)
{
    const kn_solve_triangular_args *args = call->params;
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];

    copy(call->outputs[0], b);
    for (int64_t m = 0; m < kn_matrices(b); m++)
        solve_triangular(matrix(a, m), matrix(call->outputs[0], m), kn_rows(b), kn_columns(b), args->upper,
                         args->unitriangular);
    return KN_OK;
}

/* --- LU ----------------------------------------------------------------------------------------------------------- */

static void swap_rows(double *a, int64_t i, int64_t k, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        const double before = a[i * n + j];
        a[i * n + j] = a[k * n + j];
        a[k * n + j] = before;
    }
}

/* In place; rows[k] is the row exchanged with k. Returns the first pivot that is 0, from 1. */
static int64_t factor(double *a, int64_t *rows, int64_t m, int64_t n)
{
    int64_t singular = 0;
    for (int64_t k = 0; k < m && k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++)
            best = fabs(a[i * n + k]) > fabs(a[best * n + k]) ? i : best;
        rows[k] = best;
        swap_rows(a, k, best, n);
        if (a[k * n + k] == 0)
            singular = singular ? singular : k + 1;
        for (int64_t i = k + 1; i < m && a[k * n + k] != 0; i++) {
            a[i * n + k] /= a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
        }
    }
    return singular;
}

kn_status kn_lu_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const int64_t m = kn_rows(a), n = kn_columns(a), count = m < n ? m : n;
    int64_t *rows = kn_malloc((size_t)(count + 1) * sizeof *rows);

    if (!rows)
        return KN_ERR_MEMORY;
    copy(call->outputs[0], a);
    for (int64_t i = 0; i < kn_matrices(a); i++) {
        const int64_t singular = factor(matrix(call->outputs[0], i), rows, m, n);
        for (int64_t k = 0; k < count && call->outputs[1]; k++)
            kn_reference_set(call->outputs[1], i * count + k, (double)rows[k] + 1);
        if (call->num_outputs > 2 && call->outputs[2])
            kn_reference_set(call->outputs[2], i, (double)singular);
    }
    kn_free(rows);
    return KN_OK;
}

/* A factored copy of one matrix, in `lu`, which has room for the rows, too. */
static int64_t factored(double *lu, int64_t **rows, const double *a, int64_t n)
{
    memcpy(lu, a, (size_t)(n * n) * sizeof *lu);
    *rows = (int64_t *)(lu + n * n);
    return factor(lu, *rows, n, n);
}

static double *room_for(int64_t n) { return kn_malloc((size_t)(n * n + n + 1) * sizeof(double)); }

kn_status kn_solve_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];
    const int64_t n = kn_rows(b), columns = kn_columns(b);
    double *lu = room_for(n);
    int64_t *rows;

    if (!lu)
        return KN_ERR_MEMORY;
    copy(call->outputs[0], b);
    for (int64_t m = 0; m < kn_matrices(b); m++) {
        double *x = matrix(call->outputs[0], m);
        const int64_t singular = factored(lu, &rows, matrix(a, m), n);
        for (int64_t k = 0; k < n; k++)
            swap_rows(x, k, rows[k], columns);
        solve_triangular(lu, x, n, columns, false, true);
        solve_triangular(lu, x, n, columns, true, false);
        if (call->num_outputs > 1 && call->outputs[1])
            kn_reference_set(call->outputs[1], m, (double)singular);
    }
    kn_free(lu);
    return KN_OK;
}

kn_status kn_det_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const int64_t n = kn_rows(a);
    const bool is_product = call->op->outputs[1] == NULL;
    double *lu = room_for(n);
    int64_t *rows;

    if (!lu)
        return KN_ERR_MEMORY;
    for (int64_t m = 0; m < kn_matrices(a); m++) {
        double product = 1, logarithm = 0;
        factored(lu, &rows, matrix(a, m), n);
        for (int64_t k = 0; k < n; k++) {
            const double pivot = rows[k] == k ? lu[k * n + k] : -lu[k * n + k];
            product *= is_product ? pivot : (double)((pivot > 0) - (pivot < 0));
            logarithm += log(fabs(pivot));
        }
        kn_reference_set(call->outputs[0], m, product);
        if (!is_product && call->outputs[1])
            kn_reference_set(call->outputs[1], m, logarithm);
    }
    kn_free(lu);
    return KN_OK;
}

/* --- QR: reflections of whole matrices ---------------------------------------------------------------------------- */

/* x [rows, columns] -= 2 v (v^T x) if `left`, else 2 (x v) v^T, with a unit vector v. */
static void reflect(double *x, const double *v, int64_t rows, int64_t columns, bool left)
{
    for (int64_t line = 0; line < (left ? columns : rows); line++) {
        double along = 0;
        for (int64_t k = 0; k < (left ? rows : columns); k++)
            along += v[k] * x[left ? k * columns + line : line * columns + k];
        for (int64_t k = 0; k < (left ? rows : columns); k++)
            x[left ? k * columns + line : line * columns + k] -= 2 * along * v[k];
    }
}

/* r [m, n], a at first, becomes triangular; q [m, m], the identity at first; v has room for m numbers. */
static void triangulate(double *q, double *r, double *v, int64_t m, int64_t n)
{
    for (int64_t k = 0; k < m && k < n; k++) {
        double below = 0, length = 0;
        for (int64_t i = 0; i < m; i++)
            v[i] = i < k ? 0 : r[i * n + k];
        for (int64_t i = k + 1; i < m; i++)
            below += v[i] * v[i];
        if (below == 0)
            continue;
        const double norm = sqrt(below + v[k] * v[k]);
        v[k] += v[k] >= 0 ? norm : -norm;
        length = sqrt(below + v[k] * v[k]);
        for (int64_t i = k; i < m; i++)
            v[i] /= length;
        reflect(r, v, m, n, true);
        reflect(q, v, m, m, false);
    }
}

kn_status kn_qr_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    kn_tensor *q = call->outputs[0], *r = call->outputs[1];
    const int64_t m = kn_rows(a), n = kn_columns(a);
    double *space = kn_malloc((size_t)(m * m + m * n + m + 1) * sizeof *space);

    if (!space)
        return KN_ERR_MEMORY;
    for (int64_t index = 0; index < kn_matrices(a); index++) {
        double *whole = space, *work = space + m * m;
        for (int64_t i = 0; i < m * m; i++)
            whole[i] = i / m == i % m;
        memcpy(work, matrix(a, index), (size_t)(m * n) * sizeof *work);
        triangulate(whole, work, work + m * n, m, n);
        for (int64_t i = 0; q && i < m; i++)
            for (int64_t j = 0; kn_numel(q) > 0 && j < kn_columns(q); j++)
                matrix(q, index)[i * kn_columns(q) + j] = whole[i * m + j];
        for (int64_t i = 0; r && i < kn_rows(r); i++)
            for (int64_t j = i; j < n; j++)
                matrix(r, index)[i * n + j] = work[i * n + j];
    }
    kn_free(space);
    return KN_OK;
}

/* --- symmetric eigenvalues: rotations until all other elements are 0 ---------------------------------------------- */

static void rotate(double *a, double *v, int64_t p, int64_t q, int64_t n)
{
    const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot(theta, 1)), c = 1 / hypot(t, 1), s = t * c;
    for (int64_t k = 0; k < n; k++) {
        const double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = a[k * n + p], y = a[k * n + q], u = v[k * n + p], w = v[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
        v[k * n + p] = c * u - s * w;
        v[k * n + q] = s * u + c * w;
    }
}

/* a becomes diagonal; v's columns the vectors. */
static void diagonalise(double *a, double *v, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n * n; i++) {
        v[i] = i / n == i % n;
        largest = fmax(largest, fabs(a[i]));
    }
    for (int sweep = 0; sweep < 60; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                if (fabs(a[p * n + q]) > 1e-18 * largest)
                    rotate(a, v, p, q, n);
}

/* The place of the rank-th largest, or smallest, of the n numbers at x, `stride` apart; equal ones in their order. */
static int64_t place_of(const double *x, int64_t stride, int64_t n, int64_t rank, bool descends)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0;
        for (int64_t j = 0; j < n; j++) {
            const double d = descends ? x[i * stride] - x[j * stride] : x[j * stride] - x[i * stride];
            before += d < 0 || (d == 0 && j < i);
        }
        if (before == rank)
            return i;
    }
    return 0;
}

/* 1 or -1: the sign of the largest in magnitude of n numbers. */
static double sign_of(const double *x, int64_t n, int64_t stride)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(x[i * stride]) > fabs(most) ? x[i * stride] : most;
    return most < 0 ? -1 : 1;
}

kn_status kn_eigh_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const int64_t n = kn_rows(a);
    double *work = kn_malloc((size_t)(2 * n * n + 1) * sizeof *work), *v = work ? work + n * n : NULL;

    if (!work)
        return KN_ERR_MEMORY;
    for (int64_t m = 0; m < kn_matrices(a); m++) {
        for (int64_t i = 0; i < n * n; i++)
            work[i] = matrix(a, m)[i / n >= i % n ? i : i % n * n + i / n];
        diagonalise(work, v, n);
        for (int64_t k = 0; k < n; k++) {
            const int64_t from = place_of(work, n + 1, n, k, false);
            const double sign = sign_of(v + from, n, n);
            kn_reference_set(call->outputs[0], m * n + k, work[from * (n + 1)]);
            for (int64_t i = 0; i < n && call->outputs[1]; i++)
                matrix(call->outputs[1], m)[i * n + k] = sign * v[i * n + from];
        }
    }
    kn_free(work);
    return KN_OK;
}

/* --- singular values: the eigenvectors of x^T x, for a tall x, are its right vectors ------------------------------ */

/* One matrix x [m, n], m >= n, with row and column strides. u [m, count] of which n columns are computed, s [n], v [n,
 * n] as columns; work has room for 2 n n. */
static void svd_of_tall(const double *x, int64_t row, int64_t column, double *u, int64_t count, double *s, double *v,
                        double *work, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) {
        work[i] = 0;
        for (int64_t k = 0; k < m; k++)
            work[i] += x[k * row + i / n * column] * x[k * row + i % n * column];
    }
    diagonalise(work, work + n * n, n);
    for (int64_t j = 0; j < n; j++) {
        const int64_t from = place_of(work, n + 1, n, j, true);
        double square = 0;
        for (int64_t i = 0; i < m; i++) {
            u[i * count + j] = 0;
            for (int64_t k = 0; k < n; k++)
                u[i * count + j] += x[i * row + k * column] * work[n * n + k * n + from];
            square += u[i * count + j] * u[i * count + j];
        }
        const double sign = sign_of(u + j, m, count);
        s[j] = sqrt(square);
        for (int64_t i = 0; i < m; i++)
            u[i * count + j] *= sign / (s[j] > 0 ? s[j] : 1);
        for (int64_t k = 0; k < n; k++)
            v[k * n + j] = sign * work[n * n + k * n + from];
    }
}

/* Without the further vectors of full matrices, which the tests compare in other ways. */
kn_status kn_svd_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const bool is_tall = kn_rows(a) >= kn_columns(a);
    const int64_t m = is_tall ? kn_rows(a) : kn_columns(a), n = is_tall ? kn_columns(a) : kn_rows(a);
    double *space = kn_malloc((size_t)(m * n + 3 * n * n + n + 1) * sizeof *space);

    if (!space)
        return KN_ERR_MEMORY;
    for (int64_t index = 0; index < kn_matrices(a); index++) {
        double *u = space, *v = u + m * n, *s = v + n * n, *work = s + n;
        svd_of_tall(matrix(a, index), is_tall ? n : 1, is_tall ? 1 : m, u, n, s, v, work, m, n);
        for (int64_t j = 0; j < n; j++) {
            if (call->outputs[1])
                kn_reference_set(call->outputs[1], index * n + j, s[j]);
            for (int64_t i = 0; call->outputs[0] && i < kn_rows(a); i++)
                matrix(call->outputs[0], index)[i * kn_columns(call->outputs[0]) + j] = (is_tall ? u : v)[i * n + j];
            for (int64_t k = 0; call->outputs[2] && k < kn_columns(a); k++)
                matrix(call->outputs[2], index)[j * kn_columns(a) + k] = (is_tall ? v : u)[k * n + j];
        }
    }
    kn_free(space);
    return KN_OK;
}
