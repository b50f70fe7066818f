/* ops/vmap/products.c - rules of matrix products, linear layers and convolutions. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/operators.h"
#include "ops/vmap/rules.h"

/* --- matrix products ---------------------------------------------------------------------------------------------- */

/* Operand i as matrices, [B, 1..., n, k] with `dims` dimensions in a sample, or the same for all samples; a vector is a
 * row as the first operand, a column as the second. */
static kn_tensor *matrices(const kn_vmap_call *call, int i, int dims)
{
    kn_tensor *x = call->inputs[i];
    if (kn_vmap_sample_dims(call, i) == 1)
        x = kn_unsqueeze(x, i == 0 ? -2 : -1);
    const int own = x ? x->ndim - call->is_batched[i] : dims;
    for (int missing = call->is_batched[i] ? dims - own : 0; x && missing > 0; missing--)
        x = kn_unsqueeze(x, 1);
    return x;
}

static int matrix_dims(const kn_vmap_call *call, int i)
{
    const int dims = kn_vmap_sample_dims(call, i);
    return dims == 1 ? 2 : dims;
}

/* Does the operator, other than matmul, take operands of so many dimensions? */
static bool takes(const kn_vmap_call *call)
{
    static const struct {
        const char *name;
        int dims[2];
    } known[] = {{"mm", {2, 2}},    {"mv", {2, 1}},    {"dot", {1, 1}}, {"vdot", {1, 1}},
                 {"addmm", {2, 2}}, {"addmv", {2, 1}}, {"bmm", {3, 3}}, {"baddbmm", {3, 3}}};
    const int a = kn_vmap_sample_dims(call, 0), b = kn_vmap_sample_dims(call, 1);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(call->op->name, known[i].name) == 0 && (a != known[i].dims[0] || b != known[i].dims[1]))
            return false;
    const bool broadcasts = strcmp(call->op->name, "matmul") == 0;
    return broadcasts || a < 3 ||
           call->inputs[0]->shape[call->is_batched[0]] == call->inputs[1]->shape[call->is_batched[1]];
}

kn_status kn_vmap_matmul(kn_vmap_call *call)
{
    const int a_dims = matrix_dims(call, 0), b_dims = matrix_dims(call, 1), dims = a_dims > b_dims ? a_dims : b_dims;
    if (kn_vmap_sample_dims(call, 0) == 0 || kn_vmap_sample_dims(call, 1) == 0 || !takes(call))
        return KN_VMAP_DECLINE;
    kn_tensor *a = matrices(call, 0, dims), *b = matrices(call, 1, dims);
    kn_tensor *y = a && b ? kn_matmul(a, b) : NULL;
    if (y && kn_vmap_sample_dims(call, 0) == 1)
        y = kn_squeeze(y, -2);
    if (y && kn_vmap_sample_dims(call, 1) == 1)
        y = kn_squeeze(y, -1);
    return kn_status_of(call->outputs[0] = y);
}

kn_status kn_vmap_outer(kn_vmap_call *call)
{
    if (kn_vmap_sample_dims(call, 0) != 1 || kn_vmap_sample_dims(call, 1) != 1)
        return KN_VMAP_DECLINE;
    kn_tensor *a = kn_unsqueeze(call->inputs[0], -1), *b = kn_unsqueeze(call->inputs[1], -2);
    return kn_status_of(call->outputs[0] = a && b ? kn_mul(a, b) : NULL);
}

/* The product of inputs 1 and 2. */
static kn_status multiply(kn_vmap_call *call)
{
    kn_vmap_call of_two = *call;
    of_two.inputs++;
    of_two.is_batched++;
    of_two.num_inputs = 2;
    return (strcmp(call->op->name, "addr") == 0 ? kn_vmap_outer : kn_vmap_matmul)(&of_two);
}

