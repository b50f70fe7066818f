/* sort/taken.cl - moves elements [outer, k, inner] to their places in [outer, n, inner]; no two go to one place. An
 * index out of range is reported. Compiled in: BITS, an unsigned type as wide as an element. */
#include "common/koine.clh"

KN_KERNEL_ONCE(place_taken, (KN_ARG(x), KN_ARG(indices), KN_ARG(y), count, k, n, inner, fault, fault_operation),
               KN_IN(x), KN_IN(indices), KN_INOUT(y), const long count, const long k, const long n, const long inner,
               KN_FAULT)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(BITS, y);
    KN_FOR_ONCE (i, count) {
        const long at = indices[i];
        if (at < 0 || at >= n)
            kn_report_index(fault, at, n);
        else
            y[(i / (k * inner) * n + at) * inner + i % inner] = x[i];
    }
}
