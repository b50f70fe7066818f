/* index/index_select.cl - rows of x [outer, n, inner] by index: y [outer, count, inner]. An index out of range is
 * reported and gives zeros. Compiled in: T, INDEX (long or int). */
#include "common/koine.clh"

kernel void index_select_forward(KN_IN(x), KN_IN(index), KN_OUT(y), const long outer, const long n, const long inner,
                                 const long count, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    KN_FOR(line, outer * count)
    {
        const long at = index[line % count];
        const int inside = at >= 0 && at < n;
        const global T *from = x + (line / count * n + (inside ? at : 0)) * inner;
        if (!inside)
            kn_report_index(fault, at, n);
        for (long i = 0; i < inner; i++)
            y[line * inner + i] = inside ? from[i] : (T)0;
    }
#else
    KN_FOR(i, outer * count * inner)
    {
        const long line = i / inner, at = index[line % count];
        const int inside = at >= 0 && at < n;
        if (!inside)
            kn_report_index(fault, at, n);
        y[i] = inside ? x[(line / count * n + at) * inner + i % inner] : (T)0;
    }
#endif
}

/* dL/dx: adds each row of the gradient to the row it came from. A work-item owns `rows` rows of some columns and
 * goes through all indices in order, so nothing collides and the order of each sum is fixed, however the work is
 * shared. `out` starts as zero. */
kernel void index_select_backward(KN_IN(gradient), KN_IN(index), KN_INOUT(out), const long outer, const long n,
                                  const long inner, const long count, const long rows)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, out);
    const long parts = (n + rows - 1) / rows;
#ifdef KN_CPU
    KN_FOR(task, outer * parts)
    {
        const long o = task / parts, first = task % parts * rows, end = min(first + rows, n);
        for (long j = 0; j < count; j++) {
            const long at = index[j];
            if (at < first || at >= end)
                continue;
            global T *to = out + (o * n + at) * inner;
            const global T *from = gradient + (o * count + j) * inner;
            for (long i = 0; i < inner; i++)
                to[i] += from[i];
        }
    }
#else
    KN_FOR(task, outer * parts * inner)
    {
        const long i = task % inner, o = task / inner / parts;
        const long first = task / inner % parts * rows, end = min(first + rows, n);
        for (long j = 0; j < count; j++) {
            const long at = index[j];
            if (at >= first && at < end)
                out[(o * n + at) * inner + i] += gradient[(o * count + j) * inner + i];
        }
    }
#endif
}
