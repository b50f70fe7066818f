/* ops/gemm/contract.c - compositions of matrix products: tensordot, kron, chains of products. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/invoke.h"
#include "ops/gemm/matmul.h"
#include "tensor/scope.h"

/* --- tensordot ---------------------------------------------------------------------------------------------------- */

/* The dimensions of `t` in the order in which the product needs them: the given ones first or last. */
static kn_status order_dims(int *order, const kn_tensor *t, const int *dims, int count, bool first)
{
    bool is_given[KN_MAX_DIMS] = {false};
    int given[KN_MAX_DIMS], free = 0;
    for (int i = 0; i < count; i++) {
        KN_TRY(kn_dim_from_front(&given[i], dims[i], t->ndim));
        if (is_given[given[i]])
            return kn_fail(KN_ERR_ARGUMENT, "dimension %d occurs twice", dims[i]);
        is_given[given[i]] = true;
    }
    memcpy(order + (first ? 0 : t->ndim - count), given, (size_t)count * sizeof *given);
    for (int d = 0; d < t->ndim; d++)
        if (!is_given[d])
            order[(first ? count : 0) + free++] = d;
    return KN_OK;
}

static kn_status tensordot(kn_tensor **result, kn_tensor *a, kn_tensor *b, const int *dims_a, const int *dims_b,
                           int count)
{
    int order_a[KN_MAX_DIMS], order_b[KN_MAX_DIMS];
    int64_t shape[2 * KN_MAX_DIMS], inside = 1;
    if (count > 0 && (!dims_a || !dims_b))
        return kn_fail(KN_ERR_ARGUMENT, "%s is NULL", dims_a ? "dims_b" : "dims_a");
    if (count < 0 || count > a->ndim || count > b->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "%d dimensions to sum over, of tensors with %d and %d", count, a->ndim,
                       b->ndim);
    const int free_a = a->ndim - count, ndim = free_a + b->ndim - count;
    if (ndim > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the result would have %d dimensions; at most %d are supported", ndim,
                       KN_MAX_DIMS);
    KN_TRY(order_dims(order_a, a, dims_a, count, false));
    KN_TRY(order_dims(order_b, b, dims_b, count, true));
    for (int i = 0; i < count; i++) {
        const int64_t size_a = a->shape[order_a[free_a + i]], size_b = b->shape[order_b[i]];
        if (size_a != size_b)
            return kn_fail(KN_ERR_SHAPE, "dimension %d of a has size %lld, dimension %d of b %lld", dims_a[i],
                           (long long)size_a, dims_b[i], (long long)size_b);
        inside *= size_a;
    }
    for (int d = 0; d < ndim; d++)
        shape[d] = d < free_a ? a->shape[order_a[d]] : b->shape[order_b[count + d - free_a]];
    kn_tensor *left = kn_reshape(kn_permute(a, order_a), 2, (int64_t[]){kn_shape_numel(free_a, shape), inside});
    kn_tensor *right =
        kn_reshape(kn_permute(b, order_b), 2, (int64_t[]){inside, kn_shape_numel(ndim - free_a, shape + free_a)});
    *result = kn_reshape(kn_matmul(left, right), ndim, shape);
    return *result ? KN_OK : kn_error_status();
}

kn_tensor *kn_tensordot(kn_tensor *a, kn_tensor *b, const int *dims_a, const int *dims_b, int count)
{
    kn_tensor *const operands[] = {a, b};
    kn_composition c = kn_composition_begin("tensordot", operands, 2);
    if (c.status == KN_OK)
        c.status = tensordot(&c.result, a, b, dims_a, dims_b, count);
    return kn_composition_end(&c);
}

kn_tensor *kn_tensordot_last(kn_tensor *a, kn_tensor *b, int count)
{
    int dims_a[KN_MAX_DIMS], dims_b[KN_MAX_DIMS];
    for (int i = 0; i < count && i < KN_MAX_DIMS; i++) {
        dims_a[i] = i - count;
        dims_b[i] = i;
    }
    return kn_tensordot(a, b, dims_a, dims_b, count <= KN_MAX_DIMS ? count : KN_MAX_DIMS + 1);
}

/* --- kron --------------------------------------------------------------------------------------------------------- */

/* With a dimension of size 1 after each of a's, and before each of b's, the product broadcasts to pairs of dimensions,
 * which are then joined. Dimensions of size 1 need no pair, so that more of them fit. */
static kn_status kron(kn_tensor **result, kn_tensor *a, kn_tensor *b)
{
    const int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    int64_t of_a[2 * KN_MAX_DIMS], of_b[2 * KN_MAX_DIMS], shape[KN_MAX_DIMS];
    int pairs = 0;
    for (int d = 0; d < ndim; d++) {
        const int own_a = d - (ndim - a->ndim), own_b = d - (ndim - b->ndim);
        const int64_t size_a = own_a >= 0 ? a->shape[own_a] : 1, size_b = own_b >= 0 ? b->shape[own_b] : 1;
        shape[d] = size_a * size_b;
        if (size_a != 1) {
            of_a[pairs] = size_a;
            of_b[pairs++] = 1;
        }
        if (size_b != 1) {
            of_a[pairs] = 1;
            of_b[pairs++] = size_b;
        }
    }
    if (pairs > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "a and b have %d dimensions of other sizes than 1; at most %d are supported",
                       pairs, KN_MAX_DIMS);
    *result = kn_reshape(kn_mul(kn_reshape(a, pairs, of_a), kn_reshape(b, pairs, of_b)), ndim, shape);
    return *result ? KN_OK : kn_error_status();
}

