/* ops/gemm/small.c - small matrix products on CPU devices, alone or in batches (cl/gemm/small.cl). */
#include "gemm/small.h"
#include "ops/gemm/tile.h"

enum { FEW_MATRICES = 4, MOST_ROWS = 64 };
/* Multiplications: per matrix, beyond which tiles that reuse more are faster; per work-item, at least. */
enum { MOST_PER_MATRIX = 20 * 20 * 20, PER_ITEM = 1 << 16, ITEMS_PER_CORE = 4 };
enum { MOST_SUMMED = 1024 };

static int64_t longest(const kn_gemm_params *p) { return kn_max_i64(p->m, kn_max_i64(p->n, p->k)); }

static bool reuses_little(const kn_gemm_params *p)
{
    return longest(p) <= MOST_ROWS && p->m * p->n * p->k <= MOST_PER_MATRIX;
}

/* Where vectors are taken in halves, its tiles of eight rows by a vector load fast enough, and what larger ones reuse
 * does not make up for copying the operands: batches that keep all cores busy take 0.5 to 1 of the time (Zen 4). So few
 * steps are summed in the same order by both, which lets the number of cores decide. */
static bool wins_in_halves(const kn_limits *limits, const kn_gemm_params *p)
{
    enum { MOST_IN_HALVES = 512, MOST_STEPS = 160, ROWS = 8 };
    return kn_limits_halves_vectors(limits) && p->batch >= 2 * (int64_t)limits->compute_units &&
           longest(p) <= MOST_IN_HALVES && p->k <= MOST_STEPS && 4 * kn_round_up_i64(p->m, ROWS) <= 5 * p->m;
}

/* A few of any size that take hardly longer than their launch, or many. */
bool kn_gemm_prefers_small(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    const kn_tile_product tiles = kn_tile_product_of(problem, false);
    return limits->is_cpu &&
           (kn_tile_is_small(&tiles) || (p->batch >= FEW_MATRICES && (reuses_little(p) || wins_in_halves(limits, p))));
}

/* One vector. In batches it is the shortest that holds a row of C: tiles are whole more often than larger ones. Single
 * products share a kernel, since each takes the compiler longer than many of them. */
static kn_tile_shape choose_tile(const kn_limits *limits, const kn_gemm_params *p)
{
    int width = kn_limits_vector_width(limits, p->f64);
    while (p->batch > 1 && width > 2 && width / 2 >= p->n)
        width /= 2;
    return (kn_tile_shape){.vector_width = width, .vectors = 1, .rows = 8};
}

/* The sums over k of A's rows: of one matrix, whose columns are contiguous, and not of so many that adding them in turn
 * would lose digits. */
static bool can_sum(const kn_gemm_problem *problem, const kn_gemm_layout *a)
{
    return problem->sums && !problem->bias && !problem->sums->of_b && problem->product.batch == 1 &&
           a->row_stride == 1 && problem->product.k <= MOST_SUMMED;
}

kn_status kn_gemm_small(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b),
                         c = kn_gemm_operand_layout(&p->c);
    const kn_tile_shape tile = choose_tile(limits, p);
    const int64_t element = p->f64 ? 8 : 4;
    const int64_t width = kn_tile_columns(tile);
    const int64_t items =
        kn_min_i64(kn_div_up(p->m * p->n * p->k * p->batch, PER_ITEM), ITEMS_PER_CORE * (int64_t)limits->compute_units);
    kn_gemm_sums *sums = can_sum(problem, &a) ? problem->sums : NULL;
    const kn_gemm_small_size size = {p->m,        p->n, p->k, p->batch, kn_div_up(p->batch, kn_max_i64(1, items)),
                                     sums != NULL};
    const size_t global = (size_t)kn_div_up(p->batch, size.per_item);
    char options[KN_GEMM_OPTIONS];
    kn_gemm_finish finish;
    kn_buffer *scratch = NULL;

    if (p->k > 0 && (b.col_stride != 1 || p->n % width != 0)) /* panels are copied */
        KN_TRY(kn_buffer_alloc(&scratch, stream, global * (size_t)(p->k * width * element)));
    kn_status status =
        kn_run(stream, .source = "gemm/small.cl", .kernel = "gemm_small", .operation = "gemm",
               .options = kn_tile_options(options, tile, p->f64), .dims = 1, .global = {global}, .local = {1},
               KN_ARGS(kn_gemm_arg(p, &p->a), kn_gemm_arg(p, &p->b),
                       sums ? kn_arg_buffer(sums->buffer, sums->offset * element) : kn_gemm_bias_arg(problem),
                       kn_gemm_arg(p, &p->c), kn_arg_buffer(scratch ? scratch : p->b.buffer, 0),
                       kn_arg_struct(&size, sizeof size), kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b),
                       kn_arg_struct(&c, sizeof c), kn_gemm_finish_arg(&finish, problem)));
    kn_buffer_free(scratch);
    if (sums)
        sums->done = status == KN_OK;
    return status;
}
