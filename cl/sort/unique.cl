/* sort/unique.cl - runs of equal rows of m elements: where each begins, how long it is. Compiled in: as in
 * sort/keys.clh. */
#include "common/koine.clh"
#include "sort/keys.clh"

/* Does row i differ from the one before? NaN differs from all. */
static inline bool kn_begins(const global BITS *x, const long i, const long m)
{
    bool differs = i == 0;
    for (long j = 0; j < m && !differs; j++) {
        const KEY a = kn_key(x[i * m + j], 0), b = kn_key(x[(i - 1) * m + j], 0);
        differs = a != b || kn_is_nan(a);
    }
    return differs;
}

/* How many runs begin in each chunk of `length` rows. */
KN_KERNEL_ONCE(count_runs, (KN_ARG(x), KN_ARG(counts), n, m, length, chunks),
               KN_IN(x), KN_OUT(counts), const long n, const long m, const long length, const long chunks)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_OUT(long, counts);
    KN_FOR_ONCE (chunk, chunks) {
        long count = 0;
        for (long i = chunk * length; i < min((chunk + 1) * length, n); i++)
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

/* starts: the first row of each run. inverse: the run of each row, at its place before sorting, if `order` has those.
 */
KN_KERNEL_ONCE(mark_runs,
               (KN_ARG(x), KN_ARG(counts), KN_ARG(order), KN_ARG(starts), KN_ARG(inverse), n, m, length, chunks,
                has_order, has_inverse),
               KN_IN(x), KN_IN(counts), KN_IN(order), KN_OUT(starts), KN_OUT(inverse), const long n, const long m,
               const long length, const long chunks, const int has_order, const int has_inverse)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_IN(long, counts);
    KN_BIND_IN(long, order);
    KN_BIND_OUT(long, starts);
    KN_BIND_OUT(long, inverse);
    KN_FOR_ONCE (chunk, chunks) {
        long run = counts[chunk] - 1;
        for (long i = chunk * length; i < min((chunk + 1) * length, n); i++) {
            if (kn_begins(x, i, m))
                starts[++run] = i;
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
