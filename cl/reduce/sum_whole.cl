/* reduce/sum_whole.cl - sums of whole T in 64 bits over the middle of [outer, n, inner], cut into chunks: x [outer,
 * n, inner] -> y [outer, chunks, inner]. Whole-number addition is exact in any order. */
#include "common/koine.clh"

kernel void sum_rows(KN_IN(x), KN_OUT(y), const long outer, const long n, const long length, const long chunks)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(long, y);
    KN_FOR(task, outer * chunks)
    {
        const long chunk = task % chunks;
        const global T *run = x + task / chunks * n + chunk * length;
        const long count = min(length, n - chunk * length);
        long total = 0;
        for (long k = 0; k < count; k++)
            total += run[k];
        y[task] = total;
    }
}

kernel void sum_columns(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const long length,
                        const long chunks)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(long, y);
    KN_FOR(task, outer * chunks * inner)
    {
        const long column = task % inner, piece = task / inner, chunk = piece % chunks;
        const global T *run = x + (piece / chunks * n + chunk * length) * inner + column;
        const long count = min(length, n - chunk * length);
        long total = 0;
        for (long k = 0; k < count; k++)
            total += run[k * inner];
        y[task] = total;
    }
}
