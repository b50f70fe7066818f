/* ops/loss/class_loss.c - cross entropy of logits and negative log-likelihood of log-probabilities, with class indices:
 * one launch forward for a few hundred rows, two for more, and one backward. The formulas are in
 * cl/loss/class_loss.cl. */
#include "ops/loss/class_loss.h"

#include <stdio.h>

#include "autograd/work.h"
#include "base/text.h"
#include "loss/class_loss.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/reduce.h"

/* On non-CPU devices: the work-items that share a row. */
static int lanes_of(const kn_class_loss_layout *p, size_t local)
{
    return p->inner > 1 ? 1 : kn_team_for(p->classes, 16, local);
}

/* How rows are grouped depends on the shape only, so that the order of the sum is the same on all CPU devices, and on
 * all others. */
static int64_t rows_per_block(const kn_class_loss_layout *p, const kn_limits *limits)
{
    if (limits->is_cpu)
        return p->inner == 1 && p->classes >= 128 ? 16 : 128;
    if (p->inner == 1 && p->rows * p->classes <= 32768) /* a second launch would take longer */
        return p->rows > 256 ? p->rows : 256;
    return 256 / lanes_of(p, 256);
}

static kn_class_loss_layout layout_of(const kn_class_loss_params *params, const kn_limits *limits, int ndim,
                                      const int64_t *shape, bool has_weight)
{
    kn_class_loss_layout p = {.classes = shape[ndim == 1 ? 0 : 1],
                              .inner = ndim > 2 ? kn_shape_numel(ndim - 2, shape + 2) : 1,
                              .ignore = params->ignore_index,
                              .logits = params->logits,
                              .reduction = (int32_t)params->reduction,
                              .has_weight = has_weight};
    p.rows = (ndim == 1 ? 1 : shape[0]) * p.inner;
    p.rows_per_block = rows_per_block(&p, limits);
    p.blocks = (p.rows + p.rows_per_block - 1) / p.rows_per_block;
    return p;
}

static const char *target_options(char *buffer, size_t size, kn_dtype dtype, kn_dtype target)
{
    snprintf(buffer, size, "%s -DTARGET=%s", kn_dtype_options(dtype), kn_dtype_cl(target));
    return buffer;
}

static const char *source_for(const kn_limits *limits)
{
    return limits->is_cpu ? "loss/class_loss.cl" : "loss/class_loss_gpu.cl";
}

/* --- shape ------------------------------------------------------------------------------------------------------- */

/* x [C] needs target [], x [N, C, d...] needs target [N, d...]. */
static bool target_fits(const kn_tensor *x, const kn_tensor *target)
{
    bool fits = target->ndim == x->ndim - 1;
    for (int d = 0; fits && d < target->ndim; d++)
        fits = target->shape[d] == x->shape[d == 0 ? 0 : d + 1];
    return fits;
}

kn_status kn_class_loss_shape(kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    const kn_tensor *x = call->inputs[0], *target = call->inputs[1],
                    *weight = call->num_inputs > 2 ? call->inputs[2] : NULL;
    char text_x[KN_DESCRIBE], text_target[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, 0));
    if (x->ndim == 0 || !target_fits(x, target))
        return kn_fail(KN_ERR_SHAPE, "target %s does not fit input %s: [N, C, ...] needs [N, ...]",
                       kn_tensor_describe(text_target, sizeof text_target, target),
                       kn_tensor_describe(text_x, sizeof text_x, x));
    if (weight && (weight->ndim != 1 || weight->shape[0] != x->shape[x->ndim == 1 ? 0 : 1]))
        return kn_fail(KN_ERR_SHAPE, "weight %s must hold one number for each of the %lld classes",
                       kn_tensor_describe(text_x, sizeof text_x, weight), (long long)x->shape[x->ndim == 1 ? 0 : 1]);
    if (weight && weight->dtype != x->dtype)
        return kn_fail(KN_ERR_DTYPE, "the weight is %s, but the input is %s", kn_dtype_name(weight->dtype),
                       kn_dtype_name(x->dtype));
    if (params->reduction != KN_REDUCTION_NONE)
        return kn_call_output(call, x->dtype, 0, NULL);
    return kn_call_output(call, x->dtype, target->ndim, target->shape);
}

/* Logits: a maximum, a difference, an exponential and a sum per class, and the same for the gradient.
 * Log-probabilities: one element per row is selected and added, and its gradient set. */
kn_work kn_class_loss_work(const kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    if (params->logits)
        return kn_work_of_input(call, 4);
    kn_work work = kn_work_memory_bound(call);
    work.flops = (double)kn_numel(call->inputs[1]);
    return work;
}

kn_work kn_class_loss_backward_work(const kn_grad_call *grad)
{
    const kn_class_loss_params *params = grad->params;
    double rows = (double)kn_shape_numel(grad->input[1].ndim, grad->input[1].shape);
    return kn_grad_work(grad, params->logits ? 4 * kn_grad_work_elements(grad, 0) : rows);
}

