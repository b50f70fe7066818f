/* ops/matmul_f16.c - products of tensors of f16: on tensor cores as they lie in memory, elsewhere as f32. */
#include <string.h>

#include "ops/blocked.h"
#include "ops/matmul.h"
#include "tensor/tensor.h"

typedef struct matmul_f16 {
    kn_tensor *y, *a, *b;
    int64_t m, n, k; /* of one matrix */
} matmul_f16;

static bool supports_tensor(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return kn_gemm_supports_halves(limits, p->m, p->n, p->k);
}

static bool prefers_tensor(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return kn_block_pays(limits, p->m, p->n);
}

static kn_status run_tensor(kn_stream *stream, const void *problem)
{
    const matmul_f16 *p = problem;
    return kn_matmul_product(stream, p->y, p->a, p->b, kn_gemm_halves);
}

static kn_status run_converted(kn_stream *stream, const void *problem)
{
    const matmul_f16 *p = problem;
    kn_device *device = kn_stream_device(stream);
    kn_tensor *a = NULL, *b = NULL, *y = NULL;
    kn_status status = kn_tensor_cast(&a, p->a, KN_F32, device);
    if (status == KN_OK)
        status = kn_tensor_cast(&b, p->b, KN_F32, device);
    if (status == KN_OK)
        status = kn_tensor_new(&y, KN_F32, p->y->ndim, p->y->shape, device);
    if (status == KN_OK)
        status = kn_matmul_product(stream, y, a, b, kn_gemm);
    if (status == KN_OK)
        status = kn_tensor_copy(p->y, y);
    kn_release(a);
    kn_release(b);
    kn_release(y);
    return status;
}

static int describe(const void *problem, int64_t numbers[KN_PROBLEM_NUMBERS])
{
    const matmul_f16 *p = problem;
    const kn_tensor *const operands[2] = {p->a, p->b};
    int count = 0;
    numbers[count++] = p->m;
    numbers[count++] = p->n;
    numbers[count++] = p->k;
    numbers[count++] = kn_numel(p->y);
    for (int i = 0; i < 2; i++)
        for (int back = 1; back <= 3; back++) /* the matrices, and how they follow each other */
            numbers[count++] = operands[i]->ndim >= back ? operands[i]->strides[operands[i]->ndim - back] : 0;
    return count;
}

static const kn_implementation rows[] = {
    {.name = "tensor",
     .supports = supports_tensor,
     .prefers = prefers_tensor,
     .works = kn_tensor_cores_work_in_f16,
     .run = run_tensor,
     .timed_on = KN_TIMED_ON_OTHERS},
    {.name = "reference", .run = run_converted},
};
const kn_implementation_table kn_matmul_f16_implementations =
    KN_IMPLEMENTATION_TABLE("matmul_f16", rows, KN_FAMILY_MATMUL, describe);

kn_status kn_matmul_f16(kn_stream *stream, kn_tensor *y, kn_tensor *a, kn_tensor *b)
{
    const matmul_f16 problem = {.y = y,
                                .a = a,
                                .b = b,
                                .m = a->ndim > 1 ? a->shape[a->ndim - 2] : 1,
                                .n = b->ndim > 1 ? b->shape[b->ndim - 1] : 1,
                                .k = a->shape[a->ndim - 1]};
    return kn_numel(y) == 0 ? KN_OK : kn_run_implementation(&kn_matmul_f16_implementations, stream, &problem);
}
