/* attention/backward_cpu.cl - the gradients of scaled dot-product attention on CPU devices (attention/tiles.clh).
 *
 * With probabilities P = exp(scores - lse), the gradient G of the result and D = the sum over a row of G times the
 * result: dV = P^T G, dS = P (G V^T - D), dQ = scale dS K, dK = scale dS^T Q. Dropout multiplies P in dV, and G V^T.
 *
 * A unit is a head of the keys and `chunk` of its keys: it sums dK and dV over all queries of all heads that use them,
 * in blocks of COLUMNS queries and KEYS keys. dQ is the sum over the chunks, each of which writes its part.
 *
 * Compiled in: T, VW, NV, MR. Local size 1, no local memory, no barrier. */
#include "attention/tiles.clh"

#define KEYS 64
#define COLUMNS (2 * NR)

/* A work-item's memory. Matrices of a block of queries: transposed, [width][COLUMNS], and as rows, [COLUMNS][width
 * rounded up to NR]; of keys: sums [chunk][width rounded up]; scores [KEYS][COLUMNS]. */
typedef struct memory {
    global T *query_turned, *gradient_turned, *query_rows, *gradient_rows, *query_sums;
    global T *scores, *slopes, *panel, *key_sums, *value_sums;
} memory;

static inline long up(long n, long unit) { return (n + unit - 1) / unit * unit; }

static inline memory divide(global T *at, kn_attention_shape p, kn_attention_cut cut)
{
    const long e = p.width, f = p.value_width;
    memory m;
    m.query_turned = at, at += e * COLUMNS;
    m.gradient_turned = at, at += f * COLUMNS;
    m.query_rows = at, at += COLUMNS * up(e, NR);
    m.gradient_rows = at, at += COLUMNS * up(f, NR);
    m.query_sums = at, at += up(e, MR) * COLUMNS;
    m.scores = at, at += KEYS * COLUMNS;
    m.slopes = at, at += KEYS * COLUMNS;
    m.panel = at, at += p.has_mask ? KEYS * COLUMNS : 0;
    m.key_sums = at, at += up(cut.chunk, MR) * up(e, NR);
    m.value_sums = at;
    return m;
}

static inline void copy_padded(global T *restrict to, const global T *restrict x, long x_row, long width, int count,
                               T factor)
{
    const long padded = up(width, NR);
    for (int j = 0; j < count; j++) {
        long i = 0;
        for (; i + VW <= width; i += VW)
            VPUT(VGET(0, x + j * x_row + i) * factor, 0, to + j * padded + i);
        for (; i < padded; i++)
            to[j * padded + i] = i < width ? x[j * x_row + i] * factor : (T)0;
    }
}

static inline T product_of_rows(const global T *restrict a, const global T *restrict b, long n)
{
    T lanes[VW], sum = 0;
    V part = 0;
    long i = 0;
    for (; i + VW <= n; i += VW)
        part = fma(VGET(0, a + i), VGET(0, b + i), part);
    VSTORE(part, 0, lanes);
    for (int lane = 0; lane < VW; lane++)
        sum += lanes[lane];
    for (; i < n; i++)
        sum = fma(a[i], b[i], sum);
    return sum;
}

/* Scores become probabilities, those of the products with the gradient become the scores' gradients. */
static inline void differentiate(memory m, int keys, const T *lse, const T *delta, dropout d, long block,
                                 long blocks_of_keys)
{
    for (int j = 0; j < COLUMNS; j += VW) {
        const V from = VLOAD(0, lse + j), less = VLOAD(0, delta + j);
        for (int i = 0; i < keys; i += 4) {
            V factors[4];
            if (d.below)
                draw_factors(factors, d, block + i / 4 * blocks_of_keys + j);
            for (int r = i; r < min(i + 4, keys); r++) {
                global T *score = m.scores + r * COLUMNS + j, *slope = m.slopes + r * COLUMNS + j;
                const V p = exp_of(VGET(0, score) - from), s = VGET(0, slope);
                if (d.below)
                    VPUT(p * factors[r - i], 0, score);
                else
                    VPUT(p, 0, score);
                VPUT(p * ((d.below ? s * factors[r - i] : s) - less), 0, slope);
            }
        }
    }
}

