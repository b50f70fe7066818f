/* ops/conv/conv.c - torch.nn.functional.conv1d to conv3d and conv_transpose1d to conv_transpose3d: forward and
 * backward. The shape rule is in shape.c, the plain C reference in reference.c, the choice between implementations in
 * implementations.c.
 *
 * A transposed convolution is the backward-data pass of a convolution: its input is that convolution's y, its output
 * the x. So its own backward-data pass is the convolution itself, and its backward-weights pass is the same one. */
#include "ops/conv/common/conv.h"

#include <koine/conv.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/pointwise/activation.h"

static const kn_conv_params *params_of(const kn_call *call) { return call->params; }
static bool is_transposed(const kn_op *op) { return ((const kn_conv_kind *)op->detail)->transposed; }

/* --- work --------------------------------------------------------------------------------------------------------- */

/* One multiply-add per element of y and tap of its group, counting padding; the same for each of the two gradients.
 * `input` and `output` are the op's element counts. */
static double products(const kn_op *op, double input, double output, const int64_t *weight)
{
    double taps = 1;
    for (int i = 1; i < ((const kn_conv_kind *)op->detail)->dims + 2; i++)
        taps *= (double)weight[i];
    return taps * (is_transposed(op) ? input : output);
}

static kn_span_work conv_work(const kn_call *call)
{
    const bool bias = call->num_inputs > 2 && call->inputs[2], activation = params_of(call)->activation;
    const double outputs = (double)kn_numel(call->outputs[0]);
    const double all = products(call->op, (double)kn_numel(call->inputs[0]), outputs, call->inputs[1]->shape);
    return kn_work_of_products(call, outputs > 0 ? all / outputs : 0, bias + activation);
}

static kn_span_work conv_backward_work(const kn_grad_call *grad)
{
    const kn_conv_params *params = grad->params;
    const bool bias = grad->num_inputs > 2 && grad->needs[2], activation = params->activation;
    const double outputs = (double)kn_numel(grad->grad_outputs[0]);
    const double inputs = (double)kn_shape_numel(grad->input[0].ndim, grad->input[0].shape);
    const double all = products(grad->op, inputs, outputs, grad->input[1].shape);
    return kn_grad_work(grad, 2 * all * (grad->needs[0] + grad->needs[1]) + outputs * (bias + activation));
}

/* --- the problem -------------------------------------------------------------------------------------------------- */

/* NULL (no bias) gives an empty operand. */
static kn_conv_operand operand(const kn_tensor *t)
{
    return t ? (kn_conv_operand){t->storage->buffer, t->offset} : (kn_conv_operand){0};
}

static void release_all(kn_tensor **tensors, int count)
{
    for (int i = 0; i < count; i++)
        kn_release(tensors[i]);
}

/* Does each position along the dimension read itself alone? */
static bool is_pointwise_along(const kn_conv_shape *s, int d)
{
    return s->kernel_size[d] == 1 && s->stride[d] == 1 && s->padding[d] == 0 && s->in_size[d] == s->out_size[d];
}

/* One dimension less for volumes whose taps each read a single position along two adjacent dimensions: their slices
 * stacked, or each slice as a row. */
static void flatten(kn_conv_shape *s)
{
    int64_t *const all[] = {s->in_size, s->out_size, s->kernel_size, s->stride, s->padding, s->dilation};
    const bool stacked = is_pointwise_along(s, 0) && is_pointwise_along(s, 1);
    const bool in_rows = is_pointwise_along(s, 1) && is_pointwise_along(s, 2) && s->in_size[0] > 1;
    if (!stacked && !in_rows)
        return;
    const int d = stacked ? 0 : 1;
    for (int i = 0; i < 6; i++) {
        all[i][d + 1] *= i < 2 ? all[i][d] : 1;
        if (!stacked)
            all[i][1] = all[i][0];
        all[i][0] = i != 4;
    }
}

