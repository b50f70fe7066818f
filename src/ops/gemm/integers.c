/* ops/gemm/integers.c - products of integer tensors (cl/gemm/integers.cl), as PyTorch has them on CPUs. */
#include <stdio.h>

#include "gemm/integers.h"
#include "loops/transpose.h"
#include "ops/gemm/matmul.h"
#include "tensor/tensor.h"

static kn_integer_matrix steps_of(const kn_gemm_operand *x)
{
    return (kn_integer_matrix){x->batch_stride, x->transposed ? 1 : x->ld, x->transposed ? x->ld : 1};
}

static kn_status multiply(kn_stream *stream, const kn_gemm_params *p, kn_dtype dtype)
{
    const kn_integer_product product = {p->m, p->n, p->k, p->batch, steps_of(&p->a), steps_of(&p->b), steps_of(&p->c)};
    const int64_t size = (int64_t)kn_dtype_size(dtype);
    char options[32];
    snprintf(options, sizeof options, "-DT=%s", kn_bits_type(dtype));
    return kn_run(
        stream, .source = "gemm/integers.cl", .options = options, .kernel = "gemm_integers", .operation = "matmul",
        .dims = 1, .global = {kn_work_items(kn_device_limits(kn_stream_device(stream)), p->batch * p->m * p->n, 64)},
        KN_ARGS(kn_arg_buffer(p->a.buffer, p->a.offset * size), kn_arg_buffer(p->b.buffer, p->b.offset * size),
                kn_arg_buffer(p->c.buffer, p->c.offset * size), kn_arg_struct(&product, sizeof product)));
}

#define MULTIPLY(name, dtype)                                                                                          \
    static kn_status name(kn_stream *stream, const kn_gemm_problem *problem)                                           \
    {                                                                                                                  \
        return multiply(stream, &problem->product, dtype);                                                             \
    }
MULTIPLY(bytes, KN_U8)
MULTIPLY(shorts, KN_I16)
MULTIPLY(ints, KN_I32)
MULTIPLY(longs, KN_I64)

/* The kernel goes along the rows of b. */
kn_status kn_matmul_integers(kn_stream *stream, const kn_matmul_problem *problem)
{
    const size_t size = kn_dtype_size(problem->y->dtype);
    kn_matmul_problem product = *problem;
    const bool has_rows = problem->b->ndim == 1 || problem->b->strides[problem->b->ndim - 1] == 1;
    if (has_rows)
        kn_retain(product.b);
    else
        KN_TRY(kn_tensor_contiguous(&product.b, problem->b));
    const kn_status status = kn_matmul_product(stream, &product,
                                               size == 1   ? bytes
                                               : size == 2 ? shorts
                                               : size == 4 ? ints
                                                           : longs);
    kn_release(product.b);
    return status;
}
