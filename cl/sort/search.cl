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
#define LANES 64 /* keys at a time: their loads are independent, and a processor has many under way */
#define BLOCKS 32

/* low[l] = where the block of `size` elements begins that key l belongs in, of BLOCKS or fewer. */
static inline void kn_find_blocks(const global BITS *row, int n, int size, const KEY *key, const bool right, int *low)
{
    for (int last = size - 1; last < n; last += size) {
        const KEY other = kn_key(row[last], 0);
        for (int l = 0; l < LANES; l++)
            low[l] += (right ? other > key[l] : other >= key[l]) ? 0 : size;
    }
}

/* Halves all intervals equally often, so that lanes differ in nothing but where their intervals begin; the first have
 * 2 * half_ - 1 elements, of which those at n and beyond repeat the last. */
static inline void kn_halve(const global BITS *sorted, const int *first, int n, int half_, const KEY *key,
                            const bool right, int *low)
{
    for (; half_ > 0; half_ /= 2)
        for (int l = 0; l < LANES; l++) {
            const KEY other = kn_key(sorted[first[l] + min(low[l] + half_ - 1, n - 1)], 0);
            low[l] += (right ? other > key[l] : other >= key[l]) ? 0 : half_;
        }
}

/* kn_search of LANES keys at a time, in rows without NaN that begin at `first`; `n` and the offsets are below 2^30. If
 * all are in one row, the first halvings, whose elements are the same for all keys, are comparisons with all of these:
 * no loads from places that differ. */
static inline void kn_search_together(const global BITS *sorted, const int *first, int n, const KEY *key,
                                      const bool right, int *low)
{
    int size = 1;
    const int blocks = first[0] == first[LANES - 1] ? BLOCKS : 1;
    while (size * blocks < n + (blocks == 1))
        size *= 2;
    for (int l = 0; l < LANES; l++)
        low[l] = 0;
    if (blocks > 1)
        kn_find_blocks(sorted + first[0], n, size, key, right, low);
    kn_halve(sorted, first, n, size / 2, key, right, low);
    for (int l = 0; l < LANES; l++)
        low[l] = kn_is_nan(key[l]) ? n : min(low[l], n);
}

/* The rows of LANES values from `begin` on, of which there are `some`, and their keys; the rest repeat the last. true
 * if one of the rows ends with NaN. */
static inline bool kn_take_lanes(const global BITS *sorted, const global BITS *values, long begin, int some, long n,
                                 long m, const bool shared, int *first, KEY *key)
{
    long row = shared ? 0 : begin / m, end = (row + 1) * m;
    bool has_nan = kn_is_nan(kn_key(sorted[row * n + n - 1], 0));
    for (int l = 0; l < some; l++)
        key[l] = kn_key(values[begin + l], 0);
    for (int l = some; l < LANES; l++)
        key[l] = key[some - 1];
    for (int l = 0; l < LANES; l++)
        first[l] = (int)(row * n);
    for (; !shared && begin + some > end; end += m) {
        row++;
        has_nan |= kn_is_nan(kn_key(sorted[row * n + n - 1], 0));
        for (int l = (int)(end - begin); l < LANES; l++)
            first[l] = (int)(row * n);
    }
    return has_nan;
}
#endif

/* values [rows, m] in sorted [rows, n], or, if `shared`, all in one row. */
KN_KERNEL_ONCE(search_sorted,
               (KN_ARG(sorted), KN_ARG(order), KN_ARG(values), KN_ARG(found), count, n, m, shared, has_order, right),
               KN_IN(sorted), KN_IN(order), KN_IN(values), KN_OUT(found), const long count, const long n,
               const long m, const int shared, const int has_order, const int right)
{
    KN_BIND_IN(BITS, sorted);
    KN_BIND_IN(long, order);
    KN_BIND_IN(BITS, values);
    KN_BIND_OUT(RESULT, found);
#ifdef KN_CPU
    if (!has_order && n > 0 && (shared ? n : count / m * n) < 1 << 30) {
        KN_FOR_ONCE (block, (count + LANES - 1) / LANES) {
            const long begin = block * LANES;
            const int some = (int)min((long)LANES, count - begin);
            int first[LANES], low[LANES];
            KEY key[LANES];
            if (kn_take_lanes(sorted, values, begin, some, n, m, shared != 0, first, key))
                for (int l = 0; l < some; l++)
                    low[l] = (int)kn_search(sorted + first[l], 0, n, key[l], right != 0, false);
            else if (right)
                kn_search_together(sorted, first, (int)n, key, true, low);
            else
                kn_search_together(sorted, first, (int)n, key, false, low);
            for (int l = 0; l < some; l++)
                found[begin + l] = (RESULT)low[l];
        }
        return;
    }
#endif
    KN_FOR_ONCE (i, count) {
        const long first = shared ? 0 : i / m * n;
        found[i] = (RESULT)kn_search(sorted + first, has_order ? order + first : 0, n, kn_key(values[i], 0), right != 0,
                                     false);
    }
}

/* Is each value among n sorted ones? */
KN_KERNEL_ONCE(is_in, (KN_ARG(sorted), KN_ARG(values), KN_ARG(found), count, n, invert),
               KN_IN(sorted), KN_IN(values), KN_OUT(found), const long count, const long n, const int invert)
{
    KN_BIND_IN(BITS, sorted);
    KN_BIND_IN(BITS, values);
    KN_BIND_OUT(RESULT, found);
    KN_FOR_ONCE (i, count) {
        const KEY key = kn_key(values[i], 0);
        const long at = kn_search(sorted, 0, n, key, false, true);
        const bool is = at < n && !kn_is_nan(key) && kn_key(sorted[at], 0) == key;
        found[i] = is != (invert != 0);
    }
}
