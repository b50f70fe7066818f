/* ops/loss/pairs.c - distances of all pairs of rows, of two tensors or of one. One kernel takes differences and norms,
 * and one their gradients (cl/loss/distance.cl): the differences are in memory only for gradients of gradients. Many
 * Euclidean distances of two tensors are computed by a matrix product. */
#include <koine/autograd.h>
#include <koine/create.h>
#include <koine/distance.h>
#include <koine/index.h>
#include <koine/matmul.h>
#include <koine/operators.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>
#include <stdio.h>

#include "autograd/autocast.h"
#include "autograd/work.h"
#include "loops/work_size.h"
#include "loss/distance.h"
#include "ops/dispatch/reference.h"
#include "ops/loss/distance.h"
#include "ops/pointwise/compose.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/broadcast.h"

enum { X1, X2 };
enum { SAVED_RESULT, SAVED_X1, SAVED_X2 };
enum { MANY_ROWS = 25 }; /* of either operand: Euclidean distances by a product, as torch.cdist by default */

/* --- norms of differences: x1 [B, P, M] and x2 [B, R, M], or x [N, M] with itself -------------------------------- */

/* As KN_NORM in the kernel, with the gradient of an element a of a difference with norm y. The divisors are never 0, so
 * that at a norm of 0 the gradients of these gradients are 0, not NaN. */
typedef enum norm_kind { NONZEROS, SIZES, EUCLIDEAN, LARGEST, POWERS } norm_kind;
#define SIGN "(a < 0 ? (T)-1 : a > 0 ? (T)1 : a * 0)"
static const char *const gradients[] = {[NONZEROS] = "g * 0",
                                        [SIZES] = "g * " SIGN,
                                        [EUCLIDEAN] = "y == 0 ? (T)0 : g * (a / (y == 0 ? (T)1 : y))",
                                        [LARGEST] = "fabs(a) >= y ? g * " SIGN " : (T)0",
                                        [POWERS] = "a == 0 || y == 0 ? (T)0 : g * " SIGN
                                                   " * pow(a == 0 ? (T)1 : fabs(a) / (y == 0 ? (T)1 : y), p - 1)"};

static norm_kind kind_of(double p)
{
    return isinf(p) ? LARGEST : p == 0 ? NONZEROS : p == 1 ? SIZES : p == 2 ? EUCLIDEAN : POWERS;
}

static bool is_triangle(const kn_op *op) { return !op->inputs[X2]; }

static int64_t pairs_of(int64_t rows) { return rows > 1 ? rows * (rows - 1) / 2 : 0; }

static kn_distance_plan plan_of(bool triangle, const int64_t *x1, const int64_t *x2)
{
    if (triangle)
        return (kn_distance_plan){.batches = 1, .rows = x1[0], .others = x1[0], .length = x1[1], .triangle = true};
    return (kn_distance_plan){.batches = x1[0], .rows = x1[1], .others = x2[1], .length = x1[2]};
}

static kn_status pairs_shape(kn_call *call)
{
    const kn_tensor *x1 = call->inputs[X1];
    if (is_triangle(call->op))
        return kn_call_output(call, x1->dtype, 1, (const int64_t[]){pairs_of(x1->shape[0])});
    return kn_call_output(call, x1->dtype, 3,
                          (const int64_t[]){x1->shape[0], x1->shape[1], call->inputs[X2]->shape[1]});
}

static kn_status run(kn_stream *stream, const char *kernel, const kn_tensor *to, double p, int64_t work,
                     const kn_arg *args, int num_args)
{
    const kn_work_size size = kn_work_for(kn_tensor_limits(to), work);
    char options[64];
    snprintf(options, sizeof options, "%s -DKN_NORM=%d", kn_dtype_options(to->dtype), (int)kind_of(p));
    return kn_run(stream, .source = "loss/distance.cl", .options = options, .kernel = kernel, .operation = "cdist",
                  .dims = 1, .global = {size.global}, .local = {size.local}, .args = args, .num_args = num_args);
}

