/* ops/loss/linear_cross_entropy.c - the cross entropy of a linear layer's results: a composition, or a function that
 * computes the results, their losses and their gradients in chunks of rows, so that they are never there as a whole. */
#include <koine/autograd.h>
#include <koine/create.h>
#include <koine/function.h>
#include <koine/index.h>
#include <koine/loss.h>
#include <koine/matmul.h>
#include <koine/operators.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/loss/distance.h"
#include "ops/loss/element_loss.h"
#include "ops/shape/broadcast.h"
#include "tensor/scope.h"

enum { INPUT, WEIGHT, TARGET, BIAS, CLASS_WEIGHT, OPERANDS };

/* Of rows of a chunk: the gradient of the weight is added once per chunk, which with few rows takes longer than their
 * products. */
enum { LEAST_AUTO = 256 };

/* A weight [C, d..., in] as [C * d..., in], logits [N, C * d...] as [N, C, d...]. */
static kn_tensor *logits_of(kn_tensor *const *of)
{
    const int lead = of[INPUT]->ndim - 1, dims = of[WEIGHT]->ndim - 1;
    int64_t shape[KN_MAX_DIMS + 1];
    if (dims <= 1)
        return kn_linear(of[INPUT], of[WEIGHT], of[BIAS]);
    for (int d = 0; d < lead + dims; d++)
        shape[d] = d < lead ? of[INPUT]->shape[d] : of[WEIGHT]->shape[d - lead];
    kn_tensor *bias = of[BIAS] ? kn_flatten(of[BIAS], 0, -1) : NULL;
    return kn_reshape(kn_linear(of[INPUT], kn_flatten(of[WEIGHT], 0, dims - 1), bias), lead + dims, shape);
}

/* The cross entropy of all rows of these operands. */
static kn_tensor *loss_of(kn_tensor *const *of, const kn_linear_cross_entropy_args *args, kn_reduction reduction)
{
    return kn_cross_entropy(logits_of(of), of[TARGET], .weight = of[CLASS_WEIGHT], .ignore_index = args->ignore_index,
                            .label_smoothing = args->label_smoothing, .reduction = reduction);
}

/* --- in chunks ---------------------------------------------------------------------------------------------------- */

typedef struct chunked {
    kn_linear_cross_entropy_args args;
    bool is_given[OPERANDS]; /* the function's inputs are those that are */
    kn_dtype dtypes[OPERANDS];
} chunked;

/* Operands by their names, NULL for those that are not given; their places among the function's inputs, or -1. */
typedef struct operands {
    kn_tensor *of[OPERANDS];
    int place[OPERANDS];
} operands;

static operands operands_of(const chunked *c, kn_tensor *const *inputs)
{
    operands o;
    for (int i = 0, next = 0; i < OPERANDS; i++) {
        o.place[i] = c->is_given[i] ? next++ : -1;
        o.of[i] = c->is_given[i] ? inputs[o.place[i]] : NULL;
    }
    return o;
}

static bool needs(const kn_function_context *context, const operands *o, int i)
{
    return o->place[i] >= 0 && kn_function_needs_grad(context, o->place[i]);
}

static kn_tensor *rows_of(kn_tensor *tensor, int64_t start, int64_t count)
{
    return tensor ? kn_narrow(tensor, 0, start, count) : NULL;
}

/* Room for the gradients of all chunks: the rows of the input, and sums of the parameters, in float32 for halves. */
static kn_status begin_gradients(kn_tensor **g, const kn_function_context *context, const operands *o)
{
    for (int i = 0; i < OPERANDS; i++)
        if (needs(context, o, i)) {
            const kn_tensor *like = o->of[i];
            const kn_dtype dtype = i != INPUT && kn_dtype_is_reduced(like->dtype) ? KN_F32 : like->dtype;
            const kn_tensor_options options = {.dtype = dtype, .device = like->storage->device};
            g[i] = i == INPUT ? kn_empty_with(like->ndim, like->shape, &options)
                              : kn_zeros_with(like->ndim, like->shape, &options);
            if (!g[i])
                return kn_error_status();
        }
    return KN_OK;
}

