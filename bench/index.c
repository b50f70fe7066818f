/* index.c - gathers and scatters of matrices by element, by row and by mask, and embeddings of a small and of GPT-2's
 * vocabulary, with their gradients. */
#include "bench.h"

static kn_tensor *gather(kn_tensor *const *x, const double *p) { return kn_gather(x[0], (int)p[0], x[1]); }
static kn_tensor *index_select(kn_tensor *const *x, const double *p) { return kn_index_select(x[0], (int)p[0], x[1]); }
static kn_tensor *index_add(kn_tensor *const *x, const double *p) { return kn_index_add(x[0], (int)p[0], x[1], x[2]); }
static kn_tensor *scatter_add(kn_tensor *const *x, const double *p)
{
    return kn_scatter_add(x[0], (int)p[0], x[1], x[2]);
}
static kn_tensor *index_put_add(kn_tensor *const *x, const double *p)
{
    return (void)p, kn_index_put_with(x[0], &x[1], 2, x[3], &(kn_put_params){.accumulate = true});
}
static kn_tensor *masked_select(kn_tensor *const *x, const double *p) { return (void)p, kn_masked_select(x[0], x[1]); }
static kn_tensor *masked_fill(kn_tensor *const *x, const double *p) { return kn_masked_fill(x[0], x[1], p[0]); }
static kn_tensor *where(kn_tensor *const *x, const double *p) { return (void)p, kn_where(x[1], x[0], x[2]); }
static kn_tensor *nonzero(kn_tensor *const *x, const double *p) { return (void)p, kn_nonzero(x[0]); }
static kn_tensor *one_hot(kn_tensor *const *x, const double *p) { return kn_one_hot(x[0], (int64_t)p[0]); }
static kn_tensor *repeat_each(kn_tensor *const *x, const double *p)
{
    return kn_repeat_interleave_each(x[0], x[1], (int)p[0]);
}
static kn_tensor *embedding_bag(kn_tensor *const *x, const double *p) { return (void)p, kn_embedding_bag(x[1], x[0]); }
static kn_tensor *embedding(kn_tensor *const *x, const double *p) { return (void)p, kn_embedding(x[1], x[0]); }

#define MATRIX(rows, columns)                                                                                          \
    {                                                                                                                  \
        .ndim = 2, .shape = { rows, columns }                                                                          \
    }
#define VECTOR(count)                                                                                                  \
    {                                                                                                                  \
        .ndim = 1, .shape = { count }                                                                                  \
    }
#define INDICES(end, rows, columns)                                                                                    \
    {                                                                                                                  \
        .ndim = 2, .shape = {rows, columns}, .fill = BENCH_INDICES, .below = end                                       \
    }
#define INDEX_ROW(end, count)                                                                                          \
    {                                                                                                                  \
        .ndim = 1, .shape = {count}, .fill = BENCH_INDICES, .below = end                                               \
    }
#define MASK(rows, columns)                                                                                            \
    {                                                                                                                  \
        .ndim = 2, .shape = {rows, columns}, .fill = BENCH_MASK                                                        \
    }
#define CASE(label, size, moved, function, dim, grads, ...)                                                            \
    {                                                                                                                  \
        .name = label, .shape = size, .dtype = KN_F32, .bytes = moved, BENCH_OPERATION,                                \
        .operation = &(const bench_operation)                                                                          \
        {                                                                                                              \
            .name = #function, .apply = function, .inputs = {__VA_ARGS__}, .parameters = {dim}, .gradients = grads     \
        }                                                                                                              \
    }

/* Bytes: an index of 8 and two elements of 4 for each. */
#define BY_ELEMENT(label, dim, n)                                                                                      \
    CASE("gather/" label, #n "x" #n, 16.0 * n * n, gather, dim, 0, MATRIX(n, n), INDICES(n, n, n)),                    \
        CASE("gather/" label "/backward", #n "x" #n, 16.0 * n * n, gather, dim, 1, MATRIX(n, n), INDICES(n, n, n)),    \
        CASE("gather/scatter_add_" label, #n "x" #n, 24.0 * n * n, scatter_add, dim, 0, MATRIX(n, n),                  \
             INDICES(n, n, n), MATRIX(n, n))
#define EMBEDDING(label, rows, columns, tokens)                                                                        \
    CASE("embedding/" label, #rows "x" #columns "," #tokens, 8.0 * tokens * columns, embedding, 0, 0,                  \
         MATRIX(rows, columns), INDEX_ROW(rows, tokens)),                                                              \
        CASE("embedding/" label "/backward", #rows "x" #columns "," #tokens, 4.0 * columns * (rows + 3.0 * tokens),    \
             embedding, 0, 1, MATRIX(rows, columns), INDEX_ROW(rows, tokens))

static const bench_case cases[] = {
    BY_ELEMENT("rows", 0, 1000),
    BY_ELEMENT("columns", 1, 1000),
    CASE("gather/vector", "1x1000000", 16e6, gather, 1, 0, MATRIX(1, 1000000), INDICES(1000000, 1, 1000000)),
    CASE("gather/scatter_add_vector", "1x1000000", 24e6, scatter_add, 1, 0, MATRIX(1, 1000000),
         INDICES(1000000, 1, 1000000), MATRIX(1, 1000000)),
    CASE("gather/index_select", "20000x256,20000", 8.0 * 20000 * 256, index_select, 0, 0, MATRIX(20000, 256),
         INDEX_ROW(20000, 20000)),
    CASE("gather/index_add", "20000x256,20000", 16.0 * 20000 * 256, index_add, 0, 0, MATRIX(20000, 256),
         INDEX_ROW(20000, 20000), MATRIX(20000, 256)),
    CASE("gather/index_put_add", "1000x1000,1000000", 32e6, index_put_add, 0, 0, MATRIX(1000, 1000),
         INDEX_ROW(1000, 1000000), INDEX_ROW(1000, 1000000), VECTOR(1000000)),
    CASE("gather/masked_select", "1000x1000", 7e6, masked_select, 0, 0, MATRIX(1000, 1000), MASK(1000, 1000)),
    CASE("gather/masked_fill", "1000x1000", 9e6, masked_fill, 1, 0, MATRIX(1000, 1000), MASK(1000, 1000)),
    CASE("gather/where", "1000x1000", 13e6, where, 0, 0, MATRIX(1000, 1000), MASK(1000, 1000), MATRIX(1000, 1000)),
    CASE("gather/nonzero", "1000x1000", 9e6, nonzero, 0, 0, MASK(1000, 1000)),
    CASE("gather/one_hot", "8192,100", 8.0 * 819200, one_hot, 100, 0, INDEX_ROW(100, 8192)),
    CASE("gather/repeat_interleave", "10000x64", 8.0 * 64 * 45000, repeat_each, 0, 0, MATRIX(10000, 64),
         INDEX_ROW(10, 10000)),
    CASE("embedding/bag", "50257x64,1024x50", 4.0 * 64 * 51200, embedding_bag, 0, 0, MATRIX(50257, 64),
         INDICES(50257, 1024, 50)),
    CASE("embedding/bag/backward", "50257x64,1024x50", 4.0 * 64 * (51200 + 50257), embedding_bag, 0, 1,
         MATRIX(50257, 64), INDICES(50257, 1024, 50)),
    EMBEDDING("small", 1000, 64, 4096),
    EMBEDDING("gpt2", 50257, 768, 8192),
};
const bench_list bench_index = {cases, sizeof cases / sizeof cases[0]};
