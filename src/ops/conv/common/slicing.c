/* ops/conv/common/slicing.c - describes volumes as images, and copies the one to the other (cl/conv/any/slices.cl). */
#include "ops/conv/common/slicing.h"

bool kn_conv_slices_in_place(const kn_conv_slices *s)
{
    const bool whole = s->slices == 1 && s->taps == s->depth && (s->taps == 1 || s->distance == 1);
    const bool apart = s->channels == 1 && s->taps == 1 && s->slices == s->depth && s->step == 1;
    return s->origin == 0 && (whole || apart);
}

/* --- descriptions ------------------------------------------------------------------------------------------------- */

int64_t kn_conv_slicings(const kn_conv_problem *problem)
{
    return problem->pass == KN_CONV_DATA ? problem->shape.stride[0] : 1;
}

/* x or y: slice `origin` + i * `step` + u * `distance` of image i. */
static kn_conv_slices slices_of(const kn_conv_problem *problem, int64_t slices, bool y, int64_t origin, int64_t step,
                                int64_t taps, int64_t distance)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t *size = y ? s->out_size : s->in_size, channels = y ? s->out_channels : s->in_channels;
    return (kn_conv_slices){.images = s->images * slices,
                            .slices = slices,
                            .channels = channels,
                            .taps = taps,
                            .volume = channels * size[0],
                            .depth = size[0],
                            .origin = origin,
                            .step = step,
                            .distance = distance,
                            .plane = size[1] * size[2]};
}

static kn_conv_slices weight_slices(const kn_conv_shape *s, const kn_conv_residue_class *depth)
{
    const int64_t inner = s->in_channels / s->groups;
    return (kn_conv_slices){.images = s->out_channels * depth->taps,
                            .slices = depth->taps,
                            .channels = inner,
                            .taps = 1,
                            .volume = inner * s->kernel_size[0],
                            .depth = s->kernel_size[0],
                            .origin = depth->first,
                            .step = depth->step,
                            .plane = s->kernel_size[1] * s->kernel_size[2]};
}

kn_conv_slicing kn_conv_slice(const kn_conv_problem *problem, int64_t residue)
{
    const kn_conv_shape *s = &problem->shape;
    kn_conv_slicing p = {.problem = problem, .flat = *problem, .depth = kn_conv_choose_class(problem, 0, residue)};
    const kn_conv_residue_class *d = &p.depth;
    if (problem->pass == KN_CONV_DATA) {
        p.x = slices_of(problem, d->rows, false, residue, s->stride[0], 1, 0);
        p.y = slices_of(problem, d->rows, true, d->origin, 1, d->taps, d->distance);
        p.weight = weight_slices(s, d);
    } else {
        p.x = slices_of(problem, d->rows, false, d->origin, s->stride[0], d->taps, d->distance);
        p.y = slices_of(problem, d->rows, true, 0, 1, 1, 0);
    }
    kn_conv_shape *flat = &p.flat.shape;
    flat->in_size[0] = flat->out_size[0] = flat->kernel_size[0] = flat->stride[0] = flat->dilation[0] = 1;
    flat->padding[0] = 0;
    flat->images = p.x.images;
    flat->in_channels *= p.x.taps;
    flat->out_channels *= p.y.taps;
    return p;
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static kn_status copy(kn_stream *stream, const kn_conv_problem *problem, const char *kernel, const kn_conv_slices *s,
                      kn_arg from, kn_arg to)
{
    const bool on_cpu = kn_device_limits(kn_stream_device(stream))->is_cpu;
    const int64_t lines = s->images * s->channels;
    return kn_run(stream, .source = "conv/any/slices.cl", .kernel = kernel, .operation = kn_conv_operation(problem),
                  .options = kn_options_f64_or_f32(problem->shape.f64), .dims = 1,
                  .global = {kn_conv_work_items(stream, on_cpu ? lines : lines * kn_max_i64(1, s->taps) * s->plane)},
                  KN_ARGS(from, to, kn_arg_struct(s, sizeof *s)));
}

kn_status kn_conv_unfold(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_slices *s,
                         kn_conv_operand volumes, kn_buffer *images)
{
    return copy(stream, problem, "conv_unfold_slices", s, kn_conv_arg(&problem->shape, volumes),
                kn_arg_buffer(images, 0));
}

kn_status kn_conv_fold(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_slices *s,
                       kn_conv_operand volumes, kn_buffer *images)
{
    const kn_arg to = kn_conv_arg(&problem->shape, volumes);
    return copy(stream, problem, "conv_fold_slices", s, images ? kn_arg_buffer(images, 0) : to, to);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Slices of dx that no slice of dy was computed from. */
static kn_status clear(kn_stream *stream, const kn_conv_slicing *slicing)
{
    kn_conv_slices x = slicing->x;
    x.taps = 0;
    return kn_conv_fold(stream, slicing->problem, &x, slicing->problem->x, NULL);
}

static kn_status run_with_weights(kn_stream *stream, kn_conv_slicing *slicing, kn_conv_run_slicing *run)
{
    const kn_conv_problem *problem = slicing->problem;
    const kn_conv_slices *w = &slicing->weight;
    if (problem->pass != KN_CONV_DATA || kn_conv_slices_in_place(w))
        return run(stream, slicing);
    kn_buffer *packed = NULL;
    const int64_t elements = w->images * w->channels * w->plane;
    KN_TRY(kn_buffer_alloc(&packed, stream, (size_t)(elements * kn_conv_element(&problem->shape))));
    kn_status status = kn_conv_unfold(stream, problem, w, problem->weight, packed);
    slicing->flat.weight = (kn_conv_operand){packed, 0};
    if (status == KN_OK)
        status = run(stream, slicing);
    kn_buffer_free(packed);
    return status;
}

kn_status kn_conv_run_slicings(kn_stream *stream, const kn_conv_problem *problem, kn_conv_run_slicing *run)
{
    kn_status status = KN_OK;
    for (int64_t residue = 0; status == KN_OK && residue < kn_conv_slicings(problem); residue++) {
        kn_conv_slicing slicing = kn_conv_slice(problem, residue);
        if (problem->pass == KN_CONV_DATA && slicing.x.images == 0)
            continue;
        status = slicing.depth.taps == 0 ? clear(stream, &slicing) : run_with_weights(stream, &slicing, run);
    }
    return status;
}
