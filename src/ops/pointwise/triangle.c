/* ops/pointwise/triangle.c - tril and triu: the triangles of matrices. */
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/elementwise.h"

static kn_pointwise_code lower_code = {.name = "tril",
                                       .inputs = "abc",
                                       .numbers = "p",
                                       .number_types = "l",
                                       .raw = "bc",
                                       .values = {"c - b <= p ? a : (T)0"}};
static kn_pointwise_code upper_code = {.name = "triu",
                                       .inputs = "abc",
                                       .numbers = "p",
                                       .number_types = "l",
                                       .raw = "bc",
                                       .values = {"c - b >= p ? a : (T)0"}};

static int64_t diagonal_of(const void *params) { return ((const kn_triangle_args *)params)->diagonal; }

static kn_status triangle_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    char text[KN_DESCRIBE];
    if (x->ndim < 2)
        return kn_fail(KN_ERR_SHAPE, "takes matrices, not %s", kn_tensor_describe(text, sizeof text, x));
    return kn_call_output(call, x->dtype, x->ndim, x->shape);
}

/* 0, 1, ... as a column or a row. */
static kn_status count_along(kn_tensor **numbers, const kn_tensor *x, bool column)
{
    const int64_t n = x->shape[x->ndim - (column ? 2 : 1)], shape[] = {column ? n : 1, column ? 1 : n};
    kn_tensor *line = kn_arange_with(0, (double)n, 1, &(kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(x)});
    return line ? kn_tensor_view(numbers, line, 2, shape, NULL, 0) : kn_error_status();
}

static kn_status run(kn_call *call, kn_pointwise_code *code)
{
    const kn_scalar diagonal = kn_scalar_int(diagonal_of(call->params));
    const kn_tensor *x = call->inputs[0];
    kn_tensor *rows = NULL, *columns = NULL;
    const int depth = kn_numel(x) > 0 ? kn_scope_begin() : 0;

    if (kn_numel(x) == 0)
        return KN_OK;
    kn_status status = count_along(&rows, x, true);
    if (status == KN_OK)
        status = count_along(&columns, x, false);
    const kn_tensor *const inputs[] = {x, rows, columns};
    if (status == KN_OK)
        status = kn_elements(call->stream, code, call->op->name, kn_compute_type(x->dtype), call->outputs[0], inputs, 3,
                             &diagonal);
    kn_release(rows);
    kn_release(columns);
    kn_scope_end(depth);
    return status;
}

static kn_status tril_forward(kn_call *call) { return run(call, &lower_code); }
static kn_status triu_forward(kn_call *call) { return run(call, &upper_code); }

/* The same triangle of the gradient. */
static kn_status triangle_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_invoke(grad->op, grad->params, grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status reference(const kn_call *call, bool upper)
{
    const int64_t columns = call->inputs[0]->shape[call->inputs[0]->ndim - 1],
                  rows = call->inputs[0]->shape[call->inputs[0]->ndim - 2];
    for (int64_t i = 0; i < kn_numel(call->inputs[0]); i++) {
        const int64_t right = i % columns - i / columns % rows;
        if (upper ? right >= diagonal_of(call->params) : right <= diagonal_of(call->params))
            kn_reference_set(call->outputs[0], i, kn_reference_get(call->inputs[0], i));
    }
    return KN_OK;
}
static kn_status tril_reference(const kn_call *call) { return reference(call, false); }
static kn_status triu_reference(const kn_call *call) { return reference(call, true); }

static const kn_op_param rows[] = {KN_PARAM(kn_triangle_args, diagonal)};
#define TRIANGLE_OP(op_name)                                                                                           \
    {                                                                                                                  \
        .name = #op_name, .inputs = {"x"}, .params = KN_PARAMS(kn_triangle_args, rows), .strided_outputs = true,       \
        .shape = triangle_shape, .forward = op_name##_forward, .backward = triangle_backward,                          \
        .backward_recorded = triangle_backward, .reference = op_name##_reference, .work = kn_work_memory_bound         \
    }
const kn_op kn_tril_op = TRIANGLE_OP(tril);
const kn_op kn_triu_op = TRIANGLE_OP(triu);

kn_tensor *kn_tril(kn_tensor *x, int64_t diagonal) { return kn_invoke(&kn_tril_op, &(kn_triangle_args){diagonal}, x); }

kn_tensor *kn_triu(kn_tensor *x, int64_t diagonal) { return kn_invoke(&kn_triu_op, &(kn_triangle_args){diagonal}, x); }
