/* ops/gemm/matmul_f16.c - products of f16 and bf16 tensors: of f16 on tensor cores, of bf16 by processors that multiply
 * pairs of them; else converted to f32. */
#include <string.h>

#include "ops/gemm/blocked.h"
#include "ops/gemm/instructions.h"
#include "ops/gemm/matmul.h"
#include "tensor/tensor.h"

typedef struct matmul_f16 {
    kn_matmul_problem product;
    int64_t m, n, k; /* of one matrix */
} matmul_f16;

static bool supports_tensor(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return p->product.y->dtype == KN_F16 && kn_gemm_supports_halves(limits, p->m, p->n, p->k);
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

static bool supports_pairs(const kn_limits *limits, const void *problem)
{
    return limits->is_cpu && ((const matmul_f16 *)problem)->product.a->dtype == KN_BF16;
}

static bool supports_rounded(const kn_limits *limits, const void *problem)
{
    return limits->is_cpu && ((const matmul_f16 *)problem)->product.y->dtype == KN_BF16;
}

/* Not if there are so few results of so long sums that these are divided among the cores in f32. */
enum { FEW_PER_ELEMENT = 32 };
static bool prefers_pairs(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return limits->multiplies_pairs && p->k <= FEW_PER_ELEMENT * kn_numel(p->product.y);
}

static kn_status run_pairs(kn_stream *stream, const void *problem)
{
    return kn_matmul_product(stream, &((const matmul_f16 *)problem)->product, kn_gemm_pairs);
}

/* One row and a matrix of contiguous rows, or a matrix of contiguous columns and one column. */
static bool supports_row(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    const kn_tensor *a = p->product.a, *b = p->product.b;
    const int64_t results = kn_numel(p->product.y);
    return supports_rounded(limits, problem) && p->k > 0 &&
           ((p->m == 1 && results == p->n && b->strides[b->ndim - 1] == 1) ||
            (p->n == 1 && results == p->m && a->ndim > 1 && a->strides[a->ndim - 2] == 1));
}

static bool prefers_row(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return limits->is_cpu && kn_gemm_row_pays(p->m * p->n, p->k);
}

static kn_status run_row(kn_stream *stream, const void *problem)
{
    return kn_matmul_product(stream, &((const matmul_f16 *)problem)->product, kn_gemm_bf16_row);
}

/* Both operands must be contiguous along k. */
static bool supports_dots(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    const kn_tensor *a = p->product.a, *b = p->product.b;
    return supports_rounded(limits, problem) &&
           (p->k <= 1 || (a->strides[a->ndim - 1] == 1 && b->strides[b->ndim > 1 ? b->ndim - 2 : 0] == 1));
}

static bool prefers_dots(const kn_limits *limits, const void *problem)
{
    const matmul_f16 *p = problem;
    return prefers_pairs(limits, problem) &&
           kn_gemm_pair_dots_pay(limits, p->m, p->n, p->k, kn_numel(p->product.y) / (p->m * p->n));
}

static kn_status run_dots(kn_stream *stream, const void *problem)
{
    return kn_matmul_product(stream, &((const matmul_f16 *)problem)->product, kn_gemm_pair_dots);
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

static kn_status widen_result(kn_tensor **wide, const kn_matmul_problem *p, kn_stream *stream)
{
    if (p->y->dtype == KN_F32) {
        *wide = kn_retain(p->y);
        return KN_OK;
    }
    return p->factors && p->factors->beta != 0
               ? widen(wide, p->y)
               : kn_tensor_new(wide, KN_F32, p->y->ndim, p->y->shape, kn_stream_device(stream));
}

static kn_status run_converted(kn_stream *stream, const void *problem)
{
    const kn_matmul_problem *p = &((const matmul_f16 *)problem)->product;
    kn_matmul_problem wide = {.activation = p->activation, .factors = p->factors};
    kn_status status = widen(&wide.a, p->a);
    if (status == KN_OK)
        status = widen(&wide.b, p->b);
    if (status == KN_OK && p->bias)
        status = widen(&wide.bias, p->bias);
    if (status == KN_OK)
        status = widen_result(&wide.y, p, stream);
    if (status == KN_OK)
        status = kn_matmul_product(stream, &wide, kn_gemm);
    if (status == KN_OK && wide.y != p->y)
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
    numbers[count++] = p->product.y->dtype;
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
    {.name = "dots",
     .supports = supports_dots,
     .prefers = prefers_dots,
     .works = kn_pairs_work,
     .run = run_dots,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "row", .supports = supports_row, .prefers = prefers_row, .run = run_row, .timed_on = KN_TIMED_ON_CPUS},
    {.name = "pairs",
     .supports = supports_pairs,
     .prefers = prefers_pairs,
     .works = kn_pairs_work,
     .run = run_pairs,
     .timed_on = KN_TIMED_ON_CPUS},
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