const char *const kn_reduction_names[] = {"mean", "sum", "none", NULL};

void kn_class_loss_enter(kn_entry *entry, bool logits)
{
    const kn_class_loss_args *args = entry->params;
    kn_class_loss_params *own = kn_entry_record(entry, sizeof *own);
    *own = (kn_class_loss_params){.ignore_index = args->ignore_index,
                                  .label_smoothing = logits ? args->label_smoothing : 0,
                                  .reduction = args->reduction,
                                  .logits = logits};
}

/* --- forward ----------------------------------------------------------------------------------------------------- */

/* Contiguous inputs and the temporaries of forward. */
typedef struct class_loss_data {
    kn_tensor *x, *target, *weight; /* weight NULL: none */
    kn_tensor *norms, *totals, *parts;
} class_loss_data;

static void release(class_loss_data *data)
{
    kn_tensor *const all[] = {data->x, data->target, data->weight, data->norms, data->totals, data->parts};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        kn_release(all[i]);
}

static kn_status prepare(class_loss_data *data, kn_call *call, const kn_class_loss_layout *p)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    kn_device *device = call->inputs[0]->storage->device;

    KN_TRY(kn_tensor_contiguous(&data->x, call->inputs[0]));
    KN_TRY(kn_tensor_contiguous(&data->target, call->inputs[1]));
    if (p->has_weight)
        KN_TRY(kn_tensor_contiguous(&data->weight, call->inputs[2]));
    KN_TRY(kn_tensor_new(&data->norms, dtype, 1, (const int64_t[]){p->logits ? 2 * p->rows : 2}, device));
    KN_TRY(kn_tensor_new(&data->totals, dtype, 1, (const int64_t[]){1}, device));
    return kn_tensor_new(&data->parts, dtype, 1, (const int64_t[]){2 * p->blocks}, device);
}

static kn_status launch_forward(kn_call *call, const kn_class_loss_layout *p, const class_loss_data *data)
{
    const kn_class_loss_params *params = call->params;
    const kn_dtype dtype = data->x->dtype;
    const kn_limits *limits = kn_tensor_limits(data->x);
    const kn_work_size work = kn_work_for_groups(limits, p->blocks);
    const kn_arg args[] = {kn_arg_tensor(data->x),
                           kn_arg_tensor(data->target),
                           kn_arg_tensor(data->weight ? data->weight : data->x),
                           kn_arg_tensor(call->outputs[0]),
                           kn_arg_tensor(data->norms),
                           kn_arg_tensor(data->totals),
                           kn_arg_tensor(data->parts),
                           kn_arg_struct(p, sizeof *p),
                           kn_arg_real(dtype, params->label_smoothing),
                           kn_arg_fault(),
                           kn_arg_i32(lanes_of(p, work.local))}; /* CPU devices have no teams */
    char options[96];

    KN_TRY(kn_run(call->stream, .source = source_for(limits),
                  .options = target_options(options, sizeof options, dtype, data->target->dtype),
                  .kernel = "class_loss_forward", .operation = call->op->name, .dims = 1, .global = {work.global},
                  .local = {work.local}, .args = args, .num_args = limits->is_cpu ? 10 : 11));
    if (p->blocks == 1 || params->reduction == KN_REDUCTION_NONE)
        return KN_OK;
    const kn_work_size one = kn_work_for_groups(limits, 1);
    return kn_run(call->stream, .source = source_for(limits), .options = options, .kernel = "class_loss_finish",
                  .operation = call->op->name, .dims = 1, .global = {one.global}, .local = {one.local},
                  KN_ARGS(kn_arg_tensor(data->parts), kn_arg_tensor(call->outputs[0]), kn_arg_tensor(data->totals),
                          kn_arg_struct(p, sizeof *p)));
}

static kn_status save(kn_call *call, const class_loss_data *data)
{
    if (!call->needs_grad)
        return KN_OK;
    KN_TRY(kn_call_save(call, data->x));
    KN_TRY(kn_call_save(call, data->target));
    KN_TRY(kn_call_save(call, data->norms));
    KN_TRY(kn_call_save(call, data->totals));
    return data->weight ? kn_call_save(call, data->weight) : KN_OK;
}

kn_status kn_class_loss_forward(kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    const bool has_weight = call->num_inputs > 2 && call->inputs[2];
    const kn_class_loss_layout p =
        layout_of(params, kn_tensor_limits(call->inputs[0]), call->inputs[0]->ndim, call->inputs[0]->shape, has_weight);
    class_loss_data data = {.x = NULL};
    kn_status status = prepare(&data, call, &p);

    if (status == KN_OK)
        status = save(call, &data);
    if (status == KN_OK && p.rows > 0)
        status = launch_forward(call, &p, &data);
    else if (status == KN_OK && params->reduction != KN_REDUCTION_NONE) /* no rows: the mean is NaN */
        status = kn_tensor_fill(call->outputs[0], params->reduction == KN_REDUCTION_MEAN ? NAN : 0);
    release(&data);
    return status;
}

