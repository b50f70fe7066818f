/* ops/norm/layer_norm.c - layer normalisation, and RMS normalisation, which subtracts no mean. */
#include <koine/norm.h>
#include <string.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/norm/norm.h"
#include "ops/shape/reduce.h"
#include "ops/shape/views.h"

enum { X = KN_NORM_X, WEIGHT = KN_NORM_WEIGHT, BIAS = KN_NORM_BIAS };

static kn_norm_rows rows_of(const kn_layer_norm_args *params, int ndim, const int64_t *shape)
{
    return (kn_norm_rows){.rows = kn_shape_numel(ndim - params->shape.count, shape),
                          .n = kn_shape_numel(params->shape.count, params->shape.values)};
}

static bool has_shape(const kn_tensor *t, int from, const kn_layer_norm_args *params)
{
    return t->ndim - from == params->shape.count &&
           memcmp(t->shape + from, params->shape.values,
                  (size_t)params->shape.count * sizeof params->shape.values[0]) == 0;
}

static kn_status check_shape(kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    char text[KN_DESCRIBE], wanted[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, X));
    KN_TRY(kn_call_check_same_dtype(call, X, call->num_inputs - 1));
    kn_format_shape(wanted, sizeof wanted, params->shape.count, params->shape.values);
    if (x->ndim < params->shape.count || !has_shape(x, x->ndim - params->shape.count, params))
        return kn_fail(KN_ERR_SHAPE, "the normalised shape is %s, but the input %s does not end with it", wanted,
                       kn_tensor_describe(text, sizeof text, x));
    for (int i = WEIGHT; i < call->num_inputs; i++)
        if (call->inputs[i] && !has_shape(call->inputs[i], 0, params))
            return kn_fail(KN_ERR_SHAPE, "%s must have the normalised shape %s, not %s",
                           i == WEIGHT ? "weight" : "bias", wanted,
                           kn_tensor_describe(text, sizeof text, call->inputs[i]));
    return kn_call_output(call, x->dtype, x->ndim, x->shape);
}

static kn_status layer_norm_shape(kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    int64_t shape[KN_MAX_DIMS];

    KN_TRY(check_shape(call));
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d < x->ndim - params->shape.count ? x->shape[d] : 1;
    return kn_norm_statistics_shape(call, x->ndim, shape);
}

/* --- what is computed of a row ------------------------------------------------------------------------------------ */

#define LAYER(letters, factor, term) KN_ROW_NORM("layer_norm", letters, per_place, factor, term)
static kn_rows_code layer_codes[2][2] = {{LAYER("a", "", ""), LAYER("ab", "", " + b")},
                                         {LAYER("aw", " * w", ""), LAYER("awb", " * w", " + b")}};
static const kn_row_norm layer = {layer_codes, 3};

/* y = x r weight with r = 1 / sqrt(sum x^2 / n + eps). */
#define RMS(letters, factor)                                                                                           \
    {                                                                                                                  \
        .name = "rms_norm", .inputs = letters, .per_place = "w", .numbers = "pq", KN_SUM_OF("a * a"), .row = "r",      \
        .finish = "r = 1 / sqrt(s * p + q);", .values = {"r"}, .map = "a * r" factor                                   \
    }
static kn_rows_code rms_codes[2][2] = {{RMS("a", "")}, {RMS("aw", " * w")}};
static const kn_row_norm rms = {rms_codes, 1};

/* Over the rows: dweight = sum g c r, dbias = sum g. */
static kn_rows_code layer_columns = {.name = "layer_norm_sums",
                                     .inputs = "gahlr",
                                     .per_place = "hlr",
                                     KN_TWO_SUMS_BY("u += g * (" KN_CENTRED " * r); v += g;"),
                                     .values = {"u", "v"}};
static kn_rows_code rms_columns = {
    .name = "rms_norm_sums", .inputs = "gar", .per_place = "r", KN_SUM_OF("g * (a * r)"), .values = {"s"}};

/* By whether other uses of x have a gradient, z, that is added, and whether there is a weight. */
#define LAYER_BACKWARD(name, letters, factor, rest)                                                                    \
    KN_ROW_NORM_BACKWARD(name, letters, per_place, factor, rest, .columns = &layer_columns)
