/* ops/conv/gpu/winograd.c - convolution on GPUs by Winograd's algorithm: transforms before and after a batch of matrix
 * products (cl/conv/gpu/winograd.cl; ops/conv/gpu/winograd.h has the formulas). */
#include "ops/conv/gpu/winograd.h"

#include "ops/gemm/gemm.h"

#define SOURCE "conv/gpu/winograd.cl"

enum { MAX_ROWS = 4096 }; /* of work-items for weights: they loop over more weights */

typedef struct winograd {
    kn_winograd_plan plan;
    kn_buffer *u, *v, *m; /* u: transformed weights or, in backward-weights, dy */
    char options[KN_CONV_OPTIONS];
} winograd;

static kn_status alloc(kn_buffer **buffer, kn_stream *stream, const winograd *w, int64_t elements)
{
    return kn_buffer_alloc(buffer, stream, (size_t)(elements * w->plan.element));
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* Work-groups as wide as there are tiles, up to 256: wider rows write longer contiguous runs of the matrices. */
static size_t group_of(kn_stream *stream, int64_t places) { return kn_winograd_group(stream, kn_min_i64(256, places)); }

/* Computes v from images first .. first + images - 1 and, before the first products, u from the weights. */
static kn_status make_factors(kn_stream *stream, const winograd *w, int64_t first, int64_t images)
{
    const kn_winograd_image image = kn_winograd_windows(&w->plan, images);
    const int64_t rows = first > 0 ? 0 : kn_min_i64(MAX_ROWS, kn_div_up(w->plan.pairs, image.places));
    return kn_run(
        stream, .source = SOURCE, .kernel = "winograd_gpu_factors", .operation = kn_conv_operation(w->plan.problem),
        .options = w->options, .dims = 2, .global = {image.places, (size_t)(image.channels + rows)},
        .local = {group_of(stream, image.places), 1},
        KN_ARGS(kn_winograd_windows_arg(&w->plan, first), kn_conv_arg(&w->plan.problem->shape, w->plan.problem->weight),
                kn_arg_buffer(w->v, 0), kn_arg_buffer(w->u, 0), kn_arg_struct(&image, sizeof image),
                kn_arg_i64(w->plan.pairs), kn_arg_i32(w->plan.data)));
}

static kn_status make_gradient_factors(kn_stream *stream, const winograd *w, int64_t first, int64_t images)
{
    const kn_winograd_image x = kn_winograd_windows(&w->plan, images), dy = kn_winograd_tiles(&w->plan, images);
    return kn_run(stream, .source = SOURCE, .kernel = "winograd_gpu_gradient_factors",
                  .operation = kn_conv_operation(w->plan.problem), .options = w->options, .dims = 2,
                  .global = {x.places, (size_t)x.channels + dy.channels}, .local = {group_of(stream, x.places), 1},
                  KN_ARGS(kn_winograd_windows_arg(&w->plan, first), kn_winograd_tiles_arg(&w->plan, first),
                          kn_arg_buffer(w->v, 0), kn_arg_buffer(w->u, 0), kn_arg_struct(&x, sizeof x),
                          kn_arg_struct(&dy, sizeof dy)));
}

static kn_status finish_tiles(kn_stream *stream, const winograd *w, int64_t first, int64_t images)
{
    const kn_conv_problem *problem = w->plan.problem;
    const kn_winograd_image image = kn_winograd_tiles(&w->plan, images);
    return kn_run(stream, .source = SOURCE, .kernel = "winograd_gpu_output",
                  .operation = kn_conv_operation(w->plan.problem), .options = w->options, .dims = 2,
                  .global = {image.tiles, (size_t)image.channels}, .local = {group_of(stream, image.tiles), 1},
                  KN_ARGS(kn_arg_buffer(w->m, 0), kn_conv_bias_arg(problem), kn_winograd_tiles_arg(&w->plan, first),
                          kn_arg_struct(&image, sizeof image), KN_CONV_EPILOGUE_ARGS(problem)));
}

/* Small work-groups: with few weights few work-items sum many shares, and these should spread over all compute
 * units. */
static kn_status finish_weights(kn_stream *stream, const winograd *w)
{
    return kn_run(stream, .source = SOURCE, .kernel = "winograd_gpu_finish",
                  .operation = kn_conv_operation(w->plan.problem), .options = w->options, .dims = 1,
                  .global = {(size_t)w->plan.pairs},
                  .local = {kn_winograd_group(stream, w->plan.shares > 1 ? 32 : 256)},
                  KN_ARGS(kn_arg_buffer(w->m, 0), kn_conv_arg(&w->plan.problem->shape, w->plan.problem->weight),
                          kn_arg_i64(w->plan.pairs), kn_arg_i32(w->plan.shares)));
}

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

/* The weights are [outer][inner] of the forward pass in all passes. */
static kn_status multiply(kn_stream *stream, const winograd *w, int64_t images)
{
    const kn_winograd_plan *p = &w->plan;
    const kn_gemm_params product = {
        .f64 = p->f64,
        .m = p->outer,
        .n = images * p->tile_rows * p->tile_columns,
        .k = p->inner,
        .batch = p->tile.values * p->groups,
        .alpha = 1,
        .a = {w->u, 0, w->plan.data ? p->outer : p->inner, p->inner * p->outer, w->plan.data},
        .b = {w->v, 0, p->share, p->inner * p->share, false},
        .c = {w->m, 0, p->share, p->outer * p->share, false},
    };
    return kn_gemm(stream, &(kn_gemm_problem){.product = product, .full_precision = true});
}

static kn_status correlate_chunks(kn_stream *stream, winograd *w)
{
    const kn_winograd_plan *p = &w->plan;
    KN_TRY(alloc(&w->u, stream, w, p->tile.values * p->pairs));
    KN_TRY(alloc(&w->v, stream, w, kn_winograd_workspace(p, p->inner)));
    KN_TRY(alloc(&w->m, stream, w, kn_winograd_workspace(p, p->outer)));
    for (int64_t first = 0; first < p->images; first += p->chunk) {
        const int64_t images = kn_min_i64(p->chunk, p->images - first);
        KN_TRY(make_factors(stream, w, first, images));
        KN_TRY(multiply(stream, w, images));
        KN_TRY(finish_tiles(stream, w, first, images));
    }
    return KN_OK;
}

/* --- backward-weights --------------------------------------------------------------------------------------------- */

/* All shares have equal length: the last one is padded with zero tiles. The last chunk may have fewer shares. */
static kn_status multiply_shares(kn_stream *stream, const winograd *w, int64_t first, int64_t images)
{
    const kn_winograd_plan *p = &w->plan;
    const int64_t shares = kn_div_up(images * p->tile_rows * p->tile_columns, p->share);
    const kn_gemm_params product = {
        .f64 = p->f64,
        .m = p->outer,
        .n = p->inner,
        .k = p->share,
        .batch = shares * p->tile.values * p->groups,
        .alpha = 1,
        .beta = first > 0,
        .a = {w->u, 0, p->share, p->outer * p->share, false},
        .b = {w->v, 0, p->share, p->inner * p->share, true},
        .c = {w->m, 0, p->inner, p->inner * p->outer, false},
    };
    return kn_gemm(stream, &(kn_gemm_problem){.product = product, .full_precision = true});
}

static kn_status sum_chunks(kn_stream *stream, winograd *w)
{
    const kn_winograd_plan *p = &w->plan;
    KN_TRY(alloc(&w->u, stream, w, kn_winograd_workspace(p, p->outer)));
    KN_TRY(alloc(&w->v, stream, w, kn_winograd_workspace(p, p->inner)));
    KN_TRY(alloc(&w->m, stream, w, p->tile.values * p->shares * p->pairs));
    for (int64_t first = 0; first < p->images; first += p->chunk) {
        const int64_t images = kn_min_i64(p->chunk, p->images - first);
        KN_TRY(make_gradient_factors(stream, w, first, images));
        KN_TRY(multiply_shares(stream, w, first, images));
    }
    return finish_weights(stream, w);
}

/* --- all passes --------------------------------------------------------------------------------------------------- */

kn_status kn_conv_run_winograd_gpu(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    winograd w = {.plan = kn_winograd_plan_of(problem)};
    kn_winograd_options(w.options, &w.plan);
    kn_status status = problem->pass == KN_CONV_WEIGHTS ? sum_chunks(stream, &w) : correlate_chunks(stream, &w);
    kn_buffer_free(w.u);
    kn_buffer_free(w.v);
    kn_buffer_free(w.m);
    if (status == KN_OK && problem->pass == KN_CONV_WEIGHTS && problem->bias.buffer)
        return kn_conv_bias_gradient(stream, problem);
    return status;
}
