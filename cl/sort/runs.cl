/* sort/runs.cl - sums over runs of equal indices along the middle of [outer, n, inner]: element i of a row is the sum
 * of x over the run whose index is i, 0 if there is none. A run begins at its own index or after it. */
#include "common/koine.clh"

KN_KERNEL_ONCE(sum_runs, (KN_ARG(x), KN_ARG(indices), KN_ARG(y), count, n, inner),
               KN_IN(x), KN_IN(indices), KN_OUT(y), const long count, const long n, const long inner)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE (i, count) {
        const long place = i / inner % n;
        T sum = 0;
        for (long j = place, at = i; j < n && indices[at] == place; j++, at += inner)
            sum += x[at];
        y[i] = sum;
    }
}