#define LAYER_ALONE "layer_norm_backward"
#define LAYER_ADDED "layer_norm_backward_added"
static kn_rows_code layer_backward[2][2] = {
    {LAYER_BACKWARD(LAYER_ALONE, "gahlr", "", ""), LAYER_BACKWARD(LAYER_ALONE, "gahlrw", " * w", "")},
    {LAYER_BACKWARD(LAYER_ADDED, "gahlrz", "", " + z"), LAYER_BACKWARD(LAYER_ADDED, "gahlrwz", " * w", " + z")}};

/* dx = r (d - x r^2 sum d x / n) + rest. */
#define RMS_BACKWARD(id, letters, factor, rest)                                                                        \
    {                                                                                                                  \
        .name = id, .inputs = letters, .per_place = "w", .per_row = "r", .numbers = "p", KN_SUM_OF("g" factor " * a"), \
        .row = "y", .finish = "y = s * p * r * r;", .map = "(g" factor " - a * y) * r" rest, .columns = &rms_columns   \
    }
#define RMS_ALONE "rms_norm_backward"
#define RMS_ADDED "rms_norm_backward_added"
static kn_rows_code rms_backward[2][2] = {
    {RMS_BACKWARD(RMS_ALONE, "gar", "", ""), RMS_BACKWARD(RMS_ALONE, "garw", " * w", "")},
    {RMS_BACKWARD(RMS_ADDED, "garz", "", " + z"), RMS_BACKWARD(RMS_ADDED, "garwz", " * w", " + z")}};

static kn_status layer_norm_forward(kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    return kn_row_norm_forward(call, &layer, rows_of(params, x->ndim, x->shape), params->eps);
}

