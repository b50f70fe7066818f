/* sort/quantile.cl - quantiles of sorted rows, between two neighbours. Compiled in: T. */
#include "common/koine.clh"

/* How to choose between neighbours, as in koine/sort.h. */
#define LINEAR 0
#define LOWER 1
#define HIGHER 2
#define MIDPOINT 3
#define NEAREST 4

/* Two places of a row, the weight of the second, and how much it grows with q. */
typedef struct kn_between {
    long low, high;
    T weight, slope;
} kn_between;

static inline long kn_count_numbers(const global T *row, const long n)
{
    long low = 0, high = n;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (row[middle] != row[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Low -1: the quantile is NaN. */
static inline kn_between kn_find(const global T *row, const long n, const T q, const int how, const int ignores)
{
    const long numbers = kn_count_numbers(row, n);
    kn_between b = {-1, -1, 0, 0};
    if (!(q >= 0 && q <= 1) || numbers == 0 || (numbers < n && !ignores))
        return b;
    const T rank = q * (T)(numbers - 1);
    b.low = min((long)(how == NEAREST ? rint(rank) : how == HIGHER ? ceil(rank) : floor(rank)), numbers - 1);
    b.high = how == LINEAR || how == MIDPOINT ? min((long)ceil(rank), numbers - 1) : b.low;
    b.slope = how == LINEAR ? (T)(numbers - 1) : (T)0;
    b.weight = how == MIDPOINT ? (T)0.5 : how == LINEAR ? rank - (T)b.low : (T)0;
    return b;
}

/* y [count, rows] = the quantiles q [count] of sorted [rows, n]. */
KN_KERNEL_ONCE(take_quantiles, (KN_ARG(sorted), KN_ARG(q), KN_ARG(y), rows, n, count, how, ignores),
               KN_IN(sorted), KN_IN(q), KN_OUT(y), const long rows, const long n, const long count, const int how,
               const int ignores)
{
    KN_BIND_IN(T, sorted);
    KN_BIND_IN(T, q);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE (i, rows * count) {
        const global T *row = sorted + i % rows * n;
        const kn_between b = kn_find(row, n, q[i / rows], how, ignores);
        if (b.low < 0) {
            y[i] = NAN;
            continue;
        }
        const T low = row[b.low], high = row[b.high];
        const T near_low = low + b.weight * (high - low), near_high = high - (high - low) * (1 - b.weight);
        y[i] = low == high ? low : b.weight < (T)0.5 ? near_low : near_high;
    }
}

/* The gradient; `out` starts as 0. A work-item adds those of its row in the order of q. */
KN_KERNEL_ONCE(spread_quantiles, (KN_ARG(sorted), KN_ARG(q), KN_ARG(g), KN_ARG(out), rows, n, count, how, ignores),
               KN_IN(sorted), KN_IN(q), KN_IN(g), KN_INOUT(out), const long rows, const long n, const long count,
               const int how, const int ignores)
{
    KN_BIND_IN(T, sorted);
    KN_BIND_IN(T, q);
    KN_BIND_IN(T, g);
    KN_BIND_OUT(T, out);
    KN_FOR_ONCE (r, rows)
        for (long j = 0; j < count; j++) {
            const kn_between b = kn_find(sorted + r * n, n, q[j], how, ignores);
            if (b.low < 0)
                continue;
            out[r * n + b.low] += g[j * rows + r] * (1 - b.weight);
            out[r * n + b.high] += g[j * rows + r] * b.weight;
        }
}

/* out [count, rows]: the gradient of q, to be added over the rows. */
KN_KERNEL_ONCE(slope_quantiles, (KN_ARG(sorted), KN_ARG(q), KN_ARG(g), KN_ARG(out), rows, n, count, how, ignores),
               KN_IN(sorted), KN_IN(q), KN_IN(g), KN_OUT(out), const long rows, const long n, const long count,
               const int how, const int ignores)
{
    KN_BIND_IN(T, sorted);
    KN_BIND_IN(T, q);
    KN_BIND_IN(T, g);
    KN_BIND_OUT(T, out);
    KN_FOR_ONCE (i, rows * count) {
        const global T *row = sorted + i % rows * n;
        const kn_between b = kn_find(row, n, q[i / rows], how, ignores);
        out[i] = b.low < 0 ? (T)0 : g[i] * (row[b.high] - row[b.low]) * b.slope;
    }
}
