/* ops/loss/recorded.c - gradients of the losses of class indices as recorded operations, for gradients of gradients.
 *
 * The loss of a row is - sum over c of q[c] log p[c], where q follows from the target and the class weights, and log p
 * is the log-softmax of logits, or the input itself. Its gradient is p sum(q) - q for logits and -q for
 * log-probabilities. */
#include <koine/loss.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/loss/class_loss.h"

/* The input [N, C, ...] or [C]; dim is that of the classes. */
typedef struct problem {
    const kn_class_loss_params *params;
    const kn_input_spec *input;
    int dim;
    int64_t classes;
} problem;

/* One number per class, or 0 .. C - 1, shaped to broadcast with the input. */
static kn_tensor *of_classes(const problem *p, kn_tensor *t)
{
    int64_t shape[KN_MAX_DIMS] = {p->classes};
    const int ndim = p->input->ndim - p->dim;
    for (int d = 1; d < ndim; d++)
        shape[d] = 1;
    return kn_reshape(t, ndim, shape);
}

static kn_tensor *number(const problem *p, double value, kn_dtype dtype)
{
    return kn_full_with(0, NULL, kn_scalar_real(value),
                        &(kn_tensor_options){.dtype = dtype, .device = p->input->device});
}

/* The sum of the rows' weights, 1 if all are ignored, whose gradient is 0 and not 0 / 0; and q. */
typedef struct target_weights {
    kn_tensor *sum, *q;
} target_weights;

static target_weights weigh(const problem *p, kn_tensor *target, kn_tensor *weight)
{
    const kn_tensor_options whole = {.dtype = KN_I64, .device = p->input->device};
    const kn_dtype dtype = p->input->dtype;
    const double smoothing = p->params->label_smoothing;
    kn_tensor *of_class = weight ? weight : kn_reshape(number(p, 1, dtype), 1, (const int64_t[]){1});
    of_class = of_classes(p, kn_expand(of_class, 1, &p->classes));
    target = kn_unsqueeze(kn_to_dtype(target, KN_I64), p->dim);
    kn_tensor *taken =
        kn_to_dtype(kn_ne(target, kn_full_with(0, NULL, kn_scalar_int(p->params->ignore_index), &whole)), dtype);
    kn_tensor *hot = kn_eq(target, of_classes(p, kn_arange_with(0, (double)p->classes, 1, &whole)));
    kn_tensor *picked = kn_mul(kn_where(hot, of_class, number(p, 0, dtype)), taken);
    kn_tensor *q = kn_mul_scalar(picked, 1 - smoothing);
    if (smoothing != 0)
        q = kn_add(q, kn_mul(kn_mul_scalar(of_class, smoothing / (double)p->classes), taken));
    kn_tensor *none = kn_to_dtype(kn_eq(kn_sum(taken), number(p, 0, dtype)), dtype);
    return (target_weights){kn_add(kn_sum(picked), none), q};
}

kn_status kn_class_loss_backward_recorded(kn_grad_call *grad)
{
    const kn_class_loss_params *params = grad->params;
    const kn_input_spec *input = &grad->input[0];
    const int dim = input->ndim == 1 ? 0 : 1;
    const problem p = {.params = params, .input = input, .dim = dim, .classes = input->shape[dim]};
    kn_tensor *g = grad->grad_outputs[0], *x = kn_grad_saved_input(grad, 0, 0);
    const target_weights w = weigh(&p, grad->saved[1], grad->saved[4]);

    if (kn_shape_numel(input->ndim, input->shape) == 0)
        return grad->op->backward(grad);
    if (params->reduction == KN_REDUCTION_NONE)
        g = kn_unsqueeze(g, dim);
    else if (params->reduction == KN_REDUCTION_MEAN)
        g = kn_div(g, w.sum);
    kn_tensor *slope = kn_neg(w.q);
    if (params->logits)
        slope = kn_add(slope, kn_mul(kn_softmax(x, dim), kn_sum_dims(w.q, &dim, 1, true)));
    grad->grad_inputs[0] = kn_mul(g, slope);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}
