/* attention/backward_cpu.cl - the gradients of scaled dot-product attention on CPU devices (attention/tiles.clh).
 *
 * With probabilities P = exp(scores - lse), the gradient G of the result and D = the sum over a row of G times the
 * result: dV = P^T G, dS = P (G V^T - D), dQ = scale dS K, dK = scale dS^T Q. Dropout multiplies P in dV, and G V^T.
 *
 * A unit is a head of the keys and `chunk` of its keys: it sums dK and dV over all queries of all heads that use them,
 * in blocks of queries and keys; a few queries that are left over one at a time (attention/single.clh). dQ is the sum
 * over the chunks, each of which writes its part.
 *
 * Compiled in: T, VW, NV, MR. Local size 1, no local memory, no barrier. */
#include "attention/single.clh"

#define MOST_COLUMNS (3 * NR)

/* A work-item's memory. Matrices of a block of queries, transposed: [width][columns]; scores [keys][columns]; of a
 * chunk of keys [chunk][width rounded up to VW]. The rows of a block of queries, if they must be rounded up. */
typedef struct memory {
    global T *query_turned, *gradient_turned, *query_sums, *query_rows, *gradient_rows;
    global T *scores, *slopes, *panel, *key_sums, *value_sums;
} memory;

static inline memory divide(global T *at, kn_attention_shape p, kn_attention_cut cut)
{
    const int e = (int)p.width, f = (int)p.value_width, columns = cut.columns;
    memory m;
    m.query_turned = at, at += e * columns;
    m.gradient_turned = at, at += f * columns;
    m.query_sums = at, at += e * columns;
    m.query_rows = at, at += e % VW ? columns * up(e, VW) : 0;
    m.gradient_rows = at, at += f % VW ? columns * up(f, VW) : 0;
    m.scores = at, at += cut.keys * columns;
    m.slopes = at, at += cut.keys * columns;
    m.panel = at, at += p.has_mask ? cut.keys * columns : 0;
    m.key_sums = at, at += cut.chunk * up(e, VW);
    m.value_sums = at;
    return m;
}

/* Rows of whole vectors: those of x, or copies of them with zeros at the ends. */
typedef struct whole_rows {
    const global T *first;
    long row;
} whole_rows;

static inline whole_rows take_rows(global T *restrict room, const global T *restrict x, long x_row, int width,
                                   int count)
{
    const int padded = up(width, VW);
    if (width == padded)
        return (whole_rows){x, x_row};
    for (int j = 0; j < count; j++)
        for (int i = 0; i < padded; i++)
            room[j * padded + i] = i < width ? x[j * x_row + i] : (T)0;
    return (whole_rows){room, padded};
}

/* Scores become probabilities, those of the products with the gradient become the scores' gradients. */
static inline void differentiate(memory m, int row, int keys, int count, const T *lse, const T *delta, dropout d,
                                 long block, long blocks_of_keys)
{
    for (int j = 0; j < count; j += VW) {
        const V from = VLOAD(0, lse + j), less = VLOAD(0, delta + j);
        for (int i = 0; i < keys; i += 4) {
            V factors[4];
            if (d.below)
                draw_factors(factors, d, block + i / 4 * blocks_of_keys + j, 1);
            for (int r = i; r < min(i + 4, keys); r++) {
                global T *score = m.scores + r * row + j, *slope = m.slopes + r * row + j;
                const V p = exp_of(VLOAD(0, score) - from), s = VLOAD(0, slope);
                if (d.below)
                    VSTORE(p * factors[r - i], 0, score);
                else
                    VSTORE(p, 0, score);
                VSTORE(p * ((d.below ? s * factors[r - i] : s) - less), 0, slope);
            }
        }
    }
}

/* What backward reads and writes of one head of the query; the pointers are those of the head. */
typedef struct one_head {
    const global T *query, *key, *value, *mask, *gradient, *result, *lse;
    global T *query_gradient;
    long number; /* among those of all heads */
} one_head;

