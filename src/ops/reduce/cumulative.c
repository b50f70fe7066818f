/* ops/reduce/cumulative.c - cumprod and logcumsumexp: running products, and logarithms of running sums of exponentials.
 */
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/tensor.h>

#include "ops/dispatch/operators.h"
#include "ops/dispatch/reference.h"
#include "ops/reduce/scan.h"

static int dim_of(const void *params) { return ((const kn_dim_args *)params)->dim; }
static kn_tensor_options like(const kn_tensor *t)
{
    return (kn_tensor_options){.dtype = t->dtype, .device = kn_device_of(t)};
}

/* The sum of each element and those after it. */
static kn_tensor *sums_from(kn_tensor *x, int dim) { return kn_invoke(&kn_cumsum_backward_op, &(kn_dim_args){dim}, x); }

/* --- products ----------------------------------------------------------------------------------------------------- */

static kn_rows_code product = {.name = "cumprod",
                               .inputs = "a",
                               .state = "s",
                               .init = "s = 1;",
                               .step = "s *= a;",
                               .merge = "s *= S;",
                               .values = {"s"}};

static kn_status cumprod_forward(kn_call *call)
{
    if (call->needs_grad) {
        KN_TRY(kn_call_save(call, call->inputs[0]));
        KN_TRY(kn_call_save(call, call->outputs[0]));
    }
    return kn_scan_forward(call, &product);
}

/* Sums over j of g y / x are the gradients before the first zero of a row. That of the first zero is the same of the
 * row in which it is a one; after it they are 0. */
static kn_status cumprod_backward(kn_grad_call *grad)
{
    const int dim = dim_of(grad->params);
    kn_tensor *g = grad->grad_outputs[0], *x = grad->saved[0], *y = grad->saved[1];
    const kn_tensor_options options = like(x);
    kn_tensor *zero = kn_zeros_with(0, NULL, &options), *one = kn_ones_with(0, NULL, &options);
    kn_tensor *is_zero = kn_eq(x, zero), *zeros = kn_cumsum(is_zero, dim);
    kn_tensor *is_first = kn_mul(is_zero, kn_eq(zeros, kn_ones_like(zeros)));
    kn_tensor *before = kn_eq(zeros, kn_zeros_like(zeros)), *after = kn_eq(before, kn_zeros_like(before));
    kn_tensor *with_one = kn_cumprod(kn_where(is_first, one, x), dim);
    kn_tensor *at_first = sums_from(kn_where(after, kn_mul(g, with_one), zero), dim);
    kn_tensor *earlier = kn_div(sums_from(kn_mul(g, y), dim), kn_where(is_zero, one, x));
    grad->grad_inputs[0] = kn_where(is_first, at_first, kn_where(before, earlier, zero));
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* Differentiable also at zeros: [outer, k, j, inner] has the products up to j without element k. */
static kn_status cumprod_backward_recorded(kn_grad_call *grad)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_along l = kn_along_dim(input->ndim, input->shape, dim_of(grad->params));
    const int64_t row[] = {l.outer, 1, l.n, l.inner}, square[] = {l.outer, l.n, l.n, l.inner};
    kn_tensor *x = kn_grad_saved_input(grad, 0, 0);
    if (!x)
        return kn_error_status();
    const kn_tensor_options options = like(x), whole = {.dtype = KN_I64, .device = input->device};
    kn_tensor *places = kn_arange_with(0, (double)l.n, 1, &whole), *zero = kn_zeros_with(0, NULL, &options);
    kn_tensor *j = kn_reshape(places, 4, (const int64_t[]){1, 1, l.n, 1});
    kn_tensor *k = kn_reshape(places, 4, (const int64_t[]){1, l.n, 1, 1});
    kn_tensor *others =
        kn_where(kn_eq(j, k), kn_ones_with(0, NULL, &options), kn_expand(kn_reshape(x, 4, row), 4, square));
    kn_tensor *products = kn_mul(kn_cumprod(others, 2), kn_reshape(grad->grad_outputs[0], 4, row));
    kn_tensor *sums = kn_sum_dims(kn_where(kn_ge(j, k), products, zero), (const int[]){2}, 1, false);
    grad->grad_inputs[0] = kn_reshape(sums, input->ndim, input->shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status cumprod_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, dim_of(call->params));
    for (int64_t i = 0; i < kn_numel(x); i++) {
        const double before = i / l.inner % l.n > 0 ? kn_reference_get(call->outputs[0], i - l.inner) : 1;
        kn_reference_set(call->outputs[0], i, before * kn_reference_get(x, i));
    }
    return KN_OK;
}

const kn_op kn_cumprod_op = {.name = "cumprod",
                             .inputs = {"x"},
                             .params = KN_PARAMS(kn_dim_args, kn_dim_rows),
                             .widens_halves = true,
                             .enter = kn_dim_enter,
                             .shape = kn_scan_shape_wide,
                             .forward = cumprod_forward,
                             .backward = cumprod_backward,
                             .backward_recorded = cumprod_backward_recorded,
                             .saved = {"x", "result"},
                             .reference = cumprod_reference};
const kn_op kn_cumprod_backward_op = {KN_BACKWARD_OP(cumprod), .inputs = {"grad", "x", "result"},
                                      .outputs = {"grad_x"}};

kn_tensor *kn_cumprod(kn_tensor *x, int dim) { return kn_invoke(&kn_cumprod_op, &(kn_dim_args){dim}, x); }

/* --- logarithms of sums of exponentials --------------------------------------------------------------------------- */