static kn_status add(kn_tensor *sum, kn_tensor *addend)
{
    addend = kn_to_dtype(addend, sum->dtype);
    return addend ? kn_tensor_accumulate(sum, addend) : kn_error_status();
}

/* The loss of rows start .. start + count - 1; adds its gradients, weighted with `weights` unless that is NULL. */
static kn_tensor *of_chunk(const operands *o, kn_tensor *const *g, const kn_linear_cross_entropy_args *args,
                           kn_reduction reduction, int64_t start, int64_t count, kn_tensor *weights)
{
    kn_tensor *of[OPERANDS], *leaves[OPERANDS], *found[OPERANDS], *loss;
    int which[OPERANDS], wanted = 0;
    for (int i = 0; i < OPERANDS; i++) {
        of[i] = i == INPUT || i == TARGET ? rows_of(o->of[i], start, count) : o->of[i];
        if (!g[i])
            continue;
        of[i] = kn_detach(of[i]);
        if (kn_set_requires_grad(of[i], true) != KN_OK)
            return NULL;
        leaves[wanted] = of[i];
        which[wanted++] = i;
    }
    const bool enabled = kn_set_grad_enabled(wanted > 0);
    loss = loss_of(of, args, reduction);
    kn_set_grad_enabled(enabled);
    if (!loss || wanted == 0)
        return loss;
    if (kn_autograd_grad(&loss, 1, leaves, wanted, found, .grad_outputs = weights ? &weights : NULL) != KN_OK)
        return NULL;
    for (int i = 0; i < wanted; i++) {
        kn_tensor *sum = g[which[i]];
        if ((which[i] == INPUT ? kn_copy(rows_of(sum, start, count), found[i]) : add(sum, found[i])) != KN_OK)
            return NULL;
    }
    return kn_detach(loss);
}

/* What the mean divides by: the number of rows that count, or the sum of the weights of their classes. */
static kn_tensor *weight_of_rows(const operands *o, const kn_linear_cross_entropy_args *args)
{
    kn_tensor *target = o->of[TARGET];
    const kn_tensor_options options = {.dtype = KN_F32, .device = target->storage->device};
    if (kn_dtype_is_floating(target->dtype))
        return kn_full_with(0, NULL, kn_scalar_int(target->shape[0]), &options);
    kn_tensor *classes = kn_to_dtype(target, KN_I64);
    kn_tensor *counts = kn_ne_scalar(classes, args->ignore_index);
    if (!o->of[CLASS_WEIGHT])
        return kn_sum(counts);
    return kn_sum(kn_mul(kn_widened(kn_index_select(o->of[CLASS_WEIGHT], 0, kn_mul(classes, counts))), counts));
}