/* `count` queries from q on, and the keys from `first` to `after`. */
KN_ONCE void backward_tiles(one_head h, memory m, kn_attention_shape p, kn_attention_cut cut, T scale, dropout d,
                            long first, long after, long q, int count)
{
    const int width = (int)p.width, value_width = (int)p.value_width, row = cut.columns, columns = up(count, VW);
    const int padded = up(width, VW), value_padded = up(value_width, VW);
    const long seen = p.causal ? min(after, q + count) : after;
    const global T *query = h.query + q * p.query.row, *gradient = h.gradient + q * p.gradient.row;
    T of_query[MOST_COLUMNS], delta[MOST_COLUMNS], factor[MOST_COLUMNS];
    for (int j = 0; j < columns; j++) {
        of_query[j] = j < count ? h.lse[q + j] : (T)INFINITY;
        factor[j] = first < seen ? scale : (T)0;
    }
    products_of_rows(delta, gradient, p.gradient.row, h.result + q * p.result.row, p.result.row, value_width, count);
    turn(m.query_turned, row, query, p.query.row, width, count, scale);
    turn(m.gradient_turned, row, gradient, p.gradient.row, value_width, count, (T)1);
    const whole_rows query_rows = take_rows(m.query_rows, query, p.query.row, width, count),
                     gradient_rows = take_rows(m.gradient_rows, gradient, p.gradient.row, value_width, count);
    for (int i = 0; i < width * row / VW && first >= seen; i++)
        VSTORE((V)0, i, m.query_sums);
    for (long from = first; from < seen; from += cut.keys) {
        const int keys = (int)min((long)cut.keys, seen - from);
        const global T *k = h.key + from * p.key.row, *v = h.value + from * p.value.row;
        multiply_rows(m.scores, row, k, p.key.row, m.query_turned, row, keys, columns, width, false);
        multiply_rows(m.slopes, row, v, p.value.row, m.gradient_turned, row, keys, columns, value_width, false);
        if (p.has_mask)
            add_mask(m.scores, row, m.panel, h.mask + q * p.mask.row + from * p.mask.column, p.mask, keys, count);
        if (p.causal && from + keys > q + 1)
            hide_future(m.scores, row, keys, count, from - q);
        differentiate(m, row, keys, count, of_query, delta, d,
                      block_of(&p, h.number, from, q), p.queries);
        multiply_rows(m.value_sums + (from - first) * value_padded, value_padded, m.scores, row, gradient_rows.first,
                      gradient_rows.row, keys, value_padded, count, true);
        multiply_rows(m.key_sums + (from - first) * padded, padded, m.slopes, row, query_rows.first, query_rows.row,
                      keys, padded, count, true);
        multiply_columns(m.query_sums, row, k, p.key.row, m.slopes, row, width, columns, keys, from > first);
    }
    turn_back(h.query_gradient + q * p.to_query.row, p.to_query.row, m.query_sums, row, width, count, factor);
}

/* The query with number q. */
KN_ONCE void backward_one(one_head h, memory m, kn_attention_shape p, T scale, dropout d, long first, long after,
                          long q)
{
    const int padded = up((int)p.width, VW), value_padded = up((int)p.value_width, VW);
    const long seen = p.causal ? min(after, q + 1) : after;
    const global T *query = h.query + q * p.query.row, *gradient = h.gradient + q * p.gradient.row;
    global T *sums = h.query_gradient + q * p.to_query.row;
    T delta[VW], scores[SINGLE_KEYS], slopes[SINGLE_KEYS], factors[SINGLE_KEYS];
    products_of_rows(delta, gradient, 0, h.result + q * p.result.row, 0, p.value_width, 1);
    if (first >= seen)
        add_rows(sums, (T)0, slopes, h.key, 0, p.width, 0);
    for (long from = first; from < seen; from += SINGLE_KEYS) {
        const int keys = (int)min((long)SINGLE_KEYS, seen - from);
        const global T *k = h.key + from * p.key.row, *v = h.value + from * p.value.row;
        single_scores(scores, query, k, h.mask + q * p.mask.row + from * p.mask.column, p, scale, keys);
        products_of_rows(slopes, gradient, 0, v, p.value.row, p.value_width, keys);
        if (d.below)
            single_factors(factors, d, block_of(&p, h.number, from, q), p.queries, keys);
        for (int j = 0; j < keys; j += VW) {
            const V e = exp_of(VLOAD(0, scores + j) - h.lse[q]), s = VLOAD(0, slopes + j);
            const V factor = d.below ? VLOAD(0, factors + j) : (V)1;
            VSTORE(e * factor, 0, scores + j);
            VSTORE(e * (s * factor - delta[0]), 0, slopes + j);
        }
        add_multiples(m.value_sums + (from - first) * value_padded, value_padded, scores, gradient, p.value_width,
                      keys);
        add_multiples(m.key_sums + (from - first) * padded, padded, slopes, query, p.width, keys);
        add_rows(sums, from > first ? (T)1 : (T)0, slopes, k, p.key.row, p.width, keys);
    }
    scale_row(sums, p.width, scale);
}

