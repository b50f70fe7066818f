/* ops/linalg/eigh.c - eigenvalues of symmetric matrices. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/integer.h"
#include "ops/linalg/linalg.h"

static kn_status eigh_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];

    KN_TRY(kn_check_square(call, 0));
    KN_TRY(kn_linalg_output(call, a->dtype, 1, kn_rows(a), 0));
    return kn_call_output(call, a->dtype, a->ndim, a->shape);
}

enum { VECTORS = 9 }; /* of linalg/symmetric.cl */

static kn_status eigh_by_tridiagonal(kn_call *call, kn_tensor *a)
{
    const int64_t n = kn_rows(a), size = kn_linalg_row_size(n), count = kn_matrices(a);
    const kn_linalg_launch launch = {
        "linalg/symmetric.cl", "linalg_eigh_symmetric", call->op->name, a->dtype, count, 0};
    kn_tensor *work = NULL, *space = NULL, *values = call->outputs[0], *vectors = call->outputs[1];
    kn_status status = kn_tensor_new(&work, a->dtype, 3, (int64_t[]){count, n, size}, a->storage->device);

    if (status == KN_OK)
        status = kn_tensor_new(&space, a->dtype, 3, (int64_t[]){count, VECTORS, size}, a->storage->device);
    if (status == KN_OK)
        status = KN_LINALG_RUN(call->stream, &launch, kn_arg_tensor(a), kn_arg_tensor(work), kn_arg_tensor(space),
                               kn_arg_tensor(values), kn_arg_tensor(vectors ? vectors : work), kn_arg_i64(n),
                               kn_arg_i64(size), kn_arg_i64(vectors != NULL),
                               kn_arg_real(a->dtype, kn_linalg_tolerance(a->dtype)));
    kn_release(work);
    kn_release(space);
    return status;
}

/* `a` is overwritten. */
static kn_status eigh_by_rotations(kn_call *call, kn_tensor *a)
{
    const kn_linalg_launch sweeps = {"linalg/jacobi.cl", "linalg_eigh", call->op->name, a->dtype, kn_matrices(a), 0};
    const kn_linalg_launch finish = {"linalg/jacobi.cl", "linalg_eigh_finish", call->op->name, a->dtype, 0,
                                     kn_matrices(a)};
    const kn_arg n = kn_arg_i64(kn_rows(a)), vectors = kn_arg_tensor(call->outputs[1]);

    KN_TRY(KN_LINALG_RUN(call->stream, &sweeps, kn_arg_tensor(a), vectors, n,
                         kn_arg_real(a->dtype, kn_linalg_tolerance(a->dtype))));
    return KN_LINALG_RUN(call->stream, &finish, kn_arg_tensor(a), kn_arg_tensor(call->outputs[0]), vectors, n,
                         kn_arg_i64(kn_matrices(a)));
}

static kn_status run_eigh(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    kn_tensor *source = NULL;
    kn_status status;

    if (kn_linalg_reflects(a)) {
        status = kn_tensor_contiguous(&source, call->inputs[0]);
        if (status == KN_OK)
            status = eigh_by_tridiagonal(call, source);
    } else {
        status = kn_linalg_make_skipped(call, 1);
        if (status == KN_OK)
            status = kn_tensor_new(&source, a->dtype, a->ndim, a->shape, a->storage->device);
        if (status == KN_OK)
            status = kn_tensor_copy(source, a);
        if (status == KN_OK)
            status = eigh_by_rotations(call, source);
    }
    kn_release(source);
    return status;
}

static kn_status eigh_forward(kn_call *call)
{
    KN_TRY(kn_linalg_make_skipped(call, 0));
    if (call->needs_grad)
        KN_TRY(kn_linalg_make_skipped(call, 1));
    kn_status status = kn_numel(call->inputs[0]) > 0 ? run_eigh(call) : KN_OK;
    for (int i = 0; status == KN_OK && call->needs_grad && i < 2; i++)
        status = kn_call_save(call, call->outputs[i]);
    return status;
}

/* da = v (skew(v^T dv) / 2 / (l_j - l_i) + diag dl) v^T, which is symmetric. */
static kn_status eigh_backward(kn_grad_call *grad)
{
    kn_tensor *l = kn_grad_saved_output(grad, 0, 0), *v = kn_grad_saved_output(grad, 1, 1);
    kn_tensor *dl = grad->grad_outputs[0], *dv = grad->grad_outputs[1];
    kn_tensor *vt = kn_matrix_transpose(v), *inner = dl ? kn_diagonal_matrix(dl) : NULL;

    if (dv) {
        kn_tensor *half = kn_mul_scalar(kn_antisymmetric(kn_matmul(vt, dv)), 0.5),
                  *turned = kn_mul(half, kn_inverse_gaps(l));
        inner = inner ? kn_add(inner, turned) : turned;
    }
    grad->grad_inputs[0] = kn_matmul(kn_matmul(v, inner), vt);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

const kn_op kn_linalg_eigh_op = {.name = "linalg_eigh",
                                 .inputs = {"a"},
                                 .dtypes = {KN_DTYPES_FLOATING},
                                 .outputs = {"eigenvalues", "eigenvectors"},
                                 .widens_halves = true,
                                 .skips_outputs = true,
                                 .shape = eigh_shape,
                                 .forward = eigh_forward,
                                 .backward = eigh_backward,
                                 .backward_recorded = eigh_backward,
                                 .reference = kn_eigh_reference};

kn_tensor *kn_linalg_eigh(kn_tensor *a, bool upper, kn_tensor **vectors)
{
    return kn_linalg_invoke(&kn_linalg_eigh_op, (kn_tensor *[]){upper ? kn_matrix_transpose(a) : a}, 1, NULL, vectors,
                            NULL);
}

kn_tensor *kn_linalg_eigvalsh(kn_tensor *a, bool upper) { return kn_linalg_eigh(a, upper, NULL); }
