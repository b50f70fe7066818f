/* tensor/triangle.cl - the rows, then the columns, of the `count` elements in a triangle of a matrix. */
#include "common/koine.clh"

/* 1 + 2 + ... + n, 0 for n < 0 */
static long sum_up_to(long n) { return n > 0 ? n * (n + 1) / 2 : 0; }

/* The sum of max(0, first + i) over i < n. */
static long sum_of(long first, long n) { return sum_up_to(first + n - 1) - sum_up_to(first - 1); }

/* Of row r, the lower triangle has the columns up to r + offset, the upper one all others. */
KN_KERNEL_ONCE(triangle, (KN_ARG(x), rows, columns, offset, upper, count),
               KN_OUT(x), long rows, long columns, long offset, long upper, long count)
{
    KN_BIND_OUT(T, x);
    KN_FOR_ONCE (r, rows) {
        const long cut = clamp(r + offset + 1, 0L, columns), first = upper ? cut : 0, end = upper ? columns : cut;
        const long lower = sum_of(offset + 1, r) - sum_of(offset + 1 - columns, r);
        global T *row = x + (upper ? r * columns - lower : lower), *column = row + count;
        for (long i = 0; i < end - first; i++)
            row[i] = (T)r;
        for (long i = 0; i < end - first; i++)
            column[i] = (T)(first + i);
    }
}
