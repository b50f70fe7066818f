/* index/bag.cl - sums of the rows of bags of indices. An index out of range is reported, and its row is zeros. Compiled
 * in: T, INDEX. */
#include "common/koine.clh"

#ifdef KN_CPU
#include "common/lanes.clh"
#define COLUMNS 64

/* COLUMNS columns of a bag, in registers. */
static inline void kn_bag_columns(const global T *table, const global INDEX *index, global T *sums, const long n,
                                  const long rows, const long width, const T by)
{
    TV a = 0, b = 0, c = 0, d = 0;
    for (long j = 0; j < n; j++) {
        const long row = index[j];
        const global T *from = table + row * width;
        if ((ulong)row >= (ulong)rows)
            continue;
        a += KN_VLOAD(from);
        b += KN_VLOAD(from + 16);
        c += KN_VLOAD(from + 32);
        d += KN_VLOAD(from + 48);
    }
    KN_VSTORE(a / by, sums);
    KN_VSTORE(b / by, sums + 16);
    KN_VSTORE(c / by, sums + 32);
    KN_VSTORE(d / by, sums + 48);
}

#else
#define COLUMNS 1
#endif

/* sums [bags, width] of rows of table [rows, width], of each bag's n indices, divided by `by`. */
KN_KERNEL_ONCE(bag_sum,
               (KN_ARG(table), KN_ARG(index), KN_ARG(sums), bags, n, rows, width, by, fault, fault_operation),
               KN_IN(table), KN_IN(index), KN_OUT(sums), const long bags, const long n, const long rows,
               const long width, const T by, KN_FAULT)
{
    KN_BIND_IN(T, table);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, sums);
    const long pieces = (width + COLUMNS - 1) / COLUMNS;
    KN_FOR_ONCE (task, bags * pieces) {
        const long bag = task / pieces, begin = (task - bag * pieces) * COLUMNS;
        const global INDEX *of = index + bag * n;
        long column = begin;
        if (begin == 0)
            for (long j = 0; j < n; j++)
                if (of[j] < 0 || of[j] >= rows)
                    kn_report_index(fault, of[j], rows);
#ifdef KN_CPU
        if (column + COLUMNS <= width) {
            kn_bag_columns(table + column, of, sums + bag * width + column, n, rows, width, by);
            continue;
        }
#endif
        for (; column < min(begin + COLUMNS, width); column++) {
            T sum = 0;
            for (long j = 0; j < n; j++)
                sum += of[j] >= 0 && of[j] < rows ? table[of[j] * width + column] : (T)0;
            sums[bag * width + column] = sum / by;
        }
    }
}