/* The op's input in the problem, or its output. */
static kn_conv_operand *operand_of(kn_conv_problem *problem, const kn_op *op, bool output)
{
    return output == is_transposed(op) ? &problem->x : &problem->y;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* With an activation, also saves the output, which tells where it was clamped. */
static kn_status save(kn_call *call)
{
    for (int i = 0; i < 2; i++)
        KN_TRY(kn_call_save(call, call->inputs[i]));
    return params_of(call)->activation != KN_ACTIVATION_NONE ? kn_call_save(call, call->outputs[0]) : KN_OK;
}

static kn_status run_transposed(kn_stream *stream, const kn_conv_problem *problem)
{
    kn_conv_problem sums = *problem;
    sums.pass = KN_CONV_DATA;
    sums.bias = (kn_conv_operand){0};
    sums.activation = KN_ACTIVATION_NONE;
    KN_TRY(kn_conv_run(stream, &sums));
    return kn_conv_finish(stream, problem, problem->x, problem->shape.in_channels,
                          kn_conv_volume(problem->shape.in_size));
}

static kn_status conv_forward(kn_call *call)
{
    kn_tensor *inputs[3] = {NULL, NULL, NULL}; /* contiguous */
    kn_conv_problem problem = {.activation = params_of(call)->activation, .bf16 = call->inputs[0]->dtype == KN_BF16};
    kn_status status = kn_conv_resolve_call(&problem.shape, call, call->inputs[0]->dtype);
    flatten(&problem.shape);
    for (int i = 0; status == KN_OK && i < call->num_inputs && i < 3; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&inputs[i], call->inputs[i]);
    if (status == KN_OK && kn_numel(call->outputs[0]) > 0) {
        *operand_of(&problem, call->op, false) = operand(inputs[0]);
        *operand_of(&problem, call->op, true) = operand(call->outputs[0]);
        problem.weight = operand(inputs[1]);
        problem.bias = operand(inputs[2]);
        status = (is_transposed(call->op) ? run_transposed : kn_conv_run)(call->stream, &problem);
    }
    release_all(inputs, 3);
    return status == KN_OK && call->needs_grad ? save(call) : status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status new_gradient(kn_grad_call *grad, int index, kn_conv_operand *target)
{
    const kn_tensor *gradient = kn_grad_new(grad, index);
    *target = operand(gradient);
    return gradient ? KN_OK : kn_error_status();
}

static kn_status backward_data(kn_grad_call *grad, kn_conv_problem problem, kn_tensor *gradient)
{
    KN_TRY(new_gradient(grad, 0, operand_of(&problem, grad->op, false)));
    if (kn_numel(grad->grad_inputs[0]) == 0)
        return KN_OK;
    if (kn_numel(grad->grad_outputs[0]) == 0)
        return kn_tensor_fill(grad->grad_inputs[0], 0);
    problem.pass = is_transposed(grad->op) ? KN_CONV_FORWARD : KN_CONV_DATA;
    return problem.bf16 && !kn_conv_data_supports_pairs(&problem.shape) ? kn_conv_data_in_f32(grad, &problem, gradient)
                                                                        : kn_conv_run(grad->stream, &problem);
}

/* Sums the gradient of the op's output, which is either side of the problem. */
static kn_status bias_gradient(kn_grad_call *grad, kn_conv_problem problem, kn_tensor *gradient)
{
    if (problem.bf16)
        return kn_conv_bias_gradient_bf16(grad, gradient);
    KN_TRY(new_gradient(grad, 2, &problem.bias));
    if (is_transposed(grad->op)) {
        kn_conv_shape *s = &problem.shape;
        problem.y = problem.x;
        s->out_channels = s->in_channels;
        memcpy(s->out_size, s->in_size, sizeof s->out_size);
    }
    return kn_conv_bias_gradient(grad->stream, &problem);
}

/* Backward-weights also computes the bias's gradient if that is the sum of dy. */
static kn_status backward_weights(kn_grad_call *grad, kn_conv_problem problem, kn_tensor *gradient)
{
    const bool bias = grad->num_inputs > 2 && grad->needs[2];
    const bool empty =
        problem.shape.images == 0 || problem.shape.in_channels == 0 || kn_conv_volume(problem.shape.in_size) == 0;
    const bool apart = is_transposed(grad->op) || !grad->needs[1] || empty || problem.bf16;
    if (bias && apart)
        KN_TRY(bias_gradient(grad, problem, gradient));
    if (!grad->needs[1])
        return KN_OK;
    KN_TRY(new_gradient(grad, 1, &problem.weight));
    if (empty)
        return kn_tensor_fill(grad->grad_inputs[1], 0); /* the empty sum */
    if (bias && !apart)
        KN_TRY(new_gradient(grad, 2, &problem.bias));
    problem.pass = KN_CONV_WEIGHTS;
    return kn_conv_run(grad->stream, &problem);
}

static kn_status conv_backward(kn_grad_call *grad)
{
    const kn_conv_params *params = grad->params;
    const kn_input_spec *x = &grad->input[0], *weight = &grad->input[1];
    kn_tensor *inputs[2] = {NULL, NULL}; /* contiguous */
    kn_tensor *gradient = kn_activation_gradient(grad, params->activation, grad->saved[2]);
    if (!gradient)
        return kn_error_status();
    kn_conv_problem problem = {.bf16 = x->dtype == KN_BF16};
    kn_status status = kn_conv_resolve(&problem.shape, grad->op->detail, params, x->dtype, x->ndim, x->shape,
                                       weight->ndim, weight->shape);
    flatten(&problem.shape);
    for (int i = 0; status == KN_OK && i < 2; i++)
        status = kn_tensor_contiguous(&inputs[i], grad->saved[i]);
    if (status == KN_OK) {
        *operand_of(&problem, grad->op, false) = operand(inputs[0]);
        *operand_of(&problem, grad->op, true) = operand(gradient);
        problem.weight = operand(inputs[1]);
    }
    if (status == KN_OK && grad->needs[0])
        status = backward_data(grad, problem, gradient);
    if (status == KN_OK && (grad->needs[1] || (grad->num_inputs > 2 && grad->needs[2])))
        status = backward_weights(grad, problem, gradient);
    release_all(inputs, 2);
    return status;
}

/* --- gradients of gradients --------------------------------------------------------------------------------------- */

/* The backward operators have no activation; its gradient is a separate pass. */
static kn_status conv_backward_recorded(kn_grad_call *grad)
{
    kn_conv_params params = *(const kn_conv_params *)grad->params;
    kn_tensor *y = kn_grad_saved_output(grad, 2, 0);
    kn_tensor *dz = kn_activation_gradient_recorded(grad->grad_outputs[0], params.activation, y);
    params.activation = KN_ACTIVATION_NONE;
    return kn_backward_recorded_with(grad, dz, &params);
}

enum { DY, X, WEIGHT, BIAS }; /* inputs of the operator; the outputs are the gradients of the last three */

/* The gradient by dy, of dx and dweight and dbias: y(dx, weight) + y(x, dweight) + dbias. */
static kn_tensor *by_dy(kn_grad_call *grad, kn_tensor *x, kn_tensor *weight)
{
    const kn_op *of = grad->op->backward_of;
    kn_tensor *const dx = grad->grad_outputs[0], *dweight = grad->grad_outputs[1], *dbias = grad->grad_outputs[2];
    kn_tensor *sum = NULL;
    if (dx)
        sum = kn_op_apply(of, (kn_tensor *[]){dx, weight, dbias}, 3, grad->params, NULL);
    if (dweight) {
        kn_tensor *more = kn_op_apply(of, (kn_tensor *[]){x, dweight, dx ? NULL : dbias}, 3, grad->params, NULL);
        sum = dx ? kn_add(sum, more) : more;
    }
    if (dx || dweight || !dbias)
        return sum;
    const kn_input_spec *dy = &grad->input[DY];
    const int dims = ((const kn_conv_kind *)of->detail)->dims;
    int64_t shape[KN_MAX_DIMS] = {dbias->shape[0], 1, 1, 1};
    return kn_expand(kn_reshape(dbias, dims + 1, shape), dy->ndim, dy->shape);
}

/* One gradient by the operator itself: output `index` of inputs of which one is a gradient. */
static kn_status again(kn_grad_call *grad, int index, kn_tensor *x, kn_tensor *weight)
{
    kn_tensor *inputs[] = {kn_grad_saved_input(grad, DY, DY), x, weight};
    kn_tensor *outputs[] = {KN_SKIP_OUTPUT, KN_SKIP_OUTPUT};
    outputs[index] = NULL;
    KN_TRY(kn_op_apply_to(grad->op, inputs, 3, grad->params, outputs, 2));
    grad->grad_inputs[X + index] = outputs[index];
    return KN_OK;
}

/* The passes are linear in each of dy, x and weight. */
static kn_status conv_backward_backward(kn_grad_call *grad)
{
    const kn_conv_params *params = grad->params;
    kn_tensor *x = kn_grad_saved_input(grad, X, X), *weight = kn_grad_saved_input(grad, WEIGHT, WEIGHT);
    if (params->activation != KN_ACTIVATION_NONE)
        return kn_fail(KN_ERR_STATE, "with an activation it has no gradient: apply that of the activation first");
    if (!x || !weight)
        return kn_error_status();
    if (grad->needs[DY] && !(grad->grad_inputs[DY] = by_dy(grad, x, weight)))
        return kn_error_status();
    if (grad->needs[X] && grad->grad_outputs[1])
        KN_TRY(again(grad, 0, x, grad->grad_outputs[1]));
    if (grad->needs[WEIGHT] && grad->grad_outputs[0])
        KN_TRY(again(grad, 1, grad->grad_outputs[0], weight));
    return KN_OK;
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

/* All inputs must have one dtype; checked here, because float16 is widened before the shape rule. */
static kn_status conv_enter(kn_entry *entry)
{
    for (int i = 1; i < entry->num_inputs; i++)
        if (entry->inputs[i] && entry->inputs[i]->dtype != entry->inputs[0]->dtype)
            return kn_fail(KN_ERR_DTYPE, "inputs of dtype %s and %s: convert one with kn_to_dtype(tensor, dtype)",
                           kn_dtype_name(entry->inputs[0]->dtype), kn_dtype_name(entry->inputs[i]->dtype));
    return KN_OK;
}

static const kn_op_param conv_rows[] = {KN_PARAM(kn_conv_params, stride),
                                        KN_PARAM(kn_conv_params, padding),
                                        KN_PARAM(kn_conv_params, dilation),
                                        KN_PARAM(kn_conv_params, output_padding),
                                        KN_PARAM(kn_conv_params, strides),
                                        KN_PARAM(kn_conv_params, paddings),
                                        KN_PARAM(kn_conv_params, dilations),
                                        KN_PARAM(kn_conv_params, output_paddings),
                                        KN_PARAM(kn_conv_params, paddings_after),
                                        KN_PARAM(kn_conv_params, groups),
                                        KN_PARAM(kn_conv_params, activation, .values = kn_activation_names)};

#define CONVOLUTION(op, count, is_transposed)                                                                          \
    extern const kn_op kn_##op##_backward_op;                                                                          \
    const kn_op kn_##op##_op = {.name = #op,                                                                           \
                                .inputs = {"x", "weight", "?bias"},                                                    \
                                .dtypes = {KN_DTYPES_FLOATING},                                                        \
                                .params = KN_PARAMS(kn_conv_params, conv_rows, KN_CONV_DEFAULTS),                      \
                                .widens_halves = true,                                                                 \
                                .reads_halves = kn_conv_reads_halves,                                                  \
                                .enter = conv_enter,                                                                   \
                                .shape = kn_conv_shape_rule,                                                           \
                                .forward = conv_forward,                                                               \
                                .backward = conv_backward,                                                             \
                                .backward_recorded = conv_backward_recorded,                                           \
                                .saved = {"x", "weight", "result"},                                                    \
                                .backward_operator = &kn_##op##_backward_op,                                           \
                                .reference = kn_conv_reference,                                                        \
                                .work = conv_work,                                                                     \
                                .backward_work = conv_backward_work,                                                   \
                                .detail = &(kn_conv_kind){.dims = count, .transposed = is_transposed}};                \
    const kn_op kn_##op##_backward_op = {KN_BACKWARD_OP(op),                                                           \
                                         .inputs = {"grad", "x", "weight", "?bias", "?result"},                        \
                                         .outputs = {"grad_x", "grad_weight", "grad_bias"},                            \
                                         .widens_halves = true,                                                        \
                                         .backward = conv_backward_backward,                                           \
                                         .backward_recorded = conv_backward_backward};                                 \
    kn_tensor *kn_##op##_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params)          \
    {                                                                                                                  \
        return kn_invoke(&kn_##op##_op, params, x, weight, bias);                                                      \
    }

CONVOLUTION(conv1d, 1, false)
CONVOLUTION(conv2d, 2, false)
CONVOLUTION(conv3d, 3, false)
CONVOLUTION(conv_transpose1d, 1, true)
CONVOLUTION(conv_transpose2d, 2, true)
CONVOLUTION(conv_transpose3d, 3, true)

kn_conv_params kn_conv_params_init(void) { return (kn_conv_params){KN_CONV_DEFAULTS}; }
