/* ops/sort/cumextreme.c - cummax, cummin: running extremes and the indices of the last of equal ones. NaN is both the
 * largest and the smallest. */
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/tensor.h>

#include "autograd/work.h"
#include "loops/work_size.h"
#include "ops/dispatch/reference.h"
#include "ops/reduce/scan.h"
#include "ops/sort/taken.h"

typedef struct cumextreme {
    kn_rows_code code;
    bool (*replaces)(double v, double best);
} cumextreme;

/* A later element replaces an equal one. Parts are merged in any order. */
#define CUMEXTREME(name_, relation, first)                                                                             \
    static bool name_##_replaces(double v, double best) { return isnan(v) || v relation## = best; }                    \
    static cumextreme name_ = {                                                                                        \
        .code = {.name = #name_,                                                                                       \
                 .inputs = "a",                                                                                        \
                 .state = "m",                                                                                         \
                 .place = 'k',                                                                                         \
                 .init = "m = " first "; k = 0;",                                                                      \
                 .step = "const C takes = (a " #relation "= m) | KN_NAN(a); m = takes ? a : m; k = takes ? i : k;",    \
                 .merge = "const C same = (M == m) | (KN_NAN(M) & KN_NAN(m)), takes = (M " #relation " m) | "          \
                          "(KN_NAN(M) & KN_NOT_NAN(m)) | (same & (K > k)); m = takes ? M : m; k = takes ? K : k;",     \
                 .values = {"m", "k"}},                                                                                \
        .replaces = name_##_replaces};
CUMEXTREME(cummax, >, "KN_LOWEST")
CUMEXTREME(cummin, <, "KN_HIGHEST")

static int dim_of(const void *params) { return ((const kn_dim_args *)params)->dim; }

static kn_status cumextreme_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    KN_TRY(kn_call_output(call, x->dtype, x->ndim, x->shape));
    return kn_call_output(call, KN_I64, x->ndim, x->shape);
}

static kn_status cumextreme_forward(kn_call *call)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[1]));
    return kn_scan_forward(call, &((cumextreme *)call->op->detail)->code);
}

/* An element gets the gradients of the run of results that it gave. */
static kn_status cumextreme_backward(kn_grad_call *grad)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_along l = kn_along_dim(input->ndim, input->shape, dim_of(grad->params));
    const kn_dtype compute = kn_compute_type(input->dtype);
    const kn_tensor_options options = {.dtype = compute, .device = input->device};

    if (!grad->grad_outputs[0])
        return KN_OK;
    kn_tensor *gradient = kn_to_dtype(grad->grad_outputs[0], compute), *indices = kn_contiguous(grad->saved[0]);
    kn_tensor *out = kn_empty_with(input->ndim, input->shape, &options);
    if (!gradient || !indices || !out)
        return kn_error_status();
    const kn_work_size work = kn_work_for(kn_tensor_limits(out), kn_numel(out));
    if (kn_numel(out) > 0)
        KN_TRY(kn_run(grad->stream, .source = "sort/runs.cl", .options = kn_dtype_options(compute),
                      .kernel = "sum_runs", .operation = grad->op->name, .dims = 1, .global = {work.global},
                      .local = {work.local},
                      KN_ARGS(kn_arg_tensor(gradient), kn_arg_tensor(indices), kn_arg_tensor(out),
                              kn_arg_i64(kn_numel(out)), kn_arg_i64(l.n), kn_arg_i64(l.inner))));
    grad->grad_inputs[0] = kn_to_dtype(out, input->dtype);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status cumextreme_backward_recorded(kn_grad_call *grad)
{
    return kn_taken_backward_recorded(grad, grad->grad_outputs[0], grad->saved[0], dim_of(grad->params));
}

static kn_status cumextreme_reference(const kn_call *call)
{
    const cumextreme *e = call->op->detail;
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, dim_of(call->params));

    for (int64_t i = 0; i < kn_numel(x); i++) {
        const int64_t place = i / l.inner % l.n;
        const double a = kn_reference_get(x, i), best = place ? kn_reference_get(call->outputs[0], i - l.inner) : a;
        const bool takes = place == 0 || e->replaces(a, best);
        kn_reference_set(call->outputs[0], i, takes ? a : best);
        kn_reference_set(call->outputs[1], i, takes ? (double)place : kn_reference_get(call->outputs[1], i - l.inner));
    }
    return KN_OK;
}

#define CUMEXTREME_OP(id)                                                                                              \
    {                                                                                                                  \
        .name = #id, .inputs = {"x"}, .outputs = {"values", "indices"}, .params = KN_PARAMS(kn_dim_args, kn_dim_rows), \
        .enter = kn_dim_enter, .shape = cumextreme_shape, .forward = cumextreme_forward,                               \
        .backward = cumextreme_backward, .backward_recorded = cumextreme_backward_recorded, .saved = {"indices"},      \
        .reference = cumextreme_reference, .work = kn_work_reducing, .detail = &(id)                                   \
    }
const kn_op kn_cummax_op = CUMEXTREME_OP(cummax), kn_cummin_op = CUMEXTREME_OP(cummin);
const kn_op kn_cummax_backward_op = KN_TAKEN_BACKWARD_OP(cummax), kn_cummin_backward_op = KN_TAKEN_BACKWARD_OP(cummin);

kn_tensor *kn_cummax(kn_tensor *x, int dim, kn_tensor **indices)
{
    return kn_invoke_with_indices(&kn_cummax_op, x, &(kn_dim_args){dim}, indices);
}

kn_tensor *kn_cummin(kn_tensor *x, int dim, kn_tensor **indices)
{
    return kn_invoke_with_indices(&kn_cummin_op, x, &(kn_dim_args){dim}, indices);
}
