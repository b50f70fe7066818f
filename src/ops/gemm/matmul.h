/* ops/gemm/matmul.h - the product of two tensors of any dtype, for kn_matmul and kn_linear. */
#pragma once

#include "ops/gemm/gemm.h"
#include "tensor/tensor.h"

/* y = activation(a b + bias), with a b as in torch.matmul; all of the same dtype and device. */
typedef struct kn_matmul_problem {
    kn_tensor *y; /* contiguous, of the resulting shape */
    kn_tensor *a, *b;
    kn_tensor *bias; /* of y's last dimension, contiguous; NULL: none */
    kn_activation activation;
} kn_matmul_problem;

kn_status kn_matmul_run(kn_stream *stream, const kn_matmul_problem *problem);

/* --- between the files of this op --------------------------------------------------------------------------------- */

/* The same, using `gemm`. */
kn_status kn_matmul_product(kn_stream *stream, const kn_matmul_problem *problem,
                            kn_status (*gemm)(kn_stream *stream, const kn_gemm_problem *problem));

/* For f16: the table "matmul_f16" (matmul_f16.c). Products and sums are in f32; the result is rounded once. */
kn_status kn_matmul_f16(kn_stream *stream, const kn_matmul_problem *problem);

extern const kn_implementation_table kn_matmul_f16_implementations;
