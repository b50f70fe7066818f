/* ops/gemm/pairs.c - products of bf16 matrices on CPU devices, by words of two elements (cl/gemm/pairs.cl). */
#include "ops/gemm/pairs.h"

#include <string.h>

/* Rows and vectors of a tile, the usual one first: 24 sums of 32 registers, or 16, or 12 of 16 registers. */
typedef struct shape {
    int rows, vectors;
} shape;
static const shape shapes_of_32[] = {{12, 2}, {8, 3}, {4, 4}}, shapes_of_16[] = {{6, 2}};

/* With whole tiles, at least a tenth less work than with the usual shape: the compiler takes long for each. */
static kn_tile_shape choose_shape(const kn_limits *limits, int64_t m, int64_t n)
{
    const bool many = limits->vector_registers >= 32;
    const shape *shapes = many ? shapes_of_32 : shapes_of_16;
    const int count = many ? (int)(sizeof shapes_of_32 / sizeof shapes_of_32[0]) : 1;
    const int width = kn_limits_vector_width(limits, false);
    int best = 0;
    int64_t least = 0;
    for (int i = 0; i < count; i++) {
        const int64_t work =
            kn_round_up_i64(m, shapes[i].rows) * kn_round_up_i64(n, (int64_t)width * shapes[i].vectors);
        if (i == 0 || 10 * work < 9 * least) {
            best = i;
            least = work;
        }
    }
    return (kn_tile_shape){width, shapes[best].vectors, shapes[best].rows};
}

/* Does an operand consist of whole words along k? */
static bool in_words(const kn_tile_operand *x, int64_t k_stride, int64_t stride, int64_t batch)
{
    return k_stride == 1 && x->offset % 2 == 0 && stride % 2 == 0 && (batch == 1 || x->layout.batch_stride % 2 == 0);
}

/* Rows of A in place that are a multiple of 4 KiB apart share one set of the level-1 cache, of 8 or 12 lines: without
 * staging, products take 1.1 to 1.3 times as long (EPYC of family 25, model 17). */
enum { SET_STRIDE = 4096 };
static bool rows_collide(const kn_tile_product *x)
{
    return x->m > 1 && x->a.layout.row_stride * KN_GEMM_HALF % SET_STRIDE == 0;
}

/* Completes what follows from the layouts. */
static kn_gemm_words read_as(kn_gemm_words operands, const kn_tile_product *x)
{
    const kn_gemm_layout *a = &x->a.layout, *b = &x->b.layout;
    operands.k = x->k;
    operands.a_words = in_words(&x->a, a->col_stride, a->row_stride, x->batch) && operands.a_part % 2 == 0;
    operands.b_words = in_words(&x->b, b->row_stride, b->col_stride, x->batch) && operands.b_part % 2 == 0;
    return operands;
}

/* In tiles of words: those are divided by all of the sum, and its blocks are of one part. */
static kn_gemm_tile_plan plan_of(const kn_limits *limits, const kn_tile_product *x, kn_tile_shape tile,
                                 const kn_gemm_words *operands)
{
    kn_tile_product words = *x;
    const bool a_staged = !operands->a_words || x->k % 2 != 0 || rows_collide(x);
    const int64_t part = kn_div_up(x->k, 2);
    words.k = part * operands->parts;
    kn_tile_blocking cut = kn_tile_divide(limits, &words, tile, a_staged, true);
    words.k = part;
    if (part > 0)
        cut.k_block = kn_round_up_i64(kn_div_up(part, kn_div_up(part, cut.k_block)), 16);
    return kn_tile_plan_of(&words, tile, cut);
}

kn_status kn_pairs_multiply(kn_stream *stream, const kn_tile_product *x, kn_gemm_words operands)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_gemm_problem *problem = x->problem;
    const kn_tile_shape tile = choose_shape(limits, x->m, x->n);
    operands = read_as(operands, x);
    const kn_gemm_tile_plan plan = plan_of(limits, x, tile, &operands);
    const int64_t items = kn_div_up(plan.units, plan.units_per_item), staged = items * plan.scratch;
    const int64_t sums = plan.k > plan.k_block || operands.parts > 1 ? x->batch * x->m * x->n : 0;
    const int64_t result = problem->keeps_f32 ? (int64_t)sizeof(float) : KN_GEMM_HALF;
    kn_buffer *scratch = NULL;
    kn_gemm_finish finish;
    char options[KN_GEMM_OPTIONS];
    kn_tile_options(options, tile, false);
    strcat(options, limits->multiplies_pairs ? " -DDOTS" : "");
    strcat(options, problem->keeps_f32 ? "" : " -DBFLOAT");
    KN_TRY(kn_buffer_alloc(&scratch, stream, (size_t)(staged + sums) * sizeof(float)));
    const kn_status status = kn_run(
        stream, .source = "gemm/pairs.cl", .kernel = "gemm_pairs", .operation = "gemm", .options = options, .dims = 1,
        .global = {(size_t)items}, .local = {1},
        KN_ARGS(kn_arg_buffer(x->a.buffer, x->a.offset * KN_GEMM_HALF),
                kn_arg_buffer(x->b.buffer, x->b.offset * KN_GEMM_HALF), kn_gemm_sized_bias_arg(problem, result),
                kn_gemm_sized_arg(&problem->product.c, result), kn_arg_buffer(scratch, staged * (int64_t)sizeof(float)),
                kn_arg_buffer(scratch, 0), kn_arg_struct(&plan, sizeof plan), kn_arg_struct(&operands, sizeof operands),
                kn_arg_struct(&x->a.layout, sizeof x->a.layout), kn_arg_struct(&x->b.layout, sizeof x->b.layout),
                kn_arg_struct(&x->c, sizeof x->c), kn_gemm_finish_arg(&finish, problem)));
    kn_buffer_free(scratch);
    return status;
}

kn_status kn_gemm_pairs(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_tile_product x = kn_tile_product_of(problem, false);
    return kn_pairs_multiply(stream, &x, (kn_gemm_words){.parts = 1, .segment = x.n});
}
