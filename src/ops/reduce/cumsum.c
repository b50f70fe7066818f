/* ops/reduce/cumsum.c - running sums along a dimension. */
#include <koine/reduce.h>

#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/reduce/scan.h"

kn_rows_code kn_running_sum = {.name = "cumsum", .inputs = "a", KN_SUM_OF("a"), .values = {"s"}};

static kn_status cumsum_forward(kn_call *call) { return kn_scan_forward(call, &kn_running_sum); }

/* An element is part of all sums from its own on. */
static kn_status cumsum_backward(kn_grad_call *grad)
{
    if (!kn_grad_new(grad, 0))
        return kn_error_status();
    return kn_scan_run(grad->stream, &kn_running_sum, grad->op->name, grad->grad_outputs[0],
                       ((const kn_dim_args *)grad->params)->dim, true, grad->grad_inputs[0], NULL);
}

static kn_status cumsum_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, ((const kn_dim_args *)call->params)->dim);

    for (int64_t i = 0; i < kn_numel(x); i++) {
        const double before = i / l.inner % l.n > 0 ? kn_reference_get(call->outputs[0], i - l.inner) : 0;
        kn_reference_set(call->outputs[0], i, before + kn_reference_get(x, i));
    }
    return KN_OK;
}

extern const kn_op kn_cumsum_backward_op;
const kn_op kn_cumsum_op = {.name = "cumsum",
                            .inputs = {"x"},
                            .params = KN_PARAMS(kn_dim_args, kn_dim_rows),
                            .enter = kn_dim_enter,
                            .shape = kn_scan_shape_wide,
                            .forward = cumsum_forward,
                            .backward = cumsum_backward,
                            KN_RECORDED_AS(cumsum_backward),
                            .reference = cumsum_reference};

const kn_op kn_cumsum_backward_op = {KN_LINEAR_BACKWARD_OP(cumsum), .inputs = {"grad"}, .outputs = {"grad_x"}};

kn_tensor *kn_cumsum(kn_tensor *x, int dim) { return kn_invoke(&kn_cumsum_op, &(kn_dim_args){dim}, x); }
