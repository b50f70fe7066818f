/* ops/linalg/lu.c - LU factorisation with partial pivoting, and solutions by it. */
#include <koine/join.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/linalg/linalg.h"
#include "tensor/batched.h"
#include "tensor/scope.h"

static kn_status factor_whole(kn_stream *stream, const char *operation, const kn_lu_factors *f)
{
    const kn_tensor *lu = f->lu;
    const kn_linalg_launch launch = {"linalg/solve.cl", "linalg_lu", operation, lu->dtype, kn_matrices(lu), 0};
    return KN_LINALG_RUN(stream, &launch, kn_arg_tensor(lu), kn_arg_tensor(f->pivots), kn_arg_tensor(f->info),
                         kn_arg_i64(kn_rows(lu)), kn_arg_i64(kn_columns(lu)), kn_arg_i32(f->reports), kn_arg_fault());
}

/* Factors `lu`, a contiguous copy of the matrices, in place. info may be NULL; then `reports` says whether a singular
 * matrix is a fault. */
static kn_status factor(kn_call *call, kn_tensor *lu, kn_tensor *pivots, kn_tensor *info, bool reports)
{
    const int64_t matrices = kn_matrices(lu);
    kn_tensor *own = kn_retain(info);
    kn_status status = own ? KN_OK : kn_tensor_new(&own, KN_I32, 1, &matrices, lu->storage->device);
    const kn_lu_factors factors = {lu, pivots, own, reports && !info};

    if (status == KN_OK && kn_numel(lu) > 0)
        status = (kn_linalg_factors_in_blocks(lu) ? kn_linalg_factor_blocks : factor_whole)(call->stream,
                                                                                            call->op->name, &factors);
    else if (status == KN_OK)
        status = kn_tensor_fill(own, 0);
    kn_release(own);
    return status;
}

kn_status kn_lu_factored(kn_call *call, kn_tensor **lu, kn_tensor **pivots, kn_tensor *info, bool reports)
{
    const kn_tensor *a = call->inputs[0];
    const int64_t shape[] = {kn_matrices(a), kn_rows(a)};
    kn_status status = kn_tensor_new(lu, a->dtype, a->ndim, a->shape, a->storage->device);

    if (status == KN_OK)
        status = kn_tensor_copy(*lu, a);
    if (status == KN_OK)
        status = kn_tensor_new(pivots, KN_I32, 2, shape, a->storage->device);
    return status == KN_OK ? factor(call, *lu, *pivots, info, reports) : status;
}

kn_tensor *kn_lu_permutation(kn_tensor *pivots, int64_t m, kn_dtype dtype)
{
    if (pivots->whole)
        KN_RETURN_BATCHED(pivots, kn_lu_permutation(pivots->whole, m, dtype));
    kn_tensor *p = NULL, *ordered = NULL;
    int64_t shape[KN_MAX_DIMS];
    const int ndim = pivots->ndim + 1;

    memcpy(shape, pivots->shape, sizeof shape);
    shape[ndim - 2] = shape[ndim - 1] = m;
    kn_status status = kn_tensor_contiguous(&ordered, pivots);
    if (status == KN_OK)
        status = kn_tensor_new(&p, dtype, ndim, shape, pivots->storage->device);
    kn_stream *stream = status == KN_OK ? kn_tensor_stream(p) : NULL;
    if (status == KN_OK)
        status = stream ? KN_OK : kn_error_status();
    if (status == KN_OK && kn_numel(p) > 0) {
        const kn_linalg_launch launch = {
            "linalg/solve.cl", "linalg_permutation", "lu_unpack", dtype, kn_matrices(p), 0};
        status = KN_LINALG_RUN(stream, &launch, kn_arg_tensor(ordered), kn_arg_tensor(p), kn_arg_i64(m),
                               kn_arg_i64(pivots->shape[ndim - 2]), kn_arg_fault());
    }
    kn_release(ordered);
    if (status == KN_OK)
        return kn_scope_adopt(p);
    kn_release(p);
    return kn_error_make_sticky();
}

/* --- lu_factor ---------------------------------------------------------------------------------------------------- */

static kn_status lu_factor_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];

    KN_TRY(kn_check_matrices(call, 0));
    KN_TRY(kn_call_output(call, a->dtype, a->ndim, a->shape));
    KN_TRY(kn_linalg_output(call, KN_I32, 1, kn_rows(a) < kn_columns(a) ? kn_rows(a) : kn_columns(a), 0));
    return call->op->outputs[2] ? kn_linalg_output(call, KN_I32, 0, 0, 0) : KN_OK;
}

static kn_status lu_factor_forward(kn_call *call)
{
    KN_TRY(kn_tensor_copy(call->outputs[0], call->inputs[0]));
    KN_TRY(factor(call, call->outputs[0], call->outputs[1], call->num_outputs > 2 ? call->outputs[2] : NULL, true));
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[0]));
    return call->needs_grad ? kn_call_save(call, call->outputs[1]) : KN_OK;
}

