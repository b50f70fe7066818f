/* ops/conv/conv2d.c - torch.nn.functional.conv2d: shape rule, forward, backward, plain C reference. The implementations
 * are in conv2d_choice.c. */
#include "ops/conv/conv2d.h"

#include <koine/functional.h>
#include <koine/ops.h>
#include <string.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/activation.h"

/* --- shape rule --------------------------------------------------------------------------------------------------- */

typedef struct described {
    char x[KN_DESCRIBE], weight[KN_DESCRIBE];
} described;

static described describe(int x_ndim, const int64_t *x, const int64_t *weight)
{
    described d;
    kn_format_shape(d.x, sizeof d.x, x_ndim, x);
    kn_format_shape(d.weight, sizeof d.weight, 4, weight);
    return d;
}

/* {height, width} from the plain field and the one by direction. */
static void choose_pair(int64_t pair[2], int64_t both, const int64_t by_direction[2])
{
    bool given = by_direction[0] != 0 || by_direction[1] != 0;
    pair[0] = given ? by_direction[0] : both;
    pair[1] = given ? by_direction[1] : both;
}

static kn_status check_params(const kn_conv2d_shape *s)
{
    for (int d = 0; d < 2; d++) {
        const char *direction = d == 0 ? "height" : "width";
        if (s->stride[d] < 1 || s->dilation[d] < 1)
            return kn_fail(KN_ERR_ARGUMENT, "stride and dilation must be at least 1, not %lld and %lld (%s)",
                           (long long)s->stride[d], (long long)s->dilation[d], direction);
        if (s->padding[d] < 0 && s->padding[d] != KN_PADDING_SAME)
            return kn_fail(KN_ERR_ARGUMENT, "padding must be 0, more, or KN_PADDING_SAME, not %lld (%s)",
                           (long long)s->padding[d], direction);
        if (s->padding[d] == KN_PADDING_SAME && s->stride[d] != 1)
            return kn_fail(KN_ERR_ARGUMENT, "KN_PADDING_SAME takes stride 1, not %lld (%s)", (long long)s->stride[d],
                           direction);
    }
    return KN_OK;
}

static kn_status check_channels(const kn_conv2d_shape *s, const described *d, const int64_t *weight)
{
    if (s->groups < 1)
        return kn_fail(KN_ERR_ARGUMENT, "groups must be at least 1, not %lld", (long long)s->groups);
    if (s->out_channels < 1 || s->kernel_size[0] < 1 || s->kernel_size[1] < 1)
        return kn_fail(KN_ERR_SHAPE, "the weight %s has an empty dimension", d->weight);
    if (s->out_channels % s->groups != 0)
        return kn_fail(KN_ERR_SHAPE, "the weight %s has %lld output channels, which %lld groups do not divide",
                       d->weight, (long long)s->out_channels, (long long)s->groups);
    if (s->in_channels != weight[1] * s->groups)
        return kn_fail(
            KN_ERR_SHAPE, "the weight %s with %lld group(s) takes %lld input channels, but the input %s has %lld",
            d->weight, (long long)s->groups, (long long)(weight[1] * s->groups), d->x, (long long)s->in_channels);
    return KN_OK;
}

/* The output's size: floor((size + padding - dilation (kernel - 1) - 1) / stride) + 1. 'same' pads dilation (kernel -
 * 1), the odd one at the end. */
static kn_status choose_out_size(kn_conv2d_shape *s, const described *text)
{
    for (int d = 0; d < 2; d++) {
        int64_t reach = s->dilation[d] * (s->kernel_size[d] - 1);
        int64_t total = s->padding[d] == KN_PADDING_SAME ? reach : 2 * s->padding[d];
        if (s->padding[d] == KN_PADDING_SAME)
            s->padding[d] = reach / 2;
        if (s->in_size[d] + total < reach + 1)
            return kn_fail(KN_ERR_SHAPE,
                           "the kernel of the weight %s reaches over %lld, more than the %s of the input %s with its "
                           "padding, %lld",
                           text->weight, (long long)reach + 1, d == 0 ? "height" : "width", text->x,
                           (long long)(s->in_size[d] + total));
        s->out_size[d] = (s->in_size[d] + total - reach - 1) / s->stride[d] + 1;
    }
    return KN_OK;
}

