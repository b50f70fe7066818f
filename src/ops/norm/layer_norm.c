/* ops/norm/layer_norm.c - layer normalisation. The formulas are in cl/norm/layer.cl. */
#include <koine/norm.h>
#include <stdio.h>
#include <string.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/invoke.h"
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
    return kn_call_output(call, x->dtype, x->ndim, x->shape);
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

/* Tasks of `rows` rows on CPU devices: a few work-items per core. */
static kn_work_size work_on_cpu(const kn_limits *limits, int64_t tasks, kn_rows r)
{
    const size_t items = kn_work_items(limits, 2 * r.rows * r.n, 4096);
    return (kn_work_size){.global = (size_t)tasks < items ? (size_t)tasks : items};
}

/* Non-CPU devices: how many work-items share a row, how many elements each keeps in registers (0: the row is too long),
 * and the total number. */
typedef struct kn_layer_team {
    int lanes, held;
    kn_work_size work;
    char options[80];
} kn_layer_team;

static kn_layer_team team_of(const kn_tensor *x, kn_rows r)
{
    const kn_limits *limits = kn_tensor_limits(x);
    const size_t most = kn_work_for_groups(limits, 1).local;
    kn_layer_team team = {.held = r.n <= 32 ? 4 : r.n <= 8 * (int64_t)most ? 8 : 0};

    team.lanes = team.held > 0 ? kn_team_for(r.n, team.held, most) : (int)most;
    team.work = kn_work_for_teams(limits, r.rows, team.lanes);
    snprintf(team.options, sizeof team.options, "%s -DHELD=%d", kn_dtype_options(x->dtype), team.held);
    return team;
}

static kn_status launch_forward(kn_call *call, kn_tensor *const in[INPUTS], const kn_tensor *table, kn_rows r)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = in[X];
    const kn_limits *limits = kn_tensor_limits(x);
    const kn_layer_team team = limits->is_cpu ? (kn_layer_team){.lanes = 1} : team_of(x, r);
    const kn_work_size work = limits->is_cpu ? work_on_cpu(limits, r.rows, r) : team.work;
    const int flags = (in[WEIGHT] ? KN_NORM_HAS_WEIGHT : 0) | (in[BIAS] ? KN_NORM_HAS_BIAS : 0);
    const kn_arg args[] = {kn_arg_tensor(x),
                           kn_arg_tensor(call->outputs[0]),
                           kn_arg_tensor(in[WEIGHT] ? in[WEIGHT] : x),
                           kn_arg_tensor(in[BIAS] ? in[BIAS] : x),
                           kn_arg_tensor(table),
                           kn_arg_i64(r.rows),
                           kn_arg_i64(r.n),
                           kn_arg_real(x->dtype, params->eps),
                           kn_arg_i32(flags),
                           kn_arg_i32(team.lanes)}; /* CPU devices have no teams */

    return kn_run(call->stream, .source = limits->is_cpu ? "norm/layer.cl" : "norm/layer_gpu.cl",
                  .options = limits->is_cpu ? kn_dtype_options(x->dtype) : team.options, .kernel = "layer_forward",
                  .operation = call->op->name, .dims = 1, .global = {work.global}, .local = {work.local}, .args = args,
                  .num_args = limits->is_cpu ? 9 : 10);
}

/* Saves x, the statistics and the weight, if given. */
static kn_status layer_norm_forward(kn_call *call)
{
    const kn_tensor *x = call->inputs[X];
    const kn_rows r = rows_of(call->params, x->ndim, x->shape);
    kn_tensor *in[INPUTS] = {NULL}, *table = NULL;
    kn_status status = kn_tensor_new(&table, x->dtype, 2, (const int64_t[]){r.rows, 3}, x->storage->device);

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
        status = launch_forward(call, in, table, r);
    for (int i = X; i < INPUTS; i++)
        kn_release(in[i]);
    kn_release(table);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

typedef struct kn_layer_backward {
    kn_grad_call *grad;
    const kn_tensor *x, *table, *weight;
    kn_rows r;
    int64_t length, chunks; /* rows per partial sum, and the number of these */
    kn_tensor *partial[2];  /* [chunks, n]: for the weight's and the bias's gradient */
} kn_layer_backward;

static int flags_of(const kn_layer_backward *b)
{
    const bool *needs = b->grad->needs;
    return (b->weight ? KN_NORM_HAS_WEIGHT : 0) | (needs[X] ? KN_NORM_WANTS_X : 0) |
           (needs[WEIGHT] ? KN_NORM_WANTS_WEIGHT : 0) | (needs[BIAS] ? KN_NORM_WANTS_BIAS : 0);
}

/* A single launch on CPU devices, because a row stays in cache. */
static kn_status launch_on_cpu(const kn_layer_backward *b)
{
    kn_grad_call *grad = b->grad;
    const kn_tensor *spare = b->partial[0], *dx = grad->grad_inputs[X] ? grad->grad_inputs[X] : spare;
    const kn_work_size work = work_on_cpu(kn_tensor_limits(b->x), b->chunks, b->r);

    return kn_run(grad->stream, .source = "norm/layer.cl", .options = kn_dtype_options(b->x->dtype),
                  .kernel = "layer_backward", .operation = grad->op->name, .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(b->x), kn_arg_tensor(dx),
                          kn_arg_tensor(b->weight ? b->weight : b->x), kn_arg_tensor(b->table),
                          kn_arg_tensor(b->partial[0]), kn_arg_tensor(b->partial[1]), kn_arg_i64(b->r.rows),
                          kn_arg_i64(b->r.n), kn_arg_i64(b->length), kn_arg_i64(b->chunks), kn_arg_i32(flags_of(b))));
}

