/* ops/gemm/thin.c - matrix products on GPUs with few columns, or few rows (cl/gemm/thin.cl): a linear regression's
 * forward and backward, matrix times vector, dot products. */
#include <stdio.h>

#include "gemm/thin.h"
#include "ops/gemm/gemm.h"

enum { FEW = 8, GROUP = 256 }; /* at most this many columns; work-items per group */

/* Long sums of few results are split into enough parts for this many work-items, each with some steps. Fixed, so that
 * the order of sums does not depend on the device. */
enum { ITEMS = 128 * 1024, MIN_STEPS = 16, MAX_PARTS = 64 };

/* The product as the kernel sees it: C^T = op(B)^T op(A)^T where C has few rows. */
typedef struct thin_product {
    kn_gemm_thin_layout layout;
    kn_gemm_thin_size size;
    const kn_gemm_operand *a, *b;
    int64_t parts;
    bool transposed;
} thin_product;

static bool is_thin(const kn_gemm_params *p) { return p->m <= FEW || p->n <= FEW; }

/* Whole warps read lines of A along k if there are enough steps; else, or if there are many rows, short teams. */
static int32_t choose_team(int64_t rows, int64_t steps, int64_t most)
{
    int32_t team = 1;
    while (team < most && team * 2 * 8 <= steps && (team < 32 || rows * team < ITEMS))
        team *= 2;
    return team;
}

static int64_t group_of(const kn_limits *limits)
{
    int64_t group = GROUP;
    while ((size_t)group > limits->max_work_group_size)
        group /= 2;
    return group;
}

static thin_product describe(const kn_limits *limits, const kn_gemm_params *p)
{
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    thin_product t = {.a = &p->a, .b = &p->b};
    t.layout = (kn_gemm_thin_layout){a.row_stride,
                                     a.col_stride,
                                     a.batch_stride,
                                     b.col_stride,
                                     b.row_stride,
                                     b.batch_stride,
                                     p->c.ld,
                                     1,
                                     p->c.batch_stride,
                                     0,
                                     0,
                                     1};
    t.size = (kn_gemm_thin_size){.rows = p->m, .steps = p->k, .columns = (int32_t)p->n};
    if (p->n > FEW || (p->m < p->n && p->m <= FEW)) {
        t.transposed = true;
        t.a = &p->b;
        t.b = &p->a;
        t.layout = (kn_gemm_thin_layout){b.col_stride,
                                         b.row_stride,
                                         b.batch_stride,
                                         a.row_stride,
                                         a.col_stride,
                                         a.batch_stride,
                                         1,
                                         p->c.ld,
                                         p->c.batch_stride,
                                         0,
                                         1,
                                         0};
        t.size.rows = p->n;
        t.size.columns = (int32_t)p->m;
    }
    t.size.team = choose_team(t.size.rows, p->k, group_of(limits));
    const int64_t items = t.size.rows * t.size.team * p->batch, most = p->k / (t.size.team * MIN_STEPS);
    t.parts = p->batch > 1 ? 1 : kn_min_i64(kn_min_i64(ITEMS / kn_max_i64(1, items), most), MAX_PARTS);
    t.size.steps_per_part = kn_div_up(kn_max_i64(1, p->k), kn_max_i64(1, t.parts));
    t.parts = kn_max_i64(1, kn_div_up(p->k, t.size.steps_per_part));
    return t;
}

/* Column strides of B are 32-bit; rows and matrices are launch dimensions. */
bool kn_gemm_supports_thin(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    const double most = 2147483647.0;
    (void)limits;
    return is_thin(p) && (double)p->a.ld * FEW < most && (double)p->b.ld * FEW < most && p->batch < 65536;
}

bool kn_gemm_prefers_thin(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return !limits->is_cpu;
}

static kn_status launch(kn_stream *stream, const kn_gemm_problem *problem, const thin_product *t, kn_arg c)
{
    const kn_gemm_params *p = &problem->product;
    const int64_t group = group_of(kn_device_limits(kn_stream_device(stream)));
    const bool along_k = t->layout.a_step == 1 && t->size.team > 1;
    int columns = 1;
    while (columns < t->size.columns)
        columns *= 2;
    kn_gemm_finish finish;
    char options[KN_GEMM_OPTIONS];
    snprintf(options, sizeof options, "%s -DCOLUMNS=%d -DALONG_K=%d -DGROUP=%d", kn_options_f64_or_f32(p->f64), columns,
             along_k, (int)group);
    return kn_run(
        stream, .source = "gemm/thin.cl", .kernel = "gemm_thin", .operation = "gemm", .options = options, .dims = 3,
        .global = {(size_t)(kn_div_up(t->size.rows, group / t->size.team) * group), (size_t)t->parts, (size_t)p->batch},
        .local = {(size_t)group, 1, 1},
        KN_ARGS(kn_gemm_arg(p, t->a), kn_gemm_arg(p, t->b), kn_gemm_bias_arg(problem), c,
                kn_arg_struct(&t->layout, sizeof t->layout), kn_arg_struct(&t->size, sizeof t->size),
                kn_gemm_finish_arg(&finish, problem)));
}

kn_status kn_gemm_thin(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    thin_product t = describe(kn_device_limits(kn_stream_device(stream)), p);
    if (t.parts == 1)
        return launch(stream, problem, &t, kn_gemm_arg(p, &p->c));
    kn_buffer *products = NULL;
    KN_TRY(kn_buffer_alloc(&products, stream, (size_t)(t.parts * p->m * p->n) * (p->f64 ? 8 : 4)));
    t.layout.c_row = t.transposed ? 1 : p->n;
    t.layout.c_column = t.transposed ? p->n : 1;
    t.layout.c_part = p->m * p->n;
    const kn_gemm_problem plain = {
        .product = {.f64 = p->f64, .m = p->m, .n = p->n, .k = p->k, .batch = 1, .alpha = 1, .b = p->b}};
    kn_status status = launch(stream, &plain, &t, kn_arg_buffer(products, 0));
    if (status == KN_OK)
        status = kn_gemm_total(stream, problem, products, t.parts, false);
    kn_buffer_free(products);
    return status;
}
