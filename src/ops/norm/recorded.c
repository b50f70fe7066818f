/* ops/norm/recorded.c - gradients of the normalisations: allocated, and as recorded operations, for gradients of
 * gradients. */
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/norm/norm.h"
#include "ops/pointwise/activation.h"
#include "ops/shape/broadcast.h"

/* (x - mean) r with r = 1 / sqrt(variance + eps), of the elements along some dimensions. */
typedef struct normalised {
    kn_tensor *x_hat, *r;
} normalised;

static normalised normalise(kn_tensor *x, const int *dims, int count, double eps)
{
    kn_tensor *d = kn_sub(x, kn_mean_dims(x, dims, count, true));
    kn_tensor *variance = kn_mean_dims(kn_mul(d, d), dims, count, true);
    kn_tensor *r = kn_pow_scalar(kn_add_scalar(variance, eps), -0.5);
    return (normalised){kn_mul(d, r), r};
}

/* dx = r (g - mean g - x_hat mean(g x_hat)), of the gradient g of x_hat. */
static kn_tensor *gradient_of_x(normalised n, kn_tensor *g, const int *dims, int count)
{
    kn_tensor *slope = kn_mul(n.x_hat, kn_mean_dims(kn_mul(g, n.x_hat), dims, count, true));
    return kn_mul(n.r, kn_sub(kn_sub(g, kn_mean_dims(g, dims, count, true)), slope));
}

static kn_tensor *times(kn_tensor *g, kn_tensor *weight) { return weight ? kn_mul(g, weight) : g; }

enum { X, WEIGHT, BIAS, INPUTS };

kn_status kn_norm_new_gradients(kn_grad_call *grad)
{
    for (int i = X; i < INPUTS && i < grad->num_inputs; i++) {
        if (!grad->needs[i])
            continue;
        if (!kn_grad_new(grad, i))
            return kn_error_status();
        if (kn_numel(grad->saved[0]) == 0) /* sums of nothing */
            KN_TRY(kn_tensor_fill(grad->grad_inputs[i], 0));
    }
    return KN_OK;
}

static kn_status check_made(const kn_grad_call *grad)
{
    for (int i = X; i < INPUTS && i < grad->num_inputs; i++)
        if (grad->needs[i] && !grad->grad_inputs[i])
            return kn_error_status();
    return KN_OK;
}

kn_status kn_layer_norm_backward_recorded(kn_grad_call *grad)
{
    const kn_layer_norm_args *params = grad->params;
    const kn_input_spec *in = grad->input;
    kn_tensor *x = kn_grad_saved_input(grad, X, X), *weight = kn_grad_saved_input(grad, 2, WEIGHT);
    kn_tensor *g = grad->grad_outputs[0];
    int dims[KN_MAX_DIMS];

    if (kn_shape_numel(in[X].ndim, in[X].shape) == 0)
        return grad->op->backward(grad);
    for (int i = 0; i < params->shape.count; i++)
        dims[i] = in[X].ndim - params->shape.count + i;
    const normalised n = normalise(x, dims, params->shape.count, params->eps);
    if (grad->needs[X])
        grad->grad_inputs[X] = gradient_of_x(n, times(g, weight), dims, params->shape.count);
    if (grad->needs[WEIGHT])
        grad->grad_inputs[WEIGHT] = kn_sum_to_shape(kn_mul(g, n.x_hat), in[WEIGHT].ndim, in[WEIGHT].shape);
    if (grad->needs[BIAS])
        grad->grad_inputs[BIAS] = kn_sum_to_shape(g, in[BIAS].ndim, in[BIAS].shape);
    return check_made(grad);
}

/* dx = r (d - x_hat mean(d x_hat)) with x_hat = x r, r = 1 / sqrt(mean(x^2) + eps) and d = g weight. */
kn_status kn_rms_norm_backward_recorded(kn_grad_call *grad)
{
    const kn_layer_norm_args *params = grad->params;
    const kn_input_spec *in = grad->input;
    const int count = params->shape.count;
    kn_tensor *x = kn_grad_saved_input(grad, X, X), *weight = kn_grad_saved_input(grad, 2, WEIGHT);
    kn_tensor *g = grad->grad_outputs[0];
    int dims[KN_MAX_DIMS];

    if (kn_shape_numel(in[X].ndim, in[X].shape) == 0)
        return grad->op->backward(grad);
    for (int i = 0; i < count; i++)
        dims[i] = in[X].ndim - count + i;
    kn_tensor *r = kn_rsqrt(kn_add_scalar(kn_mean_dims(kn_square(x), dims, count, true), params->eps));
    kn_tensor *x_hat = kn_mul(x, r), *d = times(g, weight);
    if (grad->needs[X])
        grad->grad_inputs[X] = kn_mul(r, kn_sub(d, kn_mul(x_hat, kn_mean_dims(kn_mul(d, x_hat), dims, count, true))));
    if (grad->needs[WEIGHT])
        grad->grad_inputs[WEIGHT] = kn_sum_to_shape(kn_mul(g, x_hat), in[WEIGHT].ndim, in[WEIGHT].shape);
    return check_made(grad);
}