/* The sum u is of exp(a - m), m the largest so far; infinities are not subtracted: their differences are NaN. */
#define SHIFT(m) "(fabs(" m ") == (T)INFINITY ? (T)0 : " m ")"
static kn_rows_code log_sum = {
    .name = "logcumsumexp",
    .inputs = "a",
    .state = "mu",
    .init = "m = -(T)INFINITY; u = 0;",
    .step = "const T n = a > m ? a : m, t = " SHIFT("n") "; "
                                                         "u = u * exp(m - t) + exp(a - t); m = n;",
    .merge = "const T n = M > m ? M : m, t = " SHIFT("n") "; "
                                                          "u = u * exp(m - t) + U * exp(M - t); m = n;",
    .values = {SHIFT("m") " + log(u)"},
    .takes_long = true};

static kn_status logcumsumexp_shape(kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    return kn_dtype_is_floating(dtype)
               ? kn_scan_shape_wide(call)
               : kn_fail(KN_ERR_DTYPE, "the input is %s: it takes floating dtypes; convert it with kn_to_dtype first",
                         kn_dtype_name(dtype));
}

static kn_status logcumsumexp_forward(kn_call *call)
{
    if (call->needs_grad) {
        KN_TRY(kn_call_save(call, call->inputs[0]));
        KN_TRY(kn_call_save(call, call->outputs[0]));
    }
    return kn_scan_forward(call, &log_sum);
}

/* exp(x) times the sums over j of g exp(-y), for gradients of one sign in logarithms: neither exponential may overflow.
 */
static kn_tensor *gradient_of_sign(kn_grad_call *grad, bool positive)
{
    kn_tensor *x = grad->saved[0], *y = grad->saved[1], *g = grad->grad_outputs[0];
    const kn_tensor_options options = like(x);
    kn_tensor *zero = kn_zeros_with(0, NULL, &options);
    kn_tensor *size = positive ? g : kn_neg(g), *sums = kn_empty_with(x->ndim, x->shape, &options);
    kn_tensor *logs = kn_where(kn_gt(size, zero), kn_sub(kn_log(size), y), kn_log(zero));
    if (!sums || !logs)
        return NULL;
    if (kn_scan_run(grad->stream, &log_sum, grad->op->name, logs, dim_of(grad->params), true, sums, NULL) != KN_OK)
        return NULL;
    return kn_exp(kn_add(sums, x));
}

static kn_status logcumsumexp_backward(kn_grad_call *grad)
{
    kn_tensor *gain = gradient_of_sign(grad, true), *loss = gain ? gradient_of_sign(grad, false) : NULL;
    grad->grad_inputs[0] = loss ? kn_sub(gain, loss) : NULL;
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* Differentiable: [outer, k, j, inner] has g exp(x of k - y of j), for j from k on. */
static kn_status logcumsumexp_backward_recorded(kn_grad_call *grad)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_along l = kn_along_dim(input->ndim, input->shape, dim_of(grad->params));
    const int64_t row[] = {l.outer, 1, l.n, l.inner}, column[] = {l.outer, l.n, 1, l.inner};
    kn_tensor *x = kn_grad_saved_input(grad, 0, 0), *y = kn_grad_saved_output(grad, 1, 0);
    if (!x || !y)
        return kn_error_status();
    const kn_tensor_options options = like(x), whole = {.dtype = KN_I64, .device = input->device};
    kn_tensor *places = kn_arange_with(0, (double)l.n, 1, &whole), *zero = kn_zeros_with(0, NULL, &options);
    kn_tensor *is_part = kn_ge(kn_reshape(places, 4, (const int64_t[]){1, 1, l.n, 1}),
                               kn_reshape(places, 4, (const int64_t[]){1, l.n, 1, 1}));
    kn_tensor *share = kn_sub(kn_reshape(x, 4, column), kn_reshape(y, 4, row));
    kn_tensor *shares = kn_where(is_part, kn_exp(kn_where(is_part, share, zero)), zero);
    kn_tensor *sums =
        kn_sum_dims(kn_mul(shares, kn_reshape(grad->grad_outputs[0], 4, row)), (const int[]){2}, 1, false);
    grad->grad_inputs[0] = kn_reshape(sums, input->ndim, input->shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status logcumsumexp_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, dim_of(call->params));
    for (int64_t i = 0; i < kn_numel(x); i++) {
        const double a = kn_reference_get(x, i);
        const double before = i / l.inner % l.n > 0 ? kn_reference_get(call->outputs[0], i - l.inner) : -INFINITY;
        const double high = fmax(a, before), low = fmin(a, before);
        kn_reference_set(call->outputs[0], i,
                         isnan(a) || isnan(before) ? NAN
                         : isinf(high)             ? high
                                                   : high + log1p(exp(low - high)));
    }
    return KN_OK;
}

const kn_op kn_logcumsumexp_op = {.name = "logcumsumexp",
                                  .inputs = {"x"},
                                  .dtypes = {KN_DTYPES_FLOATING},
                                  .params = KN_PARAMS(kn_dim_args, kn_dim_rows),
                                  .widens_halves = true,
                                  .enter = kn_dim_enter,
                                  .shape = logcumsumexp_shape,
                                  .forward = logcumsumexp_forward,
                                  .backward = logcumsumexp_backward,
                                  .backward_recorded = logcumsumexp_backward_recorded,
                                  .saved = {"x", "result"},
                                  .reference = logcumsumexp_reference};
const kn_op kn_logcumsumexp_backward_op = {KN_BACKWARD_OP(logcumsumexp), .inputs = {"grad", "x", "result"},
                                           .outputs = {"grad_x"}};

kn_tensor *kn_logcumsumexp(kn_tensor *x, int dim) { return kn_invoke(&kn_logcumsumexp_op, &(kn_dim_args){dim}, x); }
