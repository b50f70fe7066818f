/* ops/vision/grid_sample.c - sampling at the places of a grid, and the grids of affine maps. */
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <koine/vision.h>
#include <limits.h>
#include <stdio.h>

#include "loops/work_size.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "vision/grid.h"

/* --- shape -------------------------------------------------------------------------------------------------------- */

static kn_status grid_sample_shape(kn_call *call)
{
    const kn_grid_sample_params *params = call->params;
    const kn_tensor *x = call->inputs[0], *grid = call->inputs[1];
    char has[KN_DESCRIBE], other[KN_DESCRIBE];
    const int dims = x->ndim - 2;
    int64_t shape[5] = {0}, volume = 1;

    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_call_check_same_dtype(call, 0, 1));
    kn_tensor_describe(has, sizeof has, x);
    kn_tensor_describe(other, sizeof other, grid);
    if (dims != 2 && dims != 3)
        return kn_fail(KN_ERR_SHAPE, "expected an input [N, C, H, W] or [N, C, D, H, W], got %s", has);
    if (grid->ndim != x->ndim || grid->shape[dims + 1] != dims)
        return kn_fail(KN_ERR_SHAPE, "expected a grid [N, ..., %d] of %d dimensions for the input %s, got %s", dims,
                       x->ndim, has, other);
    if (grid->shape[0] != x->shape[0])
        return kn_fail(KN_ERR_SHAPE, "input %s and grid %s must have the same batch size", has, other);
    if (params->mode == KN_GRID_BICUBIC && dims != 2)
        return kn_fail(KN_ERR_ARGUMENT, "mode bicubic is for images only, not for %s", has);
    for (int i = 0; i < dims; i++) {
        if (x->shape[2 + i] < 1)
            return kn_fail(KN_ERR_SHAPE, "the input %s has no elements to sample", has);
        if (x->shape[2 + i] > INT_MAX / volume)
            return kn_fail(KN_ERR_SHAPE, "images of more than 2^31 pixels are not supported: %s", has);
        volume *= x->shape[2 + i];
        shape[2 + i] = grid->shape[1 + i];
    }
    shape[0] = x->shape[0];
    shape[1] = x->shape[1];
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static kn_grid_geometry geometry_of(const kn_grid_sample_params *params, int ndim, const int64_t *x,
                                    const int64_t *grid)
{
    kn_grid_geometry g = {.batch = x[0],
                          .channels = x[1],
                          .points = kn_shape_numel(ndim - 2, grid + 1),
                          .strips = 1,
                          .parts = 1,
                          .size = {1, 1, 1},
                          .align_corners = params->align_corners};
    for (int i = 0; i < ndim - 2; i++)
        g.size[5 - ndim + i] = (int32_t)x[2 + i];
    return g;
}

/* `lanes`: channels in a vector; `count`: elements, as kn_work_for takes them. */
static kn_status launch(kn_stream *stream, const char *kernel, const kn_grid_sample_params *params, int ndim, int lanes,
                        const kn_tensor *to, int64_t count, const kn_arg *args, int num_args)
{
    static const int taps[] = {[KN_GRID_BILINEAR] = 2, [KN_GRID_NEAREST] = 1, [KN_GRID_BICUBIC] = 4};
    const kn_work_size work = kn_work_for(kn_tensor_limits(to), count);
    char options[96];
    snprintf(options, sizeof options, "%s -DTAPS=%d -DPADDING=%d -DDIMS=%d -DLANES=%d", kn_dtype_options(to->dtype),
             taps[params->mode], (int)params->padding_mode, ndim - 2, lanes);
    return kn_run(stream, .source = "vision/grid.cl", .options = options, .kernel = kernel, .operation = "grid_sample",
                  .dims = 1, .global = {work.global}, .local = {work.local}, .args = args, .num_args = num_args);
}

/* --- channels in vectors ------------------------------------------------------------------------------------------ */

/* On a CPU device, where enough places are read to be worth the copies. */
static int lanes_for(const kn_limits *limits, kn_dtype dtype, const kn_grid_geometry *g)
{
    const int64_t volume = (int64_t)g->size[0] * g->size[1] * g->size[2];
    if (!limits->is_cpu || 4 * g->points < volume)
        return 1;
    return dtype != KN_F64 && g->channels % 16 == 0 ? 16 : g->channels % 8 == 0 ? 8 : 1;
}

/* [batch, channels, elements...] is stored as [batch, channels / lanes, elements, lanes] for vectors. With one lane
 * these functions pass on the tensor itself. */

/* Room for the vectors of `t`, in memory of its own: aligned. */
static kn_status new_vectors(kn_tensor **vectors, kn_tensor *t, int lanes)
{
    const int64_t shape[] = {t->shape[0], t->shape[1] / lanes, kn_shape_numel(t->ndim - 2, t->shape + 2), lanes};
    *vectors = NULL;
    if (lanes > 1)
        return kn_tensor_new(vectors, t->dtype, 4, shape, t->storage->device);
    *vectors = kn_retain(t);
    return KN_OK;
}

