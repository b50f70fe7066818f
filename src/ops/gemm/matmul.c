/* ops/gemm/matmul.c - torch.matmul: vectors, matrices, and batches of matrices whose batch dimensions broadcast. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/gemm/matmul.h"
#include "ops/gemm/matrix.h"

/* --- shape rule --------------------------------------------------------------------------------------------------- */

static kn_status fail_shapes(const kn_tensor *a, const kn_tensor *b, const char *why)
{
    char text_a[KN_DESCRIBE], text_b[KN_DESCRIBE];
    return kn_fail(KN_ERR_SHAPE, "%s and %s cannot be multiplied: %s",
                   kn_format_shape(text_a, sizeof text_a, a->ndim, a->shape),
                   kn_format_shape(text_b, sizeof text_b, b->ndim, b->shape), why);
}

/* A vector on the left is a row, one on the right a column; that dimension is not in the result. */
typedef struct product_shape {
    int64_t m, n, k;
    int batch_ndim;
    int64_t batch[KN_MAX_DIMS];
} product_shape;

static int batch_dims(const kn_tensor *t) { return t->ndim > 2 ? t->ndim - 2 : 0; }

static kn_status resolve(product_shape *s, const kn_tensor *a, const kn_tensor *b)
{
    if (a->ndim == 0 || b->ndim == 0)
        return fail_shapes(a, b, "both must have at least one dimension");
    s->m = a->ndim == 1 ? 1 : a->shape[a->ndim - 2];
    s->k = a->shape[a->ndim - 1];
    s->n = b->ndim == 1 ? 1 : b->shape[b->ndim - 1];
    if (b->shape[b->ndim == 1 ? 0 : b->ndim - 2] != s->k)
        return fail_shapes(a, b, "the last dimension of the first differs from the second-to-last of the second");
    int batch_a = batch_dims(a), batch_b = batch_dims(b);
    s->batch_ndim = batch_a > batch_b ? batch_a : batch_b;
    for (int d = 0; d < s->batch_ndim; d++) {
        int da = d - (s->batch_ndim - batch_a), db = d - (s->batch_ndim - batch_b);
        int64_t size_a = da >= 0 ? a->shape[da] : 1, size_b = db >= 0 ? b->shape[db] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return fail_shapes(a, b, "their batch dimensions do not broadcast");
        s->batch[d] = size_a == 1 ? size_b : size_a;
    }
    return KN_OK;
}

kn_status kn_matmul_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];
    product_shape s;
    if (a->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "a must be numbers, not bool; convert it with kn_to_dtype first");
    KN_TRY(kn_call_check_same_dtype(call, 0, 1));
    KN_TRY(resolve(&s, a, b));
    int64_t shape[KN_MAX_DIMS];
    int ndim = s.batch_ndim;
    memcpy(shape, s.batch, sizeof shape);
    if (a->ndim > 1)
        shape[ndim++] = s.m;
    if (b->ndim > 1)
        shape[ndim++] = s.n;
    return kn_call_output(call, a->dtype, ndim, shape);
}

/* --- work --------------------------------------------------------------------------------------------------------- */

/* k multiplications and additions per element; each gradient is a product of the same size. */
kn_span_work kn_matmul_work(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    return kn_work_of_products(call, (double)a->shape[a->ndim - 1], 0);
}

kn_span_work kn_matmul_backward_work(const kn_grad_call *grad)
{
    const int64_t k = grad->input[0].shape[grad->input[0].ndim - 1];
    return kn_grad_work(grad,
                        2 * (double)k * (double)kn_numel(grad->grad_outputs[0]) * (grad->needs[0] + grad->needs[1]));
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* `t` as matrices over the batch of the result: a vector becomes a row or a column, batch dimensions are broadcast.
 * Owned. */
static kn_status as_matrices(kn_tensor **view, kn_tensor *t, bool left, const product_shape *s)
{
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS];
    int own = batch_dims(t), ndim = s->batch_ndim + 2;
    for (int d = 0; d < s->batch_ndim; d++) {
        int dim = d - (s->batch_ndim - own);
        shape[d] = s->batch[d];
        strides[d] = dim >= 0 && t->shape[dim] != 1 ? t->strides[dim] : 0;
    }
    shape[ndim - 2] = left ? s->m : s->k;
    shape[ndim - 1] = left ? s->k : s->n;
    strides[ndim - 2] = t->ndim > 1 ? t->strides[t->ndim - 2] : left ? 0 : t->strides[0];
    strides[ndim - 1] = t->ndim > 1 ? t->strides[t->ndim - 1] : left ? t->strides[0] : 0;
    return kn_tensor_view(view, t, ndim, shape, strides, t->offset);
}

