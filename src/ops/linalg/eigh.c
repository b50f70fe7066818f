/* ops/linalg/eigh.c - eigenvalues of symmetric matrices, and singular values, by rotations. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/integer.h"
#include "ops/linalg/linalg.h"

/* Off-diagonal elements this small, relative to the others, are 0. */
static double tolerance_of(kn_dtype dtype) { return dtype == KN_F64 ? 1e-16 : 6e-8; }

/* 1 / (x_j - x_i) for x [..., n], 0 on the diagonal. */
static kn_tensor *inverse_gaps(kn_tensor *x)
{
    kn_tensor *gaps = kn_sub(kn_unsqueeze(x, -2), kn_unsqueeze(x, -1));
    kn_tensor *ones = kn_identity(kn_size(x, -1), kn_dtype_of(x), kn_device_of(x));
    return kn_sub(kn_reciprocal(kn_add(gaps, ones)), ones);
}

/* --- eigh --------------------------------------------------------------------------------------------------------- */

static kn_status eigh_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];

    KN_TRY(kn_check_square(call, 0));
    KN_TRY(kn_linalg_output(call, a->dtype, 1, kn_rows(a), 0));
    return kn_call_output(call, a->dtype, a->ndim, a->shape);
}

/* From this size on tridiagonal matrices are faster on CPU devices, where a matrix has one work-item; of smaller ones
 * Jacobi's rotations have a few times smaller errors. */
#define LARGE 8

/* a becomes diagonal. */
static kn_status diagonalize(kn_call *call, kn_tensor *a)
{
    const kn_linalg_launch sweeps = {"linalg/jacobi.cl", "linalg_eigh", call->op->name, a->dtype, kn_matrices(a), 0};
    const kn_linalg_launch steps = {
        "linalg/symmetric.cl", "linalg_eigh_symmetric", call->op->name, a->dtype, kn_matrices(a), 0};
    const kn_arg n = kn_arg_i64(kn_rows(a)), tolerance = kn_arg_real(a->dtype, tolerance_of(a->dtype));
    const int64_t shape[] = {kn_matrices(a), 3, kn_rows(a)};
    kn_tensor *scratch;

    if (!kn_tensor_limits(a)->is_cpu || kn_rows(a) < LARGE)
        return KN_LINALG_RUN(call->stream, &sweeps, kn_arg_tensor(a), kn_arg_tensor(call->outputs[1]), n, tolerance);
    KN_TRY(kn_tensor_new(&scratch, a->dtype, 3, shape, a->storage->device));
    const kn_status status = KN_LINALG_RUN(call->stream, &steps, kn_arg_tensor(a), kn_arg_tensor(call->outputs[1]),
                                           kn_arg_tensor(scratch), n, tolerance);
    kn_release(scratch);
    return status;
}

static kn_status eigh_forward(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const kn_linalg_launch finish = {"linalg/jacobi.cl", "linalg_eigh_finish", call->op->name, a->dtype, 0,
                                     kn_matrices(a)};
    kn_tensor *work;

    KN_TRY(kn_tensor_new(&work, a->dtype, a->ndim, a->shape, a->storage->device));
    kn_status status = kn_tensor_copy(work, a);
    if (status == KN_OK && kn_numel(a) > 0)
        status = diagonalize(call, work);
    if (status == KN_OK && kn_numel(a) > 0)
        status = KN_LINALG_RUN(call->stream, &finish, kn_arg_tensor(work), kn_arg_tensor(call->outputs[0]),
                               kn_arg_tensor(call->outputs[1]), kn_arg_i64(kn_rows(a)), kn_arg_i64(kn_matrices(a)));
    kn_release(work);
    for (int i = 0; status == KN_OK && call->needs_grad && i < 2; i++)
        status = kn_call_save(call, call->outputs[i]);
    return status;
}

static kn_tensor *antisymmetric(kn_tensor *x) { return kn_sub(x, kn_matrix_transpose(x)); }

/* da = v (skew(v^T dv) / 2 / (l_j - l_i) + diag dl) v^T, which is symmetric. */
static kn_status eigh_backward(kn_grad_call *grad)
{
    kn_tensor *l = kn_grad_saved_output(grad, 0, 0), *v = kn_grad_saved_output(grad, 1, 1);
    kn_tensor *dl = grad->grad_outputs[0], *dv = grad->grad_outputs[1];
    kn_tensor *vt = kn_matrix_transpose(v), *inner = dl ? kn_diagonal_matrix(dl) : NULL;

    if (dv) {
        kn_tensor *half = kn_mul_scalar(antisymmetric(kn_matmul(vt, dv)), 0.5), *turned = kn_mul(half, inverse_gaps(l));
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

/* --- svd ---------------------------------------------------------------------------------------------------------- */

static kn_status svd_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const bool full = ((const kn_svd_args *)call->params)->full_matrices;

    KN_TRY(kn_check_matrices(call, 0));
    const int64_t m = kn_rows(a), n = kn_columns(a), k = kn_min_i64(m, n);
    KN_TRY(kn_linalg_output(call, a->dtype, 2, m, full ? m : k));
    KN_TRY(kn_linalg_output(call, a->dtype, 1, k, 0));
    return kn_linalg_output(call, a->dtype, 2, full ? n : k, n);
}

/* A view of the matrices, transposed or not; owned. */
static kn_status turned(kn_tensor **view, kn_tensor *t, bool turns)
{
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS];
    const int last = t->ndim - 1;

    for (int d = 0; d <= last; d++) {
        const int from = !turns || d < last - 1 ? d : d == last ? last - 1 : last;
        shape[d] = t->shape[from];
        strides[d] = t->strides[from];
    }
    return kn_tensor_view(view, t, t->ndim, shape, strides, t->offset);
}

