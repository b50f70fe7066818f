/* ops/gemm/pairs.c - products of bf16 matrices on CPU devices, by words of two elements (cl/gemm/pairs.cl). */
#include "gemm/pairs.h"

#include <string.h>

#include "ops/gemm/tile.h"

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

/* Does `x` consist of whole words along k? */
static bool in_words(const kn_gemm_operand *x, bool along_rows, int64_t batch)
{
    return x->transposed != along_rows && x->offset % 2 == 0 && x->ld % 2 == 0 &&
           (batch == 1 || x->batch_stride % 2 == 0);
}

/* Rows of A in place that are a multiple of 4 KiB apart share one set of the level-1 cache, of 8 or 12 lines: without
 * staging, products take 1.1 to 1.3 times as long (EPYC of family 25, model 17). */
enum { SET_STRIDE = 4096 };
static bool rows_collide(const kn_gemm_params *p) { return p->m > 1 && p->a.ld * KN_GEMM_HALF % SET_STRIDE == 0; }

/* Tiles of words: k counts these. Layouts are in elements. */
static kn_tile_product words_of(const kn_gemm_problem *problem)
{
    kn_tile_product x = kn_tile_product_of(problem, false);
    x.k = kn_div_up(x.k, 2);
    return x;
}

kn_status kn_gemm_pairs(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_tile_product x = words_of(problem);
    const kn_tile_shape tile = choose_shape(limits, p->m, p->n);
    const kn_gemm_words operands = {p->k, in_words(&p->a, true, p->batch), in_words(&p->b, false, p->batch)};
    const bool a_staged = !operands.a_words || p->k % 2 != 0 || rows_collide(p);
    const kn_gemm_tile_plan plan = kn_tile_plan_of(&x, tile, kn_tile_divide(limits, &x, tile, a_staged, true));
    const int64_t items = kn_div_up(plan.units, plan.units_per_item), staged = items * plan.scratch;
    const int64_t sums = plan.k > plan.k_block ? p->batch * p->m * p->n : 0;
    kn_buffer *scratch = NULL;
    kn_gemm_finish finish;
    char options[KN_GEMM_OPTIONS];
    kn_tile_options(options, tile, false);
    if (limits->multiplies_pairs)
        strcat(options, " -DDOTS");
    KN_TRY(kn_buffer_alloc(&scratch, stream, (size_t)(staged + sums) * sizeof(float)));
    const kn_status status =
        kn_run(stream, .source = "gemm/pairs.cl", .kernel = "gemm_pairs", .operation = "gemm", .options = options,
               .dims = 1, .global = {(size_t)items}, .local = {1},
               KN_ARGS(kn_gemm_sized_arg(&p->a, KN_GEMM_HALF), kn_gemm_sized_arg(&p->b, KN_GEMM_HALF),
                       kn_gemm_sized_bias_arg(problem, KN_GEMM_HALF), kn_gemm_sized_arg(&p->c, KN_GEMM_HALF),
                       kn_arg_buffer(scratch, staged * (int64_t)sizeof(float)), kn_arg_buffer(scratch, 0),
                       kn_arg_struct(&plan, sizeof plan), kn_arg_struct(&operands, sizeof operands),
                       kn_arg_struct(&x.a.layout, sizeof x.a.layout), kn_arg_struct(&x.b.layout, sizeof x.b.layout),
                       kn_arg_struct(&x.c, sizeof x.c), kn_gemm_finish_arg(&finish, problem)));
    kn_buffer_free(scratch);
    return status;
}