/* All that the passes need to know, from the parameters and the inputs' shapes. */
static kn_status resolve(kn_conv2d_shape *s, const kn_conv2d_params *params, kn_dtype dtype, int x_ndim,
                         const int64_t *x, const int64_t *weight)
{
    described d = describe(x_ndim, x, weight);
    const int64_t *plane = x + x_ndim - 2;
    *s = (kn_conv2d_shape){.f64 = dtype == KN_F64,
                           .images = x_ndim == 4 ? x[0] : 1,
                           .in_channels = plane[-1],
                           .in_size = {plane[0], plane[1]},
                           .out_channels = weight[0],
                           .kernel_size = {weight[2], weight[3]},
                           .groups = params->groups};
    choose_pair(s->stride, params->stride, params->stride_2d);
    choose_pair(s->padding, params->padding, params->padding_2d);
    choose_pair(s->dilation, params->dilation, params->dilation_2d);
    KN_TRY(check_params(s));
    KN_TRY(check_channels(s, &d, weight));
    return choose_out_size(s, &d);
}

static kn_status check_ranks(const kn_call *call)
{
    char shape[KN_DESCRIBE];
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1];
    if (x->ndim != 3 && x->ndim != 4)
        return kn_fail(KN_ERR_SHAPE, "the input must be [N, C, H, W] or [C, H, W], not %s",
                       kn_format_shape(shape, sizeof shape, x->ndim, x->shape));
    if (weight->ndim != 4)
        return kn_fail(KN_ERR_SHAPE, "the weight must be [K, C / groups, R, S], not %s",
                       kn_format_shape(shape, sizeof shape, weight->ndim, weight->shape));
    return KN_OK;
}

static kn_activation activation_of(const kn_conv2d_params *params) { return params->activation; }

static kn_status conv2d_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1],
                    *bias = call->num_inputs > 2 ? call->inputs[2] : NULL;
    kn_conv2d_shape s;
    KN_TRY(kn_call_check_same_dtype(call, 0, 2));
    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_activation_check(activation_of(call->params)));
    KN_TRY(check_ranks(call));
    KN_TRY(resolve(&s, call->params, x->dtype, x->ndim, x->shape, weight->shape));
    if (bias && (bias->ndim != 1 || bias->shape[0] != s.out_channels)) {
        described d = describe(x->ndim, x->shape, weight->shape);
        char shape[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "the bias must be [%lld] for the weight %s, not %s", (long long)s.out_channels,
                       d.weight, kn_format_shape(shape, sizeof shape, bias->ndim, bias->shape));
    }
    int64_t shape[4] = {s.images, s.out_channels, s.out_size[0], s.out_size[1]};
    return kn_call_output(call, x->dtype, x->ndim, shape + 4 - x->ndim);
}

/* --- work --------------------------------------------------------------------------------------------------------- */

/* Each output takes a multiplication and an addition per tap of its group, as if padding were data; so does each of the
 * two gradients. */
static double taps_of(const int64_t *weight) { return (double)weight[1] * (double)weight[2] * (double)weight[3]; }

static kn_work conv2d_work(const kn_call *call)
{
    bool bias = call->num_inputs > 2 && call->inputs[2], activation = activation_of(call->params);
    return kn_work_of_products(call, taps_of(call->inputs[1]->shape), bias + activation);
}

