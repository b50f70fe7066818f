/* sort/search.cl - binary search in sorted rows. Compiled in: as in sort/keys.clh; and RESULT, the type of results. */
#include "common/koine.clh"
#include "sort/keys.clh"

/* How many of n elements precede `key`, or, `right`, precede or equal it. `order`: the elements' places in order; NULL:
 * they are in order. `plain`: NaN is the largest, as in sorting; otherwise it is neither equal nor greater, as in C, so
 * that all elements precede it, and it precedes all. */
static inline long kn_search(const global BITS *row, const global long *order, const long n, const KEY key,
                             const bool right, const bool plain)
{
    long low = 0, left = n;
    while (left > 0) {
        const long half_ = left / 2, at = low + half_;
        const KEY other = kn_key(row[order ? order[at] : at], 0);
        const bool is_ordered = plain || !(kn_is_nan(key) || kn_is_nan(other));
        const bool ends = is_ordered && (right ? other > key : other >= key);
        low = ends ? low : at + 1;
        left = ends ? half_ : left - half_ - 1;
    }
    return low;
}

#ifdef KN_CPU
/* The same of 16 keys at a time, whose rows begin at `first`; `n` and the offsets are below 2^31. */
#define LANES 16
static inline void kn_search_together(const global BITS *sorted, const int *first, const int n, const KEY *key,
                                      const bool right, int *low)
{
    int left[LANES];
    for (int l = 0; l < LANES; l++) {
        low[l] = 0;
        left[l] = n;
    }
    for (int rest = n; rest > 0; rest /= 2)
        for (int l = 0; l < LANES; l++) {
            const int half_ = left[l] / 2, at = low[l] + half_;
            const KEY other = kn_key(sorted[first[l] + min(at, n - 1)], 0);
            const bool is_ordered = !(kn_is_nan(key[l]) | kn_is_nan(other));
            const bool ends = (left[l] == 0) | (is_ordered & (right ? other > key[l] : other >= key[l]));
            low[l] = ends ? low[l] : at + 1;
            left[l] = ends ? half_ : left[l] - half_ - 1;
        }
}
#endif

/* values [rows, m] in sorted [rows, n], or, if `shared`, all in one row. */
kernel void search_sorted(KN_IN(sorted), KN_IN(order), KN_IN(values), KN_OUT(found), const long count, const long n,
                          const long m, const int shared, const int has_order, const int right)
{
    KN_BIND_IN(BITS, sorted);
    KN_BIND_IN(long, order);
    KN_BIND_IN(BITS, values);
    KN_BIND_OUT(RESULT, found);
#ifdef KN_CPU
    if (!has_order && n > 0 && (shared ? n : count / m * n) <= INT_MAX) {
        KN_FOR (block, (count + LANES - 1) / LANES) {
            const long begin = block * LANES;
            const int some = (int)min((long)LANES, count - begin);
            int first[LANES], low[LANES];
            KEY key[LANES];
            long row = shared ? 0 : begin / m, end = shared ? count : (row + 1) * m;
            for (int l = 0; l < LANES; l++) {
                const long i = begin + min(l, some - 1);
                while (i >= end) {
                    row++;
                    end += m;
                }
                first[l] = (int)(row * n);
                key[l] = kn_key(values[i], 0);
            }
            if (right)
                kn_search_together(sorted, first, (int)n, key, true, low);
            else
                kn_search_together(sorted, first, (int)n, key, false, low);
            for (int l = 0; l < some; l++)
                found[begin + l] = (RESULT)low[l];
        }
        return;
    }
#endif
    KN_FOR (i, count) {
        const long first = shared ? 0 : i / m * n;
        found[i] = (RESULT)kn_search(sorted + first, has_order ? order + first : 0, n, kn_key(values[i], 0), right != 0,
                                     false);
    }
}

/* Is each value among n sorted ones? */
kernel void is_in(KN_IN(sorted), KN_IN(values), KN_OUT(found), const long count, const long n, const int invert)
{
    KN_BIND_IN(BITS, sorted);
    KN_BIND_IN(BITS, values);
    KN_BIND_OUT(RESULT, found);
    KN_FOR (i, count) {
        const KEY key = kn_key(values[i], 0);
        const long at = kn_search(sorted, 0, n, key, false, true);
        const bool is = at < n && !kn_is_nan(key) && kn_key(sorted[at], 0) == key;
        found[i] = is != (invert != 0);
    }
}