/* da = p l^-T x u^-T of square factors, where x is l^T dl below the diagonal and du u^T above and on it. */
static kn_tensor *backward_of_square(kn_tensor *lu, kn_tensor *dl, kn_tensor *du)
{
    kn_tensor *l = kn_add(kn_lower_part(lu, true), kn_identity(kn_rows(lu), lu->dtype, kn_device_of(lu)));
    kn_tensor *u = kn_upper_part(lu, false);
    kn_tensor *x = kn_add(kn_lower_part(kn_matmul(kn_matrix_transpose(l), dl), true),
                          kn_upper_part(kn_matmul(du, kn_matrix_transpose(u)), false));
    x = kn_linalg_solve_triangular(kn_matrix_transpose(l), x, true, true, true);
    return kn_linalg_solve_triangular(kn_matrix_transpose(u), x, false, false, false);
}

/* The columns beyond the square of a wide a are l times those of u, the rows beyond that of a tall one those of l times
 * u: their gradients reach the square through l, or u. */
static kn_tensor *backward_of_factors(kn_tensor *lu, kn_tensor *g)
{
    const int64_t m = kn_rows(lu), n = kn_columns(lu), k = m < n ? m : n;
    const int along = m < n ? -1 : -2;
    kn_tensor *square = kn_narrow(lu, along, 0, k), *inner = kn_narrow(g, along, 0, k), *beyond = NULL;
    kn_tensor *dl = kn_lower_part(inner, true), *du = kn_upper_part(inner, false);

    if (m == n)
        return backward_of_square(square, dl, du);
    kn_tensor *other = kn_narrow(lu, along, k, m + n - 2 * k), *d = kn_narrow(g, along, k, m + n - 2 * k);
    if (m < n) {
        beyond = kn_linalg_solve_triangular(kn_matrix_transpose(square), d, true, true, true);
        dl = kn_sub(dl, kn_lower_part(kn_matmul(beyond, kn_matrix_transpose(other)), true));
    } else {
        beyond = kn_linalg_solve_triangular(kn_matrix_transpose(square), d, false, false, false);
        du = kn_sub(du, kn_upper_part(kn_matmul(kn_matrix_transpose(other), beyond), false));
    }
    return kn_cat((kn_tensor *[]){backward_of_square(square, dl, du), beyond}, 2, along);
}

static kn_status lu_factor_backward(kn_grad_call *grad)
{
    kn_tensor *lu = kn_grad_saved_output(grad, 0, 0), *g = grad->grad_outputs[0];

    if (!g || !lu)
        return g ? kn_error_status() : KN_OK;
    kn_tensor *p = kn_lu_permutation(grad->saved[1], kn_rows(lu), lu->dtype);
    return kn_status_of(grad->grad_inputs[0] = kn_matmul(p, backward_of_factors(lu, g)));
}

#define LU_FACTOR(op_name, ...)                                                                                        \
    {                                                                                                                  \
        .name = op_name, .inputs = {"a"}, .dtypes = {KN_DTYPES_FLOATING}, .outputs = {__VA_ARGS__},                    \
        .first_statistic = 1, .widens_halves = true, .shape = lu_factor_shape, .forward = lu_factor_forward,           \
        .backward = lu_factor_backward, .backward_recorded = lu_factor_backward, .reference = kn_lu_reference          \
    }
const kn_op kn_linalg_lu_factor_op = LU_FACTOR("linalg_lu_factor", "result", "pivots");
const kn_op kn_linalg_lu_factor_ex_op = LU_FACTOR("linalg_lu_factor_ex", "result", "pivots", "info");

kn_tensor *kn_linalg_lu_factor(kn_tensor *a, kn_tensor **pivots)
{
    return kn_linalg_invoke(&kn_linalg_lu_factor_op, &a, 1, NULL, pivots, NULL);
}

kn_tensor *kn_linalg_lu_factor_ex(kn_tensor *a, kn_tensor **pivots, kn_tensor **info)
{
    return kn_linalg_invoke(&kn_linalg_lu_factor_ex_op, &a, 1, NULL, pivots, info);
}

/* --- solve -------------------------------------------------------------------------------------------------------- */

static kn_status solve_shape(kn_call *call)
{
    KN_TRY(kn_linalg_system_shape(call));
    return call->op->outputs[1] ? kn_linalg_output(call, KN_I32, 0, 0, 0) : KN_OK;
}

kn_status kn_lu_solve_run(kn_stream *stream, const char *operation, const kn_tensor *lu, const kn_tensor *pivots,
                          const kn_tensor *x)
{
    const kn_linalg_launch launch = {"linalg/solve.cl", "linalg_lu_solve", operation, x->dtype, kn_matrices(x), 0};
    if (kn_linalg_solves_in_blocks(x)) {
        KN_TRY(kn_linalg_exchange_rows(stream, operation, pivots, x));
        KN_TRY(kn_linalg_solve_blocks(stream, operation, lu, x, false, true));
        return kn_linalg_solve_blocks(stream, operation, lu, x, true, false);
    }
    return kn_numel(x) == 0 ? KN_OK
                            : KN_LINALG_RUN(stream, &launch, kn_arg_tensor(lu), kn_arg_tensor(pivots), kn_arg_tensor(x),
                                            kn_arg_i64(kn_rows(x)), kn_arg_i64(kn_columns(x)), kn_arg_fault());
}

