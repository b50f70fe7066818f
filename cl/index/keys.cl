/* index/keys.cl - several indices as one, the places of the true elements of a mask, and repeated indices. */
#include "common/koine.clh"

/* key = key + factor * index, or factor * index if it is the first; -1 if an index is out of range, which is reported.
 * Negative indices count from the end. */
KN_KERNEL_ONCE(index_key, (KN_ARG(index), KN_ARG(key), n, size, factor, first, fault, fault_operation),
               KN_IN(index), KN_INOUT(key), const long n, const long size, const long factor, const int first,
               KN_FAULT)
{
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(long, key);
    KN_FOR_ONCE (i, n) {
        const long given = index[i], at = given < 0 ? given + size : given, before = first ? 0 : key[i];
        const bool inside = at >= 0 && at < size;
        if (!inside)
            kn_report_index(fault, given, size);
        key[i] = inside && before >= 0 ? before + at * factor : -1;
    }
}

/* `counts` holds how many elements of the mask are true up to each. On a CPU device each place of a work-item's chunk
 * is written where the next true one belongs, until all are there: a branch per element would often be mispredicted. */
KN_KERNEL_ONCE(index_places, (KN_ARG(mask), KN_ARG(counts), KN_ARG(places), n),
               KN_IN(mask), KN_IN(counts), KN_OUT(places), const long n)
{
    KN_BIND_IN(uchar, mask);
    KN_BIND_IN(long, counts);
    KN_BIND_OUT(long, places);
#ifdef KN_CPU
    const long chunk = (n + KN_SIZE(0) - 1) / KN_SIZE(0), first = KN_ID(0) * chunk;
    const long last = min(first + chunk, n), end = first < last ? counts[last - 1] : 0;
    long to = first > 0 && first < last ? counts[first - 1] : 0;
    for (long i = first; i < last && to < end; i++) {
        places[to] = i;
        to += mask[i] != 0;
    }
#else
    KN_FOR_ONCE (i, n)
        if (mask[i])
            places[counts[i] - 1] = i;
#endif
}

/* Each index as often as it is repeated: `ends` holds the running sums, whose last one is `total`. Sums that wrapped
 * around are reported. */
KN_KERNEL_ONCE(index_repeats, (KN_ARG(ends), KN_ARG(repeated), n, total, fault, fault_operation),
               KN_IN(ends), KN_OUT(repeated), const long n, const long total, KN_FAULT)
{
    KN_BIND_IN(long, ends);
    KN_BIND_OUT(long, repeated);
    KN_FOR_ONCE (i, n) {
        const long end = ends[i], first = i > 0 ? ends[i - 1] : 0;
        if (first < 0 || first > end || end > total)
            kn_report_index(fault, end, total);
        else
            for (long at = first; at < end; at++)
                repeated[at] = i;
    }
}

/* The coordinate along one dimension of size `size`, with `inner` elements per step, of each place. If places have no
 * more than 32 bits (is_short), dividing them takes a fraction of the time. */
KN_KERNEL_ONCE(index_coordinate, (KN_ARG(places), KN_ARG(coordinates), n, size, inner, stride, is_short),
               KN_IN(places), KN_OUT(coordinates), const long n, const long size, const long inner, const long stride,
               const int is_short)
{
    KN_BIND_IN(long, places);
    KN_BIND_OUT(long, coordinates);
    if (is_short)
        KN_FOR_ONCE (i, n)
            coordinates[i * stride] = (uint)places[i] / (uint)inner % (uint)size;
    else
        KN_FOR_ONCE (i, n)
            coordinates[i * stride] = places[i] / inner % size;
}
