/* ops/norm/layer_norm.c - layer normalisation. */
#include <koine/norm.h>
#include <string.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/norm/norm.h"
#include "ops/shape/reduce.h"
#include "ops/shape/views.h"

enum { X, WEIGHT, BIAS, INPUTS };

/* x as [rows, n]. */
typedef struct kn_rows {
    int64_t rows, n;
} kn_rows;

static kn_rows rows_of(const kn_layer_norm_args *params, int ndim, const int64_t *shape)
{
    return (kn_rows){kn_shape_numel(ndim - params->shape.count, shape),
                     kn_shape_numel(params->shape.count, params->shape.values)};
}

static bool has_shape(const kn_tensor *t, int from, const kn_layer_norm_args *params)
{
    return t->ndim - from == params->shape.count &&
           memcmp(t->shape + from, params->shape.values,
                  (size_t)params->shape.count * sizeof params->shape.values[0]) == 0;
}

static kn_status layer_norm_shape(kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    char text[KN_DESCRIBE], wanted[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, X));
    KN_TRY(kn_call_check_same_dtype(call, X, BIAS));
    kn_format_shape(wanted, sizeof wanted, params->shape.count, params->shape.values);
    if (x->ndim < params->shape.count || !has_shape(x, x->ndim - params->shape.count, params))
        return kn_fail(KN_ERR_SHAPE, "the normalised shape is %s, but the input %s does not end with it", wanted,
                       kn_tensor_describe(text, sizeof text, x));
    for (int i = WEIGHT; i <= BIAS; i++)
        if (call->inputs[i] && !has_shape(call->inputs[i], 0, params))
            return kn_fail(KN_ERR_SHAPE, "%s must have the normalised shape %s, not %s",
                           i == WEIGHT ? "weight" : "bias", wanted,
                           kn_tensor_describe(text, sizeof text, call->inputs[i]));
    KN_TRY(kn_call_output(call, x->dtype, x->ndim, x->shape));
    int64_t shape[KN_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d < x->ndim - params->shape.count ? x->shape[d] : 1;
    return kn_norm_statistics_shape(call, x->ndim, shape);
}

/* --- what is computed of a row ------------------------------------------------------------------------------------ */

/* y = (x - mean) r * weight + bias with r = 1 / sqrt(variance + eps); p is 1 / n and q is eps. The mean is kept in two
 * parts, h + l, because rounding it to T may cost a large part of the deviation: the second pass sums deviations from
 * h, which also gives the error of h, l. */
#define CENTRED "((a - h) - l)"
static const kn_rows_pass average = {KN_SUM_OF("a"), .row = "h", .finish = "h = s * p;"};
#define FORWARD(letters, factor, term)                                                                                 \
    {                                                                                                                  \
        .name = "layer_norm", .inputs = letters, .per_place = "wb", .numbers = "pq", .prepass = &average,              \
        KN_TWO_SUMS_BY("const T d = a - h; u += d; v += d * d;"), .row = "lr",                                         \
        .finish = "l = u * p; const T e = (v - u * l) * p; r = 1 / sqrt((e < 0 ? (T)0 : e) + q);",                     \
        .values = {"h", "l", "r"}, .map = CENTRED " * r" factor term                                                   \
    }
static kn_rows_code forward_codes[2][2] = {{FORWARD("a", "", ""), FORWARD("ab", "", " + b")},
                                           {FORWARD("aw", " * w", ""), FORWARD("awb", " * w", " + b")}};

/* Over the rows: dweight = sum g c r, dbias = sum g. */
static kn_rows_code sums_over_rows = {.name = "layer_norm_sums",
                                      .inputs = "gahlr",
                                      .per_place = "hlr",
                                      KN_TWO_SUMS_BY("u += g * (" CENTRED " * r); v += g;"),
                                      .values = {"u", "v"}};

/* With c = x - mean and d = g weight: dx = r (d - sum d / n - c r^2 sum d c / n). */
#define BACKWARD(letters, factor)                                                                                      \
    {                                                                                                                  \
        .name = "layer_norm_backward", .inputs = letters, .per_place = "w", .per_row = "hlr", .numbers = "p",          \
        KN_TWO_SUMS_BY("const T c = " CENTRED "; const T d = g" factor "; u += d; v += d * c;"), .row = "xy",          \
        .finish = "x = u * p; y = v * p * r * r;", .map = "(g" factor " - x - " CENTRED " * y) * r",                   \
        .columns = &sums_over_rows                                                                                     \
    }
