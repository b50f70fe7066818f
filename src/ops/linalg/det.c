/* ops/linalg/det.c - determinants, from the LU factorisation, and their logarithms. */
#include <float.h>
#include <koine/index.h>
#include <koine/logic.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>

#include "ops/linalg/linalg.h"

static kn_status det_shape(kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;

    KN_TRY(kn_check_square(call, 0));
    KN_TRY(kn_linalg_output(call, dtype, 0, 0, 0));
    return call->op->outputs[1] ? kn_linalg_output(call, dtype, 0, 0, 0) : KN_OK;
}

/* The determinants, or, if there is a tensor for them, their signs and logarithms. */
static kn_status run(kn_stream *stream, const char *operation, const kn_tensor *lu, const kn_tensor *pivots,
                     const kn_tensor *sign, const kn_tensor *logarithm)
{
    const int64_t matrices = kn_matrices(lu);
    const kn_linalg_launch launch = {"linalg/solve.cl", "linalg_determinant", operation, lu->dtype, 0, matrices};
    return matrices == 0 ? KN_OK
                         : KN_LINALG_RUN(stream, &launch, kn_arg_tensor(lu), kn_arg_tensor(pivots), kn_arg_tensor(sign),
                                         kn_arg_tensor(logarithm ? logarithm : lu), kn_arg_i64(kn_rows(lu)),
                                         kn_arg_i64(matrices), kn_arg_i32(!logarithm));
}

static kn_status det_forward(kn_call *call)
{
    kn_tensor *lu = NULL, *pivots = NULL;
    kn_status status = kn_lu_factored(call, &lu, &pivots, NULL, false);

    if (status == KN_OK)
        status = run(call->stream, call->op->name, lu, pivots, call->outputs[0],
                     call->num_outputs > 1 ? call->outputs[1] : NULL);
    kn_release(lu);
    kn_release(pivots);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, call->inputs[0]);
    return status == KN_OK && call->needs_grad ? kn_call_save(call, call->outputs[0]) : status;
}

static kn_tensor *as_matrices(kn_tensor *g) { return kn_unsqueeze(kn_unsqueeze(g, -1), -1); }

/* det(a) a^-T, the cofactors, which singular matrices have too: as in PyTorch, a pivot that is 0 is replaced by the
 * dtype's epsilon, from which a polynomial of the elements differs by rounding only. */
static kn_status det_backward(kn_grad_call *grad)
{
    kn_tensor *a = grad->saved[0], *pivots, *info, *lu = kn_linalg_lu_factor_ex(a, &pivots, &info);
    kn_tensor *pivot = lu ? kn_diagonal(lu, .dim1 = -2, .dim2 = -1) : NULL,
              *determinant = kn_empty_like(grad->saved[1]), *inverse = kn_empty_like(a);

    if (!pivot || !determinant || !inverse ||
        !kn_masked_fill_(pivot, kn_eq_scalar(pivot, 0), a->dtype == KN_F64 ? DBL_EPSILON : (double)FLT_EPSILON))
        return kn_error_status();
    KN_TRY(kn_copy_(inverse, kn_identity(kn_rows(a), a->dtype, kn_device_of(a)))); /* one for each matrix */
    KN_TRY(kn_lu_solve_run(grad->stream, grad->op->name, lu, pivots, inverse));
    KN_TRY(run(grad->stream, grad->op->name, lu, pivots, determinant, NULL));
    kn_tensor *g = as_matrices(kn_mul(grad->grad_outputs[0], determinant));
    return kn_status_of(grad->grad_inputs[0] = kn_contiguous(kn_mul(g, kn_matrix_transpose(inverse))));
}

/* The same of recorded operations, for matrices that have an inverse: d log |det a| = a^-T. */
static kn_status recorded(kn_grad_call *grad, kn_tensor *g)
{
    kn_tensor *info, *inverse = kn_linalg_inv_ex(kn_grad_saved_input(grad, 0, 0), &info);
    return kn_status_of(grad->grad_inputs[0] = kn_mul(as_matrices(g), kn_matrix_transpose(inverse)));
}

static kn_status det_backward_recorded(kn_grad_call *grad)
{
    return recorded(grad, kn_mul(grad->grad_outputs[0], kn_grad_saved_output(grad, 1, 0)));
}

/* The sign's gradient is 0. */
static kn_status slogdet_backward(kn_grad_call *grad)
{
    return recorded(grad, grad->grad_outputs[1] ? grad->grad_outputs[1] : kn_zeros_like(grad->saved[1]));
}

#define DET(op_name, backward_, recorded_, ...)                                                                        \
    {                                                                                                                  \
        .name = op_name, .inputs = {"a"}, .dtypes = {KN_DTYPES_FLOATING}, .outputs = {__VA_ARGS__},                    \
        .widens_halves = true, .shape = det_shape, .forward = det_forward, .backward = backward_,                      \
        .backward_recorded = recorded_, .reference = kn_det_reference                                                  \
    }
const kn_op kn_linalg_det_op = DET("linalg_det", det_backward, det_backward_recorded, "result");
const kn_op kn_linalg_slogdet_op = DET("linalg_slogdet", slogdet_backward, slogdet_backward, "sign", "logabsdet");

kn_tensor *kn_linalg_det(kn_tensor *a) { return kn_invoke(&kn_linalg_det_op, NULL, a); }
kn_tensor *kn_linalg_slogdet(kn_tensor *a, kn_tensor **logabsdet)
{
    return kn_linalg_invoke(&kn_linalg_slogdet_op, &a, 1, NULL, logabsdet, NULL);
}

kn_tensor *kn_logdet(kn_tensor *a)
{
    kn_tensor *logabsdet, *sign = kn_linalg_slogdet(a, &logabsdet);
    if (!sign)
        return NULL;
    const kn_tensor_options options = {.dtype = sign->dtype, .device = kn_device_of(sign)};
    kn_tensor *zero = kn_full_with(0, NULL, kn_scalar_real(0), &options);
    return kn_where(kn_lt(sign, zero), kn_full_with(0, NULL, kn_scalar_real((double)NAN), &options), logabsdet);
}
