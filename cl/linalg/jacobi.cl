/* linalg/jacobi.cl - eigenvalues of symmetric matrices and singular values, by Jacobi's rotations: slow, but accurate
 * to the last bits of small values, too, and deterministic. */
#include "linalg/finite.clh"
#ifdef KN_CPU
#include "linalg/vectors.clh"
#endif

#define SWEEPS 40 /* at most; ten are usual */

/* The rotation (c s; -s c) that makes the symmetric (app apq; apq aqq) diagonal. */
typedef struct rotation {
    T c, s;
} rotation;

static inline rotation rotation_of(T app, T apq, T aqq)
{
    const T theta = (aqq - app) / (2 * apq);
    const T t = (theta < 0 ? (T)-1 : (T)1) / (fabs(theta) + sqrt(theta * theta + 1));
    const T c = 1 / sqrt(t * t + 1), s = t * c;
    /* Of length 1 also where division and root are inexact: a hundred rotations of the same vectors add up. */
    const T missing = fma(-c, c, fma(-s, s, (T)1)) / 2;
    return (rotation){fma(c, missing, c), fma(s, missing, s)};
}

/* x = c x - s y, y = s x + c y. */
static inline void rotate(global T *x, global T *y, rotation r)
{
    const T before = *x;
    *x = r.c * before - r.s * *y;
    *y = r.s * before + r.c * *y;
}

/* Is the element of largest magnitude negative? The sign of a vector is chosen by it. */
static inline bool is_negative(const global T *x, long count, long stride)
{
    T most = 0;
    for (long k = 0; k < count; k++)
        most = fabs(x[k * stride]) > fabs(most) ? x[k * stride] : most;
    return most < 0;
}

static inline void exchange(global T *x, global T *y, long count, long stride)
{
    for (long k = 0; k < count; k++) {
        const T before = x[k * stride];
        x[k * stride] = y[k * stride];
        y[k * stride] = before;
    }
}

static inline void scale_by(global T *x, T factor, long count, long stride)
{
    for (long k = 0; k < count; k++)
        x[k * stride] *= factor;
}

/* --- eigh: a [n, n], whose lower triangle counts, becomes diagonal; v's columns are the vectors ------------------- */

/* On CPU devices linalg/symmetric.cl does this for larger matrices, and linalg/bidiagonal.cl the svd below. */

KN_KERNEL_ONCE(linalg_eigh, (KN_ARG(a), KN_ARG(v), n, tolerance),
               KN_INOUT(a), KN_INOUT(v), const long n, const T tolerance)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(T, v);
    bool changed = true;
    a += MATRIX * n * n;
    v += MATRIX * n * n;
    FOR_LANES(i, 0, n)
    {
        for (long j = 0; j < n; j++) {
            AT(v, i, j) = i == j;
            if (j > i)
                AT(a, i, j) = AT(a, j, i);
        }
    }
    SYNC();
    if (is_given_up(a, n * n, v, n * n))
        return;
    T scale = 0;
    for (long i = 0; i < n * n; i++)
        scale = fmax(scale, fabs(a[i]));
    for (int sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (long p = 0; p < n - 1; p++)
            for (long q = p + 1; q < n; q++) {
                const T app = AT(a, p, p), aqq = AT(a, q, q), apq = AT(a, p, q);
                SYNC();
                if (!(fabs(apq) > tolerance * scale)) /* also for NaN */
                    continue;
                const rotation r = rotation_of(app, apq, aqq);
                changed = true;
                FOR_LANES(k, 0, n)
                {
                    rotate(&AT(a, p, k), &AT(a, q, k), r);
                }
                SYNC();
                FOR_LANES(k, 0, n)
                {
                    rotate(&AT(a, k, p), &AT(a, k, q), r);
                    rotate(&AT(v, k, p), &AT(v, k, q), r);
                }
                SYNC();
            }
    }
}

/* What is left of a diagonal a [n, n]: the values in order, and the signs of the vectors. One work-item per matrix. */
KN_KERNEL_ONCE(linalg_eigh_finish, (KN_ARG(a), KN_ARG(values), KN_ARG(v), n, count),
               KN_IN(a), KN_INOUT(values), KN_INOUT(v), const long n, const long count)
{
    KN_BIND_IN(T, a);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(T, v);
    KN_FOR_ONCE(m, count)
    {
        global T *value = values + m * n, *vectors = v + m * n * n;
        for (long i = 0; i < n; i++)
            value[i] = a[(m * n + i) * n + i];
        for (long i = 0; i < n; i++) {
            long least = i;
            for (long j = i + 1; j < n; j++)
                least = value[j] < value[least] ? j : least;
            exchange(value + i, value + least, 1, 1);
            exchange(vectors + i, vectors + least, n, n);
            if (is_negative(vectors + i, n, n))
                scale_by(vectors + i, -1, n, n);
        }
    }
}