/* y = the distances of contiguous rows; `panels` is the space for x2's in the kernel's order. */
static kn_status run_forward(kn_stream *stream, const kn_distance_plan *plan, double p, const kn_tensor *x1,
                             const kn_tensor *x2, const kn_tensor *panels, const kn_tensor *y)
{
    const bool wide = y->dtype == KN_F64;
    const kn_arg packing[] = {kn_arg_tensor(x2), kn_arg_tensor(panels), kn_arg_struct(plan, sizeof *plan)};
    const kn_arg args[] = {kn_arg_tensor(x1),          kn_arg_tensor(panels),
                           kn_arg_tensor(y),           kn_arg_struct(plan, sizeof *plan),
                           kn_arg_f64_or_f32(wide, p), kn_arg_f64_or_f32(wide, 1 / p)};
    KN_TRY(run(stream, "pack_rows", panels, p, kn_numel(panels), packing, 3));
    return run(stream, "distances", y, p, kn_numel(y) * plan->length, args, 6);
}

static kn_status pairs_forward(kn_call *call)
{
    const bool triangle = is_triangle(call->op);
    kn_tensor *y = call->outputs[0], *x1 = NULL, *x2 = NULL, *panels = NULL;
    kn_tensor *const *in = call->inputs;
    const kn_distance_plan plan = plan_of(triangle, in[X1]->shape, triangle ? NULL : in[X2]->shape);
    const int64_t size = plan.batches * ((plan.others + KN_PANEL - 1) / KN_PANEL) * plan.length * KN_PANEL;
    kn_status status = KN_OK;

    if (plan.length == 0) {
        status = kn_tensor_fill(y, 0);
    } else if (kn_numel(y) > 0) {
        status = kn_tensor_contiguous(&x1, in[X1]);
        if (status == KN_OK)
            status = kn_tensor_contiguous(&x2, triangle ? x1 : in[X2]);
        if (status == KN_OK)
            status = kn_tensor_new(&panels, y->dtype, 1, &size, y->storage->device);
        if (status == KN_OK)
            status = run_forward(call->stream, &plan, ((const kn_distance_args *)call->params)->p, x1, x2, panels, y);
        kn_release(x1);
        kn_release(x2);
        kn_release(panels);
    }
    for (int i = 0; i < call->num_inputs + 1 && status == KN_OK && call->needs_grad; i++)
        status = kn_call_save(call, i == SAVED_RESULT ? y : in[i - SAVED_X1]);
    return status;
}

/* The gradient of x1, or of x2, whose roles and strides are exchanged. */
static kn_status run_backward(kn_grad_call *grad, int index, const kn_distance_plan *plan)
{
    const double p = ((const kn_distance_args *)grad->params)->p;
    const int other = grad->num_inputs == 1 ? X1 : 1 - index;
    kn_tensor *y = grad->saved[SAVED_RESULT], *out = kn_grad_new(grad, index);
    kn_tensor *own = kn_contiguous(grad->saved[SAVED_X1 + index]);
    kn_tensor *others = kn_contiguous(grad->saved[SAVED_X1 + other]);

    if (!out || !own || !others)
        return kn_error_status();
    if (kn_numel(out) == 0)
        return KN_OK;
    if (kn_numel(y) == 0 || p == 0)
        return kn_tensor_fill(out, 0);
    const kn_arg args[] = {kn_arg_tensor(own),
                           kn_arg_tensor(others),
                           kn_arg_tensor(grad->grad_outputs[0]),
                           kn_arg_tensor(y),
                           kn_arg_tensor(out),
                           kn_arg_struct(plan, sizeof *plan),
                           kn_arg_f64_or_f32(y->dtype == KN_F64, p)};
    return run(grad->stream, "distances_backward", out, p, kn_numel(out) * plan->others, args, 7);
}

