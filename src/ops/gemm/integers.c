/* ops/gemm/integers.c - products of integer tensors (cl/gemm/integers.cl), as PyTorch has them on CPUs. */
#include <stdio.h>

#include "gemm/integers.h"
#include "loops/transpose.h"
#include "ops/gemm/matmul.h"
#include "tensor/tensor.h"

static kn_integer_matrix steps_of(const kn_gemm_operand *x) { return (kn_integer_matrix){x->batch_stride, x->ld}; }

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

/* The tensor, or a copy, with neighbours along the last dimension. Owned. */
static kn_status with_rows(kn_tensor **result, kn_tensor *t)
{
    if (t->strides[t->ndim - 1] != 1)
        return kn_tensor_contiguous(result, t);
    *result = kn_retain(t);
    return KN_OK;
}

kn_status kn_matmul_integers(kn_stream *stream, const kn_matmul_problem *problem)
{
    const size_t size = kn_dtype_size(problem->y->dtype);
    kn_matmul_problem product = *problem;
    product.a = product.b = NULL;
    kn_status status = with_rows(&product.a, problem->a);
    if (status == KN_OK)
        status = with_rows(&product.b, problem->b);
    if (status == KN_OK)
        status = kn_matmul_product(stream, &product, size == 1 ? bytes : size == 2 ? shorts : size == 4 ? ints : longs);
    kn_release(product.a);
    kn_release(product.b);
    return status;
}
