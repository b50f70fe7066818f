/* ops/gemm/row.c - one row times a matrix with contiguous rows, or a matrix with contiguous columns times one column,
 * on CPU devices (cl/gemm/row.cl), also of bf16. */
#include <string.h>

#include "ops/gemm/gemm.h"

enum { COLUMNS = 4096 }; /* their sums stay in the level-1 cache: 16 KiB of f32 */
/* Fixed, so that the order of sums does not depend on the number of cores. */
enum { MIN_SLICE = 64, MAX_SLICES = 64 };
/* Worth it: long sums of so many columns, and shorter ones of more. */
enum { FEW_COLUMNS = 16, FEW_ROWS = 5, MANY_COLUMNS = 1024 };

/* x [k] times b [k, n]. */
typedef struct row_product {
    const kn_gemm_operand *x, *b;
    int64_t n, x_stride, b_stride;
    bool possible;
} row_product;

static row_product classify(const kn_gemm_params *p)
{
    kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    if (p->batch != 1 || p->k == 0)
        return (row_product){.possible = false};
    if (p->m == 1)
        return (row_product){&p->a, &p->b, p->n, a.col_stride, b.row_stride, b.col_stride == 1};
    return (row_product){&p->b, &p->a, p->m, b.row_stride, a.col_stride, p->n == 1 && a.row_stride == 1};
}

bool kn_gemm_supports_row(const kn_limits *limits, const void *problem)
{
    (void)limits;
    return classify(&((const kn_gemm_problem *)problem)->product).possible;
}

bool kn_gemm_row_pays(int64_t n, int64_t k)
{
    return k >= MIN_SLICE ? n >= FEW_COLUMNS : k >= FEW_ROWS && n >= MANY_COLUMNS;
}

bool kn_gemm_prefers_row(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return limits->is_cpu && kn_gemm_row_pays(p->m * p->n, p->k);
}

static kn_status multiply(kn_stream *stream, const kn_gemm_problem *problem, bool bf16)
{
    const kn_gemm_params *p = &problem->product;
    row_product r = classify(p);
    char options[KN_GEMM_OPTIONS];
    int64_t element = kn_gemm_element(p), size = bf16 ? KN_GEMM_HALF : element, slice = kn_div_up(p->k, MAX_SLICES);
    slice = slice < MIN_SLICE ? MIN_SLICE : slice;
    int64_t slices = kn_div_up(p->k, slice);
    kn_buffer *part = NULL;
    kn_gemm_vector_options(options, kn_device_limits(kn_stream_device(stream)), p->f64);
    strcat(options, bf16 ? " -DBFLOAT" : "");
    KN_TRY(kn_buffer_alloc(&part, stream, (size_t)(slices * r.n * element)));
    kn_status status =
        kn_run(stream, .source = "gemm/row.cl", .kernel = "gemm_row_sums", .operation = "gemm", .options = options,
               .dims = 2, .global = {(size_t)kn_div_up(r.n, COLUMNS), (size_t)slices}, .local = {1, 1},
               KN_ARGS(kn_gemm_sized_arg(r.x, size), kn_gemm_sized_arg(r.b, size), kn_arg_buffer(part, 0),
                       kn_arg_i64(r.n), kn_arg_i64(p->k), kn_arg_i64(r.x_stride), kn_arg_i64(r.b_stride),
                       kn_arg_i64(COLUMNS), kn_arg_i64(slice)));
    if (status == KN_OK)
        status = kn_gemm_total(stream, problem, part, slices, bf16);
    kn_buffer_free(part);
    return status;
}

kn_status kn_gemm_row(kn_stream *stream, const void *problem) { return multiply(stream, problem, false); }

/* A copy, because elements overlapped, may have its rows the other way round. */
kn_status kn_gemm_bf16_row(kn_stream *stream, const kn_gemm_problem *problem)
{
    return classify(&problem->product).possible ? multiply(stream, problem, true) : kn_gemm_pairs(stream, problem);
}
