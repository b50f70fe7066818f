/* sort/count.cl - how often each of `bins` numbers occurs. On CPU devices each of `chunks` chunks has its own counts,
 * on others there is one set: integers may be added in any order. Compiled in: X, the elements' type in memory, LOAD,
 * and for histograms T, the type to compute in. */
#include "pointwise/elements.clh"

static inline void kn_count(global uint *counts, const long bin)
{
#ifdef KN_CPU
    counts[bin]++;
#else
    atomic_inc(counts + bin);
#endif
}

/* Of integers; one out of range is reported. */
KN_KERNEL_ONCE(count_integers, (KN_ARG(x), KN_ARG(counts), n, bins, length, chunks, fault, fault_operation),
               KN_IN(x), KN_INOUT(counts), const long n, const long bins, const long length, const long chunks,
               KN_FAULT)
{
    KN_BIND_IN(X, x);
    KN_BIND_OUT(uint, counts);
#ifdef KN_CPU
    KN_FOR_ONCE (chunk, chunks)
        for (long i = chunk * length; i < min((chunk + 1) * length, n); i++) {
            global uint *own = counts + chunk * bins;
#else
    KN_FOR_ONCE (i, n) {
            global uint *own = counts;
#endif
            const long bin = (long)x[i];
            if (bin >= 0 && bin < bins)
                kn_count(own, bin);
            else
                kn_report_index(fault, bin, bins);
        }
}

#ifdef T

/* Of numbers in equal intervals of range[0] .. range[1], or, if these are equal, of one before to one after. Numbers
 * outside and NaN are not counted. */
KN_KERNEL_ONCE(count_in_bins, (KN_ARG(x), KN_ARG(range), KN_ARG(counts), n, bins, length, chunks),
               KN_IN(x), KN_IN(range), KN_INOUT(counts), const long n, const long bins, const long length,
               const long chunks)
{
    KN_BIND_IN(X, x);
    KN_BIND_IN(T, range);
    KN_BIND_OUT(uint, counts);
    const T least = range[0] == range[1] ? range[0] - 1 : range[0];
    const T most = range[0] == range[1] ? range[1] + 1 : range[1];
#ifdef KN_CPU
    KN_FOR_ONCE (chunk, chunks)
        for (long i = chunk * length; i < min((chunk + 1) * length, n); i++) {
            global uint *own = counts + chunk * bins;
#else
    KN_FOR_ONCE (i, n) {
            global uint *own = counts;
#endif
            const T a = (T)LOAD(x, i);
            if (a >= least && a <= most)
                kn_count(own, min((long)((a - least) * (T)bins / (most - least)), bins - 1));
        }
}

#endif

/* The sums of the chunks' counts. Compiled in for these: RESULT and STORE. */
KN_KERNEL_ONCE(sum_counts, (KN_ARG(counts), KN_ARG(result), bins, chunks),
               KN_IN(counts), KN_OUT(result), const long bins, const long chunks)
{
    KN_BIND_IN(uint, counts);
    KN_BIND_OUT(RESULT, result);
    KN_FOR_ONCE (bin, bins) {
        long sum = 0;
        for (long chunk = 0; chunk < chunks; chunk++)
            sum += counts[chunk * bins + bin];
        STORE(RESULT, sum, result, bin);
    }
}

#ifdef T

/* The sum of the weights at order[starts[bin] .. starts[bin + 1]), in this order. */
KN_KERNEL_ONCE(sum_weights, (KN_ARG(weights), KN_ARG(order), KN_ARG(starts), KN_ARG(result), bins),
               KN_IN(weights), KN_IN(order), KN_IN(starts), KN_OUT(result), const long bins)
{
    KN_BIND_IN(T, weights);
    KN_BIND_IN(long, order);
    KN_BIND_IN(long, starts);
    KN_BIND_OUT(T, result);
    KN_FOR_ONCE (bin, bins) {
        T sum = 0;
        for (long i = starts[bin]; i < starts[bin + 1]; i++)
            sum += weights[order[i]];
        result[bin] = sum;
    }
}

#endif