static kn_work conv2d_backward_work(const kn_grad_call *grad)
{
    double outputs = (double)kn_numel(grad->grad_outputs[0]), taps = taps_of(grad->input[1].shape);
    bool bias = grad->num_inputs > 2 && grad->needs[2], activation = activation_of(grad->params);
    return kn_grad_work(grad, outputs * (2 * taps * (grad->needs[0] + grad->needs[1]) + bias + activation));
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* No tensor (no bias) is an empty operand. */
static kn_conv2d_operand operand(const kn_tensor *t)
{
    return t ? (kn_conv2d_operand){t->storage->buffer, t->offset} : (kn_conv2d_operand){0};
}

static void release_all(kn_tensor **tensors, int count)
{
    for (int i = 0; i < count; i++)
        kn_release(tensors[i]);
}

/* With an activation the output too, which tells where it cut off. */
static kn_status save(kn_call *call)
{
    for (int i = 0; i < 2; i++)
        KN_TRY(kn_call_save(call, call->inputs[i]));
    return activation_of(call->params) != KN_ACTIVATION_NONE ? kn_call_save(call, call->outputs[0]) : KN_OK;
}

static kn_status conv2d_forward(kn_call *call)
{
    kn_tensor *inputs[3] = {NULL, NULL, NULL}; /* contiguous */
    kn_conv2d_problem problem = {.y = operand(call->outputs[0]), .activation = activation_of(call->params)};
    kn_status status = resolve(&problem.shape, call->params, call->inputs[0]->dtype, call->inputs[0]->ndim,
                               call->inputs[0]->shape, call->inputs[1]->shape);
    for (int i = 0; status == KN_OK && i < call->num_inputs && i < 3; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&inputs[i], call->inputs[i]);
    if (status == KN_OK && kn_numel(call->outputs[0]) > 0) {
        problem.x = operand(inputs[0]);
        problem.weight = operand(inputs[1]);
        problem.bias = operand(inputs[2]);
        status = kn_conv2d_run_forward(call->stream, &problem);
    }
    release_all(inputs, 3);
    return status == KN_OK && call->needs_grad ? save(call) : status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status new_gradient(kn_grad_call *grad, int index, kn_conv2d_operand *target)
{
    kn_tensor *gradient = NULL;
    KN_TRY(kn_tensor_new(&gradient, grad->input[index].dtype, grad->input[index].ndim, grad->input[index].shape,
                         kn_stream_device(grad->stream)));
    grad->grad_inputs[index] = kn_scope_adopt(gradient);
    if (!grad->grad_inputs[index])
        return kn_error_status();
    *target = operand(gradient);
    return KN_OK;
}

static kn_status backward_data(kn_grad_call *grad, kn_conv2d_problem problem)
{
    KN_TRY(new_gradient(grad, 0, &problem.x));
    return kn_numel(grad->grad_inputs[0]) > 0 ? kn_conv2d_run_backward_data(grad->stream, &problem) : KN_OK;
}

static kn_status backward_weights(kn_grad_call *grad, kn_conv2d_problem problem)
{
    const bool bias = grad->num_inputs > 2 && grad->needs[2];
    if (bias)
        KN_TRY(new_gradient(grad, 2, &problem.bias));
    if (!grad->needs[1])
        return kn_conv2d_bias_gradient(grad->stream, &problem);
    KN_TRY(new_gradient(grad, 1, &problem.weight));
    if (problem.shape.images > 0 && problem.shape.in_channels > 0)
        return kn_conv2d_run_backward_weights(grad->stream, &problem);
    KN_TRY(kn_tensor_fill(grad->grad_inputs[1], 0)); /* the sum over nothing */
    return bias ? kn_conv2d_bias_gradient(grad->stream, &problem) : KN_OK;
}

static kn_status conv2d_backward(kn_grad_call *grad)
{
    kn_tensor *inputs[2] = {NULL, NULL}; /* contiguous */
    kn_tensor *gradient = kn_activation_gradient(grad, activation_of(grad->params), grad->saved[2]);
    if (!gradient)
        return kn_error_status();
    kn_conv2d_problem problem = {.y = operand(gradient)};
    kn_status status = resolve(&problem.shape, grad->params, grad->input[0].dtype, grad->input[0].ndim,
                               grad->input[0].shape, grad->input[1].shape);
    for (int i = 0; status == KN_OK && i < 2; i++)
        status = kn_tensor_contiguous(&inputs[i], grad->saved[i]);
    if (status == KN_OK) {
        problem.x = operand(inputs[0]);
        problem.weight = operand(inputs[1]);
    }
    if (status == KN_OK && grad->needs[0])
        status = backward_data(grad, problem);
    if (status == KN_OK && (grad->needs[1] || (grad->num_inputs > 2 && grad->needs[2])))
        status = backward_weights(grad, problem);
    release_all(inputs, 2);
    return status;
}

/* --- the plain C reference ---------------------------------------------------------------------------------------- */

static double reference_pixel(const kn_conv2d_shape *s, const kn_tensor *x, const kn_tensor *weight, int64_t n,
                              int64_t k, int64_t p, int64_t q)
{
    int64_t inner = s->in_channels / s->groups, first = k / (s->out_channels / s->groups) * inner;
    double sum = 0;
    for (int64_t c = 0; c < inner; c++)
        for (int64_t r = 0; r < s->kernel_size[0]; r++)
            for (int64_t t = 0; t < s->kernel_size[1]; t++) {
                int64_t row = p * s->stride[0] - s->padding[0] + r * s->dilation[0],
                        column = q * s->stride[1] - s->padding[1] + t * s->dilation[1];
                if (row >= 0 && row < s->in_size[0] && column >= 0 && column < s->in_size[1])
                    sum += kn_reference_get(
                               x, ((n * s->in_channels + first + c) * s->in_size[0] + row) * s->in_size[1] + column) *
                           kn_reference_get(weight, ((k * inner + c) * s->kernel_size[0] + r) * s->kernel_size[1] + t);
            }
    return sum;
}

static kn_status conv2d_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1],
                    *bias = call->num_inputs > 2 ? call->inputs[2] : NULL;
    kn_tensor *y = call->outputs[0];
    kn_conv2d_shape s;
    KN_TRY(resolve(&s, call->params, KN_F64, x->ndim, x->shape, weight->shape));
    int64_t i = 0;
    for (int64_t n = 0; n < s.images; n++)
        for (int64_t k = 0; k < s.out_channels; k++)
            for (int64_t p = 0; p < s.out_size[0]; p++)
                for (int64_t q = 0; q < s.out_size[1]; q++, i++) {
                    double value = reference_pixel(&s, x, weight, n, k, p, q);
                    value += bias ? kn_reference_get(bias, k) : 0;
                    kn_reference_set(y, i, kn_cut_off(kn_cut_of(activation_of(call->params)), value));
                }
    return KN_OK;
}

const kn_op kn_conv2d_op = {
    .name = "conv2d",
    .inputs = {"x", "weight", "?bias"},
    .record_size = sizeof(kn_conv2d_params),
    .shape = conv2d_shape,
    .forward = conv2d_forward,
    .backward = conv2d_backward,
    .reference = conv2d_reference,
    .work = conv2d_work,
    .backward_work = conv2d_backward_work,
};

kn_conv2d_params kn_conv2d_params_init(void) { return (kn_conv2d_params){KN_CONV2D_DEFAULTS}; }

kn_tensor *kn_conv2d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv2d_params *params)
{
    params = params ? params : &(kn_conv2d_params){KN_CONV2D_DEFAULTS};
    kn_tensor *inputs[3] = {x, weight, bias};
    bool halves = true;
    for (int i = 0; i < 3; i++)
        halves = halves && (!inputs[i] || inputs[i]->dtype == KN_F16);
    if (halves)
        return kn_apply_as(&kn_conv2d_op, inputs, 3, params, KN_F32, KN_F16);
    return kn_op_apply(&kn_conv2d_op, inputs, 3, params, NULL);
}
