/* ops/gemm/ranks.c - products of certain ranks: mm, bmm, mv, dot, vdot, outer, ger, inner. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/invoke.h"
#include "ops/gemm/matmul.h"

kn_status kn_check_rank(const kn_tensor *t, const char *input, int ndim)
{
    static const char *const wanted[] = {"", "a vector, [size]", "a matrix, [rows, columns]",
                                         "a batch of matrices, [batch, rows, columns]"};
    char text[KN_DESCRIBE];
    return t->ndim == ndim ? KN_OK
                           : kn_fail(KN_ERR_SHAPE, "%s must be %s, not %s", input, wanted[ndim],
                                     kn_tensor_describe(text, sizeof text, t));
}

static kn_status check_ranks(kn_entry *entry, int first, int second)
{
    KN_TRY(kn_check_rank(entry->inputs[0], entry->op->inputs[0], first));
    return kn_check_rank(entry->inputs[1], entry->op->inputs[1], second);
}

static kn_status mm_enter(kn_entry *entry) { return check_ranks(entry, 2, 2); }
static kn_status mv_enter(kn_entry *entry) { return check_ranks(entry, 2, 1); }
static kn_status dot_enter(kn_entry *entry) { return check_ranks(entry, 1, 1); }

static kn_status bmm_enter(kn_entry *entry)
{
    KN_TRY(check_ranks(entry, 3, 3));
    const int64_t first = entry->inputs[0]->shape[0], second = entry->inputs[1]->shape[0];
    return first == second ? KN_OK
                           : kn_fail(KN_ERR_SHAPE, "a and b must have the same batch size, not %lld and %lld",
                                     (long long)first, (long long)second);
}

/* A column times a row. */
static kn_status outer_enter(kn_entry *entry)
{
    KN_TRY(check_ranks(entry, 1, 1));
    entry->inputs[0] = kn_unsqueeze(entry->inputs[0], 1);
    entry->inputs[1] = kn_unsqueeze(entry->inputs[1], 0);
    return entry->inputs[0] && entry->inputs[1] ? KN_OK : kn_error_status();
}

/* Rows of b become the columns of a matrix; if b has further dimensions, the result gets them back. */
static kn_status inner_enter(kn_entry *entry)
{
    kn_tensor *a = entry->inputs[0], *b = entry->inputs[1];
    char text_a[KN_DESCRIBE], text_b[KN_DESCRIBE];
    int64_t shape[2 * KN_MAX_DIMS];
    if (a->ndim == 0 || b->ndim == 0) {
        entry->result = kn_mul(a, b);
        return entry->result ? KN_OK : kn_error_status();
    }
    const int64_t k = b->shape[b->ndim - 1], rows = kn_shape_numel(b->ndim - 1, b->shape);
    if (a->shape[a->ndim - 1] != k || a->ndim + b->ndim - 2 > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the last dimensions of a %s and b %s must be the same, and the others at most %d",
                       kn_tensor_describe(text_a, sizeof text_a, a), kn_tensor_describe(text_b, sizeof text_b, b),
                       KN_MAX_DIMS);
    if (b->ndim == 1)
        return KN_OK;
    entry->inputs[1] = kn_transpose(kn_reshape(b, 2, (const int64_t[]){rows, k}), 0, 1);
    if (!entry->inputs[1])
        return kn_error_status();
    if (b->ndim == 2)
        return KN_OK;
    memcpy(shape, a->shape, sizeof a->shape);
    memcpy(shape + a->ndim - 1, b->shape, sizeof b->shape);
    entry->result = kn_reshape(kn_matmul(a, entry->inputs[1]), a->ndim + b->ndim - 2, shape);
    return entry->result ? KN_OK : kn_error_status();
}

#define PRODUCT(id, enter_)                                                                                            \
    const kn_op kn_##id##_op = {.name = #id,                                                                           \
                                .inputs = {"a", "b"},                                                                  \
                                .dtypes = {KN_DTYPES_NUMBERS},                                                         \
                                .composes = true,                                                                      \
                                .enter = enter_,                                                                       \
                                KN_MATMUL_PASSES};                                                                     \
    kn_tensor *kn_##id(kn_tensor *a, kn_tensor *b) { return kn_invoke(&kn_##id##_op, NULL, a, b); }

PRODUCT(mm, mm_enter)
PRODUCT(bmm, bmm_enter)
PRODUCT(mv, mv_enter)
PRODUCT(dot, dot_enter)
PRODUCT(vdot, dot_enter)
PRODUCT(outer, outer_enter)
PRODUCT(ger, outer_enter)
PRODUCT(inner, inner_enter)
