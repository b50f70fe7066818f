/* ops/shape/sum.c - the sum over all elements or over chosen dimensions. */
#include <koine/reduce.h>

#include "autograd/work.h"
#include "base/memory.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/reduce.h"

/* --- along the middle of [outer, n, inner] ------------------------------------------------------------------------ */

kn_rows_code kn_mean_code = {.name = "sum", .inputs = "a", KN_SUM_OF("a"), .numbers = "p", .values = {"s / p"}};
static kn_rows_code of_whole_numbers = {.name = "sum", .inputs = "a", KN_SUM_OF("a"), .values = {"s"}};

static kn_status sum_rows(kn_stream *stream, const char *operation, const kn_reduce_rows *rows, double divisor,
                          const kn_tensor *y)
{
    const bool is_real = kn_dtype_is_floating(rows->x->dtype);
    kn_rows_problem p = kn_reduce_problem(is_real ? &kn_mean_code : &of_whole_numbers, operation,
                                          is_real ? kn_compute_type(rows->x->dtype) : KN_I64, rows);
    p.inputs[0] = kn_row_operand(rows->x);
    p.outputs[0] = kn_row_operand(y);
    p.numbers[0] = divisor;
    return kn_rows_run(stream, &p);
}

kn_status kn_sum_middle(kn_stream *stream, const char *operation, kn_tensor *x, int64_t outer, int64_t n, int64_t inner,
                        double divisor, kn_tensor *y)
{
    const kn_reduce_rows rows = {x, outer, n, inner, n * inner, inner};
    return sum_rows(stream, operation, &rows, divisor, y);
}

/* --- over dimensions ----------------------------------------------------------------------------------------- */

/* A shape as alternating groups of dimensions that are reduced and dimensions that are kept. */
typedef struct kn_reduce_groups {
    int count;
    int64_t size[KN_MAX_DIMS];
    bool over[KN_MAX_DIMS];
} kn_reduce_groups;

static kn_reduce_groups group_dims(const kn_reduce_params *params, const kn_tensor *x)
{
    kn_reduce_groups groups = {.count = 0};

    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] == 1)
            continue;
        if (groups.count > 0 && groups.over[groups.count - 1] == params->over[d]) {
            groups.size[groups.count - 1] *= x->shape[d];
        } else {
            groups.size[groups.count] = x->shape[d];
            groups.over[groups.count++] = params->over[d];
        }
    }
    return groups;
}

/* The largest group still to be reduced, or -1; `left` counts them. */
static int next_group(const kn_reduce_groups *groups, int *left)
{
    int best = -1;

    *left = 0;
    for (int i = 0; i < groups->count; i++) {
        if (!groups->over[i])
            continue;
        ++*left;
        if (best < 0 || groups->size[i] > groups->size[best])
            best = i;
    }
    return best;
}

/* Removes group `at` and merges its neighbours, which are both kept. */
static void drop_group(kn_reduce_groups *groups, int at)
{
    const bool join = at > 0 && at + 1 < groups->count;
    const int gone = join ? 2 : 1;

    if (join)
        groups->size[at - 1] *= groups->size[at + 1];
    for (int i = at; i + gone < groups->count; i++) {
        groups->size[i] = groups->size[i + gone];
        groups->over[i] = groups->over[i + gone];
    }
    groups->count -= gone;
}

/* y = sums of x over the groups, the largest first; `x` is contiguous, and ownership passes. */
static kn_status sum_groups(kn_call *call, kn_tensor *x, kn_reduce_groups *groups, double divisor)
{
    kn_status status = KN_OK;
    int left, at = next_group(groups, &left);

    while (status == KN_OK && at >= 0) {
        const int64_t n = groups->size[at];
        const int64_t outer = kn_shape_numel(at, groups->size);
        const int64_t inner = kn_shape_numel(groups->count - at - 1, groups->size + at + 1);
        kn_tensor *y = kn_retain(call->outputs[0]);
        if (left > 1) {
            kn_release(y);
            status = kn_tensor_new(&y, kn_compute_type(call->outputs[0]->dtype), 1, (const int64_t[]){outer * inner},
                                   x->storage->device);
        }
        if (status != KN_OK)
            break;
        status = kn_sum_middle(call->stream, call->op->name, x, outer, n, inner, left > 1 ? 1 : divisor, y);
        kn_release(x);
        x = y;
        drop_group(groups, at);
        at = next_group(groups, &left);
    }
    kn_release(x);
    return status;
}

