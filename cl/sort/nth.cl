/* sort/nth.cl - one element of each row in order, with its index, without sorting, on CPU devices: the bits of its key,
 * the highest first, each by counting the keys below. Compiled in: as in sort/keys.clh. */
#include "common/all.clh"
#include "common/koine.clh"
#include "common/lanes.clh"
#include "sort/keys.clh"
#include "sort/which.clh"

/* Keys as signed numbers, which processors compare in one instruction. */
#if WIDTH == 64
#define ORDER long
#else
#define ORDER int
#endif
#define ORDERS KN_JOIN(ORDER, KN_LANES)
#define ORDERED(key) ((ORDER)((key) ^ (KEY)1 << (8 * sizeof(KEY) - 1)))

/* The keys that are still in question, the first `base` of which are lower; the k-th is wanted. */
typedef struct kn_search {
    const global ORDER *keys;
    long n, k, base, end;
} kn_search;

/* Up to whole vectors, with the largest key: it is below no other. */
static inline void kn_pad(global ORDER *keys, const long n)
{
    for (long i = n; i < n + KN_LANES; i++)
        keys[i] = ORDERED(ALL);
}

/* Returns the lowest key, and the highest. */
KN_ONCE KEY kn_order(const global BITS *restrict x, global ORDER *restrict keys, const long n, KEY *highest)
{
    KEY low = ALL, high = 0;
    for (long i = 0; i < n; i++) {
        const KEY key = kn_key(x[i], 0);
        low = min(low, key);
        high = max(high, key);
        keys[i] = ORDERED(key);
    }
    kn_pad(keys, n);
    *highest = high;
    return low;
}

KN_ONCE long kn_count_below(const global ORDER *keys, const long n, const KEY limit)
{
    ORDERS count = 0;
    for (long i = 0; i < n; i += KN_LANES)
        count -= KN_VLOAD(keys + i) < (ORDERS)ORDERED(limit);
    const KN_JOIN(ORDER, 8) eight = count.lo + count.hi;
    const KN_JOIN(ORDER, 4) four = eight.lo + eight.hi;
    return four.x + four.y + four.z + four.w;
}

/* Leaves the keys from `low` on that are at most `past` higher. */
KN_ONCE void kn_narrow(kn_search *s, global ORDER *to, const KEY low, const KEY past)
{
    long count = 0;
    for (long i = 0; i < s->n; i++) {
        const ORDER key = s->keys[i];
        to[count] = key;
        count += (KEY)key - (KEY)ORDERED(low) <= past;
    }
    kn_pad(to, count);
    *s = (kn_search){to, count, s->k - s->base, 0, count};
}

/* The k-th of n keys, and how many equal ones precede it. `room` has space for them all. */
static inline KEY kn_nth(const global ORDER *keys, global ORDER *room, const long n, const long k, const KEY low,
                         const KEY high, long *rank)
{
    kn_search s = {keys, n, k, 0, n};
    KEY bit = SIGN;
    while (bit && !((low ^ high) & bit))
        bit >>= 1;
    KEY key = low & ~(bit | (bit - (bit > 0)));
    KN_NOT_UNROLLED
    for (; bit; bit >>= 1) {
        const long below = kn_count_below(s.keys, s.n, key | bit);
        if (below > s.k) {
            s.end = below;
        } else {
            key |= bit;
            s.base = below;
        }
        if ((s.end - s.base) * 16 <= s.n)
            kn_narrow(&s, room, key, bit - 1);
    }
    *rank = s.k - s.base;
    return key;
}

static inline long kn_find(const global ORDER *keys, const KEY key, long rank)
{
    for (long i = 0;; i += KN_LANES) {
        if (KN_ALL(KN_VLOAD(keys + i) != (ORDERS)ORDERED(key)))
            continue;
        for (int j = 0; j < KN_LANES; j++)
            if (keys[i + j] == ORDERED(key) && rank-- == 0)
                return i + j;
    }
}

/* Each work-item has 2 (n + KN_LANES) keys of scratch memory. */
KN_KERNEL_ONCE(sort_nth, (KN_ARG(x), KN_ARG(scratch), KN_ARG(values), KN_ARG(indices), rows, n, k, which),
               KN_IN(x), KN_OUT(scratch), KN_OUT(values), KN_OUT(indices), const long rows, const long n,
               const long k, const int which)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_OUT(ORDER, scratch);
    KN_BIND_OUT(BITS, values);
    KN_BIND_OUT(long, indices);
    global ORDER *keys = scratch + KN_ID(0) * 2 * (n + KN_LANES), *room = keys + n + KN_LANES;
    KN_FOR_ONCE (row, rows) {
        KEY high;
        long rank;
        const KEY low = kn_order(x + row * n, keys, n, &high);
        const long numbers = kn_is_nan(high) ? kn_count_below(keys, n, ALL) : n;
        const KEY key = kn_nth(keys, room, n, kn_place_of(which, k, n, numbers), low, high, &rank);
        const long at = kn_find(keys, key, rank);
        values[row] = x[row * n + at];
        indices[row] = at;
    }
}