static kn_rows_code backward_codes[2] = {BACKWARD("gahlr", ""), BACKWARD("gahlrw", " * w")};

/* h, l or r of all rows: table [3, rows]. */
static kn_rows_operand part_of(const kn_tensor *table, int part, int64_t rows)
{
    kn_rows_operand operand = kn_row_operand(table);
    operand.offset += part * rows;
    return operand;
}

static kn_status run_forward(kn_call *call, kn_tensor *const in[INPUTS], const kn_tensor *table, kn_rows r)
{
    const bool has_weight = in[WEIGHT], has_bias = in[BIAS];
    kn_rows_problem p = {.code = &forward_codes[has_weight][has_bias],
                         .operation = call->op->name,
                         .compute = in[X]->dtype,
                         .outer = r.rows,
                         .n = r.n,
                         .inner = 1,
                         .mapped = kn_row_operand(call->outputs[0]),
                         .numbers = {1 / (double)r.n, ((const kn_layer_norm_args *)call->params)->eps}};
    int count = 0;
    for (int i = 0; i < 3; i++)
        p.outputs[i] = part_of(table, i, r.rows);
    for (int i = X; i < INPUTS; i++)
        if (in[i])
            p.inputs[count++] = kn_row_operand(in[i]);
    return kn_rows_run(call->stream, &p);
}

