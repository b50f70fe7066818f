/* ops/vision/fold.c - unfold (im2col) and fold (col2im): each is the other's gradient. */
#include <koine/vision.h>
#include <string.h>

#include "autograd/work.h"
#include "loops/work_size.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/vision/fold.h"

/* --- geometry ----------------------------------------------------------------------------------------------------- */

static const kn_fold_geometry image_geometry = {
    .size = {1}, .windows = {1}, .kernel_size = {1, 1, 1}, .dilation = {1, 1, 1}, .stride = {1, 1, 1}};

/* One of two numbers, for height and width; a single one is for both. */
static kn_status read_pair(int32_t sides[3], const char *name, const kn_ints *from, int64_t least)
{
    if (from->count != 1 && from->count != 2)
        return kn_fail(KN_ERR_ARGUMENT, "%s has %d numbers; it needs 1 or 2", name, from->count);
    for (int i = 0; i < 2; i++) {
        const int64_t value = from->values[from->count == 1 ? 0 : i];
        if (value < least || value > KN_FOLD_LARGEST)
            return kn_fail(KN_ERR_ARGUMENT, "%s (%lld) must be at least %lld", name, (long long)value,
                           (long long)least);
        sides[1 + i] = (int32_t)value;
    }
    return KN_OK;
}

kn_status kn_fold_resolve(kn_fold_geometry *g, const kn_fold_args *args, int64_t planes, const int64_t *size)
{
    *g = image_geometry;
    g->planes = planes;
    KN_TRY(read_pair(g->kernel_size, "kernel_size", &args->kernel_size, 1));
    KN_TRY(read_pair(g->dilation, "dilation", &args->dilation, 1));
    KN_TRY(read_pair(g->padding, "padding", &args->padding, 0));
    KN_TRY(read_pair(g->stride, "stride", &args->stride, 1));
    for (int i = 1; i < 3; i++) {
        const char *const side = i == 1 ? "height" : "width";
        const int64_t pixels = size[i - 1], extent = (int64_t)g->dilation[i] * (g->kernel_size[i] - 1) + 1;
        const int64_t room = pixels + 2 * (int64_t)g->padding[i] - extent;
        if (pixels > KN_FOLD_LARGEST || extent > KN_FOLD_LARGEST)
            return kn_fail(KN_ERR_SHAPE, "images or windows of more than %d pixels per side are not supported",
                           KN_FOLD_LARGEST);
        if (pixels < 1 || room < 0)
            return kn_fail(KN_ERR_SHAPE, "no window of %s %d (dilation %d) fits into images of %s %lld (padding %d)",
                           side, (int)g->kernel_size[i], (int)g->dilation[i], side, (long long)pixels,
                           (int)g->padding[i]);
        g->size[i] = (int32_t)pixels;
        g->windows[i] = (int32_t)(room / g->stride[i] + 1);
    }
    return KN_OK;
}

static int64_t area_of(const kn_fold_geometry *g) { return (int64_t)g->kernel_size[1] * g->kernel_size[2]; }

static int64_t windows_of(const kn_fold_geometry *g) { return (int64_t)g->windows[1] * g->windows[2]; }

/* --- unfold ------------------------------------------------------------------------------------------------------- */

/* The op has no output_size: its images are the input. */
static kn_status unfold_geometry(kn_fold_geometry *g, const void *params, const kn_tensor *x)
{
    return kn_fold_resolve(g, params, kn_shape_numel(x->ndim - 2, x->shape), x->shape + x->ndim - 2);
}

static kn_status unfold_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    kn_fold_geometry g;
    char text[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, 0));
    if (x->ndim != 3 && x->ndim != 4)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C, H, W] or [C, H, W], got %s",
                       kn_tensor_describe(text, sizeof text, x));
    KN_TRY(unfold_geometry(&g, call->params, x));
    const int64_t shape[] = {x->shape[0], x->shape[x->ndim - 3] * area_of(&g), windows_of(&g)};
    return kn_call_output(call, x->dtype, x->ndim - 1, shape + 4 - x->ndim);
}

static int64_t product_of(const int32_t sizes[3]) { return (int64_t)sizes[0] * sizes[1] * sizes[2]; }