/* With a single matrix on the right for all on the left, all rows form one matrix: a single product instead of a
 * batch. */
static void fold_batch(kn_gemm_params *p)
{
    if (p->batch > 1 && p->b.batch_stride == 0 && !p->a.transposed && p->a.batch_stride == p->m * p->a.ld &&
        p->c.batch_stride == p->m * p->c.ld) {
        p->m *= p->batch;
        p->batch = 1;
    }
}

kn_status kn_matmul_product(kn_stream *stream, const kn_matmul_problem *problem,
                            kn_status (*gemm)(kn_stream *stream, const kn_gemm_problem *problem))
{
    kn_tensor *y = problem->y, *a = NULL, *b = NULL;
    product_shape s;
    KN_TRY(resolve(&s, problem->a, problem->b));
    kn_gemm_params p = {.f64 = y->dtype == KN_F64,
                        .m = s.m,
                        .n = s.n,
                        .k = s.k,
                        .batch = kn_shape_numel(s.batch_ndim, s.batch),
                        .alpha = problem->factors ? problem->factors->alpha : 1,
                        .beta = problem->factors ? problem->factors->beta : 0,
                        .c = {y->storage->buffer, y->offset, s.n, s.m * s.n, false}};
    kn_matrix_operand left = {0}, right = {0};
    kn_status status = as_matrices(&a, problem->a, true, &s);
    if (status == KN_OK)
        status = as_matrices(&b, problem->b, false, &s);
    if (status == KN_OK)
        status = kn_matrix_operand_of(&left, a);
    if (status == KN_OK)
        status = kn_matrix_operand_of(&right, b);
    if (status == KN_OK) {
        p.a = left.operand;
        p.b = right.operand;
        fold_batch(&p);
        status = gemm(stream, &(kn_gemm_problem){.product = p,
                                                 .bias = problem->bias ? problem->bias->storage->buffer : NULL,
                                                 .bias_offset = problem->bias ? problem->bias->offset : 0,
                                                 .activation = problem->activation,
                                                 .keeps_f32 = y->dtype == KN_F32 && y->dtype != problem->a->dtype,
                                                 .sums = problem->sums});
    }
    kn_release(left.copy);
    kn_release(right.copy);
    kn_release(a);
    kn_release(b);
    return status;
}

kn_status kn_matmul_run(kn_stream *stream, const kn_matmul_problem *problem)
{
    const kn_dtype dtype = problem->a->dtype;
    return kn_dtype_is_reduced(dtype)    ? kn_matmul_f16(stream, problem)
           : kn_dtype_is_floating(dtype) ? kn_matmul_product(stream, problem, kn_gemm)
                                         : kn_matmul_integers(stream, problem);
}

