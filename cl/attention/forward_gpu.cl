/* attention/forward_gpu.cl - scaled dot-product attention on GPUs (attention/groups.clh): a work-group computes the
 * result of BLOCK queries of a head, from BLOCK keys at a time: scores, their maxima so far, the exponentials of the
 * differences, and the sum of the values weighted with them; when a maximum grows, the sums so far shrink.
 *
 * Compiled in: as in attention/groups.clh. */
#include "attention/groups.clh"

/* Maxima or sums over a row, of which each of 16 work-items has a part; in a fixed order. */
static inline void join(T values[PER], local T *parts, const bool is_sum)
{
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < PER; i++)
        parts[ROW(i) * SIDE + X] = values[i];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < PER; i++) {
        const local T *row = parts + ROW(i) * SIDE;
        T all = row[0];
        for (int x = 1; x < SIDE; x++)
            all = is_sum ? all + row[x] : row[x] > all ? row[x] : all;
        values[i] = all;
    }
}

/* Scores become probabilities relative to the new maxima; the sums so far shrink. */
static inline void weigh(T s[PER][PER], T highest[PER], T total[PER], T sums[PER][PARTS], local T *parts)
{
    T most[PER], added[PER];
#pragma unroll
    for (int i = 0; i < PER; i++) {
        most[i] = highest[i];
#pragma unroll
        for (int j = 0; j < PER; j++)
            most[i] = s[i][j] > most[i] ? s[i][j] : most[i];
    }
    join(most, parts, false);
#pragma unroll
    for (int i = 0; i < PER; i++) {
        const T from = most[i] == (T)-INFINITY ? (T)0 : most[i]; /* nothing visible so far */
        const T correction = exp(highest[i] - from);
        highest[i] = most[i];
        total[i] *= correction;
        added[i] = 0;
#pragma unroll
        for (int j = 0; j < PER; j++) {
            s[i][j] = exp(s[i][j] - from);
            added[i] += s[i][j];
        }
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            sums[i][c] *= correction;
    }
    join(added, parts, true);
#pragma unroll
    for (int i = 0; i < PER; i++)
        total[i] += added[i];
}

/* A group makes a block of queries of a head. */
kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1))) void
attention_forward(KN_IN(query), KN_IN(key), KN_IN(value), KN_IN(mask), KN_OUT(result), KN_OUT(lse),
                  kn_attention_shape p, T scale, ulong seed, ulong offset, T kept, local T *memory)
{
    KN_BIND_IN(S, query);
    KN_BIND_IN(S, key);
    KN_BIND_IN(S, value);
    KN_BIND_IN(S, mask);
    KN_BIND_OUT(T, result);
    KN_BIND_OUT(T, lse);
    local T *pool = memory, *scores = pool + POOL, *parts = scores + BLOCK * STRIDE;
    const dropout d = {seed, offset, p.drop_below, kept};
    const long blocks = (p.queries + BLOCK - 1) / BLOCK, number = get_group_id(0) / blocks, outer = number / p.heads,
               head = number % p.heads, first = get_group_id(0) % blocks * BLOCK;
    const rows queries = rows_of(query, p.query, outer, head, first, p.queries);
    const long seen = p.causal ? min(p.keys, first + queries.count) : p.keys;
    T highest[PER], total[PER], sums[PER][PARTS];
    clear(sums);
#pragma unroll
    for (int i = 0; i < PER; i++) {
        highest[i] = (T)-INFINITY;
        total[i] = 0;
    }
    mask += outer * p.mask.outer + head * p.mask.head;
    result += outer * p.result.outer + head * p.result.head + first * p.result.row;
    lse += number * p.queries + first;
    long from = 0;
    do {
        T s[PER][PER];
        multiply_rows(s, pool, queries, rows_of(key, p.key, outer, head / p.group, from, p.keys), p.width);
#pragma unroll
        for (int i = 0; i < PER; i++)
#pragma unroll
            for (int j = 0; j < PER; j++)
                s[i][j] = masked(scale * s[i][j], p, mask, first + ROW(i), from + COLUMN(j));
        weigh(s, highest, total, sums, parts);
#pragma unroll
        for (int i = 0; i < PER; i++) {
            T factors[PER];
            draw_factors(factors, d, p, number, first + ROW(i), from + COLUMN(0));
#pragma unroll
            for (int j = 0; j < PER; j++)
                s[i][j] *= factors[j];
        }
        put_scores(scores, s);
        add_weighted(sums, scores, pool, rows_of(value, p.value, outer, head / p.group, from, p.keys), p.value_width);
        from += BLOCK;
    } while (from < seen);
#pragma unroll
    for (int i = 0; i < PER; i++) {
        const T inverse = total[i] == (T)0 ? (T)0 : 1 / total[i];
        if (X == 0 && ROW(i) < queries.count)
            lse[ROW(i)] = total[i] == (T)0 ? (T)INFINITY : highest[i] + log(total[i]);
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            if (ROW(i) < queries.count && X + SIDE * c < p.value_width)
                result[ROW(i) * p.result.row + X + SIDE * c] = inverse * sums[i][c];
    }
}