kn_status kn_sum_divided(kn_call *call, double divisor)
{
    kn_tensor *x, *flat;
    kn_reduce_groups groups = group_dims(call->params, call->inputs[0]);
    kn_reduce_rows rows;
    kn_status status;
    int left;

    if (kn_numel(call->outputs[0]) == 0)
        return KN_OK;
    if (kn_numel(call->inputs[0]) == 0)
        return kn_tensor_fill(call->outputs[0], 0.0 / divisor);
    if (kn_reduce_in_place(&rows, call->inputs[0], ((const kn_reduce_params *)call->params)->over)) {
        status = sum_rows(call->stream, call->op->name, &rows, divisor, call->outputs[0]);
        kn_release(rows.x);
        return status;
    }
    if (next_group(&groups, &left) >= 0) {
        KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
        return sum_groups(call, x, &groups, divisor);
    }
    /* Only dimensions of size 1 are reduced: a copy. */
    KN_TRY(kn_tensor_view(&flat, call->outputs[0], call->inputs[0]->ndim, call->inputs[0]->shape, NULL,
                          call->outputs[0]->offset));
    status = kn_tensor_copy(flat, call->inputs[0]);
    kn_release(flat);
    return status;
}

static kn_status sum_shape(kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    return kn_reduce_output(call, call->params, kn_dtype_is_floating(dtype) ? dtype : KN_I64);
}

static kn_status sum_forward(kn_call *call) { return kn_sum_divided(call, 1); }

static kn_status sum_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] =
        kn_reduce_spread(grad->grad_outputs[0], grad->params, grad->input[0].ndim, grad->input[0].shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* Adds each input element to the output element that it belongs to. */
kn_status kn_sum_reference(const kn_call *call, double divisor)
{
    const kn_reduce_params *params = call->params;
    const kn_tensor *x = call->inputs[0];
    kn_tensor *y = call->outputs[0];
    double *sums = kn_calloc((size_t)kn_numel(y) + 1, sizeof *sums);
    if (!sums)
        return KN_ERR_MEMORY;

    for (int64_t i = 0; i < kn_numel(x); i++) {
        int64_t rest = i, at = 0, step = 1;
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (!params->over[d]) {
                at += rest % x->shape[d] * step;
                step *= x->shape[d];
            }
            rest /= x->shape[d];
        }
        sums[at] += kn_reference_get(x, i);
    }
    for (int64_t i = 0; i < kn_numel(y); i++)
        kn_reference_set(y, i, sums[i] / divisor);
    kn_free(sums);
    return KN_OK;
}

static kn_status sum_reference(const kn_call *call) { return kn_sum_reference(call, 1); }

kn_status kn_sum_enter(kn_entry *entry)
{
    const kn_reduce_args *args = entry->params;
    return kn_reduce_enter(kn_entry_record(entry, sizeof(kn_reduce_params)), &args->dims, args->keepdim,
                           entry->inputs[0]->ndim);
}

const kn_op_param kn_sum_rows[] = {KN_PARAM(kn_reduce_args, dims), KN_PARAM(kn_reduce_args, keepdim)};

const kn_op kn_sum_op = {.name = "sum",
                         .inputs = {"x"},
                         .params = KN_PARAMS(kn_reduce_args, kn_sum_rows),
                         .enter = kn_sum_enter,
                         .record_size = sizeof(kn_reduce_params),
                         .shape = sum_shape,
                         .forward = sum_forward,
                         .backward = sum_backward,
                         .backward_recorded = sum_backward,
                         .reference = sum_reference,
                         .work = kn_work_reducing,
                         .backward_work = kn_grad_work_memory_bound};
kn_tensor *kn_sum_invoke(const kn_op *op, kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    kn_reduce_args args = {.keepdim = keepdim};
    return kn_reduce_named(&args.dims, op->name, dims, num_dims) ? kn_invoke(op, &args, x) : NULL;
}

kn_tensor *kn_sum_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    return kn_sum_invoke(&kn_sum_op, x, dims, num_dims, keepdim);
}

kn_tensor *kn_sum(kn_tensor *x) { return kn_sum_dims(x, NULL, 0, false); }