static kn_status copy_turned(kn_tensor *to, kn_tensor *from, bool turns)
{
    kn_tensor *view;
    KN_TRY(turned(&view, from, turns));
    const kn_status status = kn_tensor_copy(to, view);
    kn_release(view);
    return status;
}

/* The first `rows` rows of each of the matrices x = from. */
static kn_status fill_rows(kn_tensor *x, kn_tensor *from, int64_t rows, bool turns)
{
    int64_t shape[3] = {x->shape[0], rows, x->shape[2]};
    kn_tensor *first = NULL, *source = NULL;
    kn_status status = kn_tensor_view(&first, x, 3, shape, x->strides, x->offset);

    if (status == KN_OK)
        status = kn_tensor_contiguous(&source, from);
    if (status == KN_OK) {
        kn_tensor *flat = NULL;
        const int64_t m = kn_rows(source), n = kn_columns(source);
        status =
            kn_tensor_view(&flat, source, 3, (int64_t[]){shape[0], m, n}, (int64_t[]){m * n, n, 1}, source->offset);
        if (status == KN_OK)
            status = copy_turned(first, flat, turns);
        kn_release(flat);
    }
    kn_release(first);
    kn_release(source);
    return status;
}

/* Works on a tall matrix, a or its transpose: its columns, the rows of `left`, become the left vectors, and `right`'s
 * rows the right ones; of a transpose they change sides. */
static kn_status run_svd(kn_call *call, kn_tensor *left, kn_tensor *right)
{
    kn_tensor *a = call->inputs[0];
    const bool is_tall = kn_rows(a) >= kn_columns(a);
    const int64_t rows = left->shape[1], m = left->shape[2], n = right->shape[1];
    const kn_linalg_launch sweeps = {"linalg/jacobi.cl", "linalg_svd", call->op->name, a->dtype, left->shape[0], 0};
    const kn_linalg_launch finish = {"linalg/jacobi.cl", "linalg_svd_finish", call->op->name, a->dtype, 0,
                                     left->shape[0]};
    const kn_arg tolerance = kn_arg_real(a->dtype, tolerance_of(a->dtype));

    KN_TRY(fill_rows(left, a, n, is_tall));
    KN_TRY(KN_LINALG_RUN(call->stream, &sweeps, kn_arg_tensor(left), kn_arg_tensor(right), kn_arg_i64(m), kn_arg_i64(n),
                         kn_arg_i64(rows), tolerance));
    return KN_LINALG_RUN(call->stream, &finish, kn_arg_tensor(left), kn_arg_tensor(call->outputs[1]),
                         kn_arg_tensor(right), kn_arg_i64(m), kn_arg_i64(n), kn_arg_i64(rows),
                         kn_arg_i64(left->shape[0]), tolerance);
}

/* A [count, rows, columns] tensor as an output's values: the output has the same elements in a batch's shape. */
static kn_status deliver(kn_tensor *output, kn_tensor *x, bool turns)
{
    kn_tensor *flat = NULL;
    const int64_t m = kn_rows(output), n = kn_columns(output);

    KN_TRY(kn_tensor_view(&flat, output, 3, (int64_t[]){x->shape[0], m, n}, (int64_t[]){m * n, n, 1}, output->offset));
    const kn_status status = copy_turned(flat, x, turns);
    kn_release(flat);
    return status;
}

/* Without columns any orthonormal vectors are the left ones. */
static kn_status set_identity(kn_tensor *x)
{
    kn_tensor *diagonal = NULL;

    KN_TRY(kn_tensor_fill(x, 0));
    KN_TRY(kn_tensor_view(&diagonal, x, 2, (int64_t[]){x->shape[0], x->shape[1]},
                          (int64_t[]){x->strides[0], x->strides[1] + x->strides[2]}, x->offset));
    const kn_status status = kn_tensor_fill(diagonal, 1);
    kn_release(diagonal);
    return status;
}