static kn_status pairs_backward(kn_grad_call *grad)
{
    const bool triangle = is_triangle(grad->op);
    kn_distance_plan plan = plan_of(triangle, grad->input[X1].shape, triangle ? NULL : grad->input[X2].shape);
    plan.row_pitch = plan.others;
    plan.other_pitch = 1;
    if (grad->needs[X1])
        KN_TRY(run_backward(grad, X1, &plan));
    if (triangle || !grad->needs[X2])
        return KN_OK;
    plan.other_pitch = plan.others;
    plan.row_pitch = 1;
    const int64_t rows = plan.rows;
    plan.rows = plan.others;
    plan.others = rows;
    return run_backward(grad, X2, &plan);
}

/* The gradients of differences, of which those of both rows are sums. */
static kn_tensor *recorded_slopes(const kn_grad_call *grad, kn_tensor *differences)
{
    const double p = ((const kn_distance_args *)grad->params)->p;
    const kn_composed operands[] = {{kn_unsqueeze(grad->grad_outputs[0], -1), 0},
                                    {differences, 0},
                                    {kn_unsqueeze(kn_grad_saved_output(grad, SAVED_RESULT, 0), -1), 0},
                                    {NULL, p}};
    kn_tensor *slopes = kn_compose(gradients[kind_of(p)], "gayp", operands);
    return slopes ? kn_expand(slopes, differences->ndim, differences->shape) : NULL; /* that of norm 0 is smaller */
}

static kn_status triangle_recorded(kn_grad_call *grad)
{
    kn_tensor *x = kn_grad_saved_input(grad, SAVED_X1, X1);
    kn_tensor *pairs =
        kn_triu_indices(grad->input[X1].shape[0], grad->input[X1].shape[0], 1, .device = grad->input[X1].device);
    kn_tensor *firsts = kn_select(pairs, 0, 0), *seconds = kn_select(pairs, 0, 1);
    kn_tensor *slopes = recorded_slopes(grad, kn_sub(kn_index_select(x, 0, firsts), kn_index_select(x, 0, seconds)));
    kn_tensor *sums = kn_index_add(kn_zeros_like(x), 0, firsts, slopes);
    return kn_status_of(grad->grad_inputs[X1] = kn_index_add(sums, 0, seconds, slopes, .alpha = -1));
}

static kn_status pairs_recorded(kn_grad_call *grad)
{
    if (is_triangle(grad->op))
        return triangle_recorded(grad);
    kn_tensor *x1 = kn_grad_saved_input(grad, SAVED_X1, X1), *x2 = kn_grad_saved_input(grad, SAVED_X2, X2);
    kn_tensor *slopes = recorded_slopes(grad, kn_sub(kn_unsqueeze(x1, 2), kn_unsqueeze(x2, 1)));
    if (grad->needs[X1])
        grad->grad_inputs[X1] = kn_sum_dims(slopes, (const int[]){2}, 1, false);
    if (grad->needs[X2])
        grad->grad_inputs[X2] = kn_neg(kn_sum_dims(slopes, (const int[]){1}, 1, false));
    return (grad->needs[X1] && !grad->grad_inputs[X1]) || (grad->needs[X2] && !grad->grad_inputs[X2])
               ? kn_error_status()
               : KN_OK;
}

static double distance(const double *a, const double *b, int64_t n, double p)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        const double size = fabs(a[k] - b[k]);
        sum = isinf(p) ? fmax(sum, size) : sum + (p == 0 ? size != 0 : pow(size, p));
    }
    return isinf(p) || p == 0 ? sum : pow(sum, 1 / p);
}

static kn_status pairs_reference(const kn_call *call)
{
    const double p = ((const kn_distance_args *)call->params)->p;
    const bool triangle = is_triangle(call->op);
    const kn_tensor *x1 = call->inputs[X1], *x2 = triangle ? x1 : call->inputs[X2];
    const kn_distance_plan s = plan_of(triangle, x1->shape, x2->shape);
    const double *a = kn_reference_values(x1), *b = kn_reference_values(x2);
    int64_t at = 0;

    for (int64_t i = 0; i < s.batches * s.rows; i++)
        for (int64_t j = triangle ? i + 1 : 0; j < s.others; j++)
            kn_reference_set(call->outputs[0], at++,
                             distance(a + i * s.length, b + (i / s.rows * s.others + j) * s.length, s.length, p));
    return KN_OK;
}

