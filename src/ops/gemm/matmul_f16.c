/* ops/gemm/matmul_f16.c - products of f16 tensors, on tensor cores directly, elsewhere converted to f32, as those of bf16
 * are. */
#include <string.h>

#include "ops/gemm/blocked.h"
#include "ops/gemm/matmul.h"
#include "tensor/tensor.h"

typedef struct matmul_f16 {
    kn_matmul_problem product;
    int64_t m, n, k; /* of one matrix */
} matmul_f16;

static bool supports_tensor(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return p->product.a->dtype == KN_F16 && kn_gemm_supports_halves(limits, p->m, p->n, p->k);
}

static bool prefers_tensor(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return kn_block_pays(limits, p->m, p->n);
}

static kn_status run_tensor(kn_stream *stream, const void *problem)
{
    return kn_matmul_product(stream, &((const matmul_f16 *)problem)->product, kn_gemm_halves);
}

/* A copy in f32, contiguous, or transposed if `t` is. Owned. */
static kn_status widen(kn_tensor **wide, kn_tensor *t)
{
    kn_device *device = t->storage->device;
    const int last = t->ndim - 1;
    if (last < 1 || t->strides[last] == 1 || t->strides[last - 1] != 1)
        return kn_tensor_cast(wide, t, KN_F32, device);
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS];
    kn_tensor *swapped = NULL, *cast = NULL;
    memcpy(shape, t->shape, sizeof shape);
    memcpy(strides, t->strides, sizeof strides);
    shape[last] = t->shape[last - 1];
    shape[last - 1] = t->shape[last];
    strides[last] = t->strides[last - 1];
    strides[last - 1] = t->strides[last];
    kn_status status = kn_tensor_view(&swapped, t, t->ndim, shape, strides, t->offset);
    if (status == KN_OK)
        status = kn_tensor_cast(&cast, swapped, KN_F32, device);
    if (status == KN_OK) {
        memcpy(strides, cast->strides, sizeof strides);
        strides[last] = cast->strides[last - 1];
        strides[last - 1] = cast->strides[last];
        status = kn_tensor_view(wide, cast, t->ndim, t->shape, strides, cast->offset);
    }
    kn_release(swapped);
    kn_release(cast);
    return status;
}

static kn_status run_converted(kn_stream *stream, const void *problem)
{
    const kn_matmul_problem *p = &((const matmul_f16 *)problem)->product;
    kn_matmul_problem wide = {.activation = p->activation};
    kn_status status = widen(&wide.a, p->a);
    if (status == KN_OK)
        status = widen(&wide.b, p->b);
    if (status == KN_OK && p->bias)
        status = widen(&wide.bias, p->bias);
    if (status == KN_OK)
        status = kn_tensor_new(&wide.y, KN_F32, p->y->ndim, p->y->shape, kn_stream_device(stream));
    if (status == KN_OK)
        status = kn_matmul_product(stream, &wide, kn_gemm);
    if (status == KN_OK)
        status = kn_tensor_copy(p->y, wide.y);
    kn_release(wide.a);
    kn_release(wide.b);
    kn_release(wide.bias);
    kn_release(wide.y);
    return status;
}

static int describe(const void *problem, int64_t numbers[KN_PROBLEM_NUMBERS])
{
    const matmul_f16 *p = problem;
    const kn_tensor *const operands[2] = {p->product.a, p->product.b};
    int count = 0;
    numbers[count++] = p->product.a->dtype;
    numbers[count++] = p->m;
    numbers[count++] = p->n;
    numbers[count++] = p->k;
    numbers[count++] = kn_numel(p->product.y);
    for (int i = 0; i < 2; i++)
        for (int back = 1; back <= 3; back++) /* the strides of the matrices and of the batch */
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

kn_status kn_matmul_f16(kn_stream *stream, const kn_matmul_problem *product)
{
    const kn_tensor *a = product->a, *b = product->b;
    const matmul_f16 problem = {.product = *product,
                                .m = a->ndim > 1 ? a->shape[a->ndim - 2] : 1,
                                .n = b->ndim > 1 ? b->shape[b->ndim - 1] : 1,
                                .k = a->shape[a->ndim - 1]};
    return kn_numel(product->y) == 0 ? KN_OK : kn_run_implementation(&kn_matmul_f16_implementations, stream, &problem);
}