static kn_status svd_forward(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const bool is_tall = kn_rows(a) >= kn_columns(a), full = ((const kn_svd_args *)call->params)->full_matrices;
    const int64_t m = is_tall ? kn_rows(a) : kn_columns(a), n = is_tall ? kn_columns(a) : kn_rows(a);
    const int64_t shape[] = {kn_matrices(a), full ? m : n, m}, square[] = {kn_matrices(a), n, n};
    kn_tensor *left = NULL, *right = NULL;
    kn_status status = kn_tensor_new(&left, a->dtype, 3, shape, a->storage->device);

    if (status == KN_OK)
        status = kn_tensor_new(&right, a->dtype, 3, square, a->storage->device);
    if (status == KN_OK && shape[0] * m > 0)
        status = n > 0 ? run_svd(call, left, right) : set_identity(left);
    if (status == KN_OK)
        status = deliver(call->outputs[0], is_tall ? left : right, true);
    if (status == KN_OK)
        status = deliver(call->outputs[2], is_tall ? right : left, false);
    kn_release(left);
    kn_release(right);
    for (int i = 0; status == KN_OK && call->needs_grad && i < 3; i++)
        status = kn_call_save(call, call->outputs[i]);
    return status;
}

/* y - x x^T y: the part of y outside the span of x's columns. */
static kn_tensor *outside(kn_tensor *x, kn_tensor *y)
{
    return kn_sub(y, kn_matmul(x, kn_matmul(kn_matrix_transpose(x), y)));
}

/* da = u (e s_j skew(u^T du) + s_i e skew(v^T dv) + diag ds) v^T with e = 1 / (s_j^2 - s_i^2), and what du and dv have
 * outside the spans of u and v. */
static kn_tensor *gradient_of_svd(kn_tensor *u, kn_tensor *s, kn_tensor *v, kn_tensor *du, kn_tensor *ds, kn_tensor *dv)
{
    kn_tensor *vt = kn_matrix_transpose(v), *row = kn_unsqueeze(s, -2), *column = kn_unsqueeze(s, -1), *inner = NULL;
    kn_tensor *e = du || dv ? inverse_gaps(kn_square(s)) : NULL;

    if (du)
        inner = kn_mul(kn_mul(antisymmetric(kn_matmul(kn_matrix_transpose(u), du)), e), row);
    if (dv) {
        kn_tensor *part = kn_mul(kn_mul(antisymmetric(kn_matmul(vt, dv)), e), column);
        inner = inner ? kn_add(inner, part) : part;
    }
    if (ds)
        inner = inner ? kn_add(inner, kn_diagonal_matrix(ds)) : kn_diagonal_matrix(ds);
    kn_tensor *da = kn_matmul(kn_matmul(u, inner), vt);
    if (du && kn_rows(u) > kn_columns(u))
        da = kn_add(da, kn_matmul(outside(u, kn_div(du, row)), vt));
    if (dv && kn_rows(v) > kn_columns(v))
        da = kn_add(da, kn_matmul(u, kn_matrix_transpose(outside(v, kn_div(dv, row)))));
    return da;
}

/* Of full matrices the first columns. */
static kn_tensor *first(kn_tensor *x, int dim, int64_t count) { return x ? kn_narrow(x, dim, 0, count) : NULL; }

static kn_status svd_backward(kn_grad_call *grad)
{
    kn_tensor *u = kn_grad_saved_output(grad, 0, 0), *s = kn_grad_saved_output(grad, 1, 1),
              *vh = kn_grad_saved_output(grad, 2, 2);
    kn_tensor *const *g = grad->grad_outputs;

    if (!u || !s || !vh)
        return kn_error_status();
    const int64_t k = kn_size(s, -1);
    kn_tensor *dvh = first(g[2], -2, k);
    grad->grad_inputs[0] = gradient_of_svd(first(u, -1, k), s, kn_matrix_transpose(first(vh, -2, k)),
                                           first(g[0], -1, k), g[1], dvh ? kn_matrix_transpose(dvh) : NULL);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static const kn_op_param svd_rows[] = {KN_PARAM(kn_svd_args, full_matrices)};
const kn_op kn_linalg_svd_op = {.name = "linalg_svd",
                                .inputs = {"a"},
                                .dtypes = {KN_DTYPES_FLOATING},
                                .outputs = {"u", "s", "vh"},
                                .params = KN_PARAMS(kn_svd_args, svd_rows, .full_matrices = true),
                                .widens_halves = true,
                                .shape = svd_shape,
                                .forward = svd_forward,
                                .backward = svd_backward,
                                .backward_recorded = svd_backward,
                                .reference = kn_svd_reference};

kn_tensor *kn_linalg_svd(kn_tensor *a, bool full_matrices, kn_tensor **s, kn_tensor **vh)
{
    return kn_linalg_invoke(&kn_linalg_svd_op, &a, 1, &(kn_svd_args){.full_matrices = full_matrices}, s, vh);
}

kn_tensor *kn_linalg_svdvals(kn_tensor *a)
{
    kn_tensor *s;
    return kn_linalg_svd(a, false, &s, NULL) ? s : NULL;
}