static kn_status launch_elsewhere(const kn_layer_backward *b, bool wants_sums)
{
    kn_grad_call *grad = b->grad;
    const kn_layer_team team = team_of(b->x, b->r);

    if (grad->needs[X])
        KN_TRY(kn_run(grad->stream, .source = "norm/layer_gpu.cl", .options = team.options, .kernel = "layer_backward",
                      .operation = grad->op->name, .dims = 1, .global = {team.work.global}, .local = {team.work.local},
                      KN_ARGS(kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(b->x),
                              kn_arg_tensor(grad->grad_inputs[X]), kn_arg_tensor(b->weight ? b->weight : b->x),
                              kn_arg_tensor(b->table), kn_arg_i64(b->r.rows), kn_arg_i64(b->r.n),
                              kn_arg_i32(flags_of(b)), kn_arg_i32(team.lanes))));
    if (!wants_sums)
        return KN_OK;
    const kn_work_size work = kn_work_for(kn_tensor_limits(b->x), b->chunks * b->r.n);
    return kn_run(grad->stream, .source = "norm/layer_gpu.cl", .options = team.options, .kernel = "layer_weight_sums",
                  .operation = grad->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(b->x), kn_arg_tensor(b->table),
                          kn_arg_tensor(b->partial[0]), kn_arg_tensor(b->partial[1]), kn_arg_i64(b->r.rows),
                          kn_arg_i64(b->r.n), kn_arg_i64(b->length), kn_arg_i64(b->chunks)));
}

static kn_status run_backward(kn_layer_backward *b)
{
    kn_grad_call *grad = b->grad;
    const bool wants_sums = grad->needs[WEIGHT] || grad->needs[BIAS];
    const int64_t shape[] = {wants_sums ? b->chunks : 0, b->r.n};
    kn_status status = KN_OK;

    for (int i = 0; i < 2 && status == KN_OK; i++)
        status = kn_tensor_new(&b->partial[i], b->x->dtype, 2, shape, b->x->storage->device);
    if (status == KN_OK)
        status = kn_tensor_limits(b->x)->is_cpu ? launch_on_cpu(b) : launch_elsewhere(b, wants_sums);
    for (int i = WEIGHT; i <= BIAS && status == KN_OK; i++)
        if (grad->needs[i])
            status = kn_sum_middle(grad->stream, grad->op->name, b->partial[i - WEIGHT], 1, b->chunks, b->r.n, 1,
                                   grad->grad_inputs[i]);
    kn_release(b->partial[0]);
    kn_release(b->partial[1]);
    return status;
}

static kn_status layer_norm_backward(kn_grad_call *grad)
{
    const kn_tensor *x = grad->saved[0];
    kn_layer_backward b = {.grad = grad,
                           .x = x,
                           .table = grad->saved[1],
                           .weight = grad->num_saved > 2 ? grad->saved[2] : NULL,
                           .r = rows_of(grad->params, x->ndim, x->shape)};

    for (int i = X; i < INPUTS; i++) {
        if (!grad->needs[i])
            continue;
        grad->grad_inputs[i] = (kn_numel(x) == 0 ? kn_zeros_with : kn_empty_with)(
            grad->input[i].ndim, grad->input[i].shape,
            &(kn_tensor_options){.dtype = x->dtype, .device = x->storage->device});
        if (!grad->grad_inputs[i])
            return kn_error_status();
    }
    if (kn_numel(x) == 0)
        return KN_OK;
    /* At most 256 rows per plain sum, and at least 8, so that the partial sums cost little. On non-CPU devices enough
     * chunks for one work-item per column. */
    const bool is_cpu = kn_tensor_limits(x)->is_cpu;
    b.length = is_cpu ? (b.r.rows + 63) / 64 : b.r.rows * b.r.n / (256 * 1024);
    b.length = b.length < 8 ? 8 : b.length < 256 ? b.length : 256;
    b.chunks = (b.r.rows + b.length - 1) / b.length;
    return run_backward(&b);
}

/* --- reference and op --------------------------------------------------------------------------------------------- */

static kn_status layer_norm_reference(const kn_call *call)
{
    const kn_layer_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    const kn_rows r = rows_of(params, x->ndim, x->shape);

    for (int64_t row = 0; row < r.rows && r.n > 0; row++) {
        double mean = 0, variance = 0;
        for (int64_t k = 0; k < r.n; k++)
            mean += kn_reference_get(x, row * r.n + k) / (double)r.n;
        for (int64_t k = 0; k < r.n; k++) {
            const double d = kn_reference_get(x, row * r.n + k) - mean;
            variance += d * d / (double)r.n;
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
                                .params = KN_PARAMS(kn_layer_norm_args, layer_norm_rows, KN_LAYER_NORM_DEFAULTS),
                                .widens_halves = true,
                                .enter = layer_norm_enter,
                                .shape = layer_norm_shape,
                                .forward = layer_norm_forward,
                                .backward = layer_norm_backward,
                                .reference = layer_norm_reference,
                                .work = layer_norm_work,
                                .backward_work = layer_norm_backward_work};

kn_layer_norm_params kn_layer_norm_params_init(void) { return (kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS}; }

kn_tensor *kn_layer_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_layer_norm_params *params)
{
    params = params ? params : &(kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS};
    kn_layer_norm_args args = {.eps = params->eps};
    return kn_ints_of(&args.shape, kn_layer_norm_op.name, "shape", ndim, shape)
               ? kn_invoke(&kn_layer_norm_op, &args, x, params->weight, params->bias)
               : NULL;
}
