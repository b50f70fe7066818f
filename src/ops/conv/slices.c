/* ops/conv/slices.c - convolution of volumes by the implementations for images, on any device: copies of the slices
 * (ops/conv/common/slicing.h) are their images. */
#include "ops/conv/common/slicing.h"

/* Bytes of images at a time. Constant, so that the order of sums depends on the problem alone. */
#define CHUNK_BYTES ((int64_t)32 << 20)

typedef struct slices_pass {
    const kn_conv_problem *problem;
    const kn_conv_slicing *slicing;
    kn_buffer *x_images, *y_images; /* NULL: in place */
    int64_t images, chunk;
    kn_buffer *sums, *bias_part; /* of chunks, if there are several */
} slices_pass;

static int64_t image_bytes(const slices_pass *p, const kn_conv_slices *s) /* of the copy */
{
    return kn_conv_slices_in_place(s) ? 0 : s->channels * s->taps * s->plane * kn_conv_element(&p->problem->shape);
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

/* --- passes ------------------------------------------------------------------------------------------------------- */

static kn_status alloc_images(const slices_pass *p, kn_stream *stream, const kn_conv_slices *s, kn_buffer **images)
{
    const int64_t bytes = p->chunk * image_bytes(p, s);
    return bytes == 0 ? KN_OK : kn_buffer_alloc(images, stream, (size_t)bytes);
}

static kn_status alloc_buffers(slices_pass *p, kn_stream *stream)
{
    const kn_conv_shape *s = &p->problem->shape;
    const int64_t chunks = kn_div_up(p->images, p->chunk), element = kn_conv_element(s);
    KN_TRY(alloc_images(p, stream, &p->slicing->x, &p->x_images));
    KN_TRY(alloc_images(p, stream, &p->slicing->y, &p->y_images));
    if (p->problem->pass != KN_CONV_WEIGHTS || chunks == 1)
        return KN_OK;
    KN_TRY(kn_buffer_alloc(&p->sums, stream, (size_t)(chunks * s->out_channels * kn_conv_taps(s) * element)));
    return kn_buffer_alloc(&p->bias_part, stream, (size_t)(chunks * s->out_channels * element));
}

static void free_buffers(slices_pass *p)
{
    kn_buffer_free(p->x_images);
    kn_buffer_free(p->y_images);
    kn_buffer_free(p->sums);
    kn_buffer_free(p->bias_part);
}

static kn_status run_chunk(const slices_pass *p, kn_stream *stream, int64_t first)
{
    const kn_conv_problem *problem = p->problem;
    const kn_conv_slices x = chunk_of(p, &p->slicing->x, first), y = chunk_of(p, &p->slicing->y, first);
    const kn_conv_pass pass = problem->pass;
    kn_conv_problem flat = p->slicing->flat;
    flat.shape.images = x.images;
    flat.x = operand_of(&x, problem->x, p->x_images);
    flat.y = operand_of(&y, problem->y, p->y_images);
    if (p->sums) {
        const int64_t i = first / p->chunk, channels = problem->shape.out_channels;
        flat.weight = (kn_conv_operand){p->sums, i * channels * kn_conv_taps(&problem->shape)};
        flat.bias = (kn_conv_operand){problem->bias.buffer ? p->bias_part : NULL, i * channels};
    }
    if (pass != KN_CONV_DATA && p->x_images)
        KN_TRY(kn_conv_unfold(stream, problem, &x, problem->x, p->x_images));
    if (pass != KN_CONV_FORWARD && p->y_images)
        KN_TRY(kn_conv_unfold(stream, problem, &y, problem->y, p->y_images));
    KN_TRY(kn_conv_run(stream, &flat));
    if (pass == KN_CONV_FORWARD && p->y_images)
        return kn_conv_fold(stream, problem, &y, problem->y, p->y_images);
    return pass == KN_CONV_DATA && p->x_images ? kn_conv_fold(stream, problem, &x, problem->x, p->x_images) : KN_OK;
}

static kn_status run_chunks(const slices_pass *p, kn_stream *stream)
{
    const kn_conv_problem *problem = p->problem;
    for (int64_t first = 0; first < p->images; first += p->chunk)
        KN_TRY(run_chunk(p, stream, first));
    const int64_t chunks = kn_div_up(p->images, p->chunk);
    return p->sums ? kn_conv_total_gradient(stream, problem, p->sums, chunks, p->bias_part, chunks,
                                            problem->shape.out_channels / problem->shape.groups)
                   : KN_OK;
}

static kn_status run_slicing(kn_stream *stream, const kn_conv_slicing *slicing)
{
    slices_pass p = {.problem = slicing->problem, .slicing = slicing, .images = slicing->x.images};
    const int64_t bytes = image_bytes(&p, &slicing->x) + image_bytes(&p, &slicing->y);
    p.chunk = kn_max_i64(1, kn_min_i64(p.images, CHUNK_BYTES / kn_max_i64(bytes, 1)));
    kn_status status = alloc_buffers(&p, stream);
    if (status == KN_OK)
        status = run_chunks(&p, stream);
    free_buffers(&p);
    return status;
}

kn_status kn_conv_run_slices(kn_stream *stream, const void *problem)
{
    return kn_conv_run_slicings(stream, problem, run_slicing);
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
    return limits->is_cpu && kn_conv_slicings(problem) <= 4 && !kn_conv_slices_run_directly(limits, problem);
}
