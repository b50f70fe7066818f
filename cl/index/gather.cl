/* index/gather.cl - gathering from a table by index. Compiled in: T, INDEX; on GPUs WIDE: 2^31 elements or more. */
#include "index/walk.clh"

#ifdef KN_CPU
/* An element with an index of its own. The report keeps the compiler from using gather instructions, which are
 * slower. */
#define KN_GATHER(i, to_step, from_step, index_step, step)                                                             \
    {                                                                                                                  \
        const long given = of[(i) * (index_step)], at = given < 0 ? given + added : given;                             \
        if ((ulong)at < (ulong)size) {                                                                                 \
            to[(i) * (to_step)] = from[(i) * (from_step) + at * (step)];                                               \
        } else {                                                                                                       \
            to[(i) * (to_step)] = (T)0;                                                                                \
            kn_report_index(fault, given, size);                                                                       \
        }                                                                                                              \
    }
#define KN_GATHER_ALONG(i) KN_GATHER(i, 1, 0, 1, 1)

/* A part of each of several lines that differ in the last dimension only: their starts are to_line,
 * from_line and index_line apart. */
KN_KERNEL_ONCE(index_gather, (KN_ARG(table), KN_ARG(index), KN_ARG(values), w, fault, fault_operation),
                   KN_IN(table), KN_IN(index), KN_OUT(values), const kn_index_walk w, KN_FAULT)
{
    KN_BIND_IN(T, table);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, values);
    const long length = (w.inner + w.parts - 1) / w.parts, all = w.lines * w.parts, items = KN_SIZE(0);
    const long to_step = w.inner_strides[0], from_step = w.inner_strides[1], index_step = w.inner_strides[2];
    const long step = w.step, size = w.size, added = w.wraps ? size : 0, last = max((long)w.ndim - 1, 0L);
    const long across = w.ndim > 0 ? w.shape[last] : 1, chunk = (all + items - 1) / items;
    const long to_line = w.strides[0][last], from_line = w.strides[1][last], index_line = w.strides[2][last];
    const long begin = KN_ID(0) * chunk, end = min(begin + chunk, all);
    for (long task = begin, lines; task < end; task += lines) {
        const long line = w.parts > 1 ? task / w.parts : task, first = (task - line * w.parts) * length;
        const long n = min(length, w.inner - first);
        long start[KN_INDEX_LANES];
        lines = w.parts > 1 ? 1 : min(end - task, across - line % across);
        kn_index_start(start, line, &w);
        global T *to = values + start[0] + first * to_step;
        const global T *from = table + start[1] + first * from_step;
        const global INDEX *of = index + start[2] + first * index_step;
        for (long k = 0; n > 0 && k < lines; k++, to += to_line, from += from_line, of += index_line) {
            if (index_step == 0) {
                const long given = *of, at = given < 0 ? given + added : given;
                const bool inside = (ulong)at < (ulong)size;
                if (!inside)
                    kn_report_index(fault, given, size);
                kn_copy_row(to, to_step, from + (inside ? at * step : 0), from_step, n, inside);
            } else if (to_step == 1 && index_step == 1 && from_step == 0 && step == 1) {
                KN_BY_FOUR(n, KN_GATHER_ALONG)
            } else if (to_step == 1 && index_step == 1) {
                for (long i = 0; i < n; i++)
                    KN_GATHER(i, 1, from_step, 1, step)
            } else {
                for (long i = 0; i < n; i++)
                    KN_GATHER(i, to_step, from_step, index_step, step)
            }
        }
    }
}

#else

#include "common/divide.clh"

#if WIDE
typedef long number;
#define QUOTIENT(n, d, by) ((n) / (d))
#else
typedef uint number;
#define QUOTIENT(n, d, by) kn_quotient(n, by)
#endif

kernel void index_gather(KN_IN(table), KN_IN(index), KN_OUT(values), const kn_index_walk w, KN_FAULT)
{
    KN_BIND_IN(T, table);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, values);
    const number all = (number)(w.lines * w.inner);
    for (number i = (number)get_global_id(0); i < all; i += (number)get_global_size(0)) {
        number line = QUOTIENT(i, w.inner, w.by_inner);
        const long inside_line = i - line * (number)w.inner;
        long to = inside_line * w.inner_strides[0], from = inside_line * w.inner_strides[1];
        long of = inside_line * w.inner_strides[2];
        for (int d = (int)w.ndim - 1; d >= 0; d--) {
            const number rest = QUOTIENT(line, w.shape[d], w.by[d]);
            const long place = line - rest * (number)w.shape[d];
            to += place * w.strides[0][d];
            from += place * w.strides[1][d];
            of += place * w.strides[2][d];
            line = rest;
        }
        const long at = kn_index_at(index[of], &w);
        T value = (T)0;
        if (at >= 0 && at < w.size)
            value = table[from + at * w.step];
        else
            kn_report_index(fault, index[of], w.size);
        values[to] = value;
    }
}

#endif