/* --- backward ---------------------------------------------------------------------------------------------------- */

kn_status kn_class_loss_backward(kn_grad_call *grad)
{
    const kn_class_loss_params *params = grad->params;
    kn_tensor *const *saved = grad->saved;
    const bool has_weight = grad->num_saved > 4;
    const kn_class_loss_layout p =
        layout_of(params, kn_tensor_limits(saved[0]), grad->input[0].ndim, grad->input[0].shape, has_weight);
    const kn_limits *limits = kn_tensor_limits(saved[0]);
    kn_work_size work = kn_work_for(limits, p.rows * p.classes * 4);
    const int lanes = lanes_of(&p, work.local);
    kn_tensor *out = grad->grad_inputs[0] = kn_empty_like(saved[0]);
    char options[96];

    if (!out)
        return kn_error_status();
    if (kn_numel(out) == 0)
        return KN_OK;
    if (!limits->is_cpu)
        work = kn_work_for_teams(limits, p.rows, lanes);
    const kn_arg args[] = {kn_arg_tensor(grad->grad_outputs[0]),
                           kn_arg_tensor(saved[0]),
                           kn_arg_tensor(saved[1]),
                           kn_arg_tensor(has_weight ? saved[4] : saved[0]),
                           kn_arg_tensor(saved[2]),
                           kn_arg_tensor(saved[3]),
                           kn_arg_tensor(out),
                           kn_arg_struct(&p, sizeof p),
                           kn_arg_real(out->dtype, params->label_smoothing),
                           kn_arg_i32(lanes)};
    return kn_run(grad->stream, .source = source_for(limits),
                  .options = target_options(options, sizeof options, out->dtype, saved[1]->dtype),
                  .kernel = "class_loss_backward", .operation = grad->op->name, .dims = 1, .global = {work.global},
                  .local = {work.local}, .args = args, .num_args = limits->is_cpu ? 9 : 10);
}

/* --- reference --------------------------------------------------------------------------------------------------- */

static double reference_lse(const kn_tensor *x, const kn_class_loss_layout *p, int64_t from)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < p->classes; c++)
        largest = fmax(largest, kn_reference_get(x, from + c * p->inner));
    for (int64_t c = 0; c < p->classes; c++)
        sum += exp(kn_reference_get(x, from + c * p->inner) - largest);
    return largest + log(sum);
}

kn_status kn_class_loss_reference(const kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    const kn_tensor *x = call->inputs[0], *weight = call->num_inputs > 2 ? call->inputs[2] : NULL;
    const kn_class_loss_layout p =
        layout_of(params, &(const kn_limits){.is_cpu = true}, x->ndim, x->shape, weight != NULL);
    double sum = 0, total = 0;

    for (int64_t row = 0; row < p.rows; row++) {
        const int64_t from = row / p.inner * p.classes * p.inner + row % p.inner;
        const int64_t t = (int64_t)kn_reference_get(call->inputs[1], row);
        const double lse = p.logits ? reference_lse(x, &p, from) : 0;
        double loss = 0, smooth = 0;
        if (t != p.ignore) {
            const double w = weight ? kn_reference_get(weight, t) : 1;
            for (int64_t c = 0; c < p.classes; c++)
                smooth += (weight ? kn_reference_get(weight, c) : 1) * (lse - kn_reference_get(x, from + c * p.inner));
            loss = (1 - params->label_smoothing) * w * (lse - kn_reference_get(x, from + t * p.inner)) +
                   (params->label_smoothing != 0 ? params->label_smoothing / (double)p.classes * smooth : 0);
            total += w;
        }
        if (params->reduction == KN_REDUCTION_NONE)
            kn_reference_set(call->outputs[0], row, loss);
        sum += loss;
    }
    if (params->reduction != KN_REDUCTION_NONE)
        kn_reference_set(call->outputs[0], 0, params->reduction == KN_REDUCTION_MEAN ? sum / total : sum);
    return KN_OK;
}

/* --- descriptors and public functions ---------------------------------------------------------------------------- */

const kn_op_param kn_class_loss_rows[] = {KN_PARAM(kn_class_loss_args, ignore_index),
                                          KN_PARAM(kn_class_loss_args, label_smoothing, .min = 0, .max = 1),
                                          KN_PARAM(kn_class_loss_args, reduction, .values = kn_reduction_names)};

kn_tensor *kn_class_loss(const kn_op *op, kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    params = params ? params : &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
    const kn_class_loss_args args = {params->ignore_index, params->label_smoothing, params->reduction};
    return kn_invoke(op, &args, input, target, params->weight);
}
