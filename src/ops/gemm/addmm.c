/* ops/gemm/addmm.c - beta input + alpha a b: addmm, addmv, addr, baddbmm, addbmm. The product's epilogue applies both
 * factors and adds the input, which is copied to the result before, or a bias if it is a single row. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/gemm/matmul.h"
#include "ops/shape/broadcast.h"

enum { INPUT, A, B, INPUTS };

/* --- operands as matmul takes them -------------------------------------------------------------------------------- */

static kn_status check_ranks(kn_entry *entry, int first, int second)
{
    KN_TRY(kn_check_rank(entry->inputs[A], "a", first));
    return kn_check_rank(entry->inputs[B], "b", second);
}

static kn_status replace(kn_entry *entry, kn_tensor *a, kn_tensor *b)
{
    entry->inputs[A] = a;
    entry->inputs[B] = b;
    return a && b ? KN_OK : kn_error_status();
}

static kn_status addmm_enter(kn_entry *entry) { return check_ranks(entry, 2, 2); }
static kn_status addmv_enter(kn_entry *entry) { return check_ranks(entry, 2, 1); }

static kn_status addr_enter(kn_entry *entry)
{
    KN_TRY(check_ranks(entry, 1, 1));
    return replace(entry, kn_unsqueeze(entry->inputs[A], 1), kn_unsqueeze(entry->inputs[B], 0));
}

static kn_status baddbmm_enter(kn_entry *entry)
{
    KN_TRY(check_ranks(entry, 3, 3));
    const int64_t a = entry->inputs[A]->shape[0], b = entry->inputs[B]->shape[0];
    return a == b ? KN_OK
                  : kn_fail(KN_ERR_SHAPE, "a and b must have the same batch size, not %lld and %lld", (long long)a,
                            (long long)b);
}

/* The sum over the batch is a sum over longer rows: one product. */
static kn_status addbmm_enter(kn_entry *entry)
{
    KN_TRY(baddbmm_enter(entry));
    kn_tensor *a = entry->inputs[A], *b = entry->inputs[B];
    const int64_t columns = a->shape[0] * a->shape[2], rows = b->shape[0] * b->shape[1];
    return replace(entry, kn_reshape(kn_permute(a, (const int[]){1, 0, 2}), 2, (const int64_t[]){a->shape[1], columns}),
                   kn_reshape(b, 2, (const int64_t[]){rows, b->shape[2]}));
}

/* --- the passes --------------------------------------------------------------------------------------------------- */

/* The call of the product alone. */
static kn_call product_of(const kn_call *call)
{
    kn_call product = *call;
    product.inputs = call->inputs + A;
    product.num_inputs = INPUTS - A;
    return product;
}

static kn_status addmm_shape(kn_call *call)
{
    kn_call product = product_of(call);
    const kn_tensor *input = call->inputs[INPUT];
    char text[KN_DESCRIBE];
    KN_TRY(kn_call_check_floating_or_half(call, INPUT));
    KN_TRY(kn_call_check_same_dtype(call, INPUT, B));
    KN_TRY(kn_matmul_shape(&product));
    const int ndim = product.spec[0].ndim;
    bool fits = input->ndim <= ndim;
    for (int d = 1; fits && d <= input->ndim; d++)
        fits = input->shape[input->ndim - d] == 1 || input->shape[input->ndim - d] == product.spec[0].shape[ndim - d];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE, "the input %s does not broadcast to the shape of the product",
                       kn_tensor_describe(text, sizeof text, input));
    return kn_call_output(call, input->dtype, ndim, product.spec[0].shape);
}

static bool is_row(const kn_tensor *input, const kn_tensor *y)
{
    return y->ndim >= 2 && input->ndim >= 1 && kn_numel(input) == y->shape[y->ndim - 1] &&
           input->shape[input->ndim - 1] == y->shape[y->ndim - 1];
}

