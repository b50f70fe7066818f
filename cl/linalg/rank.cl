/* linalg/rank.cl - how many of a matrix's singular values, s [matrices, count] and descending, are above `share` of the
 * first. A matrix that is not finite has none: a fault. */
#include "common/koine.clh"

KN_KERNEL_ONCE(linalg_rank, (KN_ARG(s), KN_ARG(rank), matrices, count, share, fault, fault_operation),
               KN_IN(s), KN_OUT(rank), const long matrices, const long count, const T share, KN_FAULT)
{
    KN_BIND_IN(T, s);
    KN_BIND_OUT(long, rank);
    KN_FOR_ONCE (matrix, matrices) {
        const global T *own = s + matrix * count;
        long above = 0;
        for (long i = 0; i < count; i++) {
            if (isnan(own[i])) {
                kn_report_matrix(fault, KN_FAULT_NOT_FINITE, matrix, 0);
                break;
            }
            above += own[i] > own[0] * share;
        }
        rank[matrix] = above;
    }
}
