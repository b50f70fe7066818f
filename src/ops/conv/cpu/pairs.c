/* ops/conv/cpu/pairs.c - convolutions of bf16 on CPU devices that multiply pairs of elements, as one product over all
 * images (cl/gemm/pairs.cl):
 *
 *     forward, backward-data:  y = W x, dx = W^T dy, whose columns are the pixels of all images
 *     backward-weights:        dW = the sum over the images of dy x^T
 *
 * 1 x 1 convolutions read and write images where they are; strided ones read, or write, columns of patches instead of
 * x. */
#include "ops/gemm/pairs.h"

#include "ops/conv/cpu/products.h"
#include "ops/gemm/instructions.h"
#include "ops/gemm/matmul.h"
#include "ops/vision/fold.h"

static kn_status correlate(kn_stream *stream, const kn_conv_problem *problem)
{
    const int64_t pixels = kn_conv_volume(problem->shape.out_size);
    kn_gemm_problem gemm;
    kn_tile_product x = kn_conv_product_of(&gemm, problem);
    const kn_gemm_words operands = {
        .parts = 1, .segment = pixels, .b_segment = x.b.layout.batch_stride, .c_segment = x.c.batch_stride};
    x.n = x.batch * pixels;
    x.batch = 1;
    return kn_pairs_multiply(stream, &x, operands);
}

static kn_status sum_weights(kn_stream *stream, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t pixels = kn_conv_volume(s->out_size), rows = s->out_channels, columns = s->in_channels;
    const kn_gemm_problem gemm = {
        .product = {.alpha = 1,
                    .b = {.buffer = problem->x.buffer, .offset = problem->x.offset},
                    .c = {.buffer = problem->weight.buffer, .offset = problem->weight.offset}}};
    const kn_tile_product x = {.problem = &gemm,
                               .m = rows,
                               .n = columns,
                               .k = pixels,
                               .batch = 1,
                               .a = {problem->y.buffer, problem->y.offset, {pixels, 1, 0}},
                               .b = {problem->x.buffer, problem->x.offset, {1, pixels, 0}},
                               .c = {columns, 1, 0}};
    return kn_pairs_multiply(
        stream, &x,
        (kn_gemm_words){.parts = s->images, .a_part = rows * pixels, .b_part = columns * pixels, .segment = columns});
}

static kn_status run_pointwise(kn_stream *stream, const kn_conv_problem *problem)
{
    return (problem->pass == KN_CONV_WEIGHTS ? sum_weights : correlate)(stream, problem);
}

/* --- patches as columns ------------------------------------------------------------------------------------------- */

static double column_bytes(const kn_conv_shape *s)
{
    return (double)s->images * (double)kn_conv_taps(s) * (double)kn_conv_volume(s->out_size) * KN_GEMM_HALF;
}

/* A 1 x 1 convolution of the columns, which have a channel for each tap. */
static kn_conv_problem of_columns(const kn_conv_problem *problem, kn_buffer *columns)
{
    kn_conv_problem p = *problem;
    p.x = (kn_conv_operand){columns, 0};
    p.shape.in_channels = kn_conv_taps(&problem->shape);
    for (int d = 0; d < 3; d++) {
        p.shape.in_size[d] = p.shape.out_size[d];
        p.shape.kernel_size[d] = p.shape.stride[d] = p.shape.dilation[d] = 1;
        p.shape.padding[d] = 0;
    }
    return p;
}

static kn_status run_columns(kn_stream *stream, const kn_conv_problem *problem)
{
    const bool data = problem->pass == KN_CONV_DATA;
    const kn_fold_geometry g = kn_conv_patches_of(&problem->shape, problem->shape.images);
    const kn_arg x = kn_arg_buffer(problem->x.buffer, problem->x.offset * KN_GEMM_HALF);
    const char *operation = kn_conv_operation(problem);
    kn_buffer *columns;
    KN_TRY(kn_buffer_alloc(&columns, stream, (size_t)column_bytes(&problem->shape)));
    const kn_conv_problem p = of_columns(problem, columns);
    kn_status status = KN_OK;
    if (!data)
        status = kn_fold_run(stream, "unfold", operation, &g, KN_GEMM_HALF, x, kn_arg_buffer(columns, 0));
    if (status == KN_OK)
        status = run_pointwise(stream, &p);
    if (status == KN_OK && data)
        status = kn_fold_run(stream, "fold", operation, &g, KN_GEMM_HALF, kn_arg_buffer(columns, 0), x);
    kn_buffer_free(columns);
    return status;
}

kn_status kn_conv_run_pairs(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    return (kn_conv_reads_each_pixel_once(&problem->shape) ? run_pointwise : run_columns)(stream, problem);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Others with stride 1 take less time in f32, with fewer multiplications (winograd.c). */
static bool columns_pay(const kn_limits *limits, const kn_conv_shape *s)
{
    enum { LEAST_CHANNELS = 16 };
    const double most = (double)kn_min_i64(256 << 20, (int64_t)limits->max_allocation);
    return kn_max_i64(s->stride[0], kn_max_i64(s->stride[1], s->stride[2])) > 1 && s->out_channels >= LEAST_CHANNELS &&
           column_bytes(s) <= most && kn_conv_supports_lowered(limits, &(kn_conv_problem){.shape = *s});
}

bool kn_conv_supports_pairs(kn_stream *stream, const kn_conv_shape *s)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    return s->groups == 1 && kn_pairs_are_preferred(limits) &&
           (kn_conv_reads_each_pixel_once(s) || columns_pay(limits, s)) && kn_pairs_work(stream);
}

/* Sums of several windows would be of rounded products. */
bool kn_conv_data_is_bf16(const kn_conv_shape *s)
{
    return kn_conv_reads_each_pixel_once(s) || kn_conv_windows_are_apart(s);
}
