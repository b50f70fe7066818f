/* ops/gemm/matrix.c - tensors as operands of matrix products. */
#include "ops/gemm/matrix.h"

#include "base/error.h"

/* Rows or columns must be contiguous. A dimension of size 1 or 0 may have any stride. */
static bool choose_layout(kn_gemm_operand *operand, const kn_tensor *t)
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    int64_t row_stride = t->strides[t->ndim - 2], column_stride = t->strides[t->ndim - 1];
    if ((column_stride == 1 || columns <= 1) && (row_stride >= columns || rows <= 1)) {
        operand->transposed = false;
        operand->ld = rows <= 1 || row_stride < 1 ? (columns > 0 ? columns : 1) : row_stride;
        return true;
    }
    if ((row_stride == 1 || rows <= 1) && (column_stride >= rows || columns <= 1)) {
        operand->transposed = true;
        operand->ld = columns <= 1 || column_stride < 1 ? (rows > 0 ? rows : 1) : column_stride;
        return true;
    }
    return false;
}

/* A single stride for all batch dimensions: they must be contiguous, or all broadcast. */
static bool choose_batch_stride(kn_gemm_operand *operand, const kn_tensor *t)
{
    bool found = false;
    int64_t stride = 0, count = 1;
    for (int d = t->ndim - 3; d >= 0; d--) {
        if (t->shape[d] == 1)
            continue;
        if (!found)
            stride = t->strides[d];
        else if (t->strides[d] != stride * count)
            return false;
        found = true;
        count *= t->shape[d];
    }
    operand->batch_stride = stride;
    return stride >= 0;
}

kn_status kn_matrix_operand_of(kn_matrix_operand *result, kn_tensor *t)
{
    *result = (kn_matrix_operand){.operand = {.buffer = t->storage->buffer, .offset = t->offset}};
    if (kn_shape_numel(t->ndim, t->shape) == 0 ||
        (choose_layout(&result->operand, t) && choose_batch_stride(&result->operand, t))) {
        if (result->operand.ld < 1)
            result->operand.ld = 1;
        return KN_OK;
    }
    KN_TRY(kn_tensor_contiguous(&result->copy, t));
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    result->operand =
        (kn_gemm_operand){result->copy->storage->buffer, result->copy->offset, columns, rows * columns, false};
    return KN_OK;
}
