/* ops/conv/slices.c - convolution of volumes by the implementations for images, on any device
 * (cl/conv/any/slices.cl).
 *
 * A slice of the result reads as many slices of the input as the kernel has taps along the depth. As further channels
 * of an image they are summed where channels are, without going through memory: with * in two dimensions,
 *
 *     y[n, k, o] = sum over c, u of x[n, c, o * stride - padding + u * dilation] * weight[k, c, u]
 *
 * is a convolution of images [N O, C U, H, W], whose weights are in place. Backward-weights reads the same images.
 * Backward-data is such a sum over k and u of slices of dy, for each residue of dx's slices modulo the stride
 * (ops/conv/common/correlation.h), with weights [K][U][C]. */
#include "ops/conv/common/correlation.h"

#include "conv/any/slices.h"

/* Bytes of images at a time. Constant, so that the order of sums depends on the problem alone. */
#define CHUNK_BYTES ((int64_t)32 << 20)

typedef struct slices_pass {
    const kn_conv_problem *problem;
    kn_conv_problem flat;                    /* the convolution of images */
    kn_conv_residue_class depth;             /* `rows` slices of the result */
    kn_conv_slices x, y, weight;             /* weight: backward-data only */
    kn_buffer *x_images, *y_images, *packed; /* NULL: in place */
    int64_t images, chunk;
    kn_buffer *sums, *bias_part; /* of chunks, if there are several */
} slices_pass;

/* Are the images in memory as the volumes are? */
static bool is_in_place(const kn_conv_slices *s)
{
    const bool whole = s->slices == 1 && s->taps == s->depth && (s->taps == 1 || s->distance == 1);
    const bool apart = s->channels == 1 && s->taps == 1 && s->slices == s->depth && s->step == 1;
    return s->origin == 0 && (whole || apart);
}

static int64_t image_bytes(const slices_pass *p, const kn_conv_slices *s)
{
    return s->channels * s->taps * s->plane * kn_conv_element(&p->problem->shape);
}

/* --- descriptions ------------------------------------------------------------------------------------------------- */

/* x or y: slice `origin` + i * `step` + u * `distance` of image i. */
static kn_conv_slices slices_of(const slices_pass *p, bool y, int64_t origin, int64_t step, int64_t taps,
                                int64_t distance)
{
    const kn_conv_shape *s = &p->problem->shape;
    const int64_t *size = y ? s->out_size : s->in_size, channels = y ? s->out_channels : s->in_channels;
    return (kn_conv_slices){.slices = p->depth.rows,
                            .channels = channels,
                            .taps = taps,
                            .volume = channels * size[0],
                            .depth = size[0],
                            .origin = origin,
                            .step = step,
                            .distance = distance,
                            .plane = size[1] * size[2]};
}

static void describe_sides(slices_pass *p, int64_t residue)
{
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_residue_class *d = &p->depth;
    const int64_t inner = s->in_channels / s->groups;
    if (p->problem->pass != KN_CONV_DATA) {
        p->x = slices_of(p, false, d->origin, s->stride[0], d->taps, d->distance);
        p->y = slices_of(p, true, 0, 1, 1, 0);
        return;
    }
    p->x = slices_of(p, false, residue, s->stride[0], 1, 0);
    p->y = slices_of(p, true, d->origin, 1, d->taps, d->distance);
    p->weight = (kn_conv_slices){.images = s->out_channels * d->taps,
                                 .slices = d->taps,
                                 .channels = inner,
                                 .taps = 1,
                                 .volume = inner * s->kernel_size[0],
                                 .depth = s->kernel_size[0],
                                 .origin = d->first,
                                 .step = d->step,
                                 .plane = s->kernel_size[1] * s->kernel_size[2]};
}

