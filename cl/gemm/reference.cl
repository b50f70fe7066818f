/* gemm/reference.cl - matrix multiplication on any device, one sum per element of C.
 *
 * Compiled in: T. */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/layout.h"

kernel void gemm_reference(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), long m, long n, long k, long batch,
                           kn_gemm_layout a_layout, kn_gemm_layout b_layout, kn_gemm_layout c_layout,
                           kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    KN_FOR (element, batch * m * n) {
        const long column = element % n, row = element / n % m, matrix = element / n / m;
        const global T *x = a + matrix * a_layout.batch_stride + row * a_layout.row_stride;
        const global T *y = b + matrix * b_layout.batch_stride + column * b_layout.col_stride;
        T sum = 0;
        for (long i = 0; i < k; i++)
            sum = fma(x[i * a_layout.col_stride], y[i * b_layout.row_stride], sum);
        const long target = matrix * c_layout.batch_stride + row * c_layout.row_stride + column;
        c[target] = finish_value(finish, sum, c + target, bias + column);
    }
}

/* Run before and after CLBlast, which has no bias and no activation: C = beta C + bias, to which it adds; C =
 * clamp(C). */
kernel void gemm_start_with_bias(KN_IN(bias), KN_OUT(c), long m, long n, long batch, kn_gemm_layout c_layout, T beta)
{
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    KN_FOR (element, batch * m * n) {
        const long column = element % n, row = element / n % m, matrix = element / n / m;
        const long target = matrix * c_layout.batch_stride + row * c_layout.row_stride + column;
        c[target] = beta != (T)0 ? fma(beta, c[target], bias[column]) : bias[column];
    }
}

kernel void gemm_cut(KN_INOUT(c), long m, long n, long batch, kn_gemm_layout c_layout, T low, T high)
{
    KN_BIND_OUT(T, c);
    KN_FOR (element, batch * m * n) {
        const long column = element % n, row = element / n % m, matrix = element / n / m;
        const long target = matrix * c_layout.batch_stride + row * c_layout.row_stride + column;
        c[target] = KN_CLAMP(c[target], low, high);
    }
}