kn_tensor *kn_kron(kn_tensor *a, kn_tensor *b)
{
    kn_tensor *const operands[] = {a, b};
    kn_composition c = kn_composition_begin("kron", operands, 2);
    if (c.status == KN_OK)
        c.status = kron(&c.result, a, b);
    return kn_composition_end(&c);
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

enum { MOST_FACTORS = 64 };

/* sizes[i] and sizes[i + 1] are those of factor i. Products of factors i to j cost least if split after cut[i][j]. */
typedef struct chain {
    kn_tensor *factors[MOST_FACTORS];
    int64_t sizes[MOST_FACTORS + 1];
    int cut[MOST_FACTORS][MOST_FACTORS];
} chain;

static void find_cuts(chain *c, int count)
{
    double cost[MOST_FACTORS][MOST_FACTORS];
    for (int i = 0; i < count; i++)
        cost[i][i] = 0;
    for (int length = 1; length < count; length++)
        for (int i = 0; i + length < count; i++) {
            const int j = i + length;
            for (int cut = i; cut < j; cut++) {
                const double here = cost[i][cut] + cost[cut + 1][j] +
                                    (double)c->sizes[i] * (double)c->sizes[cut + 1] * (double)c->sizes[j + 1];
                if (cut == i || here < cost[i][j]) {
                    cost[i][j] = here;
                    c->cut[i][j] = cut;
                }
            }
        }
}

static kn_tensor *multiply_chain(const chain *c, int i, int j)
{
    return i == j ? c->factors[i]
                  : kn_matmul(multiply_chain(c, i, c->cut[i][j]), multiply_chain(c, c->cut[i][j] + 1, j));
}

/* `vectors`: the first and the last may be. */
static kn_status multi_dot(kn_tensor **result, kn_tensor *const *tensors, int count, bool vectors)
{
    chain c;
    if (count < 1 || count > MOST_FACTORS)
        return kn_fail(KN_ERR_ARGUMENT, "%d tensors; it takes 1 to %d", count, MOST_FACTORS);
    for (int i = 0; i < count; i++) {
        kn_tensor *t = tensors[i];
        const bool may_be_vector = vectors && count > 1 && (i == 0 || i == count - 1);
        if (!(may_be_vector && t->ndim == 1))
            KN_TRY(kn_check_rank(
                t, may_be_vector ? "the first and the last tensor may be vectors, the others" : "each tensor", 2));
        if (t->ndim == 1)
            t = kn_unsqueeze(t, i == 0 ? 0 : 1);
        if (!t)
            return kn_error_status();
        if (i > 0 && t->shape[0] != c.sizes[i])
            return kn_fail(KN_ERR_SHAPE, "tensor %d has %lld rows, but the one before it %lld columns", i,
                           (long long)t->shape[0], (long long)c.sizes[i]);
        c.factors[i] = t;
        c.sizes[i] = t->shape[0];
        c.sizes[i + 1] = t->shape[1];
    }
    find_cuts(&c, count);
    *result = multiply_chain(&c, 0, count - 1);
    if (*result && tensors[0]->ndim == 1)
        *result = kn_squeeze(*result, 0);
    if (*result && count > 1 && tensors[count - 1]->ndim == 1)
        *result = kn_squeeze(*result, -1);
    return *result ? KN_OK : kn_error_status();
}

static kn_tensor *chained(const char *name, kn_tensor *const *tensors, int count, bool vectors)
{
    kn_composition c = kn_composition_begin(name, tensors, count);
    if (c.status == KN_OK)
        c.status = multi_dot(&c.result, tensors, count, vectors);
    return kn_composition_end(&c);
}

kn_tensor *kn_linalg_multi_dot(kn_tensor *const *tensors, int count)
{
    return chained("linalg_multi_dot", tensors, count, true);
}

kn_tensor *kn_chain_matmul(kn_tensor *const *tensors, int count)
{
    return chained("chain_matmul", tensors, count, false);
}

/* --- the frame ---------------------------------------------------------------------------------------------------- */

kn_composition kn_composition_begin(const char *name, kn_tensor *const *operands, int count)
{
    kn_composition c = {.name = name, .was_pending = kn_error_is_sticky()};
    for (int i = 0; i < count && c.status == KN_OK; i++)
        if (!operands || !operands[i])
            c.status = kn_fail_argument_null(name, "operand");
    c.scope = c.status == KN_OK ? kn_scope_begin_internal() : 0;
    if (c.status == KN_OK && c.scope == 0)
        c.status = kn_error_status();
    return c;
}

kn_tensor *kn_composition_end(kn_composition *c)
{
    if (c->scope == 0)
        return kn_error_make_sticky();
    if (c->status == KN_OK)
        return kn_scope_return(c->scope, c->result);
    kn_scope_end(c->scope);
    if (!c->was_pending)
        kn_error_prefix_sticky("%s", c->name);
    return kn_error_make_sticky();
}