static kn_status addmm_forward(kn_call *call)
{
    const kn_addmm_params *params = call->params;
    kn_matmul_factors factors = {params->alpha, 0};
    kn_matmul_problem product = {
        .y = call->outputs[0], .a = call->inputs[A], .b = call->inputs[B], .factors = &factors};
    kn_status status = KN_OK;
    if (params->beta == 1 && is_row(call->inputs[INPUT], product.y)) {
        status = kn_tensor_contiguous(&product.bias, call->inputs[INPUT]);
    } else if (params->beta != 0) {
        factors.beta = params->beta;
        status = kn_tensor_copy_broadcast(product.y, call->inputs[INPUT], false);
    }
    if (status == KN_OK)
        status = kn_matmul_run(call->stream, &product);
    kn_release(product.bias);
    for (int i = A; status == KN_OK && call->needs_grad && i < INPUTS; i++)
        status = kn_call_save_for(call, A + B - i, call->inputs[i]); /* each for the other's gradient */
    return status;
}

static kn_status addmm_backward(kn_grad_call *grad)
{
    const kn_addmm_params *params = grad->params;
    kn_tensor *g = grad->grad_outputs[0], *a = kn_grad_saved_input(grad, 0, A), *b = kn_grad_saved_input(grad, 1, B);
    if (grad->needs[INPUT])
        KN_TRY(kn_give_gradient(grad, INPUT, params->beta == 1 ? g : kn_mul_scalar(g, params->beta)));
    if (!grad->needs[A] && !grad->needs[B])
        return KN_OK;
    return kn_matmul_gradients(a, b, params->alpha == 1 ? g : kn_mul_scalar(g, params->alpha), grad->input + A,
                               grad->needs + A, grad->grad_inputs + A);
}

static kn_status addmm_reference(const kn_call *call)
{
    const kn_addmm_params *params = call->params;
    const kn_call product = product_of(call);
    kn_tensor *y = call->outputs[0];
    KN_TRY(kn_matmul_reference(&product));
    for (int64_t i = 0; i < kn_numel(y); i++) {
        const int64_t from = kn_reference_index(call->inputs[INPUT], y, i);
        kn_reference_set(y, i,
                         params->alpha * kn_reference_get(y, i) +
                             (params->beta != 0 ? params->beta * kn_reference_get(call->inputs[INPUT], from) : 0));
    }
    return KN_OK;
}

static kn_span_work addmm_work(const kn_call *call)
{
    const kn_tensor *a = call->inputs[A];
    return kn_work_of_products(call, (double)a->shape[a->ndim - 1], 1);
}

static const kn_op_param rows[] = {KN_PARAM(kn_addmm_params, beta), KN_PARAM(kn_addmm_params, alpha)};

#define ADDMM(id)                                                                                                      \
    const kn_op kn_##id##_op = {.name = #id,                                                                           \
                                .inputs = {"input", "a", "b"},                                                         \
                                .dtypes = {KN_DTYPES_FLOATING},                                                        \
                                .params = KN_PARAMS(kn_addmm_params, rows, KN_ADDMM_DEFAULTS),                         \
                                .composes = true,                                                                      \
                                .enter = id##_enter,                                                                   \
                                .shape = addmm_shape,                                                                  \
                                .forward = addmm_forward,                                                              \
                                .backward = addmm_backward,                                                            \
                                .backward_recorded = addmm_backward,                                                   \
                                .reference = addmm_reference,                                                          \
                                .work = addmm_work};                                                                   \
    kn_tensor *kn_##id##_with(kn_tensor *input, kn_tensor *a, kn_tensor *b, const kn_addmm_params *params)             \
    {                                                                                                                  \
        return kn_invoke(&kn_##id##_op, params, input, a, b);                                                          \
    }

ADDMM(addmm)
ADDMM(addmv)
ADDMM(addr)
ADDMM(baddbmm)
ADDMM(addbmm)

kn_addmm_params kn_addmm_params_init(void) { return (kn_addmm_params){KN_ADDMM_DEFAULTS}; }
