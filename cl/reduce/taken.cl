/* reduce/taken.cl - moves elements [outer, k, inner] to their places in [outer, n, inner]; no two go to one place. An
 * index out of range is reported. Compiled in: BITS, an unsigned type as wide as an element. */
#include "common/koine.clh"

KN_KERNEL_ONCE(place_taken, (KN_ARG(x), KN_ARG(indices), KN_ARG(y), count, k, n, inner, fault, fault_operation),
               KN_IN(x), KN_IN(indices), KN_INOUT(y), const long count, const long k, const long n, const long inner,
               KN_FAULT)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(BITS, y);
    const long per_row = k * inner;
#ifdef KN_CPU
    long row = -1, rest = 0, column = 0; /* of i, found by counting: divisions take longer than all the rest */
#endif
    KN_FOR_ONCE (i, count) {
#ifdef KN_CPU
        if (row < 0 || ++rest == per_row) {
            row = row < 0 ? i / per_row : row + 1;
            rest = i - row * per_row;
            column = rest % inner - 1;
        }
        column = column + 1 == inner ? 0 : column + 1;
#else
        const long row = i / per_row, column = i % inner;
#endif
        const long at = indices[i];
        if (at < 0 || at >= n)
            kn_report_index(fault, at, n);
        else
            y[(row * n + at) * inner + column] = x[i];
    }
}