/* One head of the query with some of its keys: `first` and `after` are theirs. The pointers are those of the head. */
static inline void backward_head(global T *restrict query_gradient, memory m, const global T *restrict query,
                                 const global T *restrict key, const global T *restrict value,
                                 const global T *restrict mask, const global T *restrict gradient,
                                 const global T *restrict result, const global T *restrict lse, kn_attention_shape p,
                                 T scale, dropout d, long head, long first, long after)
{
    const long padded = up(p.width, NR), value_padded = up(p.value_width, NR);
    for (long q = 0; q < p.queries; q += COLUMNS) {
        const int count = (int)min((long)COLUMNS, p.queries - q);
        const long seen = p.causal ? min(after, up(q + count, MR)) : after; /* whole tiles: rows are added to */
        T of_query[COLUMNS], delta[COLUMNS], factor[COLUMNS];
        for (int j = 0; j < COLUMNS; j++) {
            const long row = q + min(j, count - 1);
            of_query[j] = j < count ? lse[row] : (T)INFINITY;
            factor[j] = first < seen ? scale : (T)0;
            delta[j] = product_of_rows(gradient + row * p.gradient.row, result + row * p.value_width, p.value_width);
        }
        turn(m.query_turned, query + q * p.query.row, p.query.row, p.width, count, COLUMNS, scale);
        turn(m.gradient_turned, gradient + q * p.gradient.row, p.gradient.row, p.value_width, count, COLUMNS, (T)1);
        copy_padded(m.query_rows, query + q * p.query.row, p.query.row, p.width, count, scale);
        copy_padded(m.gradient_rows, gradient + q * p.gradient.row, p.gradient.row, p.value_width, count, (T)1);
        for (long i = 0; i < p.width * COLUMNS / VW && first >= seen; i++)
            VPUT((V)0, i, m.query_sums);
        for (long from = first; from < seen; from += KEYS) {
            const int keys = (int)min((long)KEYS, seen - from);
            const global T *k = key + from * p.key.row, *v = value + from * p.value.row;
            multiply(m.scores, COLUMNS, k, p.key.row, 1, m.query_turned, COLUMNS, keys, COLUMNS, p.width, false);
            multiply(m.slopes, COLUMNS, v, p.value.row, 1, m.gradient_turned, COLUMNS, keys, COLUMNS, p.value_width,
                     false);
            if (p.has_mask)
                add_mask(m.scores, m.panel, mask + q * p.mask.row + from * p.mask.column, p.mask, keys, count, COLUMNS);
            if (p.causal && from + keys > q + 1)
                hide_future(m.scores, keys, COLUMNS, from - q);
            differentiate(m, keys, of_query, delta, d, (head * ((p.keys + 3) / 4) + from / 4) * p.queries + q,
                          p.queries);
            multiply(m.value_sums + (from - first) * value_padded, value_padded, m.scores, COLUMNS, 1, m.gradient_rows,
                     value_padded, keys, (int)value_padded, count, true);
            multiply(m.key_sums + (from - first) * padded, padded, m.slopes, COLUMNS, 1, m.query_rows, padded, keys,
                     (int)padded, count, true);
            multiply(m.query_sums, COLUMNS, k, 1, p.key.row, m.slopes, COLUMNS, (int)p.width, COLUMNS, keys,
                     from > first);
        }
        turn_back(query_gradient + q * p.width, p.width, m.query_sums, COLUMNS, p.width, count, factor);
    }
}

static inline void put_rows(global T *restrict to, const global T *restrict sums, long rows, long width)
{
    const long padded = up(width, NR);
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < width; j++)
            to[i * width + j] = sums[i * padded + j];
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
attention_backward(KN_IN(query), KN_IN(key), KN_IN(value), KN_IN(mask), KN_IN(gradient), KN_IN(result), KN_IN(lse),
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
    const long item = get_global_id(0), key_heads = p.heads / p.group;
    const memory m = divide(scratch + item * cut.scratch, p, cut);
    for (long unit = item * cut.units_per_item; unit < min(cut.units, (item + 1) * cut.units_per_item); unit++) {
        const long number = unit / cut.chunks, chunk = unit % cut.chunks, outer = number / key_heads,
                   key_head = number % key_heads, first = chunk * cut.chunk, after = min(p.keys, first + cut.chunk);
        for (long i = 0; i < up(cut.chunk, MR) * (up(p.width, NR) + up(p.value_width, NR)) / VW; i++)
            VPUT((V)0, i, m.key_sums); /* and those of the values, behind them */
        for (long g = 0; g < p.group; g++) {
            const long head = key_head * p.group + g, row = (outer * p.heads + head) * p.queries;
            backward_head(query_gradient + (chunk * p.outer * p.heads * p.queries + row) * p.width, m,
                          query + outer * p.query.outer + head * p.query.head,
                          key + outer * p.key.outer + key_head * p.key.head,
                          value + outer * p.value.outer + key_head * p.value.head,
                          mask + outer * p.mask.outer + head * p.mask.head,
                          gradient + outer * p.gradient.outer + head * p.gradient.head, result + row * p.value_width,
                          lse + row, p, scale, d, outer * p.heads + head, first, after);
        }
        put_rows(key_gradient + (number * p.keys + first) * p.width, m.key_sums, after - first, p.width);
        put_rows(value_gradient + (number * p.keys + first) * p.value_width, m.value_sums, after - first,
                 p.value_width);
    }
}
