/* gemm/integers.cl - C = A B of integers, which wrap around; the rows of A and B are dense. A task is a part of a row
 * of C. Tasks go down the rows first: on CPU devices the next one finds its columns of B in a cache.
 *
 * Compiled in: T, an unsigned type as wide as an element. */
#include "common/koine.clh"
#include "common/lanes.clh"
#include "gemm/integers.h"

#ifdef KN_CPU
#define VECTORS 4
#else
#define VECTORS 1
#endif
#define COLUMNS (VECTORS * KN_LANES)

/* All columns of a task. */
static inline void multiply_vectors(const global T *x, const global T *y, global T *z, const kn_integer_product *p)
{
    TV sums[VECTORS];
#pragma unroll
    for (int j = 0; j < VECTORS; j++)
        sums[j] = 0;
    for (long i = 0; i < p->k; i++)
#pragma unroll
        for (int j = 0; j < VECTORS; j++)
            sums[j] += x[i] * KN_VLOAD(y + i * p->b.row + j * KN_LANES);
#pragma unroll
    for (int j = 0; j < VECTORS; j++)
        KN_VSTORE(sums[j], z + j * KN_LANES);
}

static inline void multiply_column(const global T *x, const global T *y, global T *z, const kn_integer_product *p)
{
    T sum = 0;
    if (p->b.row == 1) /* a vector */
        for (long i = 0; i < p->k; i++)
            sum += x[i] * y[i];
    else
        for (long i = 0; i < p->k; i++)
            sum += x[i] * y[i * p->b.row];
    *z = sum;
}

KN_KERNEL_ONCE(gemm_integers, (KN_ARG(a), KN_ARG(b), KN_ARG(c), p), KN_IN(a), KN_IN(b), KN_OUT(c),
               const kn_integer_product p)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, c);
    const long blocks = (p.n + COLUMNS - 1) / COLUMNS;
    KN_FOR_ONCE(task, p.batch * blocks * p.m)
    {
        const long row = task % p.m, column = task / p.m % blocks * COLUMNS, matrix = task / p.m / blocks;
        const long left = p.n - column;
        const global T *x = a + matrix * p.a.batch + row * p.a.row, *y = b + matrix * p.b.batch + column;
        global T *z = c + matrix * p.c.batch + row * p.c.row + column;
        if (left >= COLUMNS)
            multiply_vectors(x, y, z, &p);
        else
            for (long j = 0; j < left; j++)
                multiply_column(x, y + j, z + j, &p);
    }
}
