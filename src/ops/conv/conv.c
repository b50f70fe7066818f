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
    enum { BIAS = 2, RESULT, TENSORS }; /* after x and weight */
    kn_tensor *made[TENSORS] = {NULL, NULL, NULL, NULL};
    const kn_dtype dtype = call->inputs[0]->dtype;
    kn_conv_problem problem = {.activation = params_of(call)->activation};
    kn_status status = kn_conv_resolve_call(&problem.shape, call, dtype);
    flatten(&problem.shape);
    if (status == KN_OK && kn_numel(call->outputs[0]) > 0) {
        problem.bf16 = kn_conv_is_bf16(call->op, call->stream, dtype, &problem.shape);
        const kn_dtype compute = problem.bf16 ? dtype : kn_compute_type(dtype);
        for (int i = 0; status == KN_OK && i <= BIAS && i < call->num_inputs; i++)
            status = kn_conv_operand_as(&made[i], call->inputs[i], compute);
        if (status == KN_OK)
            status = kn_conv_result_as(&made[RESULT], call->outputs[0], compute);
        *operand_of(&problem, call->op, false) = operand(made[0]);
        *operand_of(&problem, call->op, true) = operand(made[RESULT]);
        problem.weight = operand(made[1]);
        problem.bias = operand(made[BIAS]);
        if (status == KN_OK)
            status = (is_transposed(call->op) ? run_transposed : kn_conv_run)(call->stream, &problem);
        if (status == KN_OK)
            status = kn_conv_deliver(call->outputs[0], made[RESULT]);
    }
    for (int i = 0; i < TENSORS; i++)
        kn_release(made[i]);
    return status == KN_OK && call->needs_grad ? save(call) : status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* The passes compute in bf16 or in f32: what they read, by these, and the gradients of x, weight and bias. */
enum { IN, WEIGHTS, OUT, READ, GRADIENTS = 3 };
typedef struct backward_passes {
    kn_grad_call *grad;
    kn_tensor *given[READ], *made[2][READ], *results[GRADIENTS];
    kn_conv_problem problem;
} backward_passes;

static kn_dtype compute_of(const backward_passes *p)
{
    const kn_dtype dtype = p->grad->input[0].dtype;
    return p->problem.bf16 ? dtype : kn_compute_type(dtype);
}

/* The op's output's gradient, and its input or the weight. */
static kn_status read_operands(backward_passes *p, int other)
{
    const kn_op *op = p->grad->op;
    kn_tensor **made = p->made[p->problem.bf16];
    for (int i = 0; i < READ; i++)
        if ((i == OUT || i == other) && !made[i])
            KN_TRY(kn_conv_operand_as(&made[i], p->given[i], compute_of(p)));
    *operand_of(&p->problem, op, false) = operand(made[IN]);
    *operand_of(&p->problem, op, true) = operand(made[OUT]);
    p->problem.weight = operand(made[WEIGHTS]);
    return KN_OK;
}

static kn_status new_gradient(backward_passes *p, int index, kn_conv_operand *target)
{
    kn_tensor *gradient = kn_grad_new(p->grad, index);
    if (!gradient)
        return kn_error_status();
    KN_TRY(kn_conv_result_as(&p->results[index], gradient, compute_of(p)));
    *target = operand(p->results[index]);
    return KN_OK;
}

static kn_status backward_data(backward_passes *p)
{
    const kn_op *op = p->grad->op;
    p->problem.bf16 &= kn_conv_data_is_bf16(&p->problem.shape);
    KN_TRY(read_operands(p, WEIGHTS));
    KN_TRY(new_gradient(p, 0, operand_of(&p->problem, op, false)));
    if (kn_numel(p->results[0]) == 0)
        return KN_OK;
    if (kn_numel(p->given[OUT]) == 0)
        return kn_tensor_fill(p->results[0], 0);
    p->problem.pass = is_transposed(op) ? KN_CONV_FORWARD : KN_CONV_DATA;
    return kn_conv_run(p->grad->stream, &p->problem);
}

/* Sums the gradient of the op's output, which is either side of the problem. */
static kn_status bias_gradient(backward_passes *p)
{
    if (p->problem.bf16)
        return kn_conv_bias_gradient_bf16(p->grad, p->given[OUT]);
    kn_conv_problem problem = p->problem;
    KN_TRY(new_gradient(p, 2, &problem.bias));
    if (is_transposed(p->grad->op)) {
        kn_conv_shape *s = &problem.shape;
        problem.y = problem.x;
        s->out_channels = s->in_channels;
        memcpy(s->out_size, s->in_size, sizeof s->out_size);
    }
    return kn_conv_bias_gradient(p->grad->stream, &problem);
}

/* Backward-weights also computes the bias's gradient if that is the sum of dy. */
static kn_status backward_weights(backward_passes *p)
{
    const kn_grad_call *grad = p->grad;
    const kn_conv_shape *s = &p->problem.shape;
    const bool bias = grad->num_inputs > 2 && grad->needs[2];
    const bool empty = s->images == 0 || s->in_channels == 0 || kn_conv_volume(s->in_size) == 0;
    const bool apart = is_transposed(grad->op) || !grad->needs[1] || empty || p->problem.bf16;
    KN_TRY(read_operands(p, IN));
    if (bias && apart)
        KN_TRY(bias_gradient(p));
    if (!grad->needs[1])
        return KN_OK;
    KN_TRY(new_gradient(p, 1, &p->problem.weight));
    if (empty)
        return kn_tensor_fill(p->results[1], 0); /* the empty sum */
    if (bias && !apart)
        KN_TRY(new_gradient(p, 2, &p->problem.bias));
    p->problem.pass = KN_CONV_WEIGHTS;
    return kn_conv_run(grad->stream, &p->problem);
}

static kn_status run_backward(backward_passes *p)
{
    const kn_grad_call *grad = p->grad;
    const kn_input_spec *x = &grad->input[0], *weight = &grad->input[1];
    KN_TRY(kn_conv_resolve(&p->problem.shape, grad->op->detail, grad->params, x->dtype, x->ndim, x->shape, weight->ndim,
                           weight->shape));
    flatten(&p->problem.shape);
    const bool bf16 = kn_conv_is_bf16(grad->op, grad->stream, x->dtype, &p->problem.shape);
    p->problem.bf16 = bf16;
    if (grad->needs[0])
        KN_TRY(backward_data(p));
    p->problem.bf16 = bf16;
    if (grad->needs[1] || (grad->num_inputs > 2 && grad->needs[2]))
        KN_TRY(backward_weights(p));
    for (int i = 0; i < GRADIENTS; i++)
        if (p->results[i])
            KN_TRY(kn_conv_deliver(grad->grad_inputs[i], p->results[i]));
    return KN_OK;
}

static kn_status conv_backward(kn_grad_call *grad)
{
    const kn_conv_params *params = grad->params;
    kn_tensor *dy = kn_activation_gradient(grad, params->activation, grad->saved[2]);
    if (!dy)
        return kn_error_status();
    backward_passes p = {.grad = grad, .given = {grad->saved[0], grad->saved[1], dy}};
    const kn_status status = run_backward(&p);
    for (int i = 0; i < READ; i++) {
        kn_release(p.made[0][i]);
        kn_release(p.made[1][i]);
        kn_release(p.results[i]);
    }
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