static kn_status solve_forward(kn_call *call)
{
    kn_tensor *x = call->outputs[0], *lu = NULL, *pivots = NULL;
    kn_status status = kn_lu_factored(call, &lu, &pivots, call->num_outputs > 1 ? call->outputs[1] : NULL, true);

    if (status == KN_OK)
        status = kn_tensor_copy(x, call->inputs[1]);
    if (status == KN_OK)
        status = kn_lu_solve_run(call->stream, call->op->name, lu, pivots, x);
    kn_release(lu);
    kn_release(pivots);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, call->inputs[0]);
    return status == KN_OK && call->needs_grad ? kn_call_save(call, x) : status;
}

/* db = a^-T dx, da = -db x^T. */
static kn_status solve_backward(kn_grad_call *grad)
{
    kn_tensor *a = kn_grad_saved_input(grad, 0, 0), *x = kn_grad_saved_output(grad, 1, 0), *info;

    if (!grad->grad_outputs[0])
        return KN_OK;
    kn_tensor *db = kn_linalg_solve_ex(kn_matrix_transpose(a), grad->grad_outputs[0], &info);
    if (grad->needs[0])
        grad->grad_inputs[0] = kn_neg(kn_matmul(db, kn_matrix_transpose(x)));
    if (grad->needs[1])
        grad->grad_inputs[1] = db;
    return db && (!grad->needs[0] || grad->grad_inputs[0]) ? KN_OK : kn_error_status();
}

#define SOLVE(op_name, ...)                                                                                            \
    {                                                                                                                  \
        .name = op_name, .inputs = {"a", "b"}, .dtypes = {KN_DTYPES_FLOATING}, .outputs = {__VA_ARGS__},               \
        .first_statistic = 1, .composes = true, .widens_halves = true, .enter = kn_linalg_broadcast,                   \
        .shape = solve_shape, .forward = solve_forward, .backward = solve_backward,                                    \
        .backward_recorded = solve_backward, .reference = kn_solve_reference                                           \
    }
const kn_op kn_linalg_solve_op = SOLVE("linalg_solve", "result");
const kn_op kn_linalg_solve_ex_op = SOLVE("linalg_solve_ex", "result", "info");

static kn_tensor *solve_vector(const kn_op *op, kn_tensor *a, kn_tensor *b, kn_tensor **info)
{
    kn_tensor *results[2] = {NULL};
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_make_sticky();
    kn_tensor *column = kn_unsqueeze(b, -1);
    kn_tensor *x = kn_linalg_invoke(op, (kn_tensor *[]){a, column}, 2, NULL, info ? &results[1] : NULL, NULL);
    results[0] = x ? kn_squeeze(x, -1) : NULL;
    if (kn_scope_return_all(depth, results, 2, results) != KN_OK || !results[0])
        return kn_error_make_sticky();
    if (info)
        *info = results[1];
    return results[0];
}

/* b is a batch of vectors if it has a's batch, and no columns, or is one vector. */
static kn_tensor *solve(const kn_op *op, kn_tensor *a, kn_tensor *b, kn_tensor **info)
{
    bool is_vector = a && b && (b->ndim == 1 || b->ndim == a->ndim - 1);

    for (int d = 0; is_vector && b->ndim > 1 && d < b->ndim; d++)
        is_vector = b->shape[d] == a->shape[d];
    return is_vector ? solve_vector(op, a, b, info) : kn_linalg_invoke(op, (kn_tensor *[]){a, b}, 2, NULL, info, NULL);
}

kn_tensor *kn_linalg_solve(kn_tensor *a, kn_tensor *b) { return solve(&kn_linalg_solve_op, a, b, NULL); }
kn_tensor *kn_linalg_solve_ex(kn_tensor *a, kn_tensor *b, kn_tensor **info)
{
    return solve(&kn_linalg_solve_ex_op, a, b, info);
}

/* The right-hand sides whose solution is the inverse. */
static kn_tensor *identity_for(const kn_tensor *a)
{
    return a && a->ndim >= 2 ? kn_identity(kn_rows(a), a->dtype, kn_device_of(a)) : NULL;
}

kn_tensor *kn_linalg_inv(kn_tensor *a)
{
    return a && a->ndim < 2
               ? kn_fail_null(KN_ERR_SHAPE, "linalg_inv: a must have at least 2 dimensions")
               : kn_linalg_invoke(&kn_linalg_solve_op, (kn_tensor *[]){a, identity_for(a)}, 2, NULL, NULL, NULL);
}

kn_tensor *kn_linalg_inv_ex(kn_tensor *a, kn_tensor **info)
{
    return a && a->ndim < 2
               ? kn_fail_null(KN_ERR_SHAPE, "linalg_inv_ex: a must have at least 2 dimensions")
               : kn_linalg_invoke(&kn_linalg_solve_ex_op, (kn_tensor *[]){a, identity_for(a)}, 2, NULL, info, NULL);
}