/* One operation for each element of a difference; backward, for each of both rows. */
static kn_span_work pairs_work(const kn_call *call)
{
    const kn_tensor *x = call->inputs[X1];
    return kn_work_of_outputs(call, 2.0 * (double)x->shape[x->ndim - 1]);
}

static kn_span_work pairs_backward_work(const kn_grad_call *grad)
{
    const kn_input_spec *x = &grad->input[X1];
    return kn_grad_work(grad, 4.0 * (double)kn_numel(grad->saved[SAVED_RESULT]) * (double)x->shape[x->ndim - 1]);
}

static const kn_op_param distance_rows[] = {KN_PARAM(kn_distance_args, p, .min = 0, .max = (double)INFINITY)};
#define PAIRS_OP(op_name, ...)                                                                                         \
    {                                                                                                                  \
        .name = op_name, .inputs = {__VA_ARGS__}, .dtypes = {KN_DTYPES_REAL},                                          \
        .params = KN_PARAMS(kn_distance_args, distance_rows, .p = 2), .shape = pairs_shape, .forward = pairs_forward,  \
        .backward = pairs_backward, .backward_recorded = pairs_recorded, .reference = pairs_reference,                 \
        .work = pairs_work, .backward_work = pairs_backward_work                                                       \
    }
static const kn_op two_op = PAIRS_OP("cdist", "x1", "x2"), one_op = PAIRS_OP("pdist", "x");

/* --- the operators ------------------------------------------------------------------------------------------------ */

/* Squares of rows' norms: [..., P, 1]. */
static kn_tensor *squares(kn_tensor *x) { return kn_sum_dims(kn_square(x), (const int[]){-1}, 1, true); }

/* sqrt(b - 2 a + c) of products a and squares b and c. Where rounding leaves nothing of it, the distance and its
 * gradients of any order are 0: even there they do not divide by 0. */
#define SQUARE "(b - 2 * a + c)"
#define SLOPE(g) "y == 0 ? (T)0 : " g " / (y == 0 ? (T)1 : y)"
KN_ELEMENTWISE_TABLE(distances, KN_FLOATS, "abc", NULL, KN_VECTORS, SQUARE " <= 0 ? (T)0 : sqrt(" SQUARE ")",
                     KN_GRADIENTS(SLOPE("-g"), SLOPE("g / 2"), SLOPE("g / 2")),
                     b - 2 * a + c <= 0 ? 0 : sqrt(b - 2 * a + c));
static const kn_op distances_op = KN_ELEMENTWISE_OP("cdist", false, true, &distances_table, KN_DTYPES_FLOATING,
                                                    KN_NO_PARAMS, "products", "squares1", "squares2");

/* Euclidean, of rows of matrices: without the differences in memory. */
static kn_tensor *by_products(kn_tensor *a, kn_tensor *b)
{
    const kn_dtype dtype = kn_promote_types(a->dtype, b->dtype);
    a = kn_widened(a), b = kn_widened(b);
    const kn_dtype autocast = kn_autocast_pause(); /* halves would lose what is left of the difference */
    kn_tensor *products = kn_matmul(a, kn_transpose(b, -2, -1));
    kn_autocast_resume(autocast);
    return kn_to_dtype(kn_invoke(&distances_op, NULL, products, squares(a), kn_transpose(squares(b), -2, -1)), dtype);
}

/* Do the dimensions before the last two broadcast? */
static bool batches_fit(const kn_tensor *a, const kn_tensor *b)
{
    for (int d = 3; d <= a->ndim && d <= b->ndim; d++) {
        const int64_t m = a->shape[a->ndim - d], n = b->shape[b->ndim - d];
        if (m != n && m != 1 && n != 1)
            return false;
    }
    return true;
}

