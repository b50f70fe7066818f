/* ops/reduce/scan.c - see scan.h. */
#include "ops/reduce/scan.h"

/* The type to compute in: integers that are only compared in 32 bits if they fit. */
static kn_dtype compute_of(kn_dtype x, kn_dtype y)
{
    return kn_dtype_is_floating(y) ? kn_compute_type(y) : x == KN_I64 || y == KN_I64 ? KN_I64 : KN_I32;
}

kn_status kn_scan_run(kn_stream *stream, kn_rows_code *code, const char *operation, kn_tensor *x, int dim,
                      bool backwards, const kn_tensor *y, const kn_tensor *indices)
{
    const kn_along l = kn_along_dim(x->ndim, x->shape, dim);
    kn_rows_problem p = {.code = code,
                         .operation = operation,
                         .compute = compute_of(x->dtype, y->dtype),
                         .outer = l.outer,
                         .n = l.n,
                         .inner = l.inner,
                         .outputs = {kn_row_operand(y)},
                         .scans = true,
                         .backwards = backwards};
    kn_tensor *contiguous;

    KN_TRY(kn_tensor_contiguous(&contiguous, x));
    p.inputs[0] = kn_row_operand(contiguous);
    if (indices)
        p.outputs[1] = kn_row_operand(indices);
    const kn_status status = kn_rows_run(stream, &p);
    kn_release(contiguous);
    return status;
}

kn_status kn_scan_forward(kn_call *call, kn_rows_code *code)
{
    return kn_scan_run(call->stream, code, call->op->name, call->inputs[0], ((const kn_dim_args *)call->params)->dim,
                       false, call->outputs[0], call->num_outputs > 1 ? call->outputs[1] : NULL);
}

kn_status kn_scan_shape_wide(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    return kn_call_output(call, kn_dtype_is_floating(x->dtype) ? x->dtype : KN_I64, x->ndim, x->shape);
}