/* Goes over all chunks. losses: those of the rows, or NULL; sum: of all losses, or NULL. */
static kn_status each_chunk(const operands *o, kn_tensor *const *g, const kn_linear_cross_entropy_args *args,
                            kn_tensor *weights, kn_tensor *losses, kn_tensor *sum)
{
    const int64_t rows = o->of[INPUT]->shape[0];
    for (int64_t start = 0; start < rows; start += args->chunk_size) {
        const int64_t count = rows - start < args->chunk_size ? rows - start : args->chunk_size;
        const int scope = kn_scope_begin_internal();
        if (!scope)
            return KN_ERR_MEMORY;
        kn_tensor *loss = of_chunk(o, g, args, sum ? KN_REDUCTION_SUM : KN_REDUCTION_NONE, start, count,
                                   rows_of(weights, start, count));
        kn_status status = loss ? KN_OK : kn_error_status();
        if (status == KN_OK && losses)
            status = kn_copy(rows_of(losses, start, count), loss);
        if (status == KN_OK && sum)
            status = add(sum, loss);
        kn_scope_end(scope);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const chunked *c = kn_function_params(context);
    const operands o = operands_of(c, inputs);
    const kn_tensor *x = o.of[INPUT];
    const kn_tensor_options options = {.dtype = x->dtype, .device = x->storage->device};
    kn_tensor *g[OPERANDS] = {NULL};

    if (c->args.reduction == KN_REDUCTION_NONE) {
        outputs[0] = kn_empty_with(1, x->shape, &options);
        for (int i = 0; i < kn_function_num_inputs(context); i++)
            KN_TRY(kn_function_save(context, inputs[i]));
        return outputs[0] ? each_chunk(&o, g, &c->args, NULL, outputs[0], NULL) : kn_error_status();
    }
    kn_tensor *sum =
        kn_zeros(KN_SHAPE(), .dtype = kn_dtype_is_reduced(x->dtype) ? KN_F32 : x->dtype, .device = x->storage->device);
    KN_TRY(sum ? begin_gradients(g, context, &o) : kn_error_status());
    KN_TRY(each_chunk(&o, g, &c->args, NULL, NULL, sum));
    kn_tensor *divisor = kn_ones_like(sum);
    outputs[0] = sum;
    if (c->args.reduction == KN_REDUCTION_MEAN) {
        divisor = kn_to_dtype(weight_of_rows(&o, &c->args), sum->dtype);
        outputs[0] = kn_div(sum, divisor);
        divisor = kn_add(divisor, kn_eq_scalar(divisor, 0)); /* the mean of nothing is NaN, but no gradient is */
    }
    outputs[0] = kn_to_dtype(outputs[0], x->dtype);
    KN_TRY(outputs[0] ? kn_function_save(context, divisor) : kn_error_status());
    for (int i = 0; i < OPERANDS; i++)
        if (g[i])
            KN_TRY(kn_function_save(context, g[i]));
    return KN_OK;
}

/* Multiplies the gradients of the sum, or computes those of the weighted rows. */
static kn_status backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    const chunked *c = kn_function_params(context);
    const bool is_reduced = c->args.reduction != KN_REDUCTION_NONE;
    kn_tensor *inputs[OPERANDS] = {NULL}, *factor = NULL;
    for (int i = 0; !is_reduced && i < kn_function_num_inputs(context); i++)
        if (!(inputs[i] = kn_function_saved(context, i)))
            return kn_error_status();
    const operands o = operands_of(c, inputs);
    kn_tensor *g[OPERANDS] = {NULL};

    if (is_reduced) {
        int next = 0;
        factor = kn_div(grad_outputs[0], kn_function_saved(context, next++));
        for (int i = 0; i < OPERANDS; i++)
            if (needs(context, &o, i) && !(g[i] = kn_function_saved(context, next++)))
                return kn_error_status();
    } else {
        KN_TRY(begin_gradients(g, context, &o));
        KN_TRY(each_chunk(&o, g, &c->args, grad_outputs[0], NULL, NULL));
    }
    for (int i = 0; i < OPERANDS; i++)
        if (g[i]) {
            kn_tensor *gradient = is_reduced ? kn_mul(g[i], factor) : g[i];
            grad_inputs[o.place[i]] = kn_to_dtype(gradient, c->dtypes[i]);
            if (!grad_inputs[o.place[i]])
                return kn_error_status();
        }
    return KN_OK;
}

static const kn_function in_chunks = {
    .name = "linear_cross_entropy", .forward = forward, .backward = backward, .params_size = sizeof(chunked)};

/* Of operands that do not fit kn_linear and kn_cross_entropy say so, with the shapes of the whole. */
static bool have_rows(const kn_tensor *x, const kn_tensor *weight, const kn_tensor *target, const kn_tensor *bias)
{
    return x->ndim == 2 && weight->ndim == 2 && x->shape[1] == weight->shape[1] && target->ndim >= 1 &&
           target->shape[0] == x->shape[0] && (!bias || kn_numel(bias) == weight->shape[0]);
}

