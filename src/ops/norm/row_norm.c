/* ops/norm/row_norm.c - what the normalisations of rows share: see norm.h. */
#include "ops/norm/norm.h"
#include "ops/shape/reduce.h"

const kn_rows_pass kn_norm_average = {KN_SUM_OF("a"), .row = "h", .finish = "h = s * p;"};

kn_rows_operand kn_row_norm_part(const kn_tensor *table, int part)
{
    kn_rows_operand operand = kn_row_operand(table);
    operand.offset += part * table->shape[1];
    return operand;
}

static kn_status run(kn_call *call, const kn_row_norm *norm, kn_norm_rows r, double eps, kn_tensor *const *in,
                     const kn_tensor *table)
{
    kn_rows_problem p = {.code = &norm->codes[in[KN_NORM_WEIGHT] != NULL][in[KN_NORM_BIAS] != NULL],
                         .operation = call->op->name,
                         .compute = in[KN_NORM_X]->dtype,
                         .outer = r.rows,
                         .n = r.n,
                         .inner = 1,
                         .segment = r.segment,
                         .segments = r.segments,
                         .mapped = kn_row_operand(call->outputs[0]),
                         .numbers = {1 / (double)r.n, eps}};
    int count = 0;
    for (int i = 0; i < norm->statistics; i++)
        p.outputs[i] = kn_row_norm_part(table, i);
    for (int i = KN_NORM_X; i < KN_NORM_INPUTS; i++)
        if (in[i])
            p.inputs[count++] = kn_row_operand(in[i]);
    return kn_rows_run(call->stream, &p);
}

kn_status kn_row_norm_forward(kn_call *call, const kn_row_norm *norm, kn_norm_rows r, double eps)
{
    const kn_tensor *x = call->inputs[KN_NORM_X];
    kn_tensor *in[KN_NORM_INPUTS] = {NULL}, *table = NULL;
    kn_status status =
        kn_tensor_new(&table, x->dtype, 2, (const int64_t[]){norm->statistics, r.rows}, x->storage->device);

    for (int i = KN_NORM_X; i < call->num_inputs && status == KN_OK; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&in[i], call->inputs[i]);
    if (status == KN_OK && call->needs_grad) {
        status = kn_call_save(call, in[KN_NORM_X]);
        if (status == KN_OK)
            status = kn_call_save(call, table);
        if (status == KN_OK && in[KN_NORM_WEIGHT])
            status = kn_call_save(call, in[KN_NORM_WEIGHT]);
    }
    if (status == KN_OK && r.rows * r.n > 0)
        status = run(call, norm, r, eps, in, table);
    if (status == KN_OK && call->num_outputs > 1)
        status = kn_norm_statistics_forward(call, table, 1, r.rows);
    for (int i = KN_NORM_X; i < KN_NORM_INPUTS; i++)
        kn_release(in[i]);
    kn_release(table);
    return status;
}

kn_rows_problem kn_row_norm_backward(kn_grad_call *grad, kn_rows_code codes[2], int statistics, kn_norm_rows r)
{
    const kn_tensor *x = grad->saved[0], *table = grad->saved[1], *weight = grad->num_saved > 2 ? grad->saved[2] : NULL;
    kn_rows_problem p = {.code = &codes[weight != NULL],
                         .operation = grad->op->name,
                         .compute = x->dtype,
                         .outer = r.rows,
                         .n = r.n,
                         .inner = 1,
                         .segment = r.segment,
                         .segments = r.segments,
                         .inputs = {kn_row_operand(grad->grad_outputs[0]), kn_row_operand(x)},
                         .numbers = {1 / (double)r.n}};
    for (int i = 0; i < statistics; i++)
        p.inputs[2 + i] = kn_row_norm_part(table, i);
    if (weight)
        p.inputs[2 + statistics] = kn_row_operand(weight);
    return p;
}
