/* ops/shape/split.c - taking a tensor apart along a dimension: unbind, split, chunk, tensor_split. The parts are
 * views. */
#include <koine/shape.h>

#include "ops/dispatch/invoke.h"
#include "ops/dispatch/promote.h"

/* The size along `dim`, which is then counted from the front. */
static kn_status begin(const char *function, const kn_tensor *x, int *dim, int64_t *size, kn_tensor **parts)
{
    if (!kn_check_argument(function, "x", x))
        return kn_error_status();
    if (!parts)
        return kn_fail_argument_null(function, "parts");
    if (x->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "%s: a 0-dimensional tensor has no parts", function);
    const kn_status status = kn_dim_from_front(dim, *dim, x->ndim);
    if (status != KN_OK)
        return kn_error_prefix("%s", function), status;
    *size = x->shape[*dim];
    return KN_OK;
}

/* parts[i] = start .. end of the dimension. On failure none is left. */
static kn_status cut(kn_tensor *x, int dim, int64_t start, int64_t end, int i, kn_tensor **parts)
{
    parts[i] = kn_narrow(x, dim, start, end > start ? end - start : 0);
    return parts[i] ? KN_OK : kn_error_status();
}

kn_status kn_unbind(kn_tensor *x, int dim, kn_tensor **parts)
{
    int64_t size = 0;
    KN_TRY(begin("unbind", x, &dim, &size, parts));
    for (int64_t i = 0; i < size; i++)
        if (!(parts[i] = kn_select(x, dim, i)))
            return kn_error_status();
    return KN_OK;
}

int kn_split(kn_tensor *x, int64_t split_size, int dim, kn_tensor **parts, int capacity)
{
    int64_t size = 0, count = 0;

    if (begin("split", x, &dim, &size, parts) != KN_OK)
        return kn_error_make_sticky(), 0;
    if (split_size < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "split: split_size must be at least 1, not %lld", (long long)split_size),
               0;
    count = size > 0 ? (size - 1) / split_size + 1 : 1;
    if (count > capacity)
        return kn_fail_null(KN_ERR_ARGUMENT, "split: there are %lld parts, but room for %d", (long long)count,
                            capacity),
               0;
    for (int i = 0; i < count; i++)
        if (cut(x, dim, i * split_size, (i + 1) * split_size < size ? (i + 1) * split_size : size, i, parts) != KN_OK)
            return 0;
    return (int)count;
}

kn_status kn_split_with_sizes(kn_tensor *x, const int64_t *sizes, int count, int dim, kn_tensor **parts)
{
    int64_t size = 0, at = 0, sum = 0;

    KN_TRY(begin("split_with_sizes", x, &dim, &size, parts));
    if (!sizes)
        return kn_fail_argument_null("split_with_sizes", "sizes");
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 0)
            return kn_fail(KN_ERR_ARGUMENT, "split_with_sizes: sizes[%d] is negative: %lld", i, (long long)sizes[i]);
        sum += sizes[i];
    }
    if (sum != size)
        return kn_fail(KN_ERR_ARGUMENT, "split_with_sizes: the sizes add up to %lld, but dimension %d has size %lld",
                       (long long)sum, dim, (long long)size);
    for (int i = 0; i < count; at += sizes[i++])
        KN_TRY(cut(x, dim, at, at + sizes[i], i, parts));
    return KN_OK;
}

int kn_chunk(kn_tensor *x, int chunks, int dim, kn_tensor **parts)
{
    int64_t size = 0;

    if (begin("chunk", x, &dim, &size, parts) != KN_OK)
        return kn_error_make_sticky(), 0;
    if (chunks < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "chunk: chunks must be at least 1, not %d", chunks), 0;
    if (size > 0)
        return kn_split(x, (size - 1) / chunks + 1, dim, parts, chunks);
    for (int i = 0; i < chunks; i++) /* of nothing, as many as wanted */
        if (cut(x, dim, 0, 0, i, parts) != KN_OK)
            return 0;
    return chunks;
}

kn_status kn_tensor_split(kn_tensor *x, int sections, int dim, kn_tensor **parts)
{
    int64_t size = 0;

    KN_TRY(begin("tensor_split", x, &dim, &size, parts));
    if (sections < 1)
        return kn_fail(KN_ERR_ARGUMENT, "tensor_split: sections must be at least 1, not %d", sections);
    const int64_t least = size / sections, larger = size % sections;
    for (int64_t i = 0, at = 0; i < sections; i++) {
        const int64_t length = least + (i < larger);
        KN_TRY(cut(x, dim, at, at + length, (int)i, parts));
        at += length;
    }
    return KN_OK;
}

kn_status kn_tensor_split_at(kn_tensor *x, const int64_t *indices, int count, int dim, kn_tensor **parts)
{
    int64_t size = 0, at = 0;

    KN_TRY(begin("tensor_split", x, &dim, &size, parts));
    if (!indices && count > 0)
        return kn_fail_argument_null("tensor_split", "indices");
    for (int i = 0; i <= count; i++) {
        int64_t end = i < count ? indices[i] : size;
        end += end < 0 ? size : 0;
        const int64_t stop = end < 0 ? 0 : end > size ? size : end;
        KN_TRY(cut(x, dim, at < size ? at : size, stop, i, parts));
        at = stop;
    }
    return KN_OK;
}
