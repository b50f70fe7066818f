/* gemm/total.cl - adds the partial products of a split sum.
 *
 * Compiled in: T, VW; BFLOAT, of C and the bias (gemm/element.clh). */
#include "common/koine.clh"
#include "common/bfloat.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/element.clh"

/* C = the finished sum, in order, of `count` products [m, n]. A work-item takes `chunk` elements, a multiple of VW. */
KN_KERNEL_ONCE(gemm_total, (KN_ARG(products), KN_ARG(bias), KN_ARG(c), m, n, count, ldc, chunk, finish),
               KN_IN(products), KN_IN(bias), KN_OUT(c), long m, long n, long count, long ldc, long chunk,
               kn_gemm_finish finish)
{
    KN_BIND_IN(T, products);
    KN_BIND_IN(element, bias);
    KN_BIND_OUT(element, c);
    const long results = m * n, end = min(results, (long)(KN_ID(0) + 1) * chunk);
    for (long first = KN_ID(0) * chunk; first < end; first += VW) {
        const int elements = (int)min((long)VW, end - first);
        T sum[VW];
        if (elements == VW) {
            V s = VLOAD(0, products + first);
            for (long i = 1; i < count; i++)
                s += VLOAD(0, products + i * results + first);
            VSTORE(s, 0, sum);
        } else {
            for (int j = 0; j < elements; j++) {
                sum[j] = products[first + j];
                for (long i = 1; i < count; i++)
                    sum[j] += products[i * results + first + j];
            }
        }
        long row = first / n, column = first % n;
        for (int j = 0; j < elements; j++) {
            global element *target = c + row * ldc + column;
            FINISH(finish, sum[j], target, bias + column);
            row += column + 1 == n;
            column = column + 1 == n ? 0 : column + 1;
        }
    }
}
