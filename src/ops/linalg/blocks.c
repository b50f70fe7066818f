/* ops/linalg/blocks.c - LU and Cholesky factors and triangular systems of large matrices, block by block: what is left
 * of them is products of matrices, which take the device's full speed. */
#include "ops/linalg/blocks.h"

#include "base/integer.h"

enum {
    LARGE = 160,       /* rows or columns from which blocks take less time */
    LARGE_SYSTEM = 16, /* right-hand sides */
};

kn_status kn_multiply_blocks(kn_stream *stream, const kn_block_product *p)
{
    if (p->m == 0 || p->n == 0)
        return KN_OK;
    const kn_gemm_params product = {.f64 = p->dtype == KN_F64,
                                    .m = p->m,
                                    .n = p->n,
                                    .k = p->k,
                                    .batch = p->batch,
                                    .alpha = p->alpha,
                                    .beta = p->beta,
                                    .a = p->a,
                                    .b = p->b,
                                    .c = p->c};
    return kn_gemm(stream, &(kn_gemm_problem){.product = product, .full_precision = true});
}

/* c [m, n] -= a [m, k] b [k, n]. */
static kn_status subtract_product(kn_stream *stream, const kn_tensor *of, kn_gemm_operand a, kn_gemm_operand b,
                                  kn_gemm_operand c, int64_t m, int64_t n, int64_t k)
{
    const kn_block_product product = {of->dtype, kn_matrices(of), m, n, k, .alpha = -1, .beta = 1, a, b, c};
    return kn_multiply_blocks(stream, &product);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* How many work-groups take KN_LINALG_BLOCK columns each of those of x from `begin` on. */
static int64_t chunks(const kn_tensor *x, int64_t begin) { return kn_div_up(kn_columns(x) - begin, KN_LINALG_BLOCK); }

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
    const int64_t n = kn_rows(x), columns = kn_columns(x), blocks = kn_div_up(n, KN_LINALG_BLOCK);
    for (int64_t step = 0; step < blocks; step++) {
        const int64_t from = (upper ? blocks - 1 - step : step) * KN_LINALG_BLOCK,
                      to = kn_min_i64(from + KN_LINALG_BLOCK, n);
        const int64_t rest = upper ? 0 : to, rows = upper ? from : n - to; /* what is not solved yet */
        KN_TRY(substitute(stream, operation, a, x, (triangle){upper, unit}, 0, from, to));
        KN_TRY(subtract_product(stream, x, kn_block_of(a, rest, from), kn_block_of(x, from, 0), kn_block_of(x, rest, 0),
                                rows, columns, to - from));
    }
    return KN_OK;
}

kn_status kn_linalg_exchange_rows(kn_stream *stream, const char *operation, const kn_tensor *pivots, const kn_tensor *x)
{
    return exchange(stream, operation, x, pivots, kn_rows(x), 0, kn_rows(x), false);
}

/* --- LU ----------------------------------------------------------------------------------------------------------- */

bool kn_linalg_factors_in_blocks(const kn_tensor *a) { return kn_min_i64(kn_rows(a), kn_columns(a)) >= LARGE; }

static kn_status factor_panel(kn_stream *stream, const char *operation, const kn_lu_factors *f, const kn_tensor *space,
                              int64_t from, int64_t to)
{
    const kn_tensor *lu = f->lu;
    const kn_linalg_launch launch = {"linalg/blocks.cl", "linalg_lu_panel", operation, lu->dtype, kn_matrices(lu), 0};
    return KN_LINALG_RUN(stream, &launch, kn_arg_tensor(lu), kn_arg_tensor(f->pivots), kn_arg_tensor(f->info),
                         kn_arg_tensor(space), kn_arg_i64(kn_rows(lu)), kn_arg_i64(kn_columns(lu)),
                         kn_arg_i64(kn_panel_column(kn_rows(lu) - from)), kn_arg_i64(from), kn_arg_i64(to),
                         kn_arg_i32(f->reports), kn_arg_fault());
}

