/* ops/gemm/matrix.h - tensors as operands of matrix products. */
#pragma once

#include "tensor/tensor.h"

typedef struct kn_matrix_operand {
    kn_gemm_operand operand;
    kn_tensor *copy; /* owned; the operand's memory if the tensor cannot be used in place, else NULL */
} kn_matrix_operand;

/* `t` [..., rows, columns] as an operand, in place if its strides allow it, transposed or not, with a single stride for
 * all batch dimensions (0 if they broadcast one matrix); else a contiguous copy. Release `copy` once the product is
 * enqueued. */
kn_status kn_matrix_operand_of(kn_matrix_operand *result, kn_tensor *t);
