/* ops/linalg/qr.c - Householder QR. */
#include <koine/join.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/integer.h"
#include "ops/linalg/linalg.h"

static int64_t columns_of_q(const kn_tensor *a, int mode)
{
    return mode == KN_QR_R ? 0 : mode == KN_QR_COMPLETE ? kn_rows(a) : kn_min_i64(kn_rows(a), kn_columns(a));
}

static kn_status qr_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const int mode = ((const kn_qr_args *)call->params)->mode;

    KN_TRY(kn_check_matrices(call, 0));
    const int64_t k = kn_min_i64(kn_rows(a), kn_columns(a));
    KN_TRY(kn_linalg_output(call, a->dtype, 2, mode == KN_QR_R ? 0 : kn_rows(a), columns_of_q(a, mode)));
    return kn_linalg_output(call, a->dtype, 2, mode == KN_QR_COMPLETE ? kn_rows(a) : k, kn_columns(a));
}

/* `work` becomes r above the diagonal; q. */
static kn_status factor(kn_call *call, kn_tensor *work, kn_tensor *tau)
{
    kn_tensor *q = call->outputs[0];
    const kn_linalg_launch launch = {"linalg/qr.cl", "linalg_qr", call->op->name, work->dtype, kn_matrices(work), 0};
    if (kn_linalg_qr_in_blocks(work))
        return kn_linalg_qr_blocks(call->stream, call->op->name, work, q);
    return KN_LINALG_RUN(call->stream, &launch, kn_arg_tensor(work), kn_arg_tensor(tau), kn_arg_tensor(q),
                         kn_arg_i64(kn_rows(work)), kn_arg_i64(kn_columns(work)),
                         kn_arg_i64(kn_numel(q) > 0 ? kn_columns(q) : 0));
}

static kn_status run(kn_call *call, kn_tensor *work, kn_tensor *tau)
{
    kn_tensor *r = call->outputs[1];
    const int64_t m = kn_rows(work), n = kn_columns(work);
    const int64_t rows = kn_matrices(r) * kn_rows(r);
    const kn_linalg_launch copy = {"linalg/qr.cl", "linalg_upper", call->op->name, work->dtype, 0, rows};

    KN_TRY(kn_tensor_copy(work, call->inputs[0]));
    if (kn_matrices(work) * m == 0)
        return KN_OK;
    KN_TRY(factor(call, work, tau));
    return kn_numel(r) == 0 ? KN_OK
                            : KN_LINALG_RUN(call->stream, &copy, kn_arg_tensor(work), kn_arg_tensor(r), kn_arg_i64(m),
                                            kn_arg_i64(kn_rows(r)), kn_arg_i64(n), kn_arg_i64(rows));
}

static kn_status qr_forward(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const int64_t shape[] = {kn_matrices(a), kn_min_i64(kn_rows(a), kn_columns(a))};
    kn_tensor *work = NULL, *tau = NULL;
    kn_status status = kn_tensor_new(&work, a->dtype, a->ndim, a->shape, a->storage->device);

    if (status == KN_OK)
        status = kn_tensor_new(&tau, a->dtype, 2, shape, a->storage->device);
    if (status == KN_OK)
        status = run(call, work, tau);
    kn_release(work);
    kn_release(tau);
    for (int i = 0; status == KN_OK && call->needs_grad && i < 2; i++)
        status = kn_call_save(call, call->outputs[i]);
    return status == KN_OK && call->needs_grad ? kn_call_save(call, call->inputs[0]) : status;
}

/* For r [n, n]: da = (dq + q c) r^-T, where c is m = r dr^T - dq^T q with its lower part copied to the upper one. */
static kn_tensor *backward_of_tall(kn_tensor *q, kn_tensor *r, kn_tensor *dq, kn_tensor *dr)
{
    kn_tensor *m = NULL;
    if (dr)
        m = kn_matmul(r, kn_matrix_transpose(dr));
    if (dq) {
        kn_tensor *product = kn_matmul(kn_matrix_transpose(dq), q);
        m = m ? kn_sub(m, product) : kn_neg(product);
    }
    kn_tensor *c = kn_matmul(q, kn_add(kn_lower_part(m, false), kn_matrix_transpose(kn_lower_part(m, true))));
    return kn_linalg_solve_triangular(kn_matrix_transpose(r), dq ? kn_add(dq, c) : c, false, false, false);
}

static kn_tensor *first_columns(kn_tensor *x, int64_t count) { return x ? kn_narrow(x, x->ndim - 1, 0, count) : NULL; }
static kn_tensor *last_columns(kn_tensor *x, int64_t from)
{
    return x ? kn_narrow(x, x->ndim - 1, from, kn_columns(x) - from) : NULL;
}

/* For a = [x y] wider than tall: y = q v, so that v's gradient goes to y, and through q to x. */
static kn_tensor *backward_of_wide(kn_tensor *a, kn_tensor *q, kn_tensor *r, kn_tensor *dq, kn_tensor *dr)
{
    const int64_t m = kn_rows(a);
    kn_tensor *dv = last_columns(dr, m), *dy = dv ? kn_matmul(q, dv) : NULL;
    if (dv) {
        kn_tensor *through = kn_matmul(last_columns(a, m), kn_matrix_transpose(dv));
        dq = dq ? kn_add(dq, through) : through;
    }
    kn_tensor *dx = backward_of_tall(q, first_columns(r, m), dq, first_columns(dr, m));
    if (!dy)
        dy = kn_mul_scalar(last_columns(a, m), 0);
    return kn_cat((kn_tensor *[]){dx, dy}, 2, a->ndim - 1);
}

static kn_status qr_backward(kn_grad_call *grad)
{
    const int mode = ((const kn_qr_args *)grad->params)->mode;
    kn_tensor *q = kn_grad_saved_output(grad, 0, 0), *r = kn_grad_saved_output(grad, 1, 1);
    kn_tensor *a = kn_grad_saved_input(grad, 2, 0), *dq = grad->grad_outputs[0], *dr = grad->grad_outputs[1];

    if (!q || !r || !a)
        return kn_error_status();
    if (mode == KN_QR_R)
        return kn_fail(KN_ERR_STATE, "mode r has no gradient, which needs q: use mode reduced");
    if (mode == KN_QR_COMPLETE && kn_rows(a) > kn_columns(a))
        return kn_fail(KN_ERR_STATE, "mode complete has no gradient for matrices of more rows than columns");
    grad->grad_inputs[0] =
        kn_rows(a) < kn_columns(a) ? backward_of_wide(a, q, r, dq, dr) : backward_of_tall(q, r, dq, dr);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static const char *const modes[] = {"reduced", "complete", "r", NULL};
static const kn_op_param rows[] = {KN_PARAM_NAMED("mode", kn_qr_args, mode, .values = modes)};
const kn_op kn_linalg_qr_op = {.name = "linalg_qr",
                               .inputs = {"a"},
                               .dtypes = {KN_DTYPES_FLOATING},
                               .outputs = {"q", "r"},
                               .params = KN_PARAMS(kn_qr_args, rows, .mode = KN_QR_REDUCED),
                               .widens_halves = true,
                               .shape = qr_shape,
                               .forward = qr_forward,
                               .backward = qr_backward,
                               .backward_recorded = qr_backward,
                               .reference = kn_qr_reference};

kn_tensor *kn_linalg_qr(kn_tensor *a, kn_qr_mode mode, kn_tensor **r)
{
    return kn_linalg_invoke(&kn_linalg_qr_op, &a, 1, &(kn_qr_args){.mode = mode}, r, NULL);
}
