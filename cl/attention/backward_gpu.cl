/* attention/backward_gpu.cl - the gradients of scaled dot-product attention on GPUs (attention/groups.clh; the formulas
 * are in attention/backward_cpu.cl). One kernel computes the gradient of BLOCK queries, summing over the keys, the
 * other those of BLOCK keys and values, summing over the queries of all heads that use them. Both compute the scores
 * again; sums in a fixed order.
 *
 * Compiled in: as in attention/groups.clh. */
#include "attention/groups.clh"

#define OPERANDS                                                                                                       \
    KN_IN(query), KN_IN(key), KN_IN(value), KN_IN(mask), KN_IN(gradient), KN_IN(lse), KN_IN(delta)
#define BIND_OPERANDS                                                                                                  \
    KN_BIND_IN(S, query);                                                                                              \
    KN_BIND_IN(S, key);                                                                                                \
    KN_BIND_IN(S, value);                                                                                              \
    KN_BIND_IN(S, mask);                                                                                               \
    KN_BIND_IN(S, gradient);                                                                                           \
    KN_BIND_IN(T, lse);                                                                                                \
    KN_BIND_IN(T, delta)

/* The scores' gradient, from a score, the product of the result's gradient with the value, and dropout's factor; the
 * score becomes the probability times that factor. `at` is the query among those of all heads. */
static inline T differentiate(T *score, T product, T factor, T lse, T delta)
{
    const T probability = exp(*score - lse);
    *score = probability * factor;
    return probability * (product * factor - delta);
}

static inline void put_rows(global S *to, kn_attention_strides strides, long outer, long head, long first,
                            T sums[PER][PARTS], T factor, int count, long width)
{
#pragma unroll
    for (int i = 0; i < PER; i++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            if (ROW(i) < count && X + SIDE * c < width)
                PUT(factor * sums[i][c], to,
                    outer * strides.outer + head * strides.head + (first + ROW(i)) * strides.row + X + SIDE * c);
}

/* delta[i] = the sum over the row of the gradient times the result: one work-item for each query of all heads. */
kernel void attention_delta(KN_IN(gradient), KN_IN(result), KN_OUT(delta), kn_attention_shape p)
{
    KN_BIND_IN(S, gradient);
    KN_BIND_IN(T, result);
    KN_BIND_OUT(T, delta);
    KN_FOR(i, p.outer * p.heads * p.queries)
    {
        const long number = i / p.queries, outer = number / p.heads, head = number % p.heads;
        const global S *g = gradient + outer * p.gradient.outer + head * p.gradient.head;
        const global T *r = result + outer * p.result.outer + head * p.result.head;
        g += i % p.queries * p.gradient.row;
        r += i % p.queries * p.result.row;
        T sum = 0;
        for (long e = 0; e < p.value_width; e++)
            sum = fma(GET(g, e), r[e], sum);
        delta[i] = sum;
    }
}

/* A group makes a block of queries of a head. */
kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1))) void
attention_backward_query(OPERANDS, KN_OUT(query_gradient), kn_attention_shape p, T scale, ulong seed, ulong offset,
                         T kept, local T *memory)
{
    BIND_OPERANDS;
    KN_BIND_OUT(S, query_gradient);
    local T *pool = memory, *scores = pool + POOL;
    const dropout d = {seed, offset, p.drop_below, kept};
    const long blocks = (p.queries + BLOCK - 1) / BLOCK, number = get_group_id(0) / blocks, outer = number / p.heads,
               head = number % p.heads, key_head = head / p.group, first = get_group_id(0) % blocks * BLOCK;
    const rows queries = rows_of(query, p.query, outer, head, first, p.queries),
               gradients = rows_of(gradient, p.gradient, outer, head, first, p.queries);
    const long seen = p.causal ? min(p.keys, first + queries.count) : p.keys;
    T sums[PER][PARTS];
    clear(sums);
    mask += outer * p.mask.outer + head * p.mask.head;
    long from = 0;
    do {
        const rows keys = rows_of(key, p.key, outer, key_head, from, p.keys);
        T s[PER][PER], product[PER][PER];
        multiply_rows(s, pool, queries, keys, p.width);
        multiply_rows(product, pool, gradients, rows_of(value, p.value, outer, key_head, from, p.keys), p.value_width);
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const long q = first + ROW(i), at = number * p.queries + min(q, p.queries - 1);
            T factors[PER];
            draw_factors(factors, d, p, number, q, from + COLUMN(0));
#pragma unroll
            for (int j = 0; j < PER; j++) {
                T score = masked(scale * s[i][j], p, mask, q, from + COLUMN(j));
                s[i][j] = differentiate(&score, product[i][j], factors[j], lse[at], delta[at]);
            }
        }
        put_scores(scores, s);
        add_weighted(sums, scores, pool, keys, p.width);
        from += BLOCK;
    } while (from < seen);
    put_rows(query_gradient, p.to_query, outer, head, first, sums, scale, queries.count, p.width);
}

