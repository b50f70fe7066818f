/* sort/unique.cl - runs of equal rows of m elements: where each begins, how long it is. Compiled in: as in
 * sort/keys.clh. */
#include "common/koine.clh"
#include "sort/keys.clh"

/* NaN differs from all. */
static inline bool kn_differ(const BITS x, const BITS before)
{
    const KEY a = kn_key(x, 0);
    return (a != kn_key(before, 0)) | kn_is_nan(a);
}

/* Does row i differ from the one before? */
static inline bool kn_begins(const global BITS *x, const long i, const long m)
{
    bool differs = i == 0;
    for (long j = 0; j < m && !differs; j++)
        differs = kn_differ(x[i * m + j], x[(i - 1) * m + j]);
    return differs;
}

/* The values of the runs that begin from element `first` to `end`, numbers `run` to `last`. Each element is written
 * where the next run's belongs: a branch per element would often be mispredicted. */
#define BLOCK 16
static inline void kn_take_values(const global BITS *x, global BITS *values, long first, const long end, long run,
                                  const long last)
{
    if (first == 0 && run < last)
        values[run++] = x[first++];
    for (long i = first; i < end && run < last; i += BLOCK) {
        const int n = (int)min((long)BLOCK, end - i);
        uchar begins[BLOCK];
        if (n == BLOCK)
            for (int j = 0; j < BLOCK; j++)
                begins[j] = kn_differ(x[i + j], x[i + j - 1]);
        else
            for (int j = 0; j < n; j++)
                begins[j] = kn_differ(x[i + j], x[i + j - 1]);
        for (int j = 0; j < n && run < last; j++) {
            values[run] = x[i + j];
            run += begins[j];
        }
    }
}

/* How many runs begin in each chunk of `length` rows. */
KN_KERNEL_ONCE(count_runs, (KN_ARG(x), KN_ARG(counts), n, m, length, chunks),
               KN_IN(x), KN_OUT(counts), const long n, const long m, const long length, const long chunks)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_OUT(long, counts);
    KN_FOR_ONCE (chunk, chunks) {
        const long first = chunk * length, end = min(first + length, n);
        uint count = first == 0 && end > 0;
        if (m == 1)
            for (long i = max(first, 1L); i < end; i++)
                count += kn_differ(x[i], x[i - 1]);
        else
            for (long i = max(first, 1L); i < end; i++)
                count += kn_begins(x, i, m);
        counts[chunk] = count;
    }
}

/* Replaces the counts by their sums before each chunk; the last one is the sum of all. By one work-item. */
KN_KERNEL_ONCE(sum_runs_before, (KN_ARG(counts), chunks), KN_INOUT(counts), const long chunks)
{
    KN_BIND_OUT(long, counts);
    long sum = 0;
    if (KN_ID(0) > 0)
        return;
    for (long chunk = 0; chunk <= chunks; chunk++) {
        const long count = chunk < chunks ? counts[chunk] : 0;
        counts[chunk] = sum;
        sum += count;
    }
}

/* starts: the first row of each run. values: those of rows of one element. inverse: the run of each row, at its place
 * before sorting, if `order` has those. */
KN_KERNEL_ONCE(mark_runs,
               (KN_ARG(x), KN_ARG(counts), KN_ARG(order), KN_ARG(starts), KN_ARG(values), KN_ARG(inverse), n, m, length,
                chunks, has_order, has_starts, has_values, has_inverse),
               KN_IN(x), KN_IN(counts), KN_IN(order), KN_OUT(starts), KN_OUT(values), KN_OUT(inverse), const long n,
               const long m, const long length, const long chunks, const int has_order, const int has_starts,
               const int has_values, const int has_inverse)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_IN(long, counts);
    KN_BIND_IN(long, order);
    KN_BIND_OUT(long, starts);
    KN_BIND_OUT(BITS, values);
    KN_BIND_OUT(long, inverse);
    KN_FOR_ONCE (chunk, chunks) {
        const long end = min((chunk + 1) * length, n);
        long run = counts[chunk] - 1;
        if (m == 1 && has_values && !has_starts && !has_inverse) {
            kn_take_values(x, values, chunk * length, end, run + 1, counts[chunk + 1]);
            continue;
        }
        for (long i = chunk * length; i < end; i++) {
            const bool begins = i == 0 || (m == 1 ? kn_differ(x[i], x[i - 1]) : kn_begins(x, i, m));
            run += begins;
            if (begins && has_starts)
                starts[run] = i;
            if (begins && has_values)
                values[run] = x[i];
            if (has_inverse)
                inverse[has_order ? order[i] : i] = run;
        }
    }
}

/* The values and lengths of `count` runs. */
KN_KERNEL_ONCE(take_runs,
               (KN_ARG(x), KN_ARG(starts), KN_ARG(values), KN_ARG(lengths), n, m, count, has_values, has_lengths),
               KN_IN(x), KN_IN(starts), KN_OUT(values), KN_OUT(lengths), const long n, const long m, const long count,
               const int has_values, const int has_lengths)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_IN(long, starts);
    KN_BIND_OUT(BITS, values);
    KN_BIND_OUT(long, lengths);
    KN_FOR_ONCE (run, count) {
        const long first = starts[run], end = run + 1 < count ? starts[run + 1] : n;
        if (has_lengths)
            lengths[run] = end - first;
        for (long j = 0; j < m && has_values; j++)
            values[run * m + j] = x[first * m + j];
    }
}
