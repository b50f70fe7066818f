/* ops/norm/softmax.c - softmax and log-softmax along a dimension. */
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>

#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/reduce.h"

typedef struct kn_softmax_params {
    int dim;
    bool logarithm;
} kn_softmax_params;

static kn_status softmax_shape(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}

/* --- what is computed of a row ------------------------------------------------------------------------------------ */

const kn_rows_pass kn_softmax_maximum = {KN_LARGEST, .row = "h", .finish = "h = m;"};

/* The logarithm subtracts the maximum first: adding the other term to it would round that to the maximum's
 * precision. */
#define FORWARD(id, ...)                                                                                               \
    {                                                                                                                  \
        .name = id, .inputs = "a", .prepass = &kn_softmax_maximum, .row = "r", __VA_ARGS__                             \
    }
static kn_rows_code forward_codes[] = {
    FORWARD("softmax", KN_SUM_OF("a"), .keep = "a = KN_EXP(a - h);", .finish = "r = 1 / s;", .map = "a * r"),
    FORWARD("log_softmax", KN_SUM_OF("KN_EXP(a - h)"), .finish = "r = log(s);", .map = "a - h - r")};

/* dx = y (g - sum g y); of the logarithm: g - exp(y) sum g. */
#define BACKWARD(id, ...)                                                                                              \
    {                                                                                                                  \
        .name = id "_backward", .inputs = "gy", .row = "r", .finish = "r = s;", __VA_ARGS__                            \
    }
static kn_rows_code backward_codes[] = {BACKWARD("softmax", KN_SUM_OF("g * y"), .map = "y * (g - r)"),
                                        BACKWARD("log_softmax", KN_SUM_OF("g"), .map = "g - KN_EXP(y) * r")};

static kn_status run(kn_stream *stream, kn_rows_code *codes, const kn_softmax_params *params, const kn_tensor *a,
                     const kn_tensor *b, kn_tensor *out)
{
    const kn_along l = kn_along_dim(out->ndim, out->shape, params->dim);
    const kn_rows_problem p = {.code = &codes[params->logarithm],
                               .operation = params->logarithm ? "log_softmax" : "softmax",
                               .compute = out->dtype,
                               .outer = l.outer,
                               .n = l.n,
                               .inner = l.inner,
                               .mapped = kn_row_operand(out),
                               .inputs = {kn_row_operand(a), kn_row_operand(b)}};
    return kn_numel(out) == 0 ? KN_OK : kn_rows_run(stream, &p);
}

static kn_status softmax_forward(kn_call *call)
{
    kn_tensor *x;
    kn_status status;

    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[0]));
    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = run(call->stream, forward_codes, call->params, x, x, call->outputs[0]);
    kn_release(x);
    return status;
}

static kn_status softmax_backward(kn_grad_call *grad)
{
    if (!kn_grad_new(grad, 0))
        return kn_error_status();
    return run(grad->stream, backward_codes, grad->params, grad->grad_outputs[0], grad->saved[0], grad->grad_inputs[0]);
}

static kn_status softmax_reference(const kn_call *call)
{
    const kn_softmax_params *params = call->params;
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, params->dim);

    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        const int64_t from = i / l.inner * l.n * l.inner + i % l.inner;
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < l.n; k++)
            largest = fmax(largest, kn_reference_get(x, from + k * l.inner));
        for (int64_t k = 0; k < l.n; k++)
            sum += exp(kn_reference_get(x, from + k * l.inner) - largest);
        for (int64_t k = 0; k < l.n; k++) {
            const double shifted = kn_reference_get(x, from + k * l.inner) - largest;
            kn_reference_set(call->outputs[0], from + k * l.inner,
                             params->logarithm ? shifted - log(sum) : exp(shifted) / sum);
        }
    }
    return KN_OK;
}

/* Maximum, difference, exponential, sum, quotient; product, sum, difference, product. */
static kn_span_work softmax_work(const kn_call *call) { return kn_work_of_input(call, 5); }
static kn_span_work softmax_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, 4 * kn_grad_work_elements(grad, 0));
}

static kn_status enter(kn_entry *entry, bool logarithm)
{
    kn_softmax_params *own = kn_entry_record(entry, sizeof *own);
    own->logarithm = logarithm;
    return kn_dim_from_front(&own->dim, ((const kn_dim_args *)entry->params)->dim, entry->inputs[0]->ndim);
}

static kn_status softmax_enter(kn_entry *entry) { return enter(entry, false); }
static kn_status log_softmax_enter(kn_entry *entry) { return enter(entry, true); }

/* dx = y (g - sum(y g)); log-softmax: g - exp(y) sum(g). */
static kn_status softmax_backward_recorded(kn_grad_call *grad)
{
    const kn_softmax_params *params = grad->params;
    kn_tensor *g = grad->grad_outputs[0], *y = kn_grad_saved_output(grad, 0, 0);
    kn_tensor *sum = kn_sum_dims(params->logarithm ? g : kn_mul(y, g), &params->dim, 1, true);
    grad->grad_inputs[0] = params->logarithm ? kn_sub(g, kn_mul(kn_exp(y), sum)) : kn_mul(y, kn_sub(g, sum));
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

#define SOFTMAX_OP(op_name, enter_)                                                                                    \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .dtypes = {KN_DTYPES_FLOATING},                                              \
        .params = KN_PARAMS(kn_dim_args, kn_dim_rows, .dim = -1), .widens_halves = true, .enter = enter_,              \
        .record_size = sizeof(kn_softmax_params), .shape = softmax_shape, .forward = softmax_forward,                  \
        .backward = softmax_backward, .saved = {"result"}, .backward_recorded = softmax_backward_recorded,             \
        .reference = softmax_reference, .work = softmax_work, .backward_work = softmax_backward_work                   \
    }
const kn_op kn_softmax_op = SOFTMAX_OP("softmax", softmax_enter);
const kn_op kn_log_softmax_op = SOFTMAX_OP("log_softmax", log_softmax_enter);

#define SOFTMAX_BACKWARD(of)                                                                                           \
    {                                                                                                                  \
        KN_BACKWARD_OP(of), .inputs = {"grad", "result"}, .outputs = {"grad_x"}, .widens_halves = true                 \
    }
const kn_op kn_softmax_backward_op = SOFTMAX_BACKWARD(softmax),
            kn_log_softmax_backward_op = SOFTMAX_BACKWARD(log_softmax);

kn_tensor *kn_softmax(kn_tensor *x, int dim) { return kn_invoke(&kn_softmax_op, &(kn_dim_args){dim}, x); }
kn_tensor *kn_log_softmax(kn_tensor *x, int dim) { return kn_invoke(&kn_log_softmax_op, &(kn_dim_args){dim}, x); }
