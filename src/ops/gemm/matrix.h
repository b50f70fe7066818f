/* ops/gemm/matrix.h - tensors as operands of matrix products. */
#ifndef KN_OPS_GEMM_MATRIX_H
#define KN_OPS_GEMM_MATRIX_H

#include "tensor/tensor.h"

typedef struct kn_matrix_operand {
    kn_gemm_operand operand;
    kn_tensor *copy; /* owned; what the operand points into where the tensor could not be used in place, else NULL */
} kn_matrix_operand;

/* `t` [..., rows, columns] as the operand that reads it in place, transposed or not, with one stride over all batch
 * dimensions (0 where they repeat one matrix); where its strides do not allow that, of a contiguous copy. Release
 * `copy` once the product is enqueued. */
kn_status kn_matrix_operand_of(kn_matrix_operand *result, kn_tensor *t);

#endif
