/* ops/pool/pool.c - see pool.h. */
#include "ops/pool/pool.h"

#include <koine/conv.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/pool.h>
#include <koine/shape.h>
#include <limits.h>

#include "autograd/work.h"
#include "base/directions.h"
#include "base/text.h"
#include "ops/pointwise/activation.h"

/* --- the input ---------------------------------------------------------------------------------------------------- */

static kn_status set_input(kn_pool_geometry *g, int dims, int ndim, const int64_t *shape, const char *text)
{
    static const char *const sizes[3] = {"L", "H, W", "D, H, W"};
    const int64_t *size = shape + ndim - dims;
    double pixels = 1;

    if (ndim != dims + 1 && ndim != dims + 2)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C, %s] or [C, %s], got %s", sizes[dims - 1], sizes[dims - 1], text);
    *g = (kn_pool_geometry){.planes = kn_shape_numel(ndim - dims, shape), .size = {1, 1, 1}, .out_size = {1, 1, 1}};
    for (int i = 0; i < dims; i++) {
        pixels *= (double)size[i];
        if (size[i] > INT_MAX / 2 || pixels > INT_MAX)
            return kn_fail(KN_ERR_SHAPE, "images of more than 2^31 pixels are not supported: %s", text);
        g->size[kn_direction_of(dims, i)] = (int32_t)size[i];
    }
    return KN_OK;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

/* The parameters of one dimension. */
typedef struct window {
    int64_t kernel, stride, before, after, dilation;
} window;

/* floor or ceil of (size + padding - extent) / stride, plus 1; with ceil_mode the last window must start inside the
 * input or the leading padding. */
static int64_t output_size(int64_t size, const window *w, bool ceil_mode)
{
    const int64_t room = size + w->before + w->after - w->dilation * (w->kernel - 1) - 1;
    const int64_t rounded = room + (ceil_mode ? w->stride - 1 : 0);
    int64_t count;

    if (rounded < 0)
        return 0;
    count = rounded / w->stride + 1; /* NOLINT: check_window refuses strides of 0 */
    if (ceil_mode && (count - 1) * w->stride >= size + w->before)
        count--;
    return count;
}

static kn_status check_window(const window *w, const char *direction)
{
    if (w->kernel < 1 || w->stride < 1 || w->dilation < 1 || w->kernel > INT_MAX / 4 || w->stride > INT_MAX / 4 ||
        w->dilation > INT_MAX / 4 / w->kernel)
        return kn_fail(KN_ERR_ARGUMENT, "kernel_size %lld, stride %lld and dilation %lld (%s) must be 1 or more",
                       (long long)w->kernel, (long long)w->stride, (long long)w->dilation, direction);
    if (w->before < 0 || w->before > w->kernel / 2 || w->after < 0 || w->after > w->kernel / 2)
        return kn_fail(KN_ERR_ARGUMENT, "padding %lld and %lld (%s) must be from 0 to half the kernel size %lld",
                       (long long)w->before, (long long)w->after, direction, (long long)w->kernel);
    return KN_OK;
}

static kn_status set_direction(kn_pool_geometry *g, int d, const char *direction, const window *w, bool ceil_mode)
{
    int64_t count;

    KN_TRY(check_window(w, direction));
    count = output_size(g->size[d], w, ceil_mode);
    if (count < 1)
        return kn_fail(KN_ERR_SHAPE,
                       "a window of %s %lld (dilation %lld) does not fit into the input's %s %lld (padding %lld and "
                       "%lld)",
                       direction, (long long)w->kernel, (long long)w->dilation, direction, (long long)g->size[d],
                       (long long)w->before, (long long)w->after);
    g->kernel_size[d] = (int32_t)w->kernel;
    g->stride[d] = (int32_t)w->stride;
    g->padding[d] = (int32_t)w->before;
    g->dilation[d] = (int32_t)w->dilation;
    g->end[d] = (int32_t)(g->size[d] + w->after);
    g->out_size[d] = (int32_t)count;
    return KN_OK;
}

