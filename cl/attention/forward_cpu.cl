/* attention/forward_cpu.cl - scaled dot-product attention on CPU devices: softmax(query key^T + mask) value, without
 * the matrix of scores (attention/tiles.clh).
 *
 * A unit is NR queries of a head. It takes KEYS keys at a time: scores, their maxima so far, the exponentials of the
 * differences, and the sum of the values weighted with them; when a maximum grows, the sums so far shrink. The query is
 * scaled before.
 *
 * Compiled in: T, VW, NV, MR. Local size 1, no local memory, no barrier. */
#include "attention/tiles.clh"

#define KEYS 128

/* The scores of some keys become probabilities relative to the new maximum: returns their sums' correction. The first
 * `vectors` vectors only. */
static inline void weigh(global T *restrict scores, int keys, int vectors, V highest[NV], V sum[NV], V correction[NV],
                         dropout d, long block, long blocks_of_keys)
{
#pragma unroll
    for (int v = 0; v < NV; v++) {
        if (v >= vectors) /* a break here would keep compilers from unrolling */
            continue;
        V most = highest[v], total = (V)0;
        for (int i = 0; i < keys; i++) {
            const V s = VGET(v, scores + i * NR);
            most = s > most ? s : most;
        }
        const V from = most == (V)-INFINITY ? (V)0 : most; /* nothing visible so far */
        for (int i = 0; i < keys; i++) {
            const V p = exp_of(VGET(v, scores + i * NR) - from);
            total += p;
            VPUT(p, v, scores + i * NR);
        }
        correction[v] = exp_of(highest[v] - from);
        sum[v] = fma(sum[v], correction[v], total);
        highest[v] = most;
        for (int i = 0; d.below && i < keys; i += 4) {
            V factors[4];
            draw_factors(factors, d, block + i / 4 * blocks_of_keys + v * VW);
            for (int j = 0; j < min(4, keys - i); j++)
                VPUT(VGET(v, scores + (i + j) * NR) * factors[j], v, scores + (i + j) * NR);
        }
    }
}

static inline void shrink(global T *restrict sums, long rows, int vectors, const V correction[NV])
{
#pragma unroll
    for (int v = 0; v < NV; v++)
        for (long i = 0; i < rows && v < vectors; i++)
            VPUT(VGET(v, sums + i * NR) * correction[v], v, sums + i * NR);
}

/* The result and the logsumexp, infinity where nothing is visible: then backward's probabilities are 0. */
static inline void finish(global T *restrict result, global T *restrict lse, const global T *restrict sums,
                          kn_attention_shape p, int count, const V highest[NV], const V sum[NV])
{
    T inverse[NR], logarithm[NR];
#pragma unroll
    for (int v = 0; v < NV; v++) {
        VSTORE(sum[v] == (V)0 ? (V)0 : (V)1 / sum[v], v, inverse);
        VSTORE(sum[v] == (V)0 ? (V)INFINITY : highest[v] + log(sum[v]), v, logarithm);
    }
    turn_back(result, p.result.row, sums, NR, p.value_width, count, inverse);
    for (int j = 0; j < count; j++)
        lse[j] = logarithm[j];
}

/* One unit: `first` is its first query; the pointers are those of its head. */
static inline void attend(global T *restrict result, global T *restrict lse, global T *restrict scratch,
                          const global T *restrict query, const global T *restrict key, const global T *restrict value,
                          const global T *restrict mask, kn_attention_shape p, T scale, dropout d, long head,
                          long first)
{
    const int count = (int)min((long)NR, p.queries - first), columns = up(count, VW);
    const long seen = p.causal ? min(p.keys, first + count) : p.keys;
    global T *turned = scratch, *scores = turned + p.width * NR, *panel = scores + KEYS * NR,
             *sums = panel + (p.has_mask ? KEYS * NR : 0);
    V highest[NV], sum[NV], correction[NV];
#pragma unroll
    for (int v = 0; v < NV; v++) {
        highest[v] = (V)-INFINITY;
        sum[v] = (V)0;
    }
    turn(turned, NR, query + first * p.query.row, p.query.row, p.width, count, scale);
    for (long i = 0; seen == 0 && i < p.value_width * NV; i++)
        VPUT((V)0, i, sums);
    for (long from = 0; from < seen; from += KEYS) {
        const int keys = (int)min((long)KEYS, seen - from);
        multiply(scores, NR, key + from * p.key.row, p.key.row, 1, turned, NR, keys, columns, p.width, false);
        if (p.has_mask)
            add_mask(scores, NR, panel, mask + first * p.mask.row + from * p.mask.column, p.mask, keys, count);
        if (p.causal && from + keys > first + 1)
            hide_future(scores, NR, keys, count, from - first);
        weigh(scores, keys, columns / VW, highest, sum, correction, d,
              (head * ((p.keys + 3) / 4) + from / 4) * p.queries + first, p.queries);
        if (from > 0)
            shrink(sums, p.value_width, columns / VW, correction);
        multiply(sums, NR, value + from * p.value.row, 1, p.value.row, scores, NR, (int)p.value_width, columns, keys,
                 from > 0);
    }
    finish(result, lse, sums, p, count, highest, sum);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
attention_forward(KN_IN(query), KN_IN(key), KN_IN(value), KN_IN(mask), KN_OUT(result), KN_OUT(lse), KN_OUT(scratch),
                  kn_attention_shape p, kn_attention_cut cut, T scale, ulong seed, ulong offset, T kept)
{
    KN_BIND_IN(T, query);
    KN_BIND_IN(T, key);
    KN_BIND_IN(T, value);
    KN_BIND_IN(T, mask);
    KN_BIND_OUT(T, result);
    KN_BIND_OUT(T, lse);
    KN_BIND_OUT(T, scratch);
    const dropout d = {seed, offset, p.drop_below, kept};
    const long item = get_global_id(0), panels = (p.queries + NR - 1) / NR;
    for (long unit = item * cut.units_per_item; unit < min(cut.units, (item + 1) * cut.units_per_item); unit++) {
        const long number = unit / panels, first = unit % panels * NR, outer = number / p.heads,
                   head = number % p.heads;
        attend(result + outer * p.result.outer + head * p.result.head + first * p.result.row,
               lse + number * p.queries + first, scratch + item * cut.scratch,
               query + outer * p.query.outer + head * p.query.head,
               key + outer * p.key.outer + head / p.group * p.key.head,
               value + outer * p.value.outer + head / p.group * p.value.head,
               mask + outer * p.mask.outer + head * p.mask.head, p, scale, d, number, first);
    }
}
