/* ops/linalg/svd.c - singular values. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/error.h"
#include "base/integer.h"
#include "ops/linalg/linalg.h"

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

/* Works on a tall matrix [m, n], a or its transpose: its columns, the rows of `left` [count, n or m, m], become the
 * left vectors, and the rows of `right` [count, n, n] the right ones; of a transpose they change sides. The rows have
 * m_size and n_size elements, of which the last ones are theirs. */
typedef struct work {
    bool is_tall, reflects, wants_vectors;
    int64_t count, m, n, rows, m_size, n_size;
    kn_tensor *left, *right; /* without vectors no right */
} work;

/* The part of x's rows that is theirs: a view, owned. */
static kn_status own_part(kn_tensor **view, kn_tensor *x, int64_t columns)
{
    const int64_t size = x->shape[2];
    return kn_tensor_view(view, x, 3, (int64_t[]){x->shape[0], x->shape[1], columns}, x->strides,
                          x->offset + size - columns);
}

static kn_status fill_left(kn_call *call, work *w)
{
    kn_tensor *own;
    KN_TRY(own_part(&own, w->left, w->m));
    const kn_status status = fill_rows(own, call->inputs[0], w->n, w->is_tall);
    kn_release(own);
    return status;
}

enum { SHORT_VECTORS = 12, LONG_VECTORS = 3 }; /* of linalg/bidiagonal.cl */

static kn_status svd_by_bidiagonal(kn_call *call, work *w)
{
    const kn_dtype dtype = w->left->dtype;
    const kn_linalg_launch launch = {
        "linalg/bidiagonal.cl", "linalg_svd_bidiagonal", call->op->name, dtype, w->count, 0};
    const int64_t shape[] = {w->count, SHORT_VECTORS * w->n_size + LONG_VECTORS * w->m_size};
    kn_tensor *space, *right = w->wants_vectors ? w->right : w->left;

    KN_TRY(kn_tensor_new(&space, dtype, 2, shape, w->left->storage->device));
    const kn_status status = KN_LINALG_RUN(
        call->stream, &launch, kn_arg_tensor(w->left), kn_arg_tensor(right), kn_arg_tensor(space),
        kn_arg_tensor(call->outputs[1]), kn_arg_i64(w->m), kn_arg_i64(w->n), kn_arg_i64(w->rows), kn_arg_i64(w->m_size),
        kn_arg_i64(w->n_size), kn_arg_i64(w->wants_vectors), kn_arg_real(dtype, kn_linalg_tolerance(dtype)));
    kn_release(space);
    return status;
}

static kn_status svd_by_rotations(kn_call *call, work *w)
{
    const kn_dtype dtype = w->left->dtype;
    const kn_linalg_launch sweeps = {"linalg/jacobi.cl", "linalg_svd", call->op->name, dtype, w->count, 0};
    const kn_linalg_launch finish = {"linalg/jacobi.cl", "linalg_svd_finish", call->op->name, dtype, 0, w->count};
    const kn_arg tolerance = kn_arg_real(dtype, kn_linalg_tolerance(dtype)), left = kn_arg_tensor(w->left),
                 right = kn_arg_tensor(w->right), m = kn_arg_i64(w->m), n = kn_arg_i64(w->n),
                 rows = kn_arg_i64(w->rows);

    KN_TRY(KN_LINALG_RUN(call->stream, &sweeps, left, right, m, n, rows, tolerance));
    return KN_LINALG_RUN(call->stream, &finish, left, kn_arg_tensor(call->outputs[1]), right, m, n, rows,
                         kn_arg_i64(w->count), tolerance);
}

static kn_status run_svd(kn_call *call, work *w)
{
    KN_TRY(fill_left(call, w));
    return w->reflects ? svd_by_bidiagonal(call, w) : svd_by_rotations(call, w);
}

/* The last `columns` elements of each of x's rows as an output's values, which has a batch's shape. */
static kn_status deliver(kn_tensor *output, kn_tensor *x, int64_t columns, bool turns)
{
    kn_tensor *flat = NULL, *own = NULL;
    const int64_t m = kn_rows(output), n = kn_columns(output);
    kn_status status =
        kn_tensor_view(&flat, output, 3, (int64_t[]){x->shape[0], m, n}, (int64_t[]){m * n, n, 1}, output->offset);

    if (status == KN_OK)
        status = own_part(&own, x, columns);
    if (status == KN_OK)
        status = copy_turned(flat, own, turns);
    kn_release(flat);
    kn_release(own);
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

static kn_status deliver_vectors(kn_call *call, work *w)
{
    for (int i = 0; i < 3; i += 2) {
        const bool is_left = (i == 0) == w->is_tall;
        if (call->outputs[i])
            KN_TRY(deliver(call->outputs[i], is_left ? w->left : w->right, is_left ? w->m : w->n, i == 0));
    }
    return KN_OK;
}

static work work_of(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    const bool full = ((const kn_svd_args *)call->params)->full_matrices;
    work w = {.is_tall = kn_rows(a) >= kn_columns(a), .count = kn_matrices(a)};

    w.m = w.is_tall ? kn_rows(a) : kn_columns(a);
    w.n = w.is_tall ? kn_columns(a) : kn_rows(a);
    w.reflects = kn_linalg_reflects(a);
    w.wants_vectors = call->outputs[0] || call->outputs[2] || !w.reflects;
    w.rows = full && w.wants_vectors ? w.m : w.n;
    w.m_size = w.reflects ? kn_linalg_row_size(w.m) : w.m;
    w.n_size = w.reflects ? kn_linalg_row_size(w.n) : w.n;
    return w;
}

static kn_status svd_forward(kn_call *call)
{
    kn_device *device = call->inputs[0]->storage->device;
    const kn_dtype dtype = call->inputs[0]->dtype;

    for (int i = 0; i < 3; i++)
        if (call->needs_grad || i == 1)
            KN_TRY(kn_linalg_make_skipped(call, i));
    work w = work_of(call);
    kn_status status = kn_tensor_new(&w.left, dtype, 3, (int64_t[]){w.count, w.rows, w.m_size}, device);
    if (status == KN_OK && w.wants_vectors)
        status = kn_tensor_new(&w.right, dtype, 3, (int64_t[]){w.count, w.n, w.n_size}, device);
    if (status == KN_OK && w.count * w.rows * w.m > 0)
        status = w.n > 0 ? run_svd(call, &w) : set_identity(w.left);
    if (status == KN_OK)
        status = deliver_vectors(call, &w);
    kn_release(w.left);
    kn_release(w.right);
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
    kn_tensor *e = du || dv ? kn_inverse_gaps(kn_square(s)) : NULL;

    if (du)
        inner = kn_mul(kn_mul(kn_antisymmetric(kn_matmul(kn_matrix_transpose(u), du)), e), row);
    if (dv) {
        kn_tensor *part = kn_mul(kn_mul(kn_antisymmetric(kn_matmul(vt, dv)), e), column);
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
                                .skips_outputs = true,
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
    kn_tensor *outputs[] = {KN_SKIP_OUTPUT, NULL, KN_SKIP_OUTPUT};
    const kn_svd_args args = {.full_matrices = false};
    const kn_status status = kn_op_invoke_to(&kn_linalg_svd_op, &a, 1, &args, outputs, 3);
    return status == KN_OK ? outputs[1] : kn_error_make_sticky();
}
