/* ops/reduce/taken.c - see taken.h. */
#include "ops/reduce/taken.h"

#include <koine/shape.h>
#include <stdio.h>

#include "loops/work_size.h"
#include "ops/shape/reduce.h"

kn_status kn_taken_backward(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_along l = kn_along_dim(input->ndim, input->shape, dim);
    kn_tensor *out;
    char options[64];

    if (!gradient)
        return KN_OK;
    out = kn_grad_new(grad, 0);
    if (!out)
        return kn_error_status();
    const int64_t taken = kn_numel(gradient), k = l.outer * l.inner > 0 ? taken / (l.outer * l.inner) : 0;
    if (k < l.n)
        KN_TRY(kn_tensor_fill(out, 0));
    if (taken == 0)
        return KN_OK;
    indices = kn_contiguous(indices);
    if (!indices)
        return kn_error_status();
    snprintf(options, sizeof options, "-DBITS=%s",
             kn_dtype_size(out->dtype) == 2   ? "ushort"
             : kn_dtype_size(out->dtype) == 4 ? "uint"
                                              : "ulong");
    const kn_work_size work = kn_work_for(kn_tensor_limits(out), taken);
    return kn_run(grad->stream, .source = "reduce/taken.cl", .options = options, .kernel = "place_taken",
                  .operation = grad->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(gradient), kn_arg_tensor(indices), kn_arg_tensor(out), kn_arg_i64(taken),
                          kn_arg_i64(k), kn_arg_i64(l.n), kn_arg_i64(l.inner), kn_arg_fault()));
}