/* One head of the query with some of its keys: `first` and `after` are theirs. */
static inline void backward_head(one_head h, memory m, kn_attention_shape p, kn_attention_cut cut, T scale, dropout d,
                                 long first, long after)
{
    for (long q = 0; q < p.queries; q += cut.columns) {
        const long end = min(q + cut.columns, p.queries);
        const int few = singles((int)(end - q));
        if (q < end - few)
            backward_tiles(h, m, p, cut, scale, d, first, after, q, (int)(end - few - q));
        for (long i = end - few; i < end; i++)
            backward_one(h, m, p, scale, d, first, after, i);
    }
}

static inline void put_rows(global T *restrict to, long to_row, const global T *restrict sums, long rows, int width,
                            T factor)
{
    const int padded = up(width, VW);
    for (long i = 0; i < rows; i++) {
        int j = 0;
        for (; j + VW <= width; j += VW)
            VSTORE(VLOAD(0, sums + i * padded + j) * factor, 0, to + i * to_row + j);
        for (; j < width; j++)
            to[i * to_row + j] = sums[i * padded + j] * factor;
    }
}

KN_KERNEL_ONCE(attention_backward,
               (KN_ARG(query), KN_ARG(key), KN_ARG(value), KN_ARG(mask), KN_ARG(gradient), KN_ARG(result), KN_ARG(lse),
                KN_ARG(query_gradient), KN_ARG(key_gradient), KN_ARG(value_gradient), KN_ARG(scratch), p, cut, scale,
                seed, offset, kept),
               KN_IN(query), KN_IN(key), KN_IN(value), KN_IN(mask), KN_IN(gradient), KN_IN(result), KN_IN(lse),
               KN_OUT(query_gradient), KN_OUT(key_gradient), KN_OUT(value_gradient), KN_OUT(scratch),
               kn_attention_shape p, kn_attention_cut cut, T scale, ulong seed, ulong offset, T kept)
{
    KN_BIND_IN(T, query);
    KN_BIND_IN(T, key);
    KN_BIND_IN(T, value);
    KN_BIND_IN(T, mask);
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, result);
    KN_BIND_IN(T, lse);
    KN_BIND_OUT(T, query_gradient);
    KN_BIND_OUT(T, key_gradient);
    KN_BIND_OUT(T, value_gradient);
    KN_BIND_OUT(T, scratch);
    const dropout d = {seed, offset, p.drop_below, kept};
    const long item = KN_ID(0), key_heads = p.heads / p.group;
    const memory m = divide(scratch + item * cut.scratch, p, cut);
    for (long unit = item * cut.units_per_item; unit < min(cut.units, (item + 1) * cut.units_per_item); unit++) {
        const long number = unit / cut.chunks, chunk = unit % cut.chunks, outer = number / key_heads,
                   key_head = number % key_heads, first = chunk * cut.chunk, after = min(p.keys, first + cut.chunk);
        const int width = (int)p.width, value_width = (int)p.value_width;
        for (long i = 0; i < cut.chunk * (up(width, VW) + up(value_width, VW)) / VW; i++)
            VSTORE((V)0, i, m.key_sums); /* and those of the values, behind them */
        for (long g = 0; g < p.group; g++) {
            const long head = key_head * p.group + g, all = outer * p.heads + head;
            const one_head h = {
                query + outer * p.query.outer + head * p.query.head,
                key + outer * p.key.outer + key_head * p.key.head,
                value + outer * p.value.outer + key_head * p.value.head,
                mask + outer * p.mask.outer + head * p.mask.head,
                gradient + outer * p.gradient.outer + head * p.gradient.head,
                result + outer * p.result.outer + head * p.result.head,
                lse + all * p.queries,
                query_gradient + chunk * cut.part + outer * p.to_query.outer + head * p.to_query.head,
                all,
            };
            backward_head(h, m, p, cut, scale, d, first, after);
        }
        put_rows(key_gradient + outer * p.to_key.outer + key_head * p.to_key.head + first * p.to_key.row, p.to_key.row,
                 m.key_sums, after - first, width, scale);
        put_rows(value_gradient + outer * p.to_value.outer + key_head * p.to_value.head + first * p.to_value.row,
                 p.to_value.row, m.value_sums, after - first, value_width, (T)1);
    }
}