/* --- group normalisation ------------------------------------------------------------------------------------------ */

/* x [N, C, ...] as [N, groups, C / groups, rest], and one number per channel beside it. */
static kn_tensor *in_groups(kn_tensor *x, int64_t groups)
{
    const int64_t channels = x->shape[1];
    const int64_t shape[] = {x->shape[0], groups, channels / groups, kn_numel(x) / (x->shape[0] * channels)};
    return kn_reshape(x, 4, shape);
}

static kn_tensor *beside_groups(kn_tensor *t, int64_t groups)
{
    const int64_t shape[] = {groups, t ? kn_numel(t) / groups : 0, 1};
    return t ? kn_reshape(t, 3, shape) : NULL;
}

kn_status kn_group_norm_backward_recorded(kn_grad_call *grad)
{
    const kn_group_norm_args *params = grad->params;
    const kn_input_spec *in = grad->input;
    const int of_group[] = {2, 3}, of_channel[] = {0, 3};

    if (kn_shape_numel(in[X].ndim, in[X].shape) == 0)
        return grad->op->backward(grad);
    kn_tensor *x = in_groups(kn_grad_saved_input(grad, X, X), params->num_groups);
    kn_tensor *weight = beside_groups(kn_grad_saved_input(grad, 2, WEIGHT), params->num_groups);
    kn_tensor *g = in_groups(grad->grad_outputs[0], params->num_groups);
    if (!x || !g)
        return kn_error_status();
    const normalised n = normalise(x, of_group, 2, params->eps);
    if (grad->needs[X])
        grad->grad_inputs[X] = kn_reshape(gradient_of_x(n, times(g, weight), of_group, 2), in[X].ndim, in[X].shape);
    if (grad->needs[WEIGHT])
        grad->grad_inputs[WEIGHT] =
            kn_reshape(kn_sum_dims(kn_mul(g, n.x_hat), of_channel, 2, false), 1, in[WEIGHT].shape);
    if (grad->needs[BIAS])
        grad->grad_inputs[BIAS] = kn_reshape(kn_sum_dims(g, of_channel, 2, false), 1, in[BIAS].shape);
    return check_made(grad);
}

/* --- batch normalisation ------------------------------------------------------------------------------------------ */

/* One number per channel, shaped to broadcast with x; NULL in, NULL out. */
static kn_tensor *of_channels(kn_tensor *t, int ndim)
{
    int64_t shape[KN_MAX_DIMS] = {t ? kn_numel(t) : 0};
    for (int d = 1; d < ndim - 1; d++)
        shape[d] = 1;
    return t ? kn_reshape(t, ndim - 1, shape) : NULL;
}

/* With the running estimates, which are constants: the saved mean (in two parts) and r. */
static normalised normalise_by(kn_tensor *x, kn_tensor *table)
{
    kn_tensor *mean = kn_add(kn_select(table, 1, 0), kn_select(table, 1, 1));
    kn_tensor *r = of_channels(kn_contiguous(kn_select(table, 1, 2)), x->ndim);
    return (normalised){kn_mul(kn_sub(x, of_channels(mean, x->ndim)), r), r};
}

kn_status kn_batch_norm_backward_recorded(kn_grad_call *grad)
{
    const kn_batch_norm_op_params *params = grad->params;
    const kn_input_spec *in = grad->input;
    const int ndim = in[X].ndim;
    const kn_dtype compute = kn_compute_type(in[X].dtype);
    kn_tensor *x = kn_to_dtype(kn_grad_saved_input(grad, 0, X), compute);
    kn_tensor *weight = of_channels(kn_grad_saved_input(grad, 2, WEIGHT), ndim);
    kn_tensor *bias = of_channels(kn_grad_saved_input(grad, 3, BIAS), ndim);
    kn_tensor *g = kn_to_dtype(grad->grad_outputs[0], compute);
    int dims[KN_MAX_DIMS] = {0};

    if (kn_shape_numel(ndim, in[X].shape) == 0)
        return grad->op->backward(grad);
    for (int i = 1; i < ndim - 1; i++)
        dims[i] = i + 1;
    const normalised n = params->training ? normalise(x, dims, ndim - 1, params->eps) : normalise_by(x, grad->saved[1]);
    if (params->activation != KN_ACTIVATION_NONE) {
        kn_tensor *y = times(n.x_hat, weight);
        g = kn_activation_gradient_recorded(g, params->activation, bias ? kn_add(y, bias) : y);
    }
    if (grad->needs[X])
        grad->grad_inputs[X] = kn_to_dtype(params->training ? gradient_of_x(n, times(g, weight), dims, ndim - 1)
                                                            : kn_mul(times(g, weight), n.r),
                                           in[X].dtype);
    if (grad->needs[WEIGHT])
        grad->grad_inputs[WEIGHT] = kn_sum_dims(kn_mul(g, n.x_hat), dims, ndim - 1, false);
    if (grad->needs[BIAS])
        grad->grad_inputs[BIAS] = kn_sum_dims(g, dims, ndim - 1, false);
    return check_made(grad);
}
