/* ops/linalg/qr_blocks.c - QR of large matrices on CPU devices: panels of columns are factored by a kernel
 * (linalg/qr_blocks.cl), whose reflections, 1 - v t v^T, products of matrices apply to other columns. */
#include "base/integer.h"
#include "ops/linalg/blocks.h"

/* Elements from which that takes less time, of a matrix and of one at least TALL times as high as wide, of whose rows a
 * panel's vectors are longer. */
enum { LARGE = 160 * 160, LARGE_TALL = 8192, TALL = 4, LEAST_COLUMNS = 16 };

bool kn_linalg_qr_in_blocks(const kn_tensor *a)
{
    const int64_t m = kn_rows(a), n = kn_columns(a);
    return kn_tensor_limits(a)->is_cpu && kn_min_i64(m, n) >= LEAST_COLUMNS &&
           m * n >= (m / TALL >= n ? LARGE_TALL : LARGE);
}

/* Of a batch of matrices; `size` is v's from one column to the next. */
typedef struct panels {
    kn_stream *stream;
    const char *operation;
    int64_t count, size;
    kn_tensor *v, *t;          /* [matrices, count, BLOCK, size], [matrices, count, BLOCK, BLOCK] */
    kn_tensor *first, *second; /* [matrices, BLOCK, columns]: v^T x, and t times that */
} panels;

static void release(panels *p)
{
    kn_release(p->v);
    kn_release(p->t);
    kn_release(p->first);
    kn_release(p->second);
}

static kn_status make(panels *p, const kn_tensor *a, int64_t columns)
{
    const int64_t v[] = {kn_matrices(a), p->count, KN_LINALG_BLOCK, p->size};
    const int64_t t[] = {kn_matrices(a), p->count, KN_LINALG_BLOCK, KN_LINALG_BLOCK};
    const int64_t products[] = {kn_matrices(a), KN_LINALG_BLOCK, columns};
    kn_device *device = a->storage->device;
    KN_TRY(kn_tensor_new(&p->v, a->dtype, 4, v, device));
    KN_TRY(kn_tensor_new(&p->t, a->dtype, 4, t, device));
    KN_TRY(kn_tensor_new(&p->first, a->dtype, 3, products, device));
    return kn_tensor_new(&p->second, a->dtype, 3, products, device);
}

/* Panel `index` of v or t, whose columns are `size` elements long. */
static kn_gemm_operand panel_of(const panels *p, const kn_tensor *x, int64_t index, int64_t size, bool transposed)
{
    return (kn_gemm_operand){.buffer = x->storage->buffer,
                             .offset = x->offset + index * KN_LINALG_BLOCK * size,
                             .ld = size,
                             .batch_stride = p->count * KN_LINALG_BLOCK * size,
                             .transposed = transposed};
}

/* Applies a panel's product of reflections, or its transpose, to the columns of x from `column` on. */
static kn_status reflect(const panels *p, const kn_tensor *x, int64_t index, int64_t width, int64_t column,
                         bool transposed)
{
    const int64_t from = index * KN_LINALG_BLOCK, rows = kn_rows(x) - from, columns = kn_columns(x) - column;
    const kn_gemm_operand part = kn_block_of(x, from, column), first = kn_block_of(p->first, 0, 0),
                          second = kn_block_of(p->second, 0, 0);
    kn_block_product product = {x->dtype, kn_matrices(x), width, columns, rows, .alpha = 1, .beta = 0};
    product.a = panel_of(p, p->v, index, p->size, false); /* columns of v are rows of v^T */
    product.b = part;
    product.c = first;
    KN_TRY(kn_multiply_blocks(p->stream, &product));
    product.k = width;
    product.a = panel_of(p, p->t, index, KN_LINALG_BLOCK, transposed);
    product.b = first;
    product.c = second;
    KN_TRY(kn_multiply_blocks(p->stream, &product));
    product.m = rows;
    product.alpha = -1;
    product.beta = 1;
    product.a = panel_of(p, p->v, index, p->size, true);
    product.b = second;
    product.c = part;
    return kn_multiply_blocks(p->stream, &product);
}

static int64_t width_of(const kn_tensor *a, int64_t index)
{
    const int64_t rest = kn_min_i64(kn_rows(a), kn_columns(a)) - index * KN_LINALG_BLOCK;
    return kn_min_i64(rest, KN_LINALG_BLOCK);
}

static kn_status factor(const panels *p, const kn_tensor *a)
{
    const kn_linalg_launch launch = {
        "linalg/qr_blocks.cl", "linalg_qr_panel", p->operation, a->dtype, kn_matrices(a), 0};
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t from = i * KN_LINALG_BLOCK, to = from + width_of(a, i);
        KN_TRY(KN_LINALG_RUN(p->stream, &launch, kn_arg_tensor(a), kn_arg_tensor(p->v), kn_arg_tensor(p->t),
                             kn_arg_i64(kn_rows(a)), kn_arg_i64(kn_columns(a)), kn_arg_i64(p->size),
                             kn_arg_i64(p->count), kn_arg_i64(from), kn_arg_i64(to)));
        if (to < kn_columns(a))
            KN_TRY(reflect(p, a, i, to - from, to, true));
    }
    return KN_OK;
}

/* The product of all reflections, from the last panel on: columns before a panel are 0 in its rows. */
static kn_status make_q(const panels *p, const kn_tensor *a, const kn_tensor *q)
{
    const kn_linalg_launch launch = {"linalg/qr_blocks.cl",      "linalg_set_identity", p->operation, q->dtype, 0,
                                     kn_matrices(q) * kn_rows(q)};
    KN_TRY(KN_LINALG_RUN(p->stream, &launch, kn_arg_tensor(q), kn_arg_i64(kn_rows(q)), kn_arg_i64(kn_columns(q)),
                         kn_arg_i64(kn_matrices(q) * kn_rows(q))));
    for (int64_t i = p->count - 1; i >= 0; i--)
        KN_TRY(reflect(p, q, i, width_of(a, i), i * KN_LINALG_BLOCK, false));
    return KN_OK;
}

kn_status kn_linalg_qr_blocks(kn_stream *stream, const char *operation, const kn_tensor *a, const kn_tensor *q)
{
    panels p = {stream, operation, kn_div_up(kn_min_i64(kn_rows(a), kn_columns(a)), KN_LINALG_BLOCK),
                kn_panel_column(kn_rows(a)), .v = NULL};
    kn_status status = make(&p, a, kn_max_i64(kn_columns(a), kn_columns(q)));
    if (status == KN_OK)
        status = factor(&p, a);
    if (status == KN_OK && kn_numel(q) > 0)
        status = make_q(&p, a, q);
    release(&p);
    return status;
}