const kn_op_param kn_pool_rows[KN_POOL_ROWS] = {
    KN_PARAM(kn_pool_params, kernel_size),
    KN_PARAM(kn_pool_params, stride),
    KN_PARAM(kn_pool_params, padding),
    KN_PARAM(kn_pool_params, dilation),
    KN_PARAM(kn_pool_params, kernel_sizes),
    KN_PARAM(kn_pool_params, strides),
    KN_PARAM(kn_pool_params, paddings),
    KN_PARAM(kn_pool_params, dilations),
    KN_PARAM(kn_pool_params, paddings_after),
    KN_PARAM(kn_pool_params, ceil_mode),
    KN_PARAM(kn_pool_params, count_include_pad),
    KN_PARAM(kn_pool_params, divisor_override),
    KN_PARAM(kn_pool_params, activation, .values = kn_activation_names),
};

kn_pool_params kn_pool_params_init(void) { return (kn_pool_params){KN_POOL_DEFAULTS}; }

static kn_status set_windows(kn_pool_geometry *g, int dims, const kn_pool_params *params)
{
    int64_t kernel[3], stride[3], padding[3], dilation[3];

    g->count_include_pad = params->count_include_pad;
    g->divisor = params->divisor_override;
    kn_directions(kernel, dims, params->kernel_size, params->kernel_sizes, 1);
    kn_directions(stride, dims, params->stride, params->strides, 1);
    kn_directions(padding, dims, params->padding, params->paddings, 0);
    kn_directions(dilation, dims, params->dilation, params->dilations, 1);
    for (int d = 0; d < 3; d++) {
        const int64_t after = d < 3 - dims ? 0 : params->paddings_after[d - (3 - dims)];
        const window w = {.kernel = kernel[d],
                          .stride = stride[d] == 0 ? kernel[d] : stride[d],
                          .before = padding[d],
                          .after = after == KN_PADDING_SYMMETRIC ? padding[d] : after,
                          .dilation = dilation[d]};
        KN_TRY(set_direction(g, d, kn_direction_name(dims, d), &w, params->ceil_mode));
    }
    return KN_OK;
}

static kn_status set_output_size(kn_pool_geometry *g, int dims, const kn_adaptive_pool_args *params, const char *input)
{
    char text[KN_DESCRIBE];

    if (params->output_size.count != dims)
        return kn_fail(KN_ERR_ARGUMENT, "output_size has %d values; it needs %d", params->output_size.count, dims);
    for (int i = 0; i < dims; i++) {
        const int64_t given = params->output_size.values[i],
                      size = given == -1 ? g->size[kn_direction_of(dims, i)] : given;
        if (g->size[kn_direction_of(dims, i)] == 0)
            return kn_fail(KN_ERR_SHAPE, "the input's images are empty: %s", input);
        if (size < 1 || size > INT_MAX / 2)
            return kn_fail(KN_ERR_ARGUMENT, "the output size %s must be 1 or more, or -1 for the input's",
                           kn_format_shape(text, sizeof text, dims, params->output_size.values));
        g->out_size[kn_direction_of(dims, i)] = (int32_t)size;
    }
    return KN_OK;
}

kn_status kn_pool_resolve(kn_pool_geometry *g, const kn_pool_kind *kind, const void *params, int ndim,
                          const int64_t *shape)
{
    char input[KN_DESCRIBE];

    kn_format_shape(input, sizeof input, ndim, shape);
    KN_TRY(set_input(g, kind->dims, ndim, shape, input));
    return kind->adaptive ? set_output_size(g, kind->dims, params, input) : set_windows(g, kind->dims, params);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Windows of one slice are windows of images, one per plane; windows over all slices and rows are windows of stacked
 * images. Indices within a window and within a plane do not change. */
static void flatten(kn_pool_geometry *g, bool adaptive)
{
    if (!adaptive && g->kernel_size[0] == 1 && g->stride[0] == 1 && g->out_size[0] == g->size[0]) {
        g->planes *= g->size[0];
        g->size[0] = g->out_size[0] = g->end[0] = 1;
        g->padding[0] = 0;
    } else if (adaptive && g->out_size[0] == 1 && g->out_size[1] == 1) {
        g->size[1] *= g->size[0];
        g->size[0] = 1;
    }
}

/* Shapes that were checked do not fail. */
static kn_pool_geometry geometry_of(const kn_op *op, const void *params, int ndim, const int64_t *shape)
{
    kn_pool_geometry g = {0};
    (void)kn_pool_resolve(&g, op->detail, params, ndim, shape);
    flatten(&g, kn_pool_kind_of(op)->adaptive);
    return g;
}

kn_pool_geometry kn_pool_of_call(const kn_call *call)
{
    return geometry_of(call->op, call->params, call->inputs[0]->ndim, call->inputs[0]->shape);
}

kn_pool_geometry kn_pool_of_gradient(const kn_grad_call *grad)
{
    return geometry_of(grad->op, grad->params, grad->input[0].ndim, grad->input[0].shape);
}

kn_status kn_pool_shape(kn_call *call)
{
    const kn_pool_kind *kind = kn_pool_kind_of(call->op);
    const kn_tensor *x = call->inputs[0];
    const int first = x->ndim - kind->dims;
    kn_pool_geometry g;
    int64_t shape[KN_MAX_DIMS];

    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_pool_resolve(&g, kind, call->params, x->ndim, x->shape));
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d < first ? x->shape[d] : g.out_size[kn_direction_of(kind->dims, d - first)];
    KN_TRY(kn_call_output(call, x->dtype, x->ndim, shape));
    return kind->indices ? kn_call_output(call, KN_I64, x->ndim, shape) : KN_OK;
}