kn_status kn_vmap_add_product(kn_vmap_call *call)
{
    const kn_addmm_params *args = call->params;
    KN_TRY(multiply(call));
    if (!kn_vmap_any_batched(call, 1))
        call->outputs[0] = kn_vmap_repeat(call->outputs[0], call->size);
    kn_tensor *product = call->outputs[0], *y = product;
    kn_tensor *input = product ? kn_vmap_aligned(call, 0, product->ndim - 1) : NULL;
    if (args->alpha != 1)
        y = kn_mul_scalar(y, args->alpha);
    if (input && args->beta != 0 && args->beta != 1)
        input = kn_mul_scalar(input, args->beta);
    if (args->beta != 0)
        y = y && input ? kn_add(y, input) : NULL;
    if (y && !kn_same_shape(y, product)) /* the input must broadcast to the product, not the other way round */
        return KN_VMAP_DECLINE;
    return kn_status_of(call->outputs[0] = y);
}

/* --- linear ------------------------------------------------------------------------------------------------------- */

/* Every sample's rows with its own weight: x [B, rows, in], weight [B, out, in], bias [B, out] or NULL. */
static kn_tensor *of_rows(kn_tensor *x, kn_tensor *weight, kn_tensor *bias)
{
    kn_tensor *turned = kn_transpose(weight, -1, -2);
    kn_tensor *y = turned ? kn_matmul(x, turned) : NULL;
    kn_tensor *row = bias && y ? kn_unsqueeze(bias, 1) : NULL;
    return !bias ? y : row ? kn_add(y, row) : NULL;
}

static kn_status linear_by_own(kn_vmap_call *call)
{
    kn_tensor *x = kn_vmap_batch(call, 0), *weight = kn_vmap_batch(call, 1);
    kn_tensor *bias = call->num_inputs > 2 && call->inputs[2] ? kn_vmap_batch(call, 2) : NULL;
    if (!x || !weight || weight->ndim != 3 || x->ndim < 2)
        return KN_VMAP_DECLINE;
    kn_tensor *rows = kn_reshape(x, 3, (int64_t[]){call->size, -1, x->shape[x->ndim - 1]});
    kn_tensor *y = rows ? of_rows(rows, weight, bias) : NULL;
    if (!y)
        return kn_error_status();
    int64_t shape[KN_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = weight->shape[1];
    return kn_status_of(call->outputs[0] = kn_reshape(y, x->ndim, shape));
}

kn_status kn_vmap_linear(kn_vmap_call *call)
{
    if (!kn_vmap_any_batched(call, 1))
        return kn_vmap_apply(call, call->inputs, call->params);
    return ((const kn_linear_params *)call->params)->activation == KN_ACTIVATION_NONE ? linear_by_own(call)
                                                                                      : KN_VMAP_DECLINE;
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

/* Every sample with its own weight: a convolution of B times as many groups. */
static kn_status conv_by_own(kn_vmap_call *call, bool has_batch)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    kn_tensor *x = kn_vmap_batch(call, 0), *inputs[3] = {NULL};
    if (x && !has_batch)
        x = kn_unsqueeze(x, 1);
    inputs[0] = kn_vmap_as_channels(x);
    kn_tensor *weight = kn_vmap_batch(call, 1);
    inputs[1] = weight ? kn_vmap_merged(weight) : NULL;
    const bool has_bias = call->num_inputs > 2 && call->inputs[2];
    kn_tensor *bias = has_bias ? kn_vmap_batch(call, 2) : NULL;
    inputs[2] = bias ? kn_vmap_merged(bias) : NULL;
    if (!inputs[0] || !inputs[1] || (has_bias && !inputs[2]))
        return kn_error_status();
    *(int64_t *)kn_vmap_field(call, &params, "groups") *= call->size;
    KN_TRY(kn_op_invoke_to(call->op, inputs, 3, params.bytes, call->outputs, 1));
    kn_tensor *y = kn_vmap_from_channels(call->outputs[0], call->size);
    return kn_status_of(call->outputs[0] = y && !has_batch ? kn_squeeze(y, 1) : y);
}

kn_status kn_vmap_conv(kn_vmap_call *call)
{
    const int weight_dims = kn_vmap_sample_dims(call, 1), dims = kn_vmap_sample_dims(call, 0);
    if (dims != weight_dims && dims != weight_dims - 1)
        return KN_VMAP_DECLINE;
    return kn_vmap_any_batched(call, 1) ? conv_by_own(call, dims == weight_dims) : kn_vmap_layer_of_images(call);
}
