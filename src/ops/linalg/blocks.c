/* ops/linalg/blocks.c - LU factors and triangular systems of large matrices, block by block: what is left of them is
 * products of matrices, which take the device's full speed. */
#include "base/integer.h"
#include "ops/gemm/gemm.h"
#include "ops/linalg/linalg.h"

enum {
    BLOCK = 64,        /* of linalg/blocks.cl */
    LARGE = 160,       /* rows or columns from which blocks take less time */
    LARGE_SYSTEM = 16, /* right-hand sides */
};

/* The part of a batch of matrices [rows, columns] that begins there. */
static kn_gemm_operand block_of(const kn_tensor *t, int64_t row, int64_t column)
{
    return (kn_gemm_operand){.buffer = t->storage->buffer,
                             .offset = t->offset + row * kn_columns(t) + column,
                             .ld = kn_columns(t),
                             .batch_stride = kn_rows(t) * kn_columns(t)};
}

/* c [m, n] -= a [m, k] b [k, n], of blocks. */
static kn_status subtract_product(kn_stream *stream, const kn_tensor *of, kn_gemm_operand a, kn_gemm_operand b,
                                  kn_gemm_operand c, int64_t m, int64_t n, int64_t k)
{
    if (m == 0 || n == 0)
        return KN_OK;
    const kn_gemm_params product = {.f64 = of->dtype == KN_F64,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .batch = kn_matrices(of),
                                    .alpha = -1,
                                    .beta = 1,
                                    .a = a,
                                    .b = b,
                                    .c = c};
    return kn_gemm(stream, &(kn_gemm_problem){.product = product, .full_precision = true});
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* How many work-groups take BLOCK columns each of those of x from `begin` on. */
static int64_t chunks(const kn_tensor *x, int64_t begin) { return kn_div_up(kn_columns(x) - begin, BLOCK); }

static kn_linalg_launch in_chunks(const char *kernel, const char *operation, const kn_tensor *x, int64_t begin)
{
    return (kn_linalg_launch){"linalg/blocks.cl", kernel, operation, x->dtype, kn_matrices(x) * chunks(x, begin), 0};
}

/* Exchanges rows of x as pivots `from` to `to` say; with `panel` not in the columns `from` to `to`. */
static kn_status exchange(kn_stream *stream, const char *operation, const kn_tensor *x, const kn_tensor *pivots,
                          int64_t count, int64_t from, int64_t to, bool panel)
{
    const kn_linalg_launch launch = in_chunks("linalg_exchange", operation, x, 0);
    return KN_LINALG_RUN(stream, &launch, kn_arg_tensor(x), kn_arg_tensor(pivots), kn_arg_i64(kn_rows(x)),
                         kn_arg_i64(kn_columns(x)), kn_arg_i64(chunks(x, 0)), kn_arg_i64(count), kn_arg_i64(from),
                         kn_arg_i64(to), kn_arg_i32(panel), kn_arg_fault());
}

typedef struct triangle {
    bool upper, unit;
} triangle;

/* Solves rows `from` to `to` of x, in the columns from `begin` on, with that block of a. */
static kn_status substitute(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *x,
                            triangle kind, int64_t begin, int64_t from, int64_t to)
{
    const kn_linalg_launch launch = in_chunks("linalg_substitute_block", operation, x, begin);
    return KN_LINALG_RUN(stream, &launch, kn_arg_tensor(a), kn_arg_tensor(x), kn_arg_i64(kn_rows(a)),
                         kn_arg_i64(kn_columns(a)), kn_arg_i64(kn_rows(x)), kn_arg_i64(kn_columns(x)),
                         kn_arg_i64(begin), kn_arg_i64(chunks(x, begin)), kn_arg_i64(from), kn_arg_i64(to),
                         kn_arg_i32(kind.upper), kn_arg_i32(kind.unit));
}

/* --- triangular systems ------------------------------------------------------------------------------------------- */

bool kn_linalg_solves_in_blocks(const kn_tensor *x) { return kn_rows(x) >= LARGE && kn_columns(x) >= LARGE_SYSTEM; }

kn_status kn_linalg_solve_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *x,
                                 bool upper, bool unit)
{
    const int64_t n = kn_rows(x), columns = kn_columns(x), blocks = kn_div_up(n, BLOCK);
    for (int64_t step = 0; step < blocks; step++) {
        const int64_t from = (upper ? blocks - 1 - step : step) * BLOCK, to = kn_min_i64(from + BLOCK, n);
        const int64_t rest = upper ? 0 : to, rows = upper ? from : n - to; /* what is not solved yet */
        KN_TRY(substitute(stream, operation, a, x, (triangle){upper, unit}, 0, from, to));
        KN_TRY(subtract_product(stream, x, block_of(a, rest, from), block_of(x, from, 0), block_of(x, rest, 0), rows,
                                columns, to - from));
    }
    return KN_OK;
}