kn_status kn_matmul_forward(kn_call *call)
{
    kn_status status = kn_matmul_run(
        call->stream, &(kn_matmul_problem){.y = call->outputs[0], .a = call->inputs[0], .b = call->inputs[1]});
    for (int i = 0; status == KN_OK && call->needs_grad && i < 2; i++)
        status = kn_call_save_for(call, 1 - i, call->inputs[i]);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* With C = A B: dA = dC B^T and dB = A^T dC, summed over the batch dimensions that were broadcast. */

static kn_tensor *transpose_last(kn_tensor *t) { return kn_transpose(t, -2, -1); }

/* a b of matrices; sums of one term are elementwise work. */
static kn_tensor *product(kn_tensor *a, kn_tensor *b)
{
    return a && b && a->shape[a->ndim - 1] == 1 ? kn_mul(a, b) : kn_matmul(a, b);
}

static kn_tensor *sum_to_shape(kn_tensor *gradient, int ndim, const int64_t *shape)
{
    int dims[KN_MAX_DIMS], count = 0, extra = gradient ? gradient->ndim - ndim : 0;
    for (int d = 0; gradient && d < gradient->ndim; d++)
        if (d < extra || (shape[d - extra] == 1 && gradient->shape[d] != 1))
            dims[count++] = d;
    return kn_reshape(count > 0 ? kn_sum_dims(gradient, dims, count, true) : gradient, ndim, shape);
}

static kn_tensor *flatten_rows(kn_tensor *t) { return kn_reshape(t, 2, (int64_t[]){-1, t->shape[t->ndim - 1]}); }

/* dB of a single matrix B for a batch of A: one product over all rows of all A, without a sum afterwards. */
static kn_tensor *gradient_of_single(kn_tensor *a, kn_tensor *gradient)
{
    bool empty = kn_numel(a) == 0 || kn_numel(gradient) == 0; /* a reshape of an empty tensor cannot resolve -1 */
    return empty ? NULL : kn_matmul(transpose_last(flatten_rows(a)), flatten_rows(gradient));
}

typedef struct matrix_shape {
    int ndim;
    int64_t shape[KN_MAX_DIMS];
} matrix_shape;

/* A vector as a matrix: one row as the first operand, one column as the second. */
static void as_matrix(matrix_shape *result, const kn_input_spec *input, bool row)
{
    result->ndim = input->ndim == 1 ? 2 : input->ndim;
    memcpy(result->shape, input->shape, sizeof result->shape);
    if (input->ndim != 1)
        return;
    result->shape[row ? 0 : 1] = 1;
    result->shape[row ? 1 : 0] = input->shape[0];
}

kn_status kn_matmul_gradients(kn_tensor *a, kn_tensor *b, kn_tensor *gradient, const kn_input_spec *inputs,
                              const bool *needs, kn_tensor **results)
{
    matrix_shape first, second;
    if (needs[1] && inputs[0].ndim == 1)
        a = kn_unsqueeze(a, 0);
    if (needs[0] && inputs[1].ndim == 1)
        b = kn_unsqueeze(b, -1);
    if (inputs[1].ndim == 1)
        gradient = kn_unsqueeze(gradient, -1);
    if (inputs[0].ndim == 1)
        gradient = kn_unsqueeze(gradient, -2);
    if ((needs[1] && !a) || (needs[0] && !b) || !gradient)
        return kn_error_status();
    as_matrix(&first, &inputs[0], true);
    as_matrix(&second, &inputs[1], false);
    if (needs[0])
        results[0] = sum_to_shape(product(gradient, transpose_last(b)), first.ndim, first.shape);
    if (needs[1]) {
        kn_tensor *single = second.ndim == 2 && first.ndim > 2 ? gradient_of_single(a, gradient) : NULL;
        results[1] = single ? single : sum_to_shape(product(transpose_last(a), gradient), second.ndim, second.shape);
    }
    for (int i = 0; i < 2; i++) {
        if (needs[i] && inputs[i].ndim == 1)
            results[i] = kn_reshape(results[i], 1, inputs[i].shape);
        if (needs[i] && !results[i])
            return kn_error_status();
    }
    return KN_OK;
}

kn_status kn_matmul_backward(kn_grad_call *grad)
{
    kn_tensor *a = kn_grad_saved_input(grad, 0, 0), *b = kn_grad_saved_input(grad, 1, 1); /* each NULL if not needed */
    return kn_matmul_gradients(a, b, grad->grad_outputs[0], grad->input, grad->needs, grad->grad_inputs);
}

/* --- the plain C reference ---------------------------------------------------------------------------------------- */

/* The offset in the contiguous `t` of the matrix for matrix `batch` of the result. */
static int64_t reference_matrix(const kn_tensor *t, const product_shape *s, int64_t batch)
{
    int own = batch_dims(t);
    int64_t index = 0, step = t->ndim > 1 ? t->shape[t->ndim - 1] * t->shape[t->ndim - 2] : t->shape[0];
    for (int d = s->batch_ndim - 1; d >= 0; d--) {
        int dim = d - (s->batch_ndim - own);
        if (dim >= 0) {
            index += t->shape[dim] == 1 ? 0 : batch % s->batch[d] * step;
            step *= t->shape[dim];
        }
        batch /= s->batch[d];
    }
    return index;
}

kn_status kn_matmul_reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];
    product_shape s;
    KN_TRY(resolve(&s, a, b));
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        int64_t column = i % s.n, row = i / s.n % s.m, batch = i / s.n / s.m;
        int64_t from_a = reference_matrix(a, &s, batch) + row * s.k, from_b = reference_matrix(b, &s, batch) + column;
        double sum = 0;
        for (int64_t k = 0; k < s.k; k++)
            sum += kn_reference_get(a, from_a + k) * kn_reference_get(b, from_b + k * s.n);
        kn_reference_set(call->outputs[0], i, sum);
    }
    return KN_OK;
}

const kn_op kn_matmul_op = {
    .name = "matmul",
    .inputs = {"a", "b"},
    .dtypes = {KN_DTYPES_NUMBERS},
    KN_MATMUL_PASSES,
};

kn_tensor *kn_matmul(kn_tensor *a, kn_tensor *b) { return kn_invoke(&kn_matmul_op, NULL, a, b); }