kn_status kn_fold_run(kn_stream *stream, const char *kernel, const char *operation, const kn_fold_geometry *g,
                      int64_t element, kn_arg x, kn_arg y)
{
    const int64_t elements =
        g->planes *
        (strcmp(kernel, "fold") == 0 ? product_of(g->size) : product_of(g->kernel_size) * product_of(g->windows));
    const kn_work_size work = kn_work_for(kn_device_limits(kn_stream_device(stream)), elements);
    const bool is_image = g->size[0] == 1 && g->windows[0] == 1 && g->kernel_size[0] == 1;
    char options[64];
    snprintf(options, sizeof options, "%s -DVOLUME=%d",
             element == 2 ? "-DT=ushort" : kn_options_f64_or_f32(element == 8), !is_image);
    return kn_run(stream, .source = "vision/fold.cl", .options = options, .kernel = kernel, .operation = operation,
                  .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(x, y, kn_arg_struct(g, sizeof *g)));
}

static kn_status launch(kn_stream *stream, const char *kernel, const kn_fold_geometry *g, kn_tensor *from,
                        kn_tensor *to)
{
    kn_tensor *x;
    if (kn_numel(to) == 0)
        return KN_OK;
    KN_TRY(kn_tensor_contiguous(&x, from));
    const kn_status status =
        kn_fold_run(stream, kernel, kernel, g, kn_dtype_size(to->dtype), kn_arg_tensor(x), kn_arg_tensor(to));
    kn_release(x);
    return status;
}

static kn_status unfold_forward(kn_call *call)
{
    kn_fold_geometry g;
    KN_TRY(unfold_geometry(&g, call->params, call->inputs[0]));
    return launch(call->stream, "unfold", &g, call->inputs[0], call->outputs[0]);
}

static kn_status unfold_backward(kn_grad_call *grad)
{
    const kn_input_spec *x = &grad->input[0];
    kn_tensor *out = kn_grad_new(grad, 0);
    kn_fold_geometry g;
    if (!out)
        return kn_error_status();
    KN_TRY(kn_fold_resolve(&g, grad->params, kn_shape_numel(x->ndim - 2, x->shape), x->shape + x->ndim - 2));
    return launch(grad->stream, "fold", &g, grad->grad_outputs[0], out);
}

/* --- fold --------------------------------------------------------------------------------------------------------- */

static kn_status fold_geometry(kn_fold_geometry *g, const kn_fold_args *args, int ndim, const int64_t *shape)
{
    const kn_ints *sides = &args->output_size;
    *g = image_geometry;
    if (sides->count != 1 && sides->count != 2)
        return kn_fail(KN_ERR_ARGUMENT, "output_size has %d numbers; it needs 1 or 2", sides->count);
    KN_TRY(kn_fold_resolve(g, args, 0, (int64_t[]){sides->values[0], sides->values[sides->count - 1]}));
    g->planes = kn_shape_numel(ndim - 1, shape) / area_of(g);
    return KN_OK;
}

static kn_status fold_shape(kn_call *call)
{
    const kn_fold_args *args = call->params;
    const kn_tensor *x = call->inputs[0];
    kn_fold_geometry g;
    char text[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, 0));
    kn_tensor_describe(text, sizeof text, x);
    if (x->ndim != 2 && x->ndim != 3)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C kernel height kernel width, L], or the same without N, got %s",
                       text);
    KN_TRY(fold_geometry(&g, args, x->ndim, x->shape));
    const int64_t channels = x->shape[x->ndim - 2], windows = windows_of(&g);
    if (channels % area_of(&g) != 0)
        return kn_fail(KN_ERR_SHAPE, "dimension %d of %s must be divisible by the product of kernel_size (%d, %d)",
                       x->ndim - 2, text, (int)g.kernel_size[1], (int)g.kernel_size[2]);
    if (x->shape[x->ndim - 1] != windows)
        return kn_fail(KN_ERR_SHAPE,
                       "images of %d x %d have %lld windows, %d x %d, but the last dimension of %s has %lld",
                       (int)g.size[1], (int)g.size[2], (long long)windows, (int)g.windows[1], (int)g.windows[2], text,
                       (long long)x->shape[x->ndim - 1]);
    const int64_t shape[] = {x->shape[0], channels / area_of(&g), g.size[1], g.size[2]};
    return kn_call_output(call, x->dtype, x->ndim + 1, shape + 3 - x->ndim);
}

static kn_status fold_forward(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    kn_fold_geometry g;
    KN_TRY(fold_geometry(&g, call->params, x->ndim, x->shape));
    return launch(call->stream, "fold", &g, call->inputs[0], call->outputs[0]);
}

