/* index/keys.cl - several indices as one, the places of the true elements of a mask, and repeated indices. */
#include "common/koine.clh"
#include "index/index.h"

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

#ifdef KN_CPU

/* How many elements of each chunk of the mask are true. */
KN_KERNEL_ONCE(count_true, (KN_ARG(mask), KN_ARG(counts), n, length, chunks),
               KN_IN(mask), KN_OUT(counts), const long n, const long length, const long chunks)
{
    KN_BIND_IN(uchar, mask);
    KN_BIND_OUT(long, counts);
    KN_FOR_ONCE (chunk, chunks) {
        const long end = min((chunk + 1) * length, n);
        uint count = 0;
        for (long i = chunk * length; i < end; i++)
            count += mask[i] != 0;
        counts[chunk] = count;
    }
}

/* The coordinates of the true ones among n elements of a row, of which `at` are those of the dimensions before and `j`
 * is the first one's last, from number `to` on, of which there are none from `end` on. Each element's are written where
 * the next true one's belong: a branch per element would often be mispredicted. */
static inline long kn_list_row(const global uchar *mask, const long n, const long *at, const long j, const int ndim,
                               const long step, const long apart, long to, const long end, global long *places)
{
    for (long k = 0; k < n && to < end;) {
        const long some = min(8L, n - k);
        if (some == 8 && as_ulong(vload8(0, mask + k)) == 0) {
            k += 8;
            continue;
        }
        for (const long last = k + some; k < last && to < end; k++) {
            for (int d = 0; d + 1 < ndim; d++)
                places[to * step + d * apart] = at[d];
            places[to * step + (ndim - 1) * apart] = j + k;
            to += mask[k] != 0;
        }
    }
    return to;
}

/* `counts` are those of the chunks. */
KN_KERNEL_ONCE(list_true, (KN_ARG(mask), KN_ARG(counts), KN_ARG(places), w),
               KN_IN(mask), KN_IN(counts), KN_OUT(places), const kn_index_listing w)
{
    KN_BIND_IN(uchar, mask);
    KN_BIND_IN(long, counts);
    KN_BIND_OUT(long, places);
    KN_FOR_ONCE (chunk, w.chunks) {
        const long width = w.shape[w.ndim - 1], last = min((chunk + 1) * w.length, w.n);
        long i = chunk * w.length, rest = i / width, j = i - rest * width, to = 0, at[KN_MAX_DIMS];
        for (long c = 0; c < chunk; c++)
            to += counts[c];
        const long end = to + counts[chunk];
        for (int d = w.ndim - 2; d >= 0; d--) {
            at[d] = rest % w.shape[d];
            rest /= w.shape[d];
        }
        while (i < last && to < end) {
            const long n = min(width - j, last - i);
            if (w.ndim == 1)
                to = kn_list_row(mask + i, n, at, j, 1, 1, 0, to, end, places);
            else if (w.ndim == 2)
                to = kn_list_row(mask + i, n, at, j, 2, w.step, w.apart, to, end, places);
            else
                to = kn_list_row(mask + i, n, at, j, w.ndim, w.step, w.apart, to, end, places);
            i += n;
            j = 0;
            for (int d = w.ndim - 2; d >= 0 && ++at[d] == w.shape[d]; d--)
                at[d] = 0;
        }
    }
}

#else

/* `counts` holds how many elements of the mask are true up to each. */
KN_KERNEL_ONCE(index_places, (KN_ARG(mask), KN_ARG(counts), KN_ARG(places), n),
               KN_IN(mask), KN_IN(counts), KN_OUT(places), const long n)
{
    KN_BIND_IN(uchar, mask);
    KN_BIND_IN(long, counts);
    KN_BIND_OUT(long, places);
    KN_FOR_ONCE (i, n)
        if (mask[i])
            places[counts[i] - 1] = i;
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

#endif

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
