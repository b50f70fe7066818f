/* ops/gemm_cpu.c - matrix multiplication on CPU devices, in tiles whose sums stay in registers (cl/gemm/tile.cl). */
#include "ops/gemm.h"

#include <stdio.h>

/* The shape of a tile. It must fit the vector registers: 32 of them where vectors are 512 bits wide, 16 assumed
 * elsewhere. */
typedef struct tile_shape {
    int vector_width, vectors, rows, k_block;
} tile_shape;

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

static tile_shape choose_tile(const kn_limits *limits, bool f64)
{
    int width = f64 ? limits->vector_width_f64 : limits->vector_width_f32;
    int widest = f64 ? 8 : 16;
    tile_shape tile = {.vector_width = widest / 4, .k_block = f64 ? 256 : 512};
    while (tile.vector_width * 2 <= width && tile.vector_width < widest)
        tile.vector_width *= 2;
    tile.vectors = 3;
    tile.rows = tile.vector_width == widest
                    ? 8
                    : 3; /* the compiler wants registers for the sums, B's vectors and most of A's values at once */
    return tile;
}

const char *kn_gemm_tile_options(char *buffer, const kn_limits *limits, bool f64)
{
    tile_shape tile = choose_tile(limits, f64);
    snprintf(buffer, KN_GEMM_OPTIONS, "%s -DVW=%d -DNV=%d -DMR=%d -DKC=%d",
             f64 ? "-DT=double -DKN_USE_F64" : "-DT=float", tile.vector_width, tile.vectors, tile.rows, tile.k_block);
    return buffer;
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

/* An operand as the tiles read it: in place, or as panels in a buffer of its own. */
typedef struct tile_operand {
    kn_buffer *buffer;
    int64_t offset; /* elements */
    kn_gemm_layout layout;
    kn_buffer *owned; /* the panels; NULL in place */
} tile_operand;

static tile_operand in_place(const kn_gemm_operand *operand)
{
    return (tile_operand){operand->buffer, operand->offset, kn_gemm_operand_layout(operand), NULL};
}

/* Replaces the operand by panels [batch][ceil(width / panel_width)][length][panel_width]; `length_stride` and
 * `width_stride` lead along it as it is. A matrix that repeats is packed once. */
static kn_status pack(kn_stream *stream, const kn_gemm_params *p, tile_operand *operand, int64_t length,
                      int64_t length_stride, int64_t width, int64_t width_stride, int panel_width)
{
    char options[KN_GEMM_OPTIONS];
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t element = p->f64 ? 8 : 4;
    int64_t panels = div_up(width, panel_width), batch = operand->layout.batch_stride == 0 ? 1 : p->batch;
    /* Enough work-items to share the copying, few enough that each has some. */
    int64_t blocks = min64(div_up(length, 64), max64(1, div_up(16 * limits->compute_units, panels * batch)));
    KN_TRY(kn_buffer_alloc(&operand->owned, stream, (size_t)(batch * panels * length * panel_width * element)));
    kn_status status =
        kn_run(stream, .source = "gemm/tile.cl", .kernel = "gemm_pack", .operation = "gemm",
               .options = kn_gemm_tile_options(options, limits, p->f64), .dims = 3,
               .global = {(size_t)panels, (size_t)blocks, (size_t)batch}, .local = {1, 1, 1},
               KN_ARGS(kn_arg_buffer(operand->buffer, operand->offset * element), kn_arg_buffer(operand->owned, 0),
                       kn_arg_i64(length), kn_arg_i64(width), kn_arg_i32(panel_width), kn_arg_i64(length_stride),
                       kn_arg_i64(width_stride), kn_arg_i64(operand->layout.batch_stride)));
    operand->buffer = operand->owned;
    operand->offset = 0;
    operand->layout.batch_stride = operand->layout.batch_stride == 0 ? 0 : panels * length * panel_width;
    return status;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

static kn_status launch_tiles(kn_stream *stream, const kn_gemm_problem *problem, const tile_operand *a,
                              const tile_operand *b, int64_t rows_per_item, kn_buffer *scratch)
{
    char options[KN_GEMM_OPTIONS];
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    tile_shape tile = choose_tile(limits, p->f64);
    int64_t element = p->f64 ? 8 : 4;
    kn_buffer *bias = problem->bias ? problem->bias : b->buffer;
    kn_gemm_finish finish;
    return kn_run(stream, .source = "gemm/tile.cl", .kernel = "gemm_tiles", .operation = "gemm",
                  .options = kn_gemm_tile_options(options, limits, p->f64), .dims = 3,
                  .global = {(size_t)div_up(p->m, rows_per_item),
                             (size_t)div_up(p->n, tile.vectors * tile.vector_width), (size_t)p->batch},
                  .local = {1, 1, 1},
                  KN_ARGS(kn_arg_buffer(a->buffer, a->offset * element), kn_arg_buffer(b->buffer, b->offset * element),
                          kn_arg_buffer(bias, problem->bias ? problem->bias_offset * element : 0),
                          kn_arg_buffer(p->c.buffer, p->c.offset * element), kn_arg_buffer(scratch, 0),
                          kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->k),
                          kn_arg_struct(&a->layout, sizeof a->layout), kn_arg_i32(a->owned != NULL),
                          kn_arg_struct(&b->layout, sizeof b->layout), kn_arg_i32(b->owned != NULL),
                          kn_arg_i64(p->c.ld), kn_arg_i64(p->c.batch_stride), kn_arg_i64(rows_per_item),
                          kn_gemm_finish_arg(&finish, problem)));
}

/* Rows of C per work-item: a multiple of the tile's, at least `least` tiles of them, and otherwise such that there are
 * about 32 work-items per compute unit: PoCL hands them out in halves of what is left, so that a few large ones end
 * unevenly. */
static int64_t choose_rows_per_item(const kn_limits *limits, const kn_gemm_params *p, const tile_shape *tile,
                                    int64_t least)
{
    int64_t tiles = div_up(p->m, tile->rows);
    int64_t panels = div_up(p->n, tile->vectors * tile->vector_width) * p->batch;
    int64_t blocks = max64(1, div_up(32 * limits->compute_units, panels));
    return max64(least, tiles / blocks) * tile->rows;
}

bool kn_gemm_prefers_packed(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

kn_status kn_gemm_packed(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    tile_shape tile = choose_tile(limits, p->f64);
    tile_operand a = in_place(&p->a), b = in_place(&p->b);
    if (p->k == 0) /* nothing to pack */
        return kn_gemm_direct(stream, problem);
    kn_status status =
        pack(stream, p, &b, p->k, b.layout.row_stride, p->n, b.layout.col_stride, tile.vectors * tile.vector_width);
    /* A is read in place where it lies row by row; where it lies column by column it is transposed, in blocks of k. */
    if (status == KN_OK && p->a.transposed)
        status = pack(stream, p, &a, p->m, a.layout.row_stride, p->k, a.layout.col_stride, tile.k_block);
    if (status == KN_OK)
        status = launch_tiles(stream, problem, &a, &b, choose_rows_per_item(limits, p, &tile, 8), b.buffer);
    kn_buffer_free(a.owned);
    kn_buffer_free(b.owned);
    return status;
}

/* One launch instead of three pays where the product itself takes no longer than a launch or two, and where B is read
 * so few times that packing it is most of the work. */
bool kn_gemm_prefers_direct(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    bool small = (double)p->m * (double)p->n * (double)p->k * (double)p->batch <= 4e6;
    bool b_used_once = p->m <= 32 && !p->b.transposed;
    return limits->is_cpu && (small || b_used_once);
}

kn_status kn_gemm_direct(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    tile_shape tile = choose_tile(limits, p->f64);
    tile_operand a = in_place(&p->a), b = in_place(&p->b);
    int64_t columns = tile.vectors * tile.vector_width;
    int64_t rows_per_item = choose_rows_per_item(limits, p, &tile, 4);
    int64_t items = div_up(p->m, rows_per_item) * div_up(p->n, columns) * p->batch;
    bool never_staged = b.layout.col_stride == 1 && p->n % columns == 0;
    size_t scratch_bytes = never_staged ? 0 : (size_t)(items * min64(p->k, tile.k_block) * columns) * (p->f64 ? 8 : 4);
    kn_buffer *scratch = NULL;
    KN_TRY(kn_buffer_alloc(&scratch, stream, scratch_bytes));
    kn_status status = launch_tiles(stream, problem, &a, &b, rows_per_item, scratch);
    kn_buffer_free(scratch);
    return status;
}
