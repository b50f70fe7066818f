/* tensor/arrange.c - the order in memory of elementwise results: that of the operands, as in PyTorch, so that operands
 * with permuted dimensions are passed through as they lie. */
#include "tensor/strides.h"
#include "tensor/tensor.h"

/* The operand's step along dimension d of a result of `ndim` dimensions; 0 where it is broadcast. */
static int64_t step_of(const kn_tensor *operand, const kn_tensor *result, int d)
{
    const int own = d - (result->ndim - operand->ndim);
    return own < 0 || (operand->shape[own] == 1 && result->shape[d] != 1) ? 0 : operand->strides[own];
}

/* Above 0 if dimension `inner` should be outside of `outer`, below 0 if not, 0 if no operand tells: the first one that
 * is broadcast along neither decides. */
static int compare(const kn_tensor *result, kn_tensor *const *operands, int count, int inner, int outer)
{
    for (int i = 0; i < count; i++) {
        const int64_t in = operands[i] ? step_of(operands[i], result, inner) : 0;
        const int64_t out = operands[i] ? step_of(operands[i], result, outer) : 0;
        if (in == 0 || out == 0)
            continue;
        if (in != out)
            return in > out ? 1 : -1;
        if (result->shape[inner] > result->shape[outer])
            return 1;
    }
    return 0;
}

static bool are_row_major(kn_tensor *const *operands, int count)
{
    for (int i = 0; i < count; i++)
        if (operands[i] && !kn_is_contiguous(operands[i]))
            return false;
    return true;
}

/* Sorts the dimensions, the innermost first; one that nothing orders keeps its place. */
static void sort_dims(int order[KN_MAX_DIMS], const kn_tensor *result, kn_tensor *const *operands, int count)
{
    for (int k = 0; k < result->ndim; k++)
        order[k] = result->ndim - 1 - k;
    for (int k = 1; k < result->ndim; k++)
        for (int at = k, i = k - 1; i >= 0; i--) {
            const int sign = compare(result, operands, count, order[i], order[at]);
            if (sign < 0)
                break;
            if (sign == 0)
                continue;
            const int moved = order[i];
            order[i] = order[at];
            order[at] = moved;
            at = i;
        }
}

void kn_tensor_arrange(kn_tensor *result, kn_tensor *const *operands, int count)
{
    int order[KN_MAX_DIMS];
    int64_t step = 1;
    if (result->ndim < 2 || are_row_major(operands, count))
        return;
    sort_dims(order, result, operands, count);
    for (int k = 0; k < result->ndim; k++) {
        result->strides[order[k]] = step;
        step *= result->shape[order[k]] > 1 ? result->shape[order[k]] : 1;
    }
}
