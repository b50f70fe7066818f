/* attention/forward_cpu.cl - scaled dot-product attention on CPU devices: softmax(query key^T + mask) value, without
 * the matrix of scores (attention/tiles.clh).
 *
 * A unit is NR queries of a head. It takes KEYS keys at a time: scores, their maxima so far, the exponentials of the
 * differences, and the sum of the values weighted with them; when a maximum grows, the sums so far shrink. The query is
 * scaled before. A few queries that are left over are processed one at a time (attention/single.clh).
 *
 * Compiled in: T, VW, NV, MR. Local size 1, no local memory, no barrier. */
#include "attention/single.clh"

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
            const V s = VLOAD(v, scores + i * NR);
            most = s > most ? s : most;
        }
        const V from = most == (V)-INFINITY ? (V)0 : most; /* nothing visible so far */
        for (int i = 0; i < keys; i++) {
            const V p = exp_of(VLOAD(v, scores + i * NR) - from);
            total += p;
            VSTORE(p, v, scores + i * NR);
        }
        correction[v] = exp_of(highest[v] - from);
        sum[v] = fma(sum[v], correction[v], total);
        highest[v] = most;
        for (int i = 0; d.below && i < keys; i += 4) {
            V factors[4];
            draw_factors(factors, d, block + i / 4 * blocks_of_keys + v * VW, 1);
            for (int j = 0; j < min(4, keys - i); j++)
                VSTORE(VLOAD(v, scores + (i + j) * NR) * factors[j], v, scores + (i + j) * NR);
        }
    }
}

static inline void shrink(global T *restrict sums, long rows, int vectors, const V correction[NV])
{
#pragma unroll
    for (int v = 0; v < NV; v++)
        for (long i = 0; i < rows && v < vectors; i++)
            VSTORE(VLOAD(v, sums + i * NR) * correction[v], v, sums + i * NR);
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

/* What forward reads and writes of one head; the pointers are those of the head. */
typedef struct one_head {
    global T *result, *lse;
    const global T *query, *key, *value, *mask;
    long number; /* among all heads */
} one_head;

/* `count` queries, at most NR, from `first` on. */
KN_ONCE void attend(one_head h, global T *restrict scratch, kn_attention_shape p, T scale, dropout d, long first,
                    int count)
{
    const int columns = up(count, VW);
    const long seen = p.causal ? min(p.keys, first + count) : p.keys;
    global T *turned = scratch, *scores = turned + p.width * NR, *panel = scores + KEYS * NR,
             *sums = panel + (p.has_mask ? KEYS * NR : 0);
    V highest[NV], sum[NV], correction[NV];
#pragma unroll
    for (int v = 0; v < NV; v++) {
        highest[v] = (V)-INFINITY;
        sum[v] = (V)0;
    }
    turn(turned, NR, h.query + first * p.query.row, p.query.row, p.width, count, scale);
    for (long i = 0; seen == 0 && i < p.value_width * NV; i++)
        VSTORE((V)0, i, sums);
    for (long from = 0; from < seen; from += KEYS) {
        const int keys = (int)min((long)KEYS, seen - from);
        multiply_rows(scores, NR, h.key + from * p.key.row, p.key.row, turned, NR, keys, columns, p.width, false);
        if (p.has_mask)
            add_mask(scores, NR, panel, h.mask + first * p.mask.row + from * p.mask.column, p.mask, keys, count);
        if (p.causal && from + keys > first + 1)
            hide_future(scores, NR, keys, count, from - first);
        weigh(scores, keys, columns / VW, highest, sum, correction, d,
              block_of(&p, h.number, from, first), p.queries);
        if (from > 0)
            shrink(sums, p.value_width, columns / VW, correction);
        multiply_columns(sums, NR, h.value + from * p.value.row, p.value.row, scores, NR, (int)p.value_width, columns,
                         keys, from > 0);
    }
    finish(h.result + first * p.result.row, h.lse + first, sums, p, count, highest, sum);
}

/* The query with number i. */
KN_ONCE void attend_one(one_head h, kn_attention_shape p, T scale, dropout d, long i)
{
    const long seen = p.causal ? min(p.keys, i + 1) : p.keys;
    global T *result = h.result + i * p.result.row;
    T highest = (T)-INFINITY, sum = (T)0, scores[SINGLE_KEYS], factors[SINGLE_KEYS];
    if (seen == 0)
        add_rows(result, (T)0, scores, h.value, 0, p.value_width, 0);
    for (long from = 0; from < seen; from += SINGLE_KEYS) {
        const int keys = (int)min((long)SINGLE_KEYS, seen - from);
        V most = (V)highest, total = (V)0;
        single_scores(scores, h.query + i * p.query.row, h.key + from * p.key.row,
                      h.mask + i * p.mask.row + from * p.mask.column, p, scale, keys);
        for (int j = 0; j < keys; j += VW) {
            const V s = VLOAD(0, scores + j);
            most = s > most ? s : most;
        }
        const T before = highest;
        highest = largest_lane(most);
        const V base = highest == (T)-INFINITY ? (V)0 : (V)highest;
        for (int j = 0; j < keys; j += VW) {
            const V e = exp_of(VLOAD(0, scores + j) - base);
            total += e;
            VSTORE(e, 0, scores + j);
        }
        const T correction = exp_of((V)before - base).s0;
        sum = fma(sum, correction, sum_of_lanes(total));
        if (d.below) {
            single_factors(factors, d, block_of(&p, h.number, from, i), p.queries, keys);
            for (int j = 0; j < keys; j++)
                scores[j] *= factors[j];
        }
        add_rows(result, correction, scores, h.value + from * p.value.row, p.value.row, p.value_width, keys);
    }
    scale_row(result, p.value_width, sum == (T)0 ? (T)0 : (T)1 / sum);
    h.lse[i] = sum == (T)0 ? (T)INFINITY : highest + log(sum);
}

KN_KERNEL_ONCE(attention_forward,
               (KN_ARG(query), KN_ARG(key), KN_ARG(value), KN_ARG(mask), KN_ARG(result), KN_ARG(lse), KN_ARG(scratch),
                p, cut, scale, seed, offset, kept),
               KN_IN(query), KN_IN(key), KN_IN(value), KN_IN(mask), KN_OUT(result), KN_OUT(lse), KN_OUT(scratch),
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
    const long item = KN_ID(0), panels = (p.queries + NR - 1) / NR;
    for (long unit = item * cut.units_per_item; unit < min(cut.units, (item + 1) * cut.units_per_item); unit++) {
        const long number = unit / panels, first = unit % panels * NR, after = min(first + NR, p.queries),
                   outer = number / p.heads, head = number % p.heads, key_head = head / p.group;
        const int few = singles((int)(after - first));
        const one_head h = {
            result + outer * p.result.outer + head * p.result.head,
            lse + number * p.queries,
            query + outer * p.query.outer + head * p.query.head,
            key + outer * p.key.outer + key_head * p.key.head,
            value + outer * p.value.outer + key_head * p.value.head,
            mask + outer * p.mask.outer + head * p.mask.head,
            number,
        };
        if (first < after - few)
            attend(h, scratch + item * cut.scratch, p, scale, d, first, (int)(after - few - first));
        for (long i = after - few; i < after; i++)
            attend_one(h, p, scale, d, i);
    }
}
