/* ops/linalg/cholesky.c - Cholesky factorisation, and solving with triangular matrices. */
#include <koine/matmul.h>
#include <koine/pointwise.h>

#include "ops/linalg/linalg.h"

/* --- Cholesky: linalg_cholesky reports a failure, linalg_cholesky_ex has a second output for it ------------------- */

static kn_status cholesky_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];

    KN_TRY(kn_check_square(call, 0));
    KN_TRY(kn_call_output(call, a->dtype, a->ndim, a->shape));
    return call->op->outputs[1] ? kn_linalg_output(call, KN_I32, 0, 0, 0) : KN_OK;
}

/* l becomes its own lower factor. */
static kn_status factor(kn_stream *stream, const kn_op *op, const kn_tensor *l, const kn_tensor *info)
{
    const kn_linalg_launch launch = {"linalg/solve.cl", "linalg_cholesky", op->name, l->dtype, kn_matrices(l), 0};
    const bool reports = op->outputs[1] == NULL;
    if (kn_linalg_has_cholesky_blocks(l))
        return kn_linalg_cholesky_blocks(stream, op->name, l, info, reports);
    return KN_LINALG_RUN(stream, &launch, kn_arg_tensor(l), kn_arg_tensor(info), kn_arg_i64(kn_rows(l)),
                         kn_arg_i32(reports), kn_arg_fault());
}

static kn_status cholesky_forward(kn_call *call)
{
    kn_tensor *l = call->outputs[0], *info = kn_retain(call->num_outputs > 1 ? call->outputs[1] : NULL);
    const int64_t matrices = kn_matrices(l);
    kn_status status = kn_tensor_copy(l, call->inputs[0]);

    if (status == KN_OK && !info)
        status = kn_tensor_new(&info, KN_I32, 1, &matrices, l->storage->device);
    if (status == KN_OK && kn_numel(l) > 0)
        status = factor(call->stream, call->op, l, info);
    else if (status == KN_OK)
        status = kn_tensor_fill(info, 0);
    kn_release(info);
    return status == KN_OK && call->needs_grad ? kn_call_save(call, l) : status;
}

/* da = l^-T phi(l^T dl) l^-1, made symmetric, where phi is the lower part with half of the diagonal. */
static kn_status cholesky_backward(kn_grad_call *grad)
{
    kn_tensor *l = kn_grad_saved_output(grad, 0, 0), *dl = grad->grad_outputs[0];

    if (!dl)
        return KN_OK;
    kn_tensor *inner = kn_matmul(kn_matrix_transpose(l), kn_lower_part(dl, false));
    kn_tensor *both = kn_add(kn_lower_part(inner, false), kn_lower_part(inner, true));
    kn_tensor *symmetric = kn_mul_scalar(kn_add(both, kn_matrix_transpose(both)), 0.25);
    kn_tensor *left = kn_linalg_solve_triangular(kn_matrix_transpose(l), symmetric, true, true, false);
    grad->grad_inputs[0] = kn_linalg_solve_triangular(l, left, false, false, false);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

#define CHOLESKY(op_name, ...)                                                                                         \
    {                                                                                                                  \
        .name = op_name, .inputs = {"a"}, .dtypes = {KN_DTYPES_FLOATING}, .outputs = {__VA_ARGS__},                    \
        .first_statistic = 1, .widens_halves = true, .shape = cholesky_shape, .forward = cholesky_forward,             \
        .backward = cholesky_backward, .backward_recorded = cholesky_backward, .reference = kn_cholesky_reference      \
    }
const kn_op kn_linalg_cholesky_op = CHOLESKY("linalg_cholesky", "result");
const kn_op kn_linalg_cholesky_ex_op = CHOLESKY("linalg_cholesky_ex", "result", "info");

/* The upper factor of a is the lower one of its transpose, transposed. */
static kn_tensor *cholesky(const kn_op *op, kn_tensor *a, bool upper, kn_tensor **info)
{
    kn_tensor *l = kn_linalg_invoke(op, (kn_tensor *[]){upper ? kn_matrix_transpose(a) : a}, 1, NULL, info, NULL);
    return upper ? kn_matrix_transpose(l) : l;
}

kn_tensor *kn_linalg_cholesky(kn_tensor *a, bool upper) { return cholesky(&kn_linalg_cholesky_op, a, upper, NULL); }
kn_tensor *kn_linalg_cholesky_ex(kn_tensor *a, bool upper, kn_tensor **info)
{
    return cholesky(&kn_linalg_cholesky_ex_op, a, upper, info);
}

static kn_tensor *cholesky_solve(kn_tensor *b, kn_tensor *factor, bool upper)
{
    kn_tensor *l = upper ? kn_matrix_transpose(factor) : factor;
    kn_tensor *middle = kn_linalg_solve_triangular(l, b, false, true, false);
    return kn_linalg_solve_triangular(kn_matrix_transpose(l), middle, true, true, false);
}

kn_tensor *kn_cholesky_solve(kn_tensor *b, kn_tensor *factor, bool upper)
{
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, cholesky_solve(b, factor, upper));
}

/* --- triangular systems ------------------------------------------------------------------------------------------- */