/* Matrices x as [B, rows, length], with `ndim` dimensions `shape` of the batch. */
static kn_tensor *as_batch(kn_tensor *x, kn_dtype dtype, int ndim, int64_t *shape)
{
    const int64_t rows = shape[ndim] = x->shape[x->ndim - 2], length = shape[ndim + 1] = x->shape[x->ndim - 1];
    x = kn_expand(kn_to_dtype(x, kn_compute_type(dtype)), ndim + 2, shape);
    return kn_reshape(x, 3, (const int64_t[]){kn_shape_numel(ndim, shape), rows, length});
}

static kn_tensor *by_differences(const kn_entry *entry, kn_tensor *a, kn_tensor *b)
{
    const kn_dtype dtype = kn_promote_types(a->dtype, b->dtype);
    const int ndim = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
    int64_t shape[KN_MAX_DIMS];

    for (int d = 0; d < ndim; d++) {
        const int of_a = d - ndim + a->ndim - 2, of_b = d - ndim + b->ndim - 2;
        shape[d] = of_a >= 0 && a->shape[of_a] != 1 ? a->shape[of_a] : of_b >= 0 ? b->shape[of_b] : 1;
    }
    kn_tensor *x1 = as_batch(a, dtype, ndim, shape), *x2 = as_batch(b, dtype, ndim, shape);
    shape[ndim] = a->shape[a->ndim - 2];
    shape[ndim + 1] = b->shape[b->ndim - 2];
    return kn_to_dtype(kn_reshape(kn_invoke(&two_op, entry->params, x1, x2), ndim + 2, shape), dtype);
}

static kn_status cdist_enter(kn_entry *entry)
{
    kn_tensor *x1 = entry->inputs[X1], *x2 = entry->inputs[X2];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (x1->ndim < 2 || x2->ndim < 2 || x1->shape[x1->ndim - 1] != x2->shape[x2->ndim - 1])
        return kn_fail(KN_ERR_SHAPE, "x1 and x2 must be matrices with rows of one length, not %s and %s",
                       kn_tensor_describe(a, sizeof a, x1), kn_tensor_describe(b, sizeof b, x2));
    if (!batches_fit(x1, x2))
        return kn_fail(KN_ERR_SHAPE, "the batches of x1, %s, and x2, %s, do not broadcast",
                       kn_tensor_describe(a, sizeof a, x1), kn_tensor_describe(b, sizeof b, x2));
    const bool many = x1->shape[x1->ndim - 2] > MANY_ROWS || x2->shape[x2->ndim - 2] > MANY_ROWS;
    if (many && ((const kn_distance_args *)entry->params)->p == 2)
        return kn_composed_give(entry, by_products(x1, x2));
    return kn_composed_give(entry, by_differences(entry, x1, x2));
}

static kn_status pdist_enter(kn_entry *entry)
{
    kn_tensor *x = entry->inputs[X1];
    char text[KN_DESCRIBE];

    if (x->ndim != 2)
        return kn_fail(KN_ERR_SHAPE, "x must be a matrix, not %s", kn_tensor_describe(text, sizeof text, x));
    return kn_composed_give(entry, kn_to_dtype(kn_invoke(&one_op, entry->params, kn_widened(x)), x->dtype));
}

const kn_op kn_cdist_op = {.name = "cdist",
                           .inputs = {"x1", "x2"},
                           .dtypes = {KN_DTYPES_FLOATING},
                           .params = KN_PARAMS(kn_distance_args, distance_rows, .p = 2),
                           .composes = true,
                           .enter = cdist_enter};
const kn_op kn_pdist_op = {.name = "pdist",
                           .inputs = {"x"},
                           .dtypes = {KN_DTYPES_FLOATING},
                           .params = KN_PARAMS(kn_distance_args, distance_rows, .p = 2),
                           .composes = true,
                           .enter = pdist_enter};

kn_tensor *kn_cdist(kn_tensor *x1, kn_tensor *x2, double p)
{
    return kn_invoke(&kn_cdist_op, &(kn_distance_args){p}, x1, x2);
}

kn_tensor *kn_pdist(kn_tensor *x, double p) { return kn_invoke(&kn_pdist_op, &(kn_distance_args){p}, x); }