/* Saves x, the statistics and the weight, if given. */
static kn_status layer_norm_forward(kn_call *call)
{
    const kn_tensor *x = call->inputs[X];
    const kn_rows r = rows_of(call->params, x->ndim, x->shape);
    kn_tensor *in[INPUTS] = {NULL}, *table = NULL;
    kn_status status = kn_tensor_new(&table, x->dtype, 2, (const int64_t[]){3, r.rows}, x->storage->device);

    for (int i = X; i < INPUTS && status == KN_OK; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&in[i], call->inputs[i]);
    if (status == KN_OK && call->needs_grad) {
        status = kn_call_save(call, in[X]);
        if (status == KN_OK)
            status = kn_call_save(call, table);
        if (status == KN_OK && in[WEIGHT])
            status = kn_call_save(call, in[WEIGHT]);
    }
    if (status == KN_OK && r.rows * r.n > 0)
        status = run_forward(call, in, table, r);
    if (status == KN_OK && call->num_outputs > 1)
        status = kn_norm_statistics_forward(call, table, 1, r.rows);
    for (int i = X; i < INPUTS; i++)
        kn_release(in[i]);
    kn_release(table);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status run_backward(kn_grad_call *grad, kn_rows r)
{
    const kn_tensor *x = grad->saved[0], *table = grad->saved[1], *weight = grad->num_saved > 2 ? grad->saved[2] : NULL;
    kn_rows_problem p = {.code = &backward_codes[weight != NULL],
                         .operation = grad->op->name,
                         .compute = x->dtype,
                         .outer = r.rows,
                         .n = r.n,
                         .inner = 1,
                         .inputs = {kn_row_operand(grad->grad_outputs[0]), kn_row_operand(x), part_of(table, 0, r.rows),
                                    part_of(table, 1, r.rows), part_of(table, 2, r.rows)},
                         .numbers = {1 / (double)r.n}};
    if (weight)
        p.inputs[5] = kn_row_operand(weight);
    if (grad->needs[X])
        p.mapped = kn_row_operand(grad->grad_inputs[X]);
    for (int i = WEIGHT; i <= BIAS; i++)
        if (grad->needs[i])
            p.columns[i - WEIGHT] = kn_row_operand(grad->grad_inputs[i]);
    return kn_rows_run(grad->stream, &p);
}

static kn_status layer_norm_backward(kn_grad_call *grad)
{
    const kn_tensor *x = grad->saved[0];

    KN_TRY(kn_norm_new_gradients(grad));
    return kn_numel(x) == 0 ? KN_OK : run_backward(grad, rows_of(grad->params, x->ndim, x->shape));
}

/* --- reference and op --------------------------------------------------------------------------------------------- */

static kn_status layer_norm_reference(const kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    const kn_rows r = rows_of(params, x->ndim, x->shape);

    for (int64_t row = 0; row < r.rows; row++) {
        double mean = 0, variance = 0;
        for (int64_t k = 0; k < r.n; k++)
            mean += kn_reference_get(x, row * r.n + k) / (double)r.n;
        for (int64_t k = 0; k < r.n; k++) {
            const double d = kn_reference_get(x, row * r.n + k) - mean;
            variance += d * d / (double)r.n;
        }
        if (call->num_outputs > 1) {
            kn_reference_set(call->outputs[1], row, r.n > 0 ? mean : (double)NAN);
            kn_reference_set(call->outputs[2], row, r.n > 0 ? 1 / sqrt(variance + params->eps) : (double)NAN);
        }
        for (int64_t k = 0; k < r.n; k++) {
            const double weight = call->inputs[WEIGHT] ? kn_reference_get(call->inputs[WEIGHT], k) : 1;
            const double bias = call->inputs[BIAS] ? kn_reference_get(call->inputs[BIAS], k) : 0;
            const double d = kn_reference_get(x, row * r.n + k) - mean;
            kn_reference_set(call->outputs[0], row * r.n + k, d / sqrt(variance + params->eps) * weight + bias);
        }
    }
    return KN_OK;
}

/* Sum, difference, sum of squares; difference, two products, sum. */
static kn_work layer_norm_work(const kn_call *call) { return kn_work_of_input(call, 8); }

/* Input: product, sum, difference, multiply-add; two differences, multiply-subtract, product. Weight: difference,
 * product, multiply-add. Bias: sum. */
static kn_work layer_norm_backward_work(const kn_grad_call *grad)
{
    const double n = (double)kn_shape_numel(grad->input[X].ndim, grad->input[X].shape);
    const double each = (grad->needs[X] ? 10 : 0) + (grad->needs[WEIGHT] ? 4 : 0) + (grad->needs[BIAS] ? 1 : 0);

    return kn_grad_work(grad, each * n);
}

static kn_status layer_norm_enter(kn_entry *entry)
{
    const kn_layer_norm_args *args = entry->params;
    const kn_tensor *x = entry->inputs[X];

    if (args->shape.count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "the normalised shape has %d dimensions; it must have 1 to %d",
                       args->shape.count, KN_MAX_DIMS);
    for (int i = WEIGHT; i < entry->num_inputs; i++)
        if (entry->inputs[i] && kn_compute_type(entry->inputs[i]->dtype) != kn_compute_type(x->dtype))
            return kn_fail(KN_ERR_DTYPE, "%s is %s and the input is %s: convert one with kn_to_dtype",
                           i == WEIGHT ? "weight" : "bias", kn_dtype_name(entry->inputs[i]->dtype),
                           kn_dtype_name(x->dtype));
    return KN_OK;
}

static const kn_op_param layer_norm_rows[] = {KN_PARAM(kn_layer_norm_args, shape),
                                              KN_PARAM(kn_layer_norm_args, eps, .min = 0, .max = (double)INFINITY)};
const kn_op kn_layer_norm_op = {.name = "layer_norm",
                                .inputs = {"x", "?weight", "?bias"},
                                .dtypes = {KN_DTYPES_FLOATING},
                                KN_NORM_OUTPUTS,
                                .params = KN_PARAMS(kn_layer_norm_args, layer_norm_rows, KN_LAYER_NORM_DEFAULTS),
                                .widens_halves = true,
                                .enter = layer_norm_enter,
                                .shape = layer_norm_shape,
                                .forward = layer_norm_forward,
                                .backward = layer_norm_backward,
                                .backward_recorded = kn_layer_norm_backward_recorded,
                                .reference = layer_norm_reference,
                                .work = layer_norm_work,
                                .backward_work = layer_norm_backward_work};

const kn_op kn_layer_norm_backward_op = {KN_BACKWARD_OP(layer_norm), .inputs = {"grad", "x", "?weight", "?bias"},
                                         .outputs = {"grad_x", "grad_weight", "grad_bias"}, .widens_halves = true,
                                         .repeats_forward = true};

kn_layer_norm_params kn_layer_norm_params_init(void) { return (kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS}; }

kn_tensor *kn_layer_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_layer_norm_params *params)
{
    params = params ? params : &(kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS};
    kn_layer_norm_args args = {.eps = params->eps};
    return kn_ints_of(&args.shape, kn_layer_norm_op.name, "shape", ndim, shape)
               ? kn_norm_invoke(&kn_layer_norm_op, (kn_tensor *[]){x, params->weight, params->bias}, INPUTS, &args,
                                params->mean, params->rstd)
               : NULL;
}
