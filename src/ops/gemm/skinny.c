/* ops/gemm/skinny.c - matrix products on CPU devices with one very short side (cl/gemm/skinny.cl): a linear
 * regression's forward and backward, matrix times vector, dot products. */
#include "ops/gemm/gemm.h"

enum { SHORT_ROW = 4 };                   /* cases of the kernel gemm_short_rows */
enum { MAX_RESULTS = 16, MAX_DOTS = 32 }; /* of gemm_long_sums, and where all operands are contiguous along k */
enum { LONG_SUM = 4096 };
enum { LONG_DOT = 128 * 1024 }; /* elements of dot products: of fewer a second launch takes longer than it saves */
enum { SHORT_DOT = 5 };
enum { SLICES = 64 }; /* fixed, so that the order of sums does not depend on the number of cores */

typedef enum skinny_case { NOT_SKINNY, SHORT_ROWS, DOT_ROWS, LONG_SUMS } skinny_case;

/* The problem as the kernels see it. A product with one column is computed as the transposed product with one row: C^T
 * = op(B)^T op(A)^T. */
typedef struct skinny_product {
    skinny_case kind;
    int64_t m, n, k;
    kn_gemm_layout a, b; /* of op(A) [m, k] and op(B) [k, n] */
    const kn_gemm_operand *from_a, *from_b;
    int64_t bias_stride; /* 0: one bias for all */
} skinny_product;

static kn_gemm_layout flip(kn_gemm_layout x) { return (kn_gemm_layout){x.col_stride, x.row_stride, x.batch_stride}; }

static skinny_product classify(const kn_gemm_params *p)
{
    skinny_product s = {NOT_SKINNY, p->m,  p->n, p->k, kn_gemm_operand_layout(&p->a), kn_gemm_operand_layout(&p->b),
                        &p->a,      &p->b, 1};
    if (p->batch != 1)
        return s;
    if (p->n == 1 && (p->c.ld == 1 || p->m == 1))
        s = (skinny_product){
            NOT_SKINNY, 1,     p->m, p->k, flip(kn_gemm_operand_layout(&p->b)), flip(kn_gemm_operand_layout(&p->a)),
            &p->b,      &p->a, 0};
    const bool are_dots = s.a.col_stride == 1 && s.b.row_stride == 1;
    bool b_rows_along_k = s.b.row_stride == 1 || s.k == 1,
         few_results = s.m <= (are_dots ? MAX_DOTS : MAX_RESULTS) / s.n;
    bool short_rows =
        s.m == 1 && s.k >= 1 && s.k <= SHORT_ROW && b_rows_along_k && s.b.col_stride == s.k && p->beta == 0;
    bool dot_rows = s.m == 1 && are_dots;
    const bool is_long = dot_rows ? s.k >= LONG_DOT / s.n : s.k >= LONG_SUM;
    if (few_results && (is_long || (s.k > 0 && !short_rows && !dot_rows)))
        s.kind = LONG_SUMS;
    else if (short_rows)
        s.kind = SHORT_ROWS;
    else if (dot_rows)
        s.kind = DOT_ROWS;
    return s;
}

bool kn_gemm_supports_skinny(const kn_limits *limits, const void *problem)
{
    (void)limits;
    return classify(&((const kn_gemm_problem *)problem)->product).kind != NOT_SKINNY;
}

bool kn_gemm_prefers_skinny(const kn_limits *limits, const void *problem)
{
    skinny_product s = classify(&((const kn_gemm_problem *)problem)->product);
    bool long_enough = s.kind == SHORT_ROWS || s.k >= (s.kind == LONG_SUMS ? LONG_SUM : SHORT_DOT);
    return limits->is_cpu && long_enough;
}

static kn_status run_rows(kn_stream *stream, const kn_gemm_problem *problem, const skinny_product *s,
                          const char *options)
{
    const kn_gemm_params *p = &problem->product;
    size_t items = (size_t)kn_min_i64(s->n, 16 * kn_device_limits(kn_stream_device(stream))->compute_units);
    kn_gemm_finish finish;
    if (s->kind == SHORT_ROWS)
        return kn_run(stream, .source = "gemm/skinny.cl", .kernel = "gemm_short_rows", .operation = "gemm",
                      .options = options, .dims = 1, .global = {items},
                      KN_ARGS(kn_gemm_arg(p, s->from_a), kn_gemm_arg(p, s->from_b), kn_gemm_bias_arg(problem),
                              kn_gemm_arg(p, &p->c), kn_arg_i64(s->n), kn_arg_i32(s->k), kn_arg_i64(s->a.col_stride),
                              kn_arg_i64(s->bias_stride), kn_gemm_finish_arg(&finish, problem)));
    return kn_run(stream, .source = "gemm/skinny.cl", .kernel = "gemm_dot_rows", .operation = "gemm",
                  .options = options, .dims = 1, .global = {items},
                  KN_ARGS(kn_gemm_arg(p, s->from_a), kn_gemm_arg(p, s->from_b), kn_gemm_bias_arg(problem),
                          kn_gemm_arg(p, &p->c), kn_arg_i64(s->n), kn_arg_i64(s->k), kn_arg_i64(s->b.col_stride),
                          kn_arg_i64(s->bias_stride), kn_gemm_finish_arg(&finish, problem)));
}

static kn_status run_long_sums(kn_stream *stream, const kn_gemm_problem *problem, const skinny_product *s,
                               const char *options)
{
    const kn_gemm_params *p = &problem->product;
    int64_t slice = (s->k + SLICES - 1) / SLICES, slices = (s->k + slice - 1) / slice;
    kn_buffer *part = NULL;
    kn_gemm_finish finish;
    KN_TRY(kn_buffer_alloc(&part, stream, (size_t)(slices * s->m * s->n) * (p->f64 ? 8 : 4)));
    kn_status status =
        kn_run(stream, .source = "gemm/skinny.cl", .kernel = "gemm_long_sums", .operation = "gemm", .options = options,
               .dims = 1, .global = {(size_t)slices}, .local = {1},
               KN_ARGS(kn_gemm_arg(p, s->from_a), kn_gemm_arg(p, s->from_b), kn_arg_buffer(part, 0), kn_arg_i32(s->m),
                       kn_arg_i32(s->n), kn_arg_i64(s->k), kn_arg_i64(s->a.row_stride), kn_arg_i64(s->a.col_stride),
                       kn_arg_i64(s->b.row_stride), kn_arg_i64(s->b.col_stride), kn_arg_i64(slice)));
    /* With one column the product was transposed: the bias is the same for all results. */
    if (status == KN_OK)
        status = kn_run(stream, .source = "gemm/skinny.cl", .kernel = "gemm_long_total", .operation = "gemm",
                        .options = options, .dims = 1, .global = {1}, .local = {1},
                        KN_ARGS(kn_arg_buffer(part, 0), kn_gemm_bias_arg(problem), kn_gemm_arg(p, &p->c),
                                kn_arg_i32(s->m), kn_arg_i32(s->n), kn_arg_i64(slices), kn_arg_i64(p->c.ld),
                                kn_arg_i64(s->bias_stride), kn_gemm_finish_arg(&finish, problem)));
    kn_buffer_free(part);
    return status;
}

kn_status kn_gemm_skinny(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    char options[KN_GEMM_OPTIONS];
    skinny_product s = classify(&problem->product);
    kn_gemm_vector_options(options, kn_device_limits(kn_stream_device(stream)), problem->product.f64);
    return s.kind == LONG_SUMS ? run_long_sums(stream, problem, &s, options) : run_rows(stream, problem, &s, options);
}
