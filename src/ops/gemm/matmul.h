/* ops/gemm/matmul.h - the product of two tensors of any dtype, for kn_matmul and kn_linear. */
#pragma once

#include "autograd/op.h"
#include "ops/gemm/gemm.h"
#include "tensor/tensor.h"

/* Other factors than 1 and 0: y = alpha a b + beta y. */
typedef struct kn_matmul_factors {
    double alpha, beta;
} kn_matmul_factors;

/* y = activation(a b + bias), with a b as in torch.matmul; all of the same device and dtype, but y and the bias may be
 * f32 where a and b are halves: then results are not rounded. */
typedef struct kn_matmul_problem {
    kn_tensor *y; /* contiguous, of the resulting shape */
    kn_tensor *a, *b;
    kn_tensor *bias; /* of y's last dimension, contiguous; NULL: none */
    kn_activation activation;
    const kn_matmul_factors *factors; /* NULL: 1 and 0 */
    kn_gemm_sums *sums;               /* as in kn_gemm_problem */
} kn_matmul_problem;

kn_status kn_matmul_run(kn_stream *stream, const kn_matmul_problem *problem);

/* The gradients of a b: those that are needed, of inputs of these shapes, in `results`. Recorded. */
kn_status kn_matmul_gradients(kn_tensor *a, kn_tensor *b, kn_tensor *gradient, const kn_input_spec *inputs,
                              const bool *needs, kn_tensor **results);

/* kn_matmul_op but for its name: for operators that are products of certain ranks. */
#define KN_MATMUL_PASSES                                                                                               \
    .shape = kn_matmul_shape, .forward = kn_matmul_forward, .backward = kn_matmul_backward,                            \
    .backward_recorded = kn_matmul_backward, .reference = kn_matmul_reference, .work = kn_matmul_work,                 \
    .backward_work = kn_matmul_backward_work
kn_status kn_matmul_shape(kn_call *call);
kn_status kn_matmul_forward(kn_call *call);
kn_status kn_matmul_backward(kn_grad_call *grad);
kn_status kn_matmul_reference(const kn_call *call);
kn_span_work kn_matmul_work(const kn_call *call);
kn_span_work kn_matmul_backward_work(const kn_grad_call *grad);

/* Does `t` have this many dimensions? The error names `input` and what it should be: "a matrix". */
kn_status kn_check_rank(const kn_tensor *t, const char *input, int ndim);

/* A function composed of others (contract.c, einsum.c): between begin, which checks that no operand is NULL, and end,
 * which names `name` in errors, temporaries belong to a scope. */
typedef struct kn_composition {
    const char *name;
    bool was_pending; /* an error before it */
    int scope;
    kn_status status;
    kn_tensor *result;
} kn_composition;
kn_composition kn_composition_begin(const char *name, kn_tensor *const *operands, int count);
kn_tensor *kn_composition_end(kn_composition *c);

/* --- between the files of this op --------------------------------------------------------------------------------- */

/* The same, using `gemm`. */
kn_status kn_matmul_product(kn_stream *stream, const kn_matmul_problem *problem,
                            kn_status (*gemm)(kn_stream *stream, const kn_gemm_problem *problem));

/* For f16: the table "matmul_f16" (matmul_f16.c). Products and sums are in f32; the result is rounded once. */
kn_status kn_matmul_f16(kn_stream *stream, const kn_matmul_problem *problem);

extern const kn_implementation_table kn_matmul_f16_implementations;

/* For integers: sums wrap around. Without bias, activation and factors. */
kn_status kn_matmul_integers(kn_stream *stream, const kn_matmul_problem *problem);
