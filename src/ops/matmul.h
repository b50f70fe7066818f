/* ops/matmul.h - the product of two tensors behind torch.matmul, whatever their dtype. */
#ifndef KN_OPS_MATMUL_H
#define KN_OPS_MATMUL_H

#include "ops/gemm.h"
#include "tensor/tensor.h"

/* y = a b as torch.matmul defines it, of one dtype and on one device, y of the shape that follows; enqueued by
 * `gemm`. */
kn_status kn_matmul_product(kn_stream *stream, kn_tensor *y, kn_tensor *a, kn_tensor *b,
                            kn_status (*gemm)(kn_stream *stream, const kn_gemm_problem *problem));

/* Of f16: the table "matmul_f16" (matmul_f16.c). Products of elements and their sums are f32; the result is rounded
 * once. */
kn_status kn_matmul_f16(kn_stream *stream, kn_tensor *y, kn_tensor *a, kn_tensor *b);

extern const kn_implementation_table kn_matmul_f16_implementations;

#endif