static void describe(slices_pass *p, const kn_conv_problem *problem, int64_t residue)
{
    const kn_conv_shape *s = &problem->shape;
    *p = (slices_pass){.problem = problem, .flat = *problem, .depth = kn_conv_choose_class(problem, 0, residue)};
    describe_sides(p, residue);
    p->images = s->images * p->depth.rows;
    kn_conv_shape *flat = &p->flat.shape;
    flat->in_size[0] = flat->out_size[0] = flat->kernel_size[0] = flat->stride[0] = flat->dilation[0] = 1;
    flat->padding[0] = 0;
    flat->in_channels *= p->x.taps;
    flat->out_channels *= p->y.taps;
    const int64_t bytes =
        (is_in_place(&p->x) ? 0 : image_bytes(p, &p->x)) + (is_in_place(&p->y) ? 0 : image_bytes(p, &p->y));
    p->chunk = kn_max_i64(1, kn_min_i64(p->images, CHUNK_BYTES / kn_max_i64(bytes, 1)));
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static kn_status copy(const slices_pass *p, kn_stream *stream, const char *kernel, const kn_conv_slices *s, kn_arg from,
                      kn_arg to)
{
    const bool on_cpu = kn_device_limits(kn_stream_device(stream))->is_cpu;
    const int64_t lines = s->images * s->channels;
    return kn_run(stream, .source = "conv/any/slices.cl", .kernel = kernel, .operation = kn_conv_operation(p->problem),
                  .options = kn_options_f64_or_f32(p->problem->shape.f64), .dims = 1,
                  .global = {kn_conv_work_items(stream, on_cpu ? lines : lines * kn_max_i64(1, s->taps) * s->plane)},
                  KN_ARGS(from, to, kn_arg_struct(s, sizeof *s)));
}

/* The chunk of `s` that starts at image `first`. */
static kn_conv_slices chunk_of(const slices_pass *p, const kn_conv_slices *s, int64_t first)
{
    kn_conv_slices chunk = *s;
    chunk.first = first;
    chunk.images = kn_min_i64(p->chunk, p->images - first);
    return chunk;
}

static kn_conv_operand operand_of(const kn_conv_slices *chunk, kn_conv_operand volumes, kn_buffer *images)
{
    const int64_t offset = chunk->first * chunk->channels * chunk->taps * chunk->plane;
    return images ? (kn_conv_operand){images, 0} : (kn_conv_operand){volumes.buffer, volumes.offset + offset};
}

static kn_status unfold(const slices_pass *p, kn_stream *stream, const kn_conv_slices *s, kn_conv_operand volumes,
                        kn_buffer *images)
{
    return images ? copy(p, stream, "conv_unfold_slices", s, kn_conv_arg(&p->problem->shape, volumes),
                         kn_arg_buffer(images, 0))
                  : KN_OK;
}

static kn_status fold(const slices_pass *p, kn_stream *stream, const kn_conv_slices *s, kn_conv_operand volumes,
                      kn_buffer *images)
{
    const kn_arg to = kn_conv_arg(&p->problem->shape, volumes);
    return images || s->taps == 0 ? copy(p, stream, "conv_fold_slices", s, images ? kn_arg_buffer(images, 0) : to, to)
                                  : KN_OK;
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static kn_status alloc_images(const slices_pass *p, kn_stream *stream, const kn_conv_slices *s, kn_buffer **images)
{
    return is_in_place(s) ? KN_OK : kn_buffer_alloc(images, stream, (size_t)(p->chunk * image_bytes(p, s)));
}

static kn_status alloc_buffers(slices_pass *p, kn_stream *stream)
{
    const kn_conv_shape *s = &p->problem->shape;
    const int64_t chunks = kn_div_up(p->images, p->chunk), element = kn_conv_element(s);
    KN_TRY(alloc_images(p, stream, &p->x, &p->x_images));
    KN_TRY(alloc_images(p, stream, &p->y, &p->y_images));
    if (p->problem->pass == KN_CONV_DATA && !is_in_place(&p->weight))
        return kn_buffer_alloc(&p->packed, stream, (size_t)(p->weight.images * image_bytes(p, &p->weight)));
    if (p->problem->pass != KN_CONV_WEIGHTS || chunks == 1)
        return KN_OK;
    KN_TRY(kn_buffer_alloc(&p->sums, stream, (size_t)(chunks * s->out_channels * kn_conv_taps(s) * element)));
    return kn_buffer_alloc(&p->bias_part, stream, (size_t)(chunks * s->out_channels * element));
}

static void free_buffers(slices_pass *p)
{
    kn_buffer_free(p->x_images);
    kn_buffer_free(p->y_images);
    kn_buffer_free(p->packed);
    kn_buffer_free(p->sums);
    kn_buffer_free(p->bias_part);
}

static kn_status run_chunk(slices_pass *p, kn_stream *stream, int64_t first)
{
    const kn_conv_problem *problem = p->problem;
    const kn_conv_slices x = chunk_of(p, &p->x, first), y = chunk_of(p, &p->y, first);
    const kn_conv_pass pass = problem->pass;
    p->flat.shape.images = x.images;
    p->flat.x = operand_of(&x, problem->x, p->x_images);
    p->flat.y = operand_of(&y, problem->y, p->y_images);
    if (p->sums) {
        const int64_t i = first / p->chunk, channels = problem->shape.out_channels;
        p->flat.weight = (kn_conv_operand){p->sums, i * channels * kn_conv_taps(&problem->shape)};
        p->flat.bias = (kn_conv_operand){problem->bias.buffer ? p->bias_part : NULL, i * channels};
    }
    if (pass != KN_CONV_DATA)
        KN_TRY(unfold(p, stream, &x, problem->x, p->x_images));
    if (pass != KN_CONV_FORWARD)
        KN_TRY(unfold(p, stream, &y, problem->y, p->y_images));
    KN_TRY(kn_conv_run(stream, &p->flat));
    if (pass == KN_CONV_FORWARD)
        return fold(p, stream, &y, problem->y, p->y_images);
    return pass == KN_CONV_DATA ? fold(p, stream, &x, problem->x, p->x_images) : KN_OK;
}

static kn_status run_chunks(slices_pass *p, kn_stream *stream)
{
    const kn_conv_problem *problem = p->problem;
    if (p->packed) {
        p->flat.weight = (kn_conv_operand){p->packed, 0};
        KN_TRY(unfold(p, stream, &p->weight, problem->weight, p->packed));
    }
    for (int64_t first = 0; first < p->images; first += p->chunk)
        KN_TRY(run_chunk(p, stream, first));
    const int64_t chunks = kn_div_up(p->images, p->chunk);
    return p->sums ? kn_conv_total_gradient(stream, problem, p->sums, chunks, p->bias_part, chunks,
                                            problem->shape.out_channels / problem->shape.groups)
                   : KN_OK;
}

/* Slices of dx that no slice of dy was computed from. */
static kn_status clear(slices_pass *p, kn_stream *stream)
{
    kn_conv_slices x = p->x;
    x.images = p->images;
    x.taps = 0;
    return fold(p, stream, &x, p->problem->x, NULL);
}

kn_status kn_conv_run_slices(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const int64_t passes = problem->pass == KN_CONV_DATA ? problem->shape.stride[0] : 1;
    kn_status status = KN_OK;
    for (int64_t residue = 0; status == KN_OK && residue < passes; residue++) {
        slices_pass p;
        describe(&p, problem, residue);
        if (p.images == 0)
            continue;
        if (p.depth.taps == 0) {
            status = clear(&p, stream);
            continue;
        }
        status = alloc_buffers(&p, stream);
        if (status == KN_OK)
            status = run_chunks(&p, stream);
        free_buffers(&p);
    }
    return status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* An image must fit a buffer. */
bool kn_conv_supports_slices(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    const double in = (double)s->in_channels * (double)s->in_size[1] * (double)s->in_size[2],
                 out = (double)s->out_channels * (double)s->out_size[1] * (double)s->out_size[2];
    const double largest = (double)s->kernel_size[0] * (in > out ? in : out), most = (double)limits->max_allocation;
    return !kn_conv_is_flat(s) && s->images > 0 && s->in_channels > 0 && s->stride[0] <= 64 &&
           largest * (double)kn_conv_element(s) <= most;
}

bool kn_conv_prefers_slices(const kn_limits *limits, const void *problem)
{
    return limits->is_cpu && ((const kn_conv_problem *)problem)->shape.stride[0] <= 4;
}