static kn_status rms_norm_forward(kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    return kn_row_norm_forward(call, &rms, rows_of(params, x->ndim, x->shape), params->eps);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status backward(kn_grad_call *grad, kn_rows_code (*codes)[2], int statistics)
{
    const kn_tensor *x = grad->saved[0];

    KN_TRY(kn_norm_new_gradients(grad));
    if (kn_numel(x) == 0)
        return KN_OK;
    const kn_tensor *rest = grad->needs[X] ? kn_grad_take(grad, X) : NULL;
    kn_rows_problem p =
        kn_row_norm_backward(grad, codes[rest != NULL], statistics, rows_of(grad->params, x->ndim, x->shape));
    if (rest)
        p.inputs[strlen(p.code->inputs) - 1] = kn_row_operand(rest);
    if (grad->needs[X])
        p.mapped = kn_row_operand(grad->grad_inputs[X]);
    for (int i = WEIGHT; i < grad->num_inputs; i++)
        if (grad->needs[i])
            p.columns[i - WEIGHT] = kn_row_operand(grad->grad_inputs[i]);
    return kn_rows_run(grad->stream, &p);
}

static kn_status layer_norm_backward(kn_grad_call *grad) { return backward(grad, layer_backward, layer.statistics); }
static kn_status rms_norm_backward(kn_grad_call *grad) { return backward(grad, rms_backward, rms.statistics); }

/* --- reference and op --------------------------------------------------------------------------------------------- */

static kn_status layer_norm_reference(const kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    const kn_norm_rows r = rows_of(params, x->ndim, x->shape);

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

static kn_status rms_norm_reference(const kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    const kn_norm_rows r = rows_of(params, x->ndim, x->shape);

    for (int64_t row = 0; row < r.rows; row++) {
        double squares = 0;
        for (int64_t k = 0; k < r.n; k++)
            squares += pow(kn_reference_get(x, row * r.n + k), 2) / (double)r.n;
        for (int64_t k = 0; k < r.n; k++)
            kn_reference_set(call->outputs[0], row * r.n + k,
                             kn_reference_get(x, row * r.n + k) / sqrt(squares + params->eps) *
                                 (call->inputs[WEIGHT] ? kn_reference_get(call->inputs[WEIGHT], k) : 1));
    }
    return KN_OK;
}

/* Sum, difference, sum of squares; difference, two products, sum. */
static kn_span_work layer_norm_work(const kn_call *call) { return kn_work_of_input(call, 8); }

/* Input: product, sum, difference, multiply-add; two differences, multiply-subtract, product. Weight: difference,
 * product, multiply-add. Bias: sum. */
static kn_span_work layer_norm_backward_work(const kn_grad_call *grad)
{
    const double n = (double)kn_shape_numel(grad->input[X].ndim, grad->input[X].shape);
    const double each = (grad->needs[X] ? 10 : 0) + (grad->needs[WEIGHT] ? 4 : 0) +
                        (grad->num_inputs > BIAS && grad->needs[BIAS] ? 1 : 0);

    return kn_grad_work(grad, each * n);
}

/* Sum of squares; two products. */
static kn_span_work rms_norm_work(const kn_call *call) { return kn_work_of_input(call, 4); }

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

/* The machine epsilon, of float32 for halves, unless there is an eps. */
static kn_status rms_norm_enter(kn_entry *entry)
{
    KN_TRY(layer_norm_enter(entry));
    kn_layer_norm_args *own = kn_entry_record(entry, sizeof *own);
    *own = *(const kn_layer_norm_args *)entry->params;
    if (own->eps < 0)
        own->eps = entry->inputs[X]->dtype == KN_F64 ? 0x1p-52 : 0x1p-23;
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

const kn_op kn_layer_norm_backward_op = {KN_BACKWARD_OP(layer_norm),
                                         .inputs = {"grad", "x", "?weight", "?bias", "?mean", "?rstd"},
                                         .outputs = {"grad_x", "grad_weight", "grad_bias"},
                                         .widens_halves = true,
                                         .repeats_forward = true,
                                         .restore = kn_norm_restore_rows};

static const kn_op_param rms_norm_rows[] = {KN_PARAM(kn_layer_norm_args, shape), KN_PARAM(kn_layer_norm_args, eps)};
const kn_op kn_rms_norm_op = {.name = "rms_norm",
                              .inputs = {"x", "?weight"},
                              .dtypes = {KN_DTYPES_FLOATING},
                              .params = KN_PARAMS(kn_layer_norm_args, rms_norm_rows, KN_RMS_NORM_DEFAULTS),
                              .widens_halves = true,
                              .enter = rms_norm_enter,
                              .shape = check_shape,
                              .forward = rms_norm_forward,
                              .backward = rms_norm_backward,
                              .backward_recorded = kn_rms_norm_backward_recorded,
                              .reference = rms_norm_reference,
                              .work = rms_norm_work,
                              .backward_work = layer_norm_backward_work};

const kn_op kn_rms_norm_backward_op = {KN_BACKWARD_OP(rms_norm), .inputs = {"grad", "x", "?weight"},
                                       .outputs = {"grad_x", "grad_weight"}, .widens_halves = true,
                                       .repeats_forward = true};

kn_layer_norm_params kn_layer_norm_params_init(void) { return (kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS}; }

kn_tensor *kn_layer_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_layer_norm_params *params)
{
    params = params ? params : &(kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS};
    kn_layer_norm_args args = {.eps = params->eps};
    return kn_ints_of(&args.shape, kn_layer_norm_op.name, "shape", ndim, shape)
               ? kn_norm_invoke(&kn_layer_norm_op, (kn_tensor *[]){x, params->weight, params->bias}, KN_NORM_INPUTS,
                                &args, params->mean, params->rstd)
               : NULL;
}

kn_rms_norm_params kn_rms_norm_params_init(void) { return (kn_rms_norm_params){KN_RMS_NORM_DEFAULTS}; }

kn_tensor *kn_rms_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_rms_norm_params *params)
{
    params = params ? params : &(kn_rms_norm_params){KN_RMS_NORM_DEFAULTS};
    kn_layer_norm_args args = {.eps = params->eps};
    return kn_ints_of(&args.shape, kn_rms_norm_op.name, "shape", ndim, shape)
               ? kn_invoke(&kn_rms_norm_op, &args, x, params->weight)
               : NULL;
}