/* --- svd: of a tall a [m, n], given as its transpose: the rows of u [m or n, m] and v [n, n] are the vectors ------ */

/* `room`: elements that may be read from x and y on. */
static inline T dot(const global T *x, const global T *y, long count, long x_room, long y_room)
{
#ifdef KN_CPU
    return product_of(x, y, count, x_room, y_room);
#else
    T sum = 0;
    for (long k = 0; k < count; k++)
        sum += x[k] * y[k];
    return sum;
#endif
}

static inline void rotate_vectors(global T *x, global T *y, rotation r, long count)
{
#ifdef KN_CPU
    rotate_rows(x, y, r.c, r.s, count);
#else
    FOR_LANES(k, 0, count)
    {
        rotate(x + k, y + k, r);
    }
#endif
}

/* u has `rows` rows, n of them from a; they become orthogonal. */
KN_KERNEL_ONCE(linalg_svd, (KN_ARG(u), KN_ARG(v), m, n_, rows, tolerance),
               KN_INOUT(u), KN_INOUT(v), const long m, const long n_, const long rows, const T tolerance)
{
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, v);
    const long n = n_;
    bool changed = true;
    u += MATRIX * rows * m;
    v += MATRIX * n * n;
    FOR_LANES(i, 0, n)
    {
        for (long j = 0; j < n; j++)
            AT(v, i, j) = i == j;
    }
    SYNC();
    if (is_given_up(u, n * m, v, n * n))
        return;
    for (int sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (long p = 0; p < n - 1; p++)
            for (long q = p + 1; q < n; q++) {
                global T *x = u + p * m, *y = u + q * m;
                const long after_x = (rows - p) * m, after_y = (rows - q) * m;
                const T alpha = dot(x, x, m, after_x, after_x), beta = dot(y, y, m, after_y, after_y),
                        gamma = dot(x, y, m, after_x, after_y);
                SYNC();
                if (!(fabs(gamma) > tolerance * sqrt(alpha) * sqrt(beta))) /* also for NaN */
                    continue;
                const rotation r = rotation_of(alpha, gamma, beta);
                changed = true;
                rotate_vectors(x, y, r, m);
                rotate_vectors(&AT(v, p, 0), &AT(v, q, 0), r, n);
                SYNC();
            }
    }
}

/* Row `row` of u becomes a unit vector orthogonal to those before it: the first axis that is far enough from their
 * span, made orthogonal twice. */
static inline void complete(global T *u, long row, long m)
{
    global T *x = u + row * m;
    T square = 0;
    for (long axis = 0; axis < m && square * m < (T)0.5; axis++) {
        for (long k = 0; k < m; k++)
            x[k] = k == axis;
        for (long i = 0; i < 2 * row; i++) {
            const global T *other = u + i % row * m;
            const T along = dot(other, x, m, (row - i % row) * m, m);
            for (long k = 0; k < m; k++)
                x[k] -= along * other[k];
        }
        square = dot(x, x, m, m, m);
    }
    scale_by(x, 1 / sqrt(square), m, 1);
}

/* The singular values, from the lengths of u's rows, in order, unit vectors with their signs, and the vectors that no
 * row gives. One work-item per matrix. */
KN_KERNEL_ONCE(linalg_svd_finish, (KN_ARG(u), KN_ARG(values), KN_ARG(v), m, n, rows, count, tolerance),
               KN_INOUT(u), KN_INOUT(values), KN_INOUT(v), const long m, const long n, const long rows,
               const long count, const T tolerance)
{
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(T, v);
    KN_FOR_ONCE(matrix, count)
    {
        global T *left = u + matrix * rows * m, *right = v + matrix * n * n, *value = values + matrix * n;
        for (long i = 0; i < n; i++)
            value[i] = sqrt(dot(left + i * m, left + i * m, m, (rows - i) * m, (rows - i) * m));
        for (long i = 0; i < n; i++) {
            long most = i;
            for (long j = i + 1; j < n; j++)
                most = value[j] > value[most] ? j : most;
            exchange(value + i, value + most, 1, 1);
            exchange(left + i * m, left + most * m, m, 1);
            exchange(right + i * n, right + most * n, n, 1);
            const T sign = is_negative(left + i * m, m, 1) ? -1 : 1;
            scale_by(left + i * m, value[i] > 0 ? sign / value[i] : sign, m, 1);
            scale_by(right + i * n, sign, n, 1);
        }
        for (long i = 0; i < rows; i++)
            if (i >= n || value[i] <= value[0] * tolerance * (T)0.01)
                complete(left, i, m);
    }
}