kn_status kn_linalg_exchange_rows(kn_stream *stream, const char *operation, const kn_tensor *pivots, const kn_tensor *x)
{
    return exchange(stream, operation, x, pivots, kn_rows(x), 0, kn_rows(x), false);
}

/* --- LU ----------------------------------------------------------------------------------------------------------- */

bool kn_linalg_factors_in_blocks(const kn_tensor *a) { return kn_min_i64(kn_rows(a), kn_columns(a)) >= LARGE; }

/* What a panel is copied to on CPU devices: its columns one after another, with a space that keeps those of a power of
 * two of rows out of each other's places in the cache. */
static int64_t column_size(int64_t rows)
{
    enum { SPACE = 16 };
    return kn_round_up_i64(rows, BLOCK) + SPACE;
}

static kn_status factor_panel(kn_stream *stream, const char *operation, const kn_lu_factors *f, const kn_tensor *space,
                              int64_t from, int64_t to)
{
    const kn_tensor *lu = f->lu;
    const kn_linalg_launch launch = {"linalg/blocks.cl", "linalg_lu_panel", operation, lu->dtype, kn_matrices(lu), 0};
    return KN_LINALG_RUN(stream, &launch, kn_arg_tensor(lu), kn_arg_tensor(f->pivots), kn_arg_tensor(f->info),
                         kn_arg_tensor(space), kn_arg_i64(kn_rows(lu)), kn_arg_i64(kn_columns(lu)),
                         kn_arg_i64(column_size(kn_rows(lu) - from)), kn_arg_i64(from), kn_arg_i64(to),
                         kn_arg_i32(f->reports), kn_arg_fault());
}

static kn_status factor_blocks(kn_stream *stream, const char *operation, const kn_lu_factors *f, const kn_tensor *space)
{
    const kn_tensor *lu = f->lu;
    const int64_t m = kn_rows(lu), n = kn_columns(lu), count = kn_min_i64(m, n);
    for (int64_t from = 0; from < count; from += BLOCK) {
        const int64_t to = kn_min_i64(from + BLOCK, count);
        KN_TRY(factor_panel(stream, operation, f, space, from, to));
        KN_TRY(exchange(stream, operation, lu, f->pivots, count, from, to, true));
        if (to < n)
            KN_TRY(substitute(stream, operation, lu, lu, (triangle){.unit = true}, to, from, to));
        KN_TRY(subtract_product(stream, lu, block_of(lu, to, from), block_of(lu, from, to), block_of(lu, to, to),
                                m - to, n - to, to - from));
    }
    return KN_OK;
}

kn_status kn_linalg_factor_blocks(kn_stream *stream, const char *operation, const kn_lu_factors *f)
{
    const kn_tensor *lu = f->lu;
    kn_tensor *space = NULL;
    const int64_t shape[] = {kn_matrices(lu), BLOCK, kn_tensor_limits(lu)->is_cpu ? column_size(kn_rows(lu)) : 1};
    KN_TRY(kn_tensor_new(&space, lu->dtype, 3, shape, lu->storage->device));
    const kn_status status = factor_blocks(stream, operation, f, space);
    kn_release(space);
    return status;
}