/* A group makes a block of keys of one of their heads. */
kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1))) void
attention_backward_key(OPERANDS, KN_OUT(key_gradient), KN_OUT(value_gradient), kn_attention_shape p, T scale,
                       ulong seed, ulong offset, T kept, local T *memory)
{
    BIND_OPERANDS;
    KN_BIND_OUT(S, key_gradient);
    KN_BIND_OUT(S, value_gradient);
    local T *pool = memory, *scores = pool + POOL;
    const dropout d = {seed, offset, p.drop_below, kept};
    const long heads = p.heads / p.group, blocks = (p.keys + BLOCK - 1) / BLOCK, number = get_group_id(0) / blocks,
               outer = number / heads, key_head = number % heads, first = get_group_id(0) % blocks * BLOCK;
    const rows keys = rows_of(key, p.key, outer, key_head, first, p.keys),
               values = rows_of(value, p.value, outer, key_head, first, p.keys);
    T of_keys[PER][PARTS], of_values[PER][PARTS];
    clear(of_keys);
    clear(of_values);
    const long start = p.causal ? first : 0; /* earlier queries do not see these keys */
    long head = key_head * p.group, from = start;
    do {
        const rows queries = rows_of(query, p.query, outer, head, from, p.queries),
                   gradients = rows_of(gradient, p.gradient, outer, head, from, p.queries);
        const long all = outer * p.heads + head;
        const global S *of_head = mask + outer * p.mask.outer + head * p.mask.head;
        T s[PER][PER], product[PER][PER];
        multiply_rows(s, pool, keys, queries, p.width);
        multiply_rows(product, pool, values, gradients, p.value_width);
#pragma unroll
        for (int j = 0; j < PER; j++) {
            const long q = from + COLUMN(j), at = all * p.queries + min(q, p.queries - 1);
            T factors[PER];
            draw_factors(factors, d, p, all, q, first + ROW(0));
#pragma unroll
            for (int i = 0; i < PER; i++) {
                s[i][j] = masked(scale * s[i][j], p, of_head, q, first + ROW(i));
                product[i][j] = differentiate(&s[i][j], product[i][j], factors[i], lse[at], delta[at]);
            }
        }
        put_scores(scores, s);
        add_weighted(of_values, scores, pool, gradients, p.value_width);
        barrier(CLK_LOCAL_MEM_FENCE);
        put_scores(scores, product);
        add_weighted(of_keys, scores, pool, queries, p.width);
        from += BLOCK;
        if (from >= p.queries) {
            head++;
            from = start;
        }
    } while (head < (key_head + 1) * p.group);
    put_rows(key_gradient, p.to_key, outer, key_head, first, of_keys, scale, keys.count, p.width);
    put_rows(value_gradient, p.to_value, outer, key_head, first, of_values, (T)1, keys.count, p.value_width);
}
