/* ops/conv/dilated.c - convolution of images by dilated kernels on CPU devices, by the implementations for kernels
 * without holes. With stride 1 and a padding that is a multiple of the dilation, output pixels whose rows and columns
 * are multiples of the dilation apart read input pixels that are, too: these are divided into images of their own
 * (cl/conv/cpu/dilated.cl), of which each tap reads a neighbour. */
#include <string.h>

#include "ops/conv/common/correlation.h"
#include "ops/gemm/gemm.h"

#include "conv/cpu/dilated.h"

/* An operand, and what it is divided into. */
typedef struct divided {
    kn_conv_operand whole;
    kn_conv_division division;
    kn_buffer *parts;
} divided;

static int64_t elements_of(const kn_conv_division *d)
{
    return d->images * d->channels * d->row_step * d->column_step * d->rows * d->columns;
}

static divided side_of(const kn_conv_problem *problem, bool y)
{
    const kn_conv_side side = kn_conv_side_of(problem, y);
    const kn_conv_shape *s = &problem->shape;
    return (divided){.whole = side.operand,
                     .division = {.images = s->images,
                                  .channels = s->groups * side.channels,
                                  .height = side.size[1],
                                  .width = side.size[2],
                                  .row_step = s->dilation[1],
                                  .column_step = s->dilation[2],
                                  .rows = kn_div_up(side.size[1], s->dilation[1]),
                                  .columns = kn_div_up(side.size[2], s->dilation[2])}};
}

static kn_status copy(kn_stream *stream, const kn_conv_problem *problem, const char *kernel, const divided *d)
{
    char options[KN_GEMM_OPTIONS];
    const kn_conv_shape *s = &problem->shape;
    const bool divides = strcmp(kernel, "conv_divide") == 0;
    const kn_arg whole = kn_conv_arg(s, d->whole), parts = kn_arg_buffer(d->parts, 0);
    return kn_run(
        stream, .source = "conv/cpu/dilated.cl", .kernel = kernel, .operation = kn_conv_operation(problem),
        .options = kn_gemm_vector_options(options, kn_device_limits(kn_stream_device(stream)), s->f64), .dims = 1,
        .global = {kn_conv_work_items(stream, elements_of(&d->division))}, .local = {1},
        KN_ARGS(divides ? whole : parts, divides ? parts : whole, kn_arg_struct(&d->division, sizeof d->division)));
}

/* The problem of the parts, which are not there yet. */
static kn_conv_problem without_holes(const kn_conv_problem *problem)
{
    kn_conv_problem p = *problem;
    p.shape.images *= p.shape.dilation[1] * p.shape.dilation[2];
    for (int d = 1; d < 3; d++) {
        p.shape.in_size[d] = kn_div_up(p.shape.in_size[d], p.shape.dilation[d]);
        p.shape.out_size[d] = kn_div_up(p.shape.out_size[d], p.shape.dilation[d]);
        p.shape.padding[d] /= p.shape.dilation[d];
        p.shape.dilation[d] = 1;
    }
    return p;
}

static kn_status run(kn_stream *stream, const kn_conv_problem *problem, divided *x, divided *y)
{
    const int64_t element = kn_conv_element(&problem->shape);
    divided *const sides[] = {x, y}, *const written = problem->pass == KN_CONV_FORWARD ? y
                                                      : problem->pass == KN_CONV_DATA  ? x
                                                                                       : NULL;
    for (int i = 0; i < 2; i++) {
        KN_TRY(kn_buffer_alloc(&sides[i]->parts, stream, (size_t)(elements_of(&sides[i]->division) * element)));
        if (sides[i] != written)
            KN_TRY(copy(stream, problem, "conv_divide", sides[i]));
    }
    kn_conv_problem p = without_holes(problem);
    p.x = (kn_conv_operand){x->parts, 0};
    p.y = (kn_conv_operand){y->parts, 0};
    KN_TRY(kn_conv_run(stream, &p));
    return written ? copy(stream, problem, "conv_unite", written) : KN_OK;
}

kn_status kn_conv_run_dilated(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    divided x = side_of(problem, false), y = side_of(problem, true);
    const kn_status status = run(stream, problem, &x, &y);
    kn_buffer_free(x.parts);
    kn_buffer_free(y.parts);
    return status;
}

static bool fits(const kn_limits *limits, const kn_conv_problem *problem, bool y)
{
    const divided side = side_of(problem, y);
    return (double)elements_of(&side.division) * (double)kn_conv_element(&problem->shape) <=
           (double)limits->max_allocation;
}

bool kn_conv_supports_dilated(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    for (int d = 1; d < 3; d++)
        if (s->stride[d] != 1 || s->padding[d] % s->dilation[d] != 0)
            return false;
    return kn_conv_is_flat(s) && s->dilation[1] * s->dilation[2] > 1 && fits(limits, problem, false) &&
           fits(limits, problem, true);
}

static bool goes_by_winograd(const kn_limits *limits, const kn_conv_problem *p)
{
    if (p->pass == KN_CONV_WEIGHTS)
        return kn_conv_supports_winograd_weights(limits, p) && kn_conv_prefers_winograd_weights(limits, p);
    return kn_conv_supports_winograd(limits, p) && kn_conv_prefers_winograd(limits, p);
}

/* Tiles of Winograd convolutions that cover the parts, in pixels for each pixel of the image. */
static double coverage(const kn_conv_shape *s)
{
    enum { TILE = 4 };
    double covered = 1;
    for (int d = 1; d < 3; d++) {
        const int64_t part = kn_round_up_i64(kn_div_up(s->out_size[d], s->dilation[d]), TILE);
        covered *= (double)(part * s->dilation[d]) / (double)s->out_size[d];
    }
    return covered;
}

/* Of the implementations that leave out the padding, by that of those that multiply it. */
static double time_without_padding(const kn_limits *limits, const kn_conv_problem *problem)
{
    return problem->pass == KN_CONV_WEIGHTS ? 1 / kn_conv_padding_factor(problem)
                                            : kn_conv_images_time(limits, problem);
}

/* Winograd convolutions of the parts have to gain more than copying takes, and than leaving out the padding gains. On
 * an Intel Xeon they take 0.39 of the time of direct ones of as many pixels, copying included: with 256 channels and
 * images of 65 x 65, a dilation of 6 half of the direct ones' time; of 33 x 33 and 12 0.7, and without padding 0.45. */
bool kn_conv_prefers_dilated(const kn_limits *limits, const void *problem_)
{
    enum { FEW_CHANNELS = 32, MANY_CHANNELS = 128 };
    const double winograd_time = 0.39;
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_problem p = without_holes(problem);
    const int64_t channels = kn_min_i64(s->in_channels, s->out_channels);
    if (!limits->is_cpu || s->groups != 1 || channels < FEW_CHANNELS || !goes_by_winograd(limits, &p))
        return false;
    return coverage(s) <= (channels >= MANY_CHANNELS ? 2.2 : 1.35) &&
           coverage(s) * winograd_time <= time_without_padding(limits, problem);
}