/* x = a^-1 x. */
static kn_status solve_triangular(kn_call *call, const kn_tensor *a, const kn_tensor *x)
{
    const kn_solve_triangular_args *args = call->params;
    const kn_linalg_launch launch = {
        "linalg/solve.cl", "linalg_solve_triangular", call->op->name, x->dtype, kn_matrices(x), 0};

    if (kn_numel(x) == 0)
        return KN_OK;
    if (kn_linalg_solves_in_blocks(x))
        return kn_linalg_solve_blocks(call->stream, call->op->name, a, x, args->upper, args->unitriangular);
    return KN_LINALG_RUN(call->stream, &launch, kn_arg_tensor(a), kn_arg_tensor(x), kn_arg_i64(kn_rows(x)),
                         kn_arg_i64(kn_columns(x)), kn_arg_i32(args->upper), kn_arg_i32(args->unitriangular));
}

static kn_status triangular_forward(kn_call *call)
{
    kn_tensor *x = call->outputs[0], *a;

    KN_TRY(kn_tensor_contiguous(&a, call->inputs[0]));
    kn_status status = kn_tensor_copy(x, call->inputs[1]);
    if (status == KN_OK)
        status = solve_triangular(call, a, x);
    kn_release(a);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, call->inputs[0]);
    return status == KN_OK && call->needs_grad ? kn_call_save(call, x) : status;
}

/* db = a^-T dx, da = -db x^T in a's triangle. */
static kn_status triangular_backward(kn_grad_call *grad)
{
    const kn_solve_triangular_args *args = grad->params;
    kn_tensor *a = kn_grad_saved_input(grad, 0, 0), *x = kn_grad_saved_output(grad, 1, 0);
    kn_tensor *db = kn_linalg_solve_triangular(kn_matrix_transpose(a), grad->grad_outputs[0], !args->upper, true,
                                               args->unitriangular);

    if (grad->needs[0]) {
        kn_tensor *da = kn_neg(kn_matmul(db, kn_matrix_transpose(x)));
        grad->grad_inputs[0] = (args->upper ? kn_upper_part : kn_lower_part)(da, args->unitriangular);
    }
    if (grad->needs[1])
        grad->grad_inputs[1] = db;
    return db && (!grad->needs[0] || grad->grad_inputs[0]) ? KN_OK : kn_error_status();
}

static const kn_op_param triangular_rows[] = {KN_PARAM(kn_solve_triangular_args, upper),
                                              KN_PARAM(kn_solve_triangular_args, unitriangular)};
const kn_op kn_linalg_solve_triangular_op = {.name = "linalg_solve_triangular",
                                             .inputs = {"a", "b"},
                                             .dtypes = {KN_DTYPES_FLOATING},
                                             .params =
                                                 KN_PARAMS(kn_solve_triangular_args, triangular_rows, .upper = false),
                                             .composes = true,
                                             .widens_halves = true,
                                             .enter = kn_linalg_broadcast,
                                             .shape = kn_linalg_system_shape,
                                             .forward = triangular_forward,
                                             .backward = triangular_backward,
                                             .backward_recorded = triangular_backward,
                                             .reference = kn_solve_triangular_reference};

kn_tensor *kn_linalg_solve_triangular(kn_tensor *a, kn_tensor *b, bool upper, bool left, bool unitriangular)
{
    const kn_solve_triangular_args args = {.upper = upper == left, .unitriangular = unitriangular};
    if (left)
        return kn_invoke(&kn_linalg_solve_triangular_op, &args, a, b);
    return kn_matrix_transpose(
        kn_invoke(&kn_linalg_solve_triangular_op, &args, kn_matrix_transpose(a), kn_matrix_transpose(b)));
}

/* --- the inverse, from the factor --------------------------------------------------------------------------------- */

static kn_status inverse_enter(kn_entry *entry)
{
    kn_tensor *factor = entry->inputs[0];
    char text[KN_DESCRIBE];
    if (factor->ndim < 2 || kn_rows(factor) != kn_columns(factor))
        return kn_fail(KN_ERR_SHAPE, "factor must be batches of square matrices, not %s",
                       kn_tensor_describe(text, sizeof text, factor));
    kn_tensor *one = kn_identity(kn_rows(factor), factor->dtype, kn_device_of(factor));
    const bool upper = ((const kn_cholesky_inverse_args *)entry->params)->upper;
    return kn_status_of(entry->result = kn_cholesky_solve(one, factor, upper));
}

static const kn_op_param inverse_rows[] = {KN_PARAM(kn_cholesky_inverse_args, upper)};
const kn_op kn_cholesky_inverse_op = {.name = "cholesky_inverse",
                                      .inputs = {"factor"},
                                      .dtypes = {KN_DTYPES_REAL},
                                      .params = KN_PARAMS(kn_cholesky_inverse_args, inverse_rows, .upper = false),
                                      .composes = true,
                                      .enter = inverse_enter};
kn_tensor *kn_cholesky_inverse(kn_tensor *factor, bool upper)
{
    return kn_invoke(&kn_cholesky_inverse_op, &(kn_cholesky_inverse_args){upper}, factor);
}
