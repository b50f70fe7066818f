/* ops/conv/gathered.c - strided or padded 1 x 1 convolutions of images on CPU devices, forward and backward-weights:
 * the pixels that are read are gathered (cl/conv/cpu/gather.cl), for the implementations that read each once. */
#include "ops/conv/cpu/gather.h"
#include "ops/gemm/gemm.h"

static kn_status gather(kn_stream *stream, const kn_conv_problem *problem, kn_buffer *gathered)
{
    char options[KN_GEMM_OPTIONS];
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_sampling grid = kn_conv_sampling_of(s);
    const int64_t planes = s->images * s->in_channels;
    return kn_run(stream, .source = "conv/cpu/gather.cl", .kernel = "conv_gather", .operation = "conv2d",
                  .options = kn_gemm_vector_options(options, kn_device_limits(kn_stream_device(stream)), s->f64),
                  .dims = 1, .global = {kn_conv_work_items(stream, planes * grid.rows * grid.columns)}, .local = {1},
                  KN_ARGS(kn_conv_arg(s, problem->x), kn_arg_buffer(gathered, 0), kn_arg_struct(&grid, sizeof grid),
                          kn_arg_i64(planes)));
}

static kn_conv_problem dense(const kn_conv_problem *problem, kn_buffer *gathered)
{
    kn_conv_problem p = *problem;
    p.x = (kn_conv_operand){gathered, 0};
    for (int d = 1; d < 3; d++) {
        p.shape.in_size[d] = p.shape.out_size[d];
        p.shape.stride[d] = 1;
        p.shape.padding[d] = 0;
    }
    return p;
}

/* Where vectors are taken in halves, by the kernels that backward-data runs in any case: others would take a second to
 * compile, and gain little on images as small as these mostly are. */
static kn_status run_dense(kn_stream *stream, const kn_conv_problem *dense)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    if (dense->pass == KN_CONV_FORWARD && kn_limits_halves_vectors(limits) && kn_conv_supports_pointwise(limits, dense))
        return kn_conv_run_pointwise(stream, dense);
    return kn_conv_run(stream, dense);
}

kn_status kn_conv_run_gathered(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const int64_t pixels = s->images * s->in_channels * s->out_size[1] * s->out_size[2];
    kn_buffer *gathered;
    KN_TRY(kn_buffer_alloc(&gathered, stream, (size_t)(pixels * kn_conv_element(s))));
    const kn_conv_problem p = dense(problem, gathered);
    kn_status status = gather(stream, problem, gathered);
    if (status == KN_OK)
        status = run_dense(stream, &p);
    kn_buffer_free(gathered);
    return status;
}

bool kn_conv_supports_gathered(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const double pixels = (double)s->images * (double)s->in_channels * (double)kn_conv_volume(s->out_size);
    return problem->pass != KN_CONV_DATA && kn_conv_is_flat(s) && s->kernel_size[1] == 1 && s->kernel_size[2] == 1 &&
           s->groups == 1 && s->images > 0 && s->in_channels > 0 && !kn_conv_reads_each_pixel_once(s) &&
           pixels * (double)kn_conv_element(s) <= (double)limits->max_allocation;
}

/* The product must gain more than gathering costs. */
bool kn_conv_prefers_gathered(const kn_limits *limits, const void *problem_)
{
    enum { LEAST = 256 };
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    return limits->is_cpu && s->out_channels >= LEAST &&
           s->in_channels >= (problem->pass == KN_CONV_WEIGHTS ? LEAST : 64);
}