static kn_status to_vectors(kn_tensor **vectors, kn_tensor *t, int lanes)
{
    KN_TRY(new_vectors(vectors, t, lanes));
    if (lanes == 1)
        return KN_OK;
    const int64_t *shape = (*vectors)->shape, block = shape[2] * lanes;
    const int64_t strides[] = {shape[1] * block, block, 1, shape[2]};
    kn_tensor *view;
    KN_TRY(kn_tensor_view(&view, t, 4, shape, strides, t->offset));
    const kn_status status = kn_tensor_copy(*vectors, view);
    kn_release(view);
    return status;
}

static kn_status from_vectors(kn_tensor *t, kn_tensor *vectors, int lanes)
{
    if (lanes == 1)
        return KN_OK;
    const int64_t elements = vectors->shape[2], block = elements * lanes, blocks = vectors->shape[1];
    const int64_t shape[] = {t->shape[0], blocks, lanes, elements};
    kn_tensor *whole = NULL, *turned = NULL;
    kn_status status = kn_tensor_view(&whole, t, 4, shape, (int64_t[]){blocks * block, block, elements, 1}, t->offset);

    if (status == KN_OK)
        status =
            kn_tensor_view(&turned, vectors, 4, shape, (int64_t[]){blocks * block, block, 1, lanes}, vectors->offset);
    if (status == KN_OK)
        status = kn_tensor_copy(whole, turned);
    kn_release(turned);
    kn_release(whole);
    return status;
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static kn_status sample(kn_call *call, kn_tensor *x, kn_tensor *grid)
{
    const kn_grid_sample_params *params = call->params;
    kn_tensor *y = call->outputs[0], *from = NULL, *to = NULL;
    kn_grid_geometry g = geometry_of(params, x->ndim, x->shape, grid->shape);
    const int lanes = lanes_for(kn_tensor_limits(y), y->dtype, &g);
    kn_status status = to_vectors(&from, x, lanes);

    if (status == KN_OK)
        status = new_vectors(&to, y, lanes);
    if (status == KN_OK) {
        g.channels /= lanes;
        const kn_arg args[] = {kn_arg_tensor(from), kn_arg_tensor(grid), kn_arg_tensor(to),
                               kn_arg_struct(&g, sizeof g)};
        const bool is_cpu = kn_tensor_limits(y)->is_cpu;
        status = launch(call->stream, "grid_sample", params, x->ndim, lanes, y,
                        is_cpu ? 8 * kn_numel(y) : g.batch * g.points, args, 4);
    }
    if (status == KN_OK)
        status = from_vectors(y, to, lanes);
    kn_release(to);
    kn_release(from);
    return status;
}

static kn_status grid_sample_forward(kn_call *call)
{
    kn_tensor *x = NULL, *grid = NULL;
    kn_status status = kn_tensor_contiguous(&x, call->inputs[0]);

    if (status == KN_OK)
        status = kn_tensor_contiguous(&grid, call->inputs[1]);
    if (status == KN_OK && call->needs_grad) {
        status = kn_call_save_for(call, 1, x);
        if (status == KN_OK)
            status = kn_call_save(call, grid);
    }
    if (status == KN_OK && kn_numel(call->outputs[0]) > 0)
        status = sample(call, x, grid);
    kn_release(grid);
    kn_release(x);
    return status;
}

/* Enough work-items to fill the device: by sample, then by channels, then by strips, each of which goes through all
 * places. */
static void cut(kn_grid_geometry *g, const kn_limits *limits)
{
    const int64_t wanted = limits->is_cpu ? 2 * (int64_t)limits->compute_units : 16384;
    const int64_t rows = g->size[0] > 1 ? g->size[0] : g->size[1];
    const int64_t batch = g->batch > 0 ? g->batch : 1;
    const int64_t parts = limits->is_cpu ? (wanted + batch - 1) / batch : g->channels;
    g->parts = parts < 1 ? 1 : parts < g->channels ? parts : g->channels > 0 ? g->channels : 1;
    g->strips = wanted / (batch * g->parts);
    g->strips = g->strips < 1 ? 1 : g->strips < rows ? g->strips : rows;
}

static kn_status input_backward(kn_grad_call *grad)
{
    const kn_grid_sample_params *params = grad->params;
    const kn_input_spec *x = &grad->input[0];
    const kn_tensor *grid = grad->saved[1];
    kn_tensor *out = kn_grad_new(grad, 0), *from = NULL, *to = NULL;
    if (!out)
        return kn_error_status();
    if (kn_numel(out) == 0)
        return KN_OK;
    kn_grid_geometry g = geometry_of(params, x->ndim, x->shape, grid->shape);
    const kn_limits *limits = kn_tensor_limits(out);
    const int lanes = lanes_for(limits, out->dtype, &g);
    kn_status status = to_vectors(&from, grad->grad_outputs[0], lanes);

    if (status == KN_OK)
        status = new_vectors(&to, out, lanes);
    if (status == KN_OK) {
        g.channels /= lanes;
        cut(&g, limits);
        const int64_t items = g.batch * g.parts * g.strips;
        const kn_arg args[] = {kn_arg_tensor(from), kn_arg_tensor(grid), kn_arg_tensor(to),
                               kn_arg_struct(&g, sizeof g)};
        status = launch(grad->stream, "grid_sample_backward", params, x->ndim, lanes, out,
                        limits->is_cpu ? 4096 * items : items, args, 4);
    }
    if (status == KN_OK)
        status = from_vectors(out, to, lanes);
    kn_release(to);
    kn_release(from);
    return status;
}

static kn_status places_backward(kn_grad_call *grad)
{
    const kn_grid_sample_params *params = grad->params;
    kn_tensor *x = grad->saved[0], *grid = grad->saved[1], *gradient = NULL, *from = NULL;
    kn_tensor *out = kn_grad_new(grad, 1);
    if (!out)
        return kn_error_status();
    if (kn_numel(out) == 0)
        return KN_OK;
    kn_grid_geometry g = geometry_of(params, x->ndim, x->shape, grid->shape);
    const kn_limits *limits = kn_tensor_limits(out);
    const int lanes = lanes_for(limits, out->dtype, &g);
    kn_status status = to_vectors(&gradient, grad->grad_outputs[0], lanes);

    if (status == KN_OK)
        status = to_vectors(&from, x, lanes);
    if (status == KN_OK) {
        const int64_t count = g.batch * g.points * (limits->is_cpu ? 8 * (g.channels + 1) : 1);
        g.channels /= lanes;
        const kn_arg args[] = {kn_arg_tensor(gradient), kn_arg_tensor(from), kn_arg_tensor(grid), kn_arg_tensor(out),
                               kn_arg_struct(&g, sizeof g)};
        status = launch(grad->stream, "grid_sample_places", params, x->ndim, lanes, out, count, args, 5);
    }
    kn_release(from);
    kn_release(gradient);
    return status;
}

static kn_status grid_sample_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(input_backward(grad));
    return grad->needs[1] ? places_backward(grad) : KN_OK;
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

/* A coordinate brought inside, as the padding says. */
static double inside(const kn_grid_sample_params *params, double x, double size)
{
    const double low = params->align_corners ? 0 : -0.5, span = params->align_corners ? size - 1 : size;
    if (params->padding_mode == KN_GRID_ZEROS)
        return x;
    if (params->padding_mode == KN_GRID_REFLECTION) {
        const double turns = span > 0 ? fabs(x - low) / span : 0, whole = floor(turns);
        x = span > 0 ? low + span * (fmod(whole, 2) == 0 ? turns - whole : 1 - (turns - whole)) : 0;
    }
    return fmin(fmax(x, 0), size - 1);
}

/* The weight of element j along a dimension. */
static double reference_weight(const kn_grid_sample_params *params, double place, int64_t size, int64_t j)
{
    const double n = (double)size;
    double x = params->align_corners ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2, sum = 0;
    if (params->mode != KN_GRID_BICUBIC) {
        x = inside(params, x, n);
        return params->mode == KN_GRID_NEAREST ? nearbyint(x) == (double)j : fmax(1 - fabs(x - (double)j), 0);
    }
    for (int k = -1; k <= 2; k++) {
        const double s = fabs(x - floor(x) - k), c = -0.75;
        if (fabs(inside(params, floor(x) + k, n) - (double)j) < 0.25)
            sum += s <= 1 ? (c + 2) * s * s * s - (c + 3) * s * s + 1 : c * (s * s * s - 5 * s * s + 8 * s - 4);
    }
    return sum;
}

static kn_status grid_sample_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *grid = call->inputs[1];
    const kn_grid_geometry g = geometry_of(call->params, x->ndim, x->shape, grid->shape);
    const int dims = x->ndim - 2;
    const int64_t volume = kn_shape_numel(dims, x->shape + 2);

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const int64_t point = i / (g.channels * g.points) * g.points + i % g.points, plane = i / g.points;
        double sum = 0;
        for (int64_t e = 0; e < volume; e++) {
            int64_t rest = e;
            double w = 1;
            for (int d = dims - 1; d >= 0; d--) {
                const double place = kn_reference_get(grid, point * dims + dims - 1 - d);
                w *= reference_weight(call->params, place, x->shape[2 + d], rest % x->shape[2 + d]);
                rest /= x->shape[2 + d];
            }
            sum += w != 0 ? w * kn_reference_get(x, plane * volume + e) : 0;
        }
        kn_reference_set(call->outputs[0], i, sum);
    }
    return KN_OK;
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static const char *const modes[] = {"bilinear", "nearest", "bicubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
static const kn_op_param rows[] = {KN_PARAM(kn_grid_sample_params, mode, .values = modes),
                                   KN_PARAM(kn_grid_sample_params, padding_mode, .values = paddings),
                                   KN_PARAM(kn_grid_sample_params, align_corners)};

extern const kn_op kn_grid_sample_backward_op;
const kn_op kn_grid_sample_op = {.name = "grid_sample",
                                 .inputs = {"x", "grid"},
                                 .dtypes = {KN_DTYPES_FLOATING},
                                 .params = KN_PARAMS(kn_grid_sample_params, rows, KN_GRID_SAMPLE_DEFAULTS),
                                 .widens_halves = true,
                                 .shape = grid_sample_shape,
                                 .forward = grid_sample_forward,
                                 .backward = grid_sample_backward,
                                 .saved = {"x", "grid"},
                                 .backward_operator = &kn_grid_sample_backward_op,
                                 .reference = grid_sample_reference};

const kn_op kn_grid_sample_backward_op = {KN_BACKWARD_OP(grid_sample), .inputs = {"grad", "x", "grid"},
                                          .outputs = {"grad_x", "grad_grid"}, .widens_halves = true};

kn_grid_sample_params kn_grid_sample_params_init(void) { return (kn_grid_sample_params){KN_GRID_SAMPLE_DEFAULTS}; }

kn_tensor *kn_grid_sample_with(kn_tensor *x, kn_tensor *grid, const kn_grid_sample_params *params)
{
    return kn_invoke(&kn_grid_sample_op, params, x, grid);
}

/* --- affine_grid -------------------------------------------------------------------------------------------------- */

/* The coordinates of `n` centres from -1 to 1, as [n, 1, ...] with `behind` ones. */
static kn_tensor *centres(const kn_tensor *like, int64_t n, bool align_corners, int behind)
{
    const kn_tensor_options options = {.dtype = like->dtype, .device = kn_device_of(like)};
    const double step = align_corners ? (n > 1 ? 2.0 / (double)(n - 1) : 0) : 2.0 / (double)n;
    const double first = align_corners ? (n > 1 ? -1 : 0) : 1.0 / (double)n - 1;
    const int64_t shape[4] = {n, 1, 1, 1};
    kn_tensor *at = kn_add_scalar(kn_mul_scalar(kn_arange_with(0, (double)n, 1, &options), step), first);
    return kn_reshape(at, 1 + behind, shape);
}

/* The sum over the coordinates of column times coordinate, and the last column, of theta [N, dims, dims + 1]. */
static kn_tensor *affine_sum(kn_tensor *theta, int dims, const int64_t *size, bool align_corners)
{
    int64_t shape[5] = {size[0], 1, 1, 1, 1};
    shape[dims + 1] = dims;
    kn_tensor *sum = kn_reshape(kn_select(theta, 2, dims), dims + 2, shape);
    for (int d = 0; d < dims; d++) {
        kn_tensor *at = centres(theta, size[2 + dims - 1 - d], align_corners, 1 + d);
        sum = kn_add(sum, kn_mul(kn_reshape(kn_select(theta, 2, d), dims + 2, shape), at));
    }
    return sum;
}

kn_tensor *kn_affine_grid(kn_tensor *theta, int ndim, const int64_t *size, bool align_corners)
{
    const int dims = ndim - 2;
    char text[KN_DESCRIBE];

    if (!theta || !size)
        return kn_fail_argument_null("affine_grid", theta ? "size" : "theta"), kn_error_make_sticky();
    if (ndim != 4 && ndim != 5)
        return kn_fail_null(KN_ERR_ARGUMENT, "affine_grid: size has %d numbers; it needs 4 or 5", ndim);
    for (int i = 0; i < ndim; i++)
        if (size[i] < 1)
            return kn_fail_null(KN_ERR_ARGUMENT, "affine_grid: size[%d] (%lld) must be at least 1", i,
                                (long long)size[i]);
    if (!kn_dtype_is_floating(theta->dtype) || theta->ndim != 3 || theta->shape[0] != size[0] ||
        theta->shape[1] != dims || theta->shape[2] != dims + 1)
        return kn_fail_null(KN_ERR_SHAPE, "affine_grid: expected a floating theta [%lld, %d, %d], got %s",
                            (long long)size[0], dims, dims + 1, kn_tensor_describe(text, sizeof text, theta));
    const int scope = kn_scope_begin();
    return scope ? kn_scope_return(scope, affine_sum(theta, dims, size, align_corners)) : NULL;
}
