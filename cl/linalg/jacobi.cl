/* linalg/jacobi.cl - eigenvalues of symmetric matrices and singular values, by Jacobi's rotations: slow, but accurate
 * to the last bits of small values, too, and deterministic. */
#include "linalg/lanes.clh"

#define SWEEPS 40 /* at most; ten are usual */

/* The rotation (c s; -s c) that makes the symmetric (app apq; apq aqq) diagonal. */
typedef struct rotation {
    T c, s;
} rotation;

static inline rotation rotation_of(T app, T apq, T aqq)
{
    const T theta = (aqq - app) / (2 * apq);
    const T t = (theta < 0 ? (T)-1 : (T)1) / (fabs(theta) + sqrt(theta * theta + 1));
    const T c = 1 / sqrt(t * t + 1);
    return (rotation){c, t * c};
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

/* --- eigh: a [n, n], whose lower triangle counts, is destroyed; values ascend; v's columns are the vectors ------------ */

kernel void linalg_eigh(KN_INOUT(a), KN_INOUT(values), KN_INOUT(v), const long n, const T tolerance)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(T, v);
    bool changed = true;
    a += MATRIX * n * n;
    v += MATRIX * n * n;
    values += MATRIX * n;
    FOR_LANES(i, 0, n)
    {
        for (long j = 0; j < n; j++) {
            AT(v, i, j) = i == j;
            if (j > i)
                AT(a, i, j) = AT(a, j, i);
        }
    }
    SYNC();
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
    FOR_LANES(i, 0, n)
    {
        values[i] = AT(a, i, i);
    }
    SYNC();
    for (long i = 0; i < n - 1; i++) {
        long least = i;
        for (long j = i + 1; j < n; j++)
            least = values[j] < values[least] ? j : least;
        const T value = values[least];
        SYNC();
        if (LANE == 0) {
            values[least] = values[i];
            values[i] = value;
        }
        FOR_LANES(k, 0, n)
        {
            const T before = AT(v, k, i);
            AT(v, k, i) = AT(v, k, least);
            AT(v, k, least) = before;
        }
        SYNC();
    }
    for (long i = 0; i < n; i++) {
        const bool turns = is_negative(v + i, n, n);
        SYNC();
        FOR_LANES(k, 0, n)
        {
            AT(v, k, i) = turns ? -AT(v, k, i) : AT(v, k, i);
        }
    }
}

/* --- svd: of a tall a [m, n], given as its transpose w [n, m]: the rows of u [m or n, m] and v [n, n] are the vectors -- */

static inline T dot(const global T *x, const global T *y, long count)
{
    T sum = 0;
    for (long k = 0; k < count; k++)
        sum += x[k] * y[k];
    return sum;
}

/* Row `row` of u becomes a unit vector orthogonal to those before it: the first axis that is far enough from their
 * span, made orthogonal twice. */
static inline void complete(global T *u, long row, long m)
{
    global T *x = u + row * m;
    for (long axis = 0; axis < m; axis++) {
        SYNC();
        FOR_LANES(k, 0, m)
        {
            x[k] = k == axis;
        }
        for (int pass = 0; pass < 2; pass++)
            for (long i = 0; i < row; i++) {
                SYNC();
                const T along = dot(u + i * m, x, m);
                SYNC();
                FOR_LANES(k, 0, m)
                {
                    x[k] -= along * u[i * m + k];
                }
            }
        SYNC();
        const T square = dot(x, x, m);
        SYNC();
        if (square * m < (T)0.5 && axis + 1 < m)
            continue;
        FOR_LANES(k, 0, m)
        {
            x[k] /= sqrt(square);
        }
        return;
    }
}

/* u has `rows` rows, n of them from a; w is its first part, in the same place. */
kernel void linalg_svd(KN_INOUT(u), KN_INOUT(values), KN_INOUT(v), const long m, const long n_, const long rows,
                       const T tolerance)
{
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(T, v);
    const long n = n_;
    bool changed = true;
    u += MATRIX * rows * m;
    v += MATRIX * n * n;
    values += MATRIX * n;
    FOR_LANES(i, 0, n)
    {
        for (long j = 0; j < n; j++)
            AT(v, i, j) = i == j;
    }
    SYNC();
    for (int sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (long p = 0; p < n - 1; p++)
            for (long q = p + 1; q < n; q++) {
                global T *x = u + p * m, *y = u + q * m;
                const T alpha = dot(x, x, m), beta = dot(y, y, m), gamma = dot(x, y, m);
                SYNC();
                if (!(fabs(gamma) > tolerance * sqrt(alpha) * sqrt(beta))) /* also for NaN */
                    continue;
                const rotation r = rotation_of(alpha, gamma, beta);
                changed = true;
                FOR_LANES(k, 0, m)
                {
                    rotate(x + k, y + k, r);
                }
                FOR_LANES(k, 0, n)
                {
                    rotate(&AT(v, p, k), &AT(v, q, k), r);
                }
                SYNC();
            }
    }
    FOR_LANES(i, 0, n)
    {
        values[i] = sqrt(dot(u + i * m, u + i * m, m));
    }
    SYNC();
    for (long i = 0; i < n; i++) {
        long most = i;
        for (long j = i + 1; j < n; j++)
            most = values[j] > values[most] ? j : most;
        const T value = values[most];
        SYNC();
        if (LANE == 0) {
            values[most] = values[i];
            values[i] = value;
        }
        FOR_LANES(k, 0, m)
        {
            const T before = u[i * m + k];
            u[i * m + k] = u[most * m + k] / (value > 0 ? value : (T)1);
            if (most != i)
                u[most * m + k] = before;
        }
        FOR_LANES(k, 0, n)
        {
            const T before = AT(v, i, k);
            AT(v, i, k) = AT(v, most, k);
            AT(v, most, k) = before;
        }
        SYNC();
    }
    for (long i = 0; i < n; i++) {
        const bool turns = is_negative(u + i * m, m, 1);
        SYNC();
        FOR_LANES(k, 0, m)
        {
            u[i * m + k] = turns ? -u[i * m + k] : u[i * m + k];
        }
        FOR_LANES(k, 0, n)
        {
            AT(v, i, k) = turns ? -AT(v, i, k) : AT(v, i, k);
        }
        SYNC();
    }
    const T least = values[0] * tolerance * (T)0.01;
    for (long i = 0; i < rows; i++)
        if (i >= n || values[i] <= least) {
            complete(u, i, m);
            SYNC();
        }
}