static kn_status factor_blocks(kn_stream *stream, const char *operation, const kn_lu_factors *f, const kn_tensor *space)
{
    const kn_tensor *lu = f->lu;
    const int64_t m = kn_rows(lu), n = kn_columns(lu), count = kn_min_i64(m, n);
    for (int64_t from = 0; from < count; from += KN_LINALG_BLOCK) {
        const int64_t to = kn_min_i64(from + KN_LINALG_BLOCK, count);
        KN_TRY(factor_panel(stream, operation, f, space, from, to));
        KN_TRY(exchange(stream, operation, lu, f->pivots, count, from, to, true));
        if (to < n)
            KN_TRY(substitute(stream, operation, lu, lu, (triangle){.unit = true}, to, from, to));
        KN_TRY(subtract_product(stream, lu, kn_block_of(lu, to, from), kn_block_of(lu, from, to),
                                kn_block_of(lu, to, to), m - to, n - to, to - from));
    }
    return KN_OK;
}

kn_status kn_linalg_factor_blocks(kn_stream *stream, const char *operation, const kn_lu_factors *f)
{
    const kn_tensor *lu = f->lu;
    kn_tensor *space = NULL;
    const int64_t shape[] = {kn_matrices(lu), KN_LINALG_BLOCK,
                             kn_tensor_limits(lu)->is_cpu ? kn_panel_column(kn_rows(lu)) : 1};
    KN_TRY(kn_tensor_new(&space, lu->dtype, 3, shape, lu->storage->device));
    const kn_status status = factor_blocks(stream, operation, f, space);
    kn_release(space);
    return status;
}

/* --- Cholesky ----------------------------------------------------------------------------------------------------- */

bool kn_linalg_has_cholesky_blocks(const kn_tensor *a) { return kn_tensor_limits(a)->is_cpu && kn_rows(a) >= LARGE; }

/* The lower triangle from row and column `to` on, minus the products of the panel's rows: strips of columns, of which
 * each begins at its diagonal. */
static kn_status subtract_squares(kn_stream *stream, const kn_tensor *a, int64_t from, int64_t to)
{
    enum { STRIP = 256 };
    const int64_t n = kn_rows(a);
    for (int64_t column = to; column < n; column += STRIP) {
        kn_gemm_operand transposed = kn_block_of(a, column, from);
        transposed.transposed = true;
        KN_TRY(subtract_product(stream, a, kn_block_of(a, column, from), transposed, kn_block_of(a, column, column),
                                n - column, kn_min_i64(STRIP, n - column), to - from));
    }
    return KN_OK;
}

static kn_status cholesky_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *info,
                                 bool reports, const kn_tensor *space)
{
    const int64_t n = kn_rows(a), rows = kn_matrices(a) * n;
    const kn_linalg_launch panel = {
        "linalg/cholesky_blocks.cl", "linalg_cholesky_panel", operation, a->dtype, kn_matrices(a), 0};
    const kn_linalg_launch clear = {"linalg/cholesky_blocks.cl", "linalg_clear_upper", operation, a->dtype, 0, rows};
    for (int64_t from = 0; from < n; from += KN_LINALG_BLOCK) {
        const int64_t to = kn_min_i64(from + KN_LINALG_BLOCK, n);
        KN_TRY(KN_LINALG_RUN(stream, &panel, kn_arg_tensor(a), kn_arg_tensor(info), kn_arg_tensor(space), kn_arg_i64(n),
                             kn_arg_i64(kn_panel_column(n - from)), kn_arg_i64(from), kn_arg_i64(to),
                             kn_arg_i32(reports), kn_arg_fault()));
        KN_TRY(subtract_squares(stream, a, from, to));
    }
    return KN_LINALG_RUN(stream, &clear, kn_arg_tensor(a), kn_arg_i64(n), kn_arg_i64(rows));
}

kn_status kn_linalg_cholesky_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *info,
                                    bool reports)
{
    kn_tensor *space = NULL;
    const int64_t shape[] = {kn_matrices(a), KN_LINALG_BLOCK, kn_panel_column(kn_rows(a))};
    KN_TRY(kn_tensor_new(&space, a->dtype, 3, shape, a->storage->device));
    const kn_status status = cholesky_blocks(stream, operation, a, info, reports, space);
    kn_release(space);
    return status;
}