kn_tensor *kn_pool_with_indices(const kn_op *op, kn_tensor *x, const void *params, kn_tensor **indices)
{
    kn_tensor *outputs[2] = {NULL, NULL};
    const kn_status status = kn_op_invoke_to(op, &x, 1, params, outputs, indices ? 2 : 1);

    if (indices)
        *indices = status == KN_OK ? outputs[1] : NULL;
    return status == KN_OK ? outputs[0] : kn_error_make_sticky();
}

/* --- gradients of gradients of maxima ----------------------------------------------------------------------------- */

kn_status kn_pool_max_backward_recorded(kn_grad_call *grad, kn_tensor *indices, const void *params)
{
    kn_grad_call call = *grad;
    call.saved = &indices;
    call.num_saved = 1;
    return indices ? kn_backward_recorded_with(&call, grad->grad_outputs[0], params) : kn_error_status();
}

/* The elements of t [planes, volume] at these places [planes, outputs] of each plane, 0 at negative ones. */
static kn_tensor *take(kn_tensor *t, kn_tensor *places)
{
    kn_device *device = kn_device_of(t);
    kn_tensor *zero = kn_zeros_with(0, NULL, &(kn_tensor_options){.dtype = KN_I64, .device = device});
    kn_tensor *nothing = kn_zeros_with(0, NULL, &(kn_tensor_options){.dtype = t->dtype, .device = device});
    return kn_where(kn_ge(places, zero), kn_gather(t, 1, kn_maximum(places, zero)), nothing);
}

kn_status kn_pool_max_backward_backward(kn_grad_call *grad)
{
    const kn_input_spec *gradient = &grad->input[0], *x = &grad->input[1];
    const int before = gradient->ndim - kn_pool_kind_of(grad->op->backward_of)->dims;
    const int64_t planes = kn_shape_numel(before, x->shape),
                  volume = kn_shape_numel(x->ndim - before, x->shape + before),
                  outputs = kn_shape_numel(gradient->ndim - before, gradient->shape + before);
    if (!grad->needs[0])
        return KN_OK;
    kn_tensor *places = kn_reshape(grad->saved[2], 2, (const int64_t[]){planes, outputs});
    kn_tensor *t = kn_reshape(grad->grad_outputs[0], 2, (const int64_t[]){planes, volume});
    if (!places || !t)
        return kn_error_status();
    grad->grad_inputs[0] = kn_reshape(take(t, places), gradient->ndim, gradient->shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* --- work --------------------------------------------------------------------------------------------------------- */

static double product_of(const int32_t size[3]) { return (double)size[0] * (double)size[1] * (double)size[2]; }

static double window_elements(const kn_pool_geometry *g)
{
    const double outputs = product_of(g->out_size);
    if (g->kernel_size[2] > 0)
        return product_of(g->kernel_size);
    return outputs > 0 ? product_of(g->size) / outputs : 0;
}

kn_span_work kn_pool_work(const kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call);
    return kn_work_of_outputs(call, window_elements(&g));
}

kn_span_work kn_pool_average_backward_work(const kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad);
    return kn_grad_work(grad, (double)kn_numel(grad->grad_outputs[0]) * window_elements(&g));
}

kn_span_work kn_pool_max_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, (double)kn_numel(grad->grad_outputs[0]));
}