static kn_status fold_backward(kn_grad_call *grad)
{
    kn_tensor *out = kn_grad_new(grad, 0);
    kn_fold_geometry g;
    if (!out)
        return kn_error_status();
    KN_TRY(fold_geometry(&g, grad->params, grad->input[0].ndim, grad->input[0].shape));
    return launch(grad->stream, "unfold", &g, grad->grad_outputs[0], out);
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

/* Every place of every window, as a pair of an element of the columns and one of the images. */
static void move(const kn_fold_geometry *g, const kn_tensor *from, kn_tensor *to, bool folds)
{
    const int64_t area = area_of(g), windows = windows_of(g);
    for (int64_t i = 0; i < g->planes * area * windows; i++) {
        const int64_t window = i % windows, place = i / windows % area, plane = i / windows / area;
        const int64_t row =
            window / g->windows[2] * g->stride[1] - g->padding[1] + place / g->kernel_size[2] * g->dilation[1];
        const int64_t column =
            window % g->windows[2] * g->stride[2] - g->padding[2] + place % g->kernel_size[2] * g->dilation[2];
        const int64_t at = (plane * g->size[1] + row) * g->size[2] + column;
        if (row < 0 || row >= g->size[1] || column < 0 || column >= g->size[2])
            continue;
        if (folds)
            kn_reference_set(to, at, kn_reference_get(to, at) + kn_reference_get(from, i));
        else
            kn_reference_set(to, i, kn_reference_get(from, at));
    }
}

static kn_status unfold_reference(const kn_call *call)
{
    kn_fold_geometry g;
    KN_TRY(unfold_geometry(&g, call->params, call->inputs[0]));
    move(&g, call->inputs[0], call->outputs[0], false);
    return KN_OK;
}

static kn_status fold_reference(const kn_call *call)
{
    kn_fold_geometry g;
    KN_TRY(fold_geometry(&g, call->params, call->inputs[0]->ndim, call->inputs[0]->shape));
    move(&g, call->inputs[0], call->outputs[0], true);
    return KN_OK;
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

static const kn_op_param rows[] = {KN_PARAM(kn_fold_args, output_size), KN_PARAM(kn_fold_args, kernel_size),
                                   KN_PARAM(kn_fold_args, dilation), KN_PARAM(kn_fold_args, padding),
                                   KN_PARAM(kn_fold_args, stride)};

#define FOLD_OP(op)                                                                                                    \
    {                                                                                                                  \
        .name = #op, .inputs = {"x"}, .dtypes = {KN_DTYPES_FLOATING}, .widens_halves = true,                           \
        .params = KN_PARAMS(kn_fold_args, rows, .dilation = {1, {1}}, .padding = {1, {0}}, .stride = {1, {1}}),        \
        .shape = op##_shape, .forward = op##_forward, .backward = op##_backward, KN_RECORDED_AS(op##_backward),        \
        .reference = op##_reference, .work = kn_work_memory_bound, .backward_work = kn_grad_work_memory_bound          \
    }
#define FOLD_BACKWARD_OP(op)                                                                                           \
    {                                                                                                                  \
        KN_LINEAR_BACKWARD_OP(op), .inputs = {"grad", "x"}, .outputs = {"grad_x"}, .widens_halves = true               \
    }
extern const kn_op kn_unfold_backward_op, kn_fold_backward_op;
const kn_op kn_unfold_op = FOLD_OP(unfold);
const kn_op kn_fold_op = FOLD_OP(fold);
const kn_op kn_unfold_backward_op = FOLD_BACKWARD_OP(unfold);
const kn_op kn_fold_backward_op = FOLD_BACKWARD_OP(fold);

kn_fold_params kn_fold_params_init(void) { return (kn_fold_params){KN_FOLD_DEFAULTS}; }

static kn_ints pair_of(int64_t both, const int64_t each[2])
{
    return each[0] != 0 || each[1] != 0 ? (kn_ints){2, {each[0], each[1]}} : (kn_ints){1, {both}};
}

kn_fold_args kn_fold_args_of(const kn_fold_params *params)
{
    params = params ? params : &(kn_fold_params){KN_FOLD_DEFAULTS};
    return (kn_fold_args){.kernel_size = pair_of(params->kernel_size, params->kernel_sizes),
                          .dilation = pair_of(params->dilation, params->dilations),
                          .padding = pair_of(params->padding, params->paddings),
                          .stride = pair_of(params->stride, params->strides)};
}

kn_tensor *kn_unfold_with(kn_tensor *x, const kn_fold_params *params)
{
    const kn_fold_args args = kn_fold_args_of(params);
    return kn_invoke(&kn_unfold_op, &args, x);
}

kn_tensor *kn_fold_with(kn_tensor *x, int64_t output_height, int64_t output_width, const kn_fold_params *params)
{
    kn_fold_args args = kn_fold_args_of(params);
    args.output_size = (kn_ints){2, {output_height, output_width}};
    return kn_invoke(&kn_fold_op, &args, x);
}