/* The number of rows of a chunk, 0 for all rows at once. */
static int64_t chunk_of(kn_tensor *const *of, int64_t wanted)
{
    const kn_tensor *x = of[INPUT], *weight = of[WEIGHT];
    if (!have_rows(x, weight, of[TARGET], of[BIAS]) || kn_requires_grad(of[TARGET]) ||
        kn_requires_grad(of[CLASS_WEIGHT]))
        return 0;
    if (wanted == KN_CHUNK_SIZE_AUTO) {
        const int64_t in = weight->shape[1] > 0 ? weight->shape[1] : 1, times = (weight->shape[0] + in - 1) / in;
        const int64_t rows = times > 0 ? (x->shape[0] + times - 1) / times : x->shape[0];
        for (wanted = LEAST_AUTO; wanted < rows;)
            wanted *= 2;
    }
    return wanted < x->shape[0] ? wanted : 0;
}

static kn_tensor *chunked_loss(kn_tensor *const *of, const kn_linear_cross_entropy_args *args, int64_t rows)
{
    chunked c = {.args = *args};
    kn_tensor *inputs[OPERANDS];
    int count = 0;
    c.args.chunk_size = rows;
    for (int i = 0; i < OPERANDS; i++) {
        c.is_given[i] = of[i] != NULL;
        if (of[i]) {
            c.dtypes[i] = of[i]->dtype;
            inputs[count++] = of[i];
        }
    }
    return kn_function_apply(&in_chunks, inputs, count, &c);
}

/* --- descriptor and public functions ------------------------------------------------------------------------------ */

static kn_status linear_cross_entropy_enter(kn_entry *entry)
{
    const kn_linear_cross_entropy_args *args = entry->params;
    kn_tensor *const *of = entry->inputs;
    char text[KN_DESCRIBE];
    if (of[INPUT]->ndim < 1 || of[INPUT]->ndim > 2)
        return kn_fail(KN_ERR_SHAPE,
                       "the input must be [N, in] or [in], not %s: flatten the dimensions before the last",
                       kn_tensor_describe(text, sizeof text, of[INPUT]));
    const int64_t rows = chunk_of(of, args->chunk_size);
    return kn_composed_give(entry, rows ? chunked_loss(of, args, rows) : loss_of(of, args, args->reduction));
}

static const kn_op_param rows[] = {
    KN_PARAM(kn_linear_cross_entropy_args, ignore_index),
    KN_PARAM(kn_linear_cross_entropy_args, label_smoothing, .min = 0, .max = 1),
    KN_REDUCTION_ROW(kn_linear_cross_entropy_args),
    KN_PARAM(kn_linear_cross_entropy_args, chunk_size, .min = KN_CHUNK_SIZE_AUTO, .max = (double)INT64_MAX)};
const kn_op kn_linear_cross_entropy_op = {
    .name = "linear_cross_entropy",
    .inputs = {"input", "linear_weight", "target", "?linear_bias", "?weight"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_FLOATING, KN_DTYPES_NUMBERS, KN_DTYPES_FLOATING, KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_linear_cross_entropy_args, rows, KN_LINEAR_CROSS_ENTROPY_DEFAULTS),
    .composes = true,
    .enter = linear_cross_entropy_enter};

kn_linear_cross_entropy_params kn_linear_cross_entropy_params_init(void)
{
    return (kn_linear_cross_entropy_params){KN_LINEAR_CROSS_ENTROPY_DEFAULTS};
}

kn_tensor *kn_linear_cross_entropy_with(kn_tensor *input, kn_tensor *linear_weight, kn_tensor *target,
                                        const kn_linear_cross_entropy_params *params)
{
    params = params ? params : &(kn_linear_cross_entropy_params){KN_LINEAR_CROSS_ENTROPY_DEFAULTS};
    const kn_linear_cross_entropy_args args = {params->ignore_index, params->label_smoothing, params->reduction,
                                               params->chunk_size};
    return kn_invoke(&kn_linear_cross_entropy_op, &args, input, linear_weight, target, params->bias, params->weight);
}
