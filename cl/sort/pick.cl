/* sort/pick.cl - one element of each row of n sorted ones, with its index before sorting. Compiled in: as in
 * sort/keys.clh. */
#include "common/koine.clh"
#include "sort/keys.clh"
#include "sort/which.clh"

/* How many numbers precede the NaNs. */
static inline long kn_count_numbers(const global BITS *row, const long n)
{
    long low = 0, high = n;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (kn_is_nan(kn_key(row[middle], 0)))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The last of the most frequent value, the smallest of several; each NaN differs from the others. */
static inline long kn_mode(const global BITS *row, const long n)
{
    long best = 0, most = 0, first = 0;
    for (long i = 0; i < n; i++) {
        const KEY key = kn_key(row[i], 0);
        if (i > first && (key != kn_key(row[first], 0) || kn_is_nan(key)))
            first = i;
        if (i - first + 1 > most) {
            most = i - first + 1;
            best = i;
        }
    }
    return best;
}

KN_KERNEL_ONCE(sort_pick, (KN_ARG(sorted), KN_ARG(places), KN_ARG(values), KN_ARG(indices), rows, n, k, which),
               KN_IN(sorted), KN_IN(places), KN_OUT(values), KN_OUT(indices), const long rows, const long n,
               const long k, const int which)
{
    KN_BIND_IN(BITS, sorted);
    KN_BIND_IN(long, places);
    KN_BIND_OUT(BITS, values);
    KN_BIND_OUT(long, indices);
    KN_FOR_ONCE (r, rows) {
        const global BITS *row = sorted + r * n;
        const long at = which == MODE ? kn_mode(row, n) : kn_place_of(which, k, n, kn_count_numbers(row, n));
        values[r] = row[at];
        indices[r] = places[r * n + at];
    }
}
