/* ops/shape/arrange.c - functions that are composed of other views and copies: movedim, repeat, rot90, atleast_1d,
 * meshgrid, diag_embed, ... */
#include <koine/join.h>
#include <koine/shape.h>
#include <string.h>

#include "base/text.h"
#include "ops/dispatch/promote.h"
#include "ops/shape/broadcast.h"
#include "ops/shape/views.h"
#include "tensor/scope.h"

/* Makes the pending error sticky, with the name of the function. */
static void *failed(const char *function) { return kn_error_prefix("%s", function), kn_error_make_sticky(); }

/* --- views -------------------------------------------------------------------------------------------------------- */

kn_tensor *kn_movedim(kn_tensor *x, int source, int destination)
{
    int dims[KN_MAX_DIMS], from, to, next = 0;

    if (!kn_check_argument("movedim", "x", x))
        return NULL;
    if (kn_dim_from_front(&from, source, x->ndim) != KN_OK || kn_dim_from_front(&to, destination, x->ndim) != KN_OK)
        return failed("movedim");
    for (int d = 0; d < x->ndim; d++) {
        next += next == from;
        dims[d] = d == to ? from : next++;
    }
    return kn_permute(x, dims);
}

kn_tensor *kn_swapaxes(kn_tensor *x, int axis0, int axis1) { return kn_transpose(x, axis0, axis1); }
kn_tensor *kn_broadcast_to(kn_tensor *x, int ndim, const int64_t *shape) { return kn_expand(x, ndim, shape); }
kn_tensor *kn_ravel(kn_tensor *x) { return kn_reshape(x, 1, (const int64_t[]){-1}); }

kn_tensor *kn_expand_as(kn_tensor *x, const kn_tensor *other)
{
    return kn_check_argument("expand_as", "other", other) ? kn_expand(x, other->ndim, other->shape) : NULL;
}

kn_tensor *kn_view_as(kn_tensor *x, const kn_tensor *other)
{
    return kn_check_argument("view_as", "other", other) ? kn_reshape(x, other->ndim, other->shape) : NULL;
}

kn_tensor *kn_unflatten(kn_tensor *x, int dim, int ndim, const int64_t *sizes)
{
    int64_t shape[KN_MAX_DIMS];
    int from_front, n = 0;

    if (!kn_check_argument("unflatten", "x", x))
        return NULL;
    if (!sizes)
        return kn_fail_argument_null("unflatten", "sizes"), kn_error_make_sticky();
    if (kn_dim_from_front(&from_front, dim, x->ndim) != KN_OK)
        return failed("unflatten");
    if (ndim < 1 || x->ndim - 1 + ndim > KN_MAX_DIMS)
        return kn_fail_null(KN_ERR_ARGUMENT, "unflatten: a tensor of %d dimensions cannot get %d for one", x->ndim,
                            ndim);
    int64_t known = 1, open = -1;
    for (int i = 0; i < ndim; i++) {
        known *= sizes[i] < 0 ? 1 : sizes[i];
        open = sizes[i] == -1 ? i : open;
    }
    const int64_t size = x->ndim > 0 ? x->shape[from_front] : 1;
    if (open >= 0 ? known < 1 || size % known != 0 : known != size) {
        char text[KN_DESCRIBE];
        return kn_fail_null(KN_ERR_SHAPE, "unflatten: sizes %s do not multiply to %lld, the size of dimension %d",
                            kn_format_shape(text, sizeof text, ndim, sizes), (long long)size, from_front);
    }
    for (int d = 0; d < x->ndim || d == 0; d++) {
        if (d != from_front) {
            shape[n++] = x->shape[d];
            continue;
        }
        for (int i = 0; i < ndim; i++)
            shape[n++] = i == open ? size / known : sizes[i];
    }
    return kn_reshape(x, n, shape);
}

static kn_tensor *itself(kn_tensor *x) { return kn_reshape(x, x->ndim, x->shape); }
kn_tensor *kn_atleast_1d(kn_tensor *x) { return x && x->ndim > 0 ? itself(x) : kn_ravel(x); }

/* With one dimension more than `made`, which is made in a scope that begins at `depth`. */
static kn_tensor *raised(int depth, kn_tensor *made, int dim)
{
    kn_tensor *result = kn_scope_return(depth, kn_unsqueeze(made, dim));
    return result ? result : kn_error_make_sticky();
}

kn_tensor *kn_atleast_2d(kn_tensor *x)
{
    if (x && x->ndim > 1)
        return itself(x);
    const int depth = kn_scope_begin();
    return depth ? raised(depth, kn_atleast_1d(x), 0) : kn_error_make_sticky();
}

kn_tensor *kn_atleast_3d(kn_tensor *x)
{
    if (x && x->ndim > 2)
        return itself(x);
    const int depth = kn_scope_begin();
    return depth ? raised(depth, kn_atleast_2d(x), -1) : kn_error_make_sticky();
}

static kn_status check_lists(const char *function, kn_tensor *const *tensors, kn_tensor **results)
{
    return tensors && results ? KN_OK : kn_fail_argument_null(function, tensors ? "results" : "tensors");
}

kn_status kn_broadcast_tensors(kn_tensor *const *tensors, int count, kn_tensor **results)
{
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    KN_TRY(check_lists("broadcast_tensors", tensors, results));
    for (int i = 0; i < count; i++)
        if (!kn_check_argument("broadcast_tensors", "tensors", tensors[i]))
            return kn_error_status();
    if (kn_broadcast_all(&ndim, shape, tensors, count) != KN_OK)
        return kn_error_prefix("broadcast_tensors"), kn_error_status();
    for (int i = 0; i < count; i++)
        if (!(results[i] = kn_expand(tensors[i], ndim, shape)))
            return kn_error_status();
    return KN_OK;
}

/* --- repeat, rot90 ------------------------------------------------------------------------------------------------ */

/* Each dimension n becomes [repeats, n], of which the first is expanded; the reshape then copies once. x has as many
 * dimensions as there are repeats. NULL without an error: these would be too many dimensions. */
static kn_tensor *repeat_at_once(kn_tensor *x, const int64_t *repeats)
{
    int64_t narrow[2 * KN_MAX_DIMS], wide[2 * KN_MAX_DIMS], joined[KN_MAX_DIMS];
    int count = 0;

    for (int d = 0; d < x->ndim; d++) {
        if (repeats[d] != 1) {
            narrow[count] = 1;
            wide[count++] = repeats[d];
        }
        if (repeats[d] == 1 || x->shape[d] != 1)
            narrow[count] = wide[count] = x->shape[d], count++;
        joined[d] = x->shape[d] * repeats[d];
    }
    return count > KN_MAX_DIMS ? NULL
                               : kn_reshape(kn_expand(kn_reshape(x, count, narrow), count, wide), x->ndim, joined);
}

static kn_tensor *repeat(kn_tensor *x, int ndim, const int64_t *repeats)
{
    int64_t shape[KN_MAX_DIMS];
    const int added = ndim - x->ndim;

    for (int d = 0; d < ndim; d++)
        shape[d] = d < added ? 1 : x->shape[d - added];
    x = kn_reshape(x, ndim, shape);
    if (!x)
        return NULL;
    kn_tensor *result = repeat_at_once(x, repeats);
    if (result || kn_error_status() != KN_OK)
        return result;
    for (int d = 0; d < ndim && x; d++) { /* in turn */
        int64_t wide[KN_MAX_DIMS], joined[KN_MAX_DIMS];
        if (repeats[d] == 1)
            continue;
        int64_t outer = kn_shape_numel(d, x->shape), inner = kn_shape_numel(ndim - d, x->shape + d);
        memcpy(joined, x->shape, sizeof joined);
        joined[d] *= repeats[d];
        wide[0] = outer, wide[1] = repeats[d], wide[2] = inner;
        x = kn_reshape(kn_expand(kn_reshape(x, 3, (const int64_t[]){outer, 1, inner}), 3, wide), ndim, joined);
    }
    return x;
}

kn_tensor *kn_repeat(kn_tensor *x, int ndim, const int64_t *repeats)
{
    if (!kn_check_argument("repeat", "x", x))
        return NULL;
    if (ndim < x->ndim || ndim > KN_MAX_DIMS || (ndim > 0 && !repeats))
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "repeat: needs a number for each of the %d dimensions, and at most %d; "
                            "there are %d",
                            x->ndim, KN_MAX_DIMS, ndim);
    for (int d = 0; d < ndim; d++)
        if (repeats[d] < 0)
            return kn_fail_null(KN_ERR_ARGUMENT, "repeat: repeats[%d] must be 0 or more, not %lld", d,
                                (long long)repeats[d]);
    const int depth = kn_scope_begin();
    kn_tensor *result = depth > 0 ? repeat(x, ndim, repeats) : NULL;
    return kn_scope_return(depth, result && result->storage == x->storage ? kn_clone(result) : result);
}

kn_tensor *kn_tile(kn_tensor *x, int ndim, const int64_t *repeats)
{
    int64_t all[KN_MAX_DIMS];
    const int missing = x ? x->ndim - ndim : 0;

    if (missing <= 0 || !repeats || ndim < 0)
        return kn_repeat(x, ndim, repeats);
    for (int d = 0; d < x->ndim; d++)
        all[d] = d < missing ? 1 : repeats[d - missing];
    return kn_repeat(x, x->ndim, all);
}

static kn_tensor *rot90(kn_tensor *x, int k, int dim0, int dim1)
{
    int a, b;

    if (kn_dim_from_front(&a, dim0, x->ndim) != KN_OK || kn_dim_from_front(&b, dim1, x->ndim) != KN_OK)
        return failed("rot90");
    if (x->ndim < 2 || a == b)
        return kn_fail_null(KN_ERR_ARGUMENT, "rot90: turns in a plane of two dimensions, not %d and %d of %d", dim0,
                            dim1, x->ndim);
    switch ((k % 4 + 4) % 4) {
    case 1:
        return kn_transpose(kn_flip(x, &b, 1), a, b);
    case 2:
        return kn_flip(x, (const int[]){a, b}, 2);
    case 3:
        return kn_flip(kn_transpose(x, a, b), &b, 1);
    default:
        return kn_clone(x);
    }
}

kn_tensor *kn_rot90(kn_tensor *x, int k, int dim0, int dim1)
{
    if (!kn_check_argument("rot90", "x", x))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, rot90(x, k, dim0, dim1));
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

/* Each tensor after `prepare`, along dimension `dim`, or `vector_dim` if the first one has one dimension. */
static kn_tensor *join(const char *function, kn_tensor *const *tensors, int count, kn_tensor *(*prepare)(kn_tensor *),
                       int dim, int vector_dim)
{
    kn_tensor *prepared[64], *result = NULL;

    if (!tensors)
        return kn_fail_argument_null(function, "tensors"), kn_error_make_sticky();
    if (count < 1 || count > 64)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: takes 1 to 64 tensors, not %d", function, count);
    const int depth = kn_scope_begin();
    bool whole = depth > 0;
    for (int i = 0; i < count && whole; i++)
        whole = (prepared[i] = prepare(tensors[i])) != NULL;
    if (whole)
        result = kn_cat(prepared, count, prepared[0]->ndim == 1 ? vector_dim : dim);
    return kn_scope_return(depth, result);
}

static kn_tensor *as_column(kn_tensor *x) { return x && x->ndim > 1 ? x : kn_reshape(x, 2, (const int64_t[]){-1, 1}); }

kn_tensor *kn_hstack(kn_tensor *const *tensors, int count)
{
    return join("hstack", tensors, count, kn_atleast_1d, 1, 0);
}
kn_tensor *kn_vstack(kn_tensor *const *tensors, int count)
{
    return join("vstack", tensors, count, kn_atleast_2d, 0, 0);
}
kn_tensor *kn_dstack(kn_tensor *const *tensors, int count)
{
    return join("dstack", tensors, count, kn_atleast_3d, 2, 0);
}
kn_tensor *kn_column_stack(kn_tensor *const *tensors, int count)
{
    return join("column_stack", tensors, count, as_column, 1, 0);
}

/* A row of blocks: zeros, the matrix, zeros. */
static kn_tensor *block_row(kn_tensor *block, int64_t before, int64_t columns)
{
    const kn_tensor_options options = {.dtype = block->dtype, .device = kn_device_of(block)};
    const int64_t left[] = {block->shape[0], before};
    const int64_t right[] = {block->shape[0], columns - before - block->shape[1]};
    return kn_cat(KN_TENSORS(kn_zeros_with(2, left, &options), block, kn_zeros_with(2, right, &options)), 1);
}

static kn_tensor *block_diag(kn_tensor *const *tensors, int count)
{
    kn_tensor *rows[64];
    int64_t columns = 0, before = 0;

    for (int i = 0; i < count; i++) {
        if (!(rows[i] = kn_atleast_2d(tensors[i])))
            return NULL;
        if (rows[i]->ndim > 2)
            return kn_fail_null(KN_ERR_SHAPE, "block_diag: tensor %d has %d dimensions, more than 2", i, rows[i]->ndim);
        columns += rows[i]->shape[1];
    }
    for (int i = 0; i < count; i++) {
        const int64_t width = rows[i]->shape[1];
        rows[i] = block_row(rows[i], before, columns);
        before += width;
    }
    return kn_cat(rows, count, 0);
}

kn_tensor *kn_block_diag(kn_tensor *const *tensors, int count)
{
    if (!tensors)
        return kn_fail_argument_null("block_diag", "tensors"), kn_error_make_sticky();
    if (count < 1 || count > 64)
        return kn_fail_null(KN_ERR_ARGUMENT, "block_diag: takes 1 to 64 tensors, not %d", count);
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, block_diag(tensors, count));
}

/* --- grids -------------------------------------------------------------------------------------------------------- */

/* The views leave their steps to the scope. */
static kn_status grids(kn_tensor *const *tensors, int count, bool xy, const int64_t *shape, kn_tensor **results)
{
    for (int i = 0; i < count; i++) {
        int64_t own[KN_MAX_DIMS];
        for (int d = 0; d < count; d++)
            own[d] = d == i ? shape[d] : 1;
        results[i] = kn_expand(kn_reshape(tensors[i], count, own), count, shape);
        if (xy && count > 1)
            results[i] = kn_transpose(results[i], 0, 1);
        if (!results[i])
            return kn_error_status();
    }
    return KN_OK;
}

kn_status kn_meshgrid(kn_tensor *const *tensors, int count, bool xy, kn_tensor **results)
{
    int64_t shape[KN_MAX_DIMS];
    kn_tensor *made[KN_MAX_DIMS];

    KN_TRY(check_lists("meshgrid", tensors, results));
    if (count < 1 || count > KN_MAX_DIMS)
        return kn_fail(KN_ERR_ARGUMENT, "meshgrid: takes 1 to %d tensors, not %d", KN_MAX_DIMS, count);
    for (int i = 0; i < count; i++) {
        if (!kn_check_argument("meshgrid", "tensors", tensors[i]))
            return kn_error_status();
        if (tensors[i]->ndim > 1)
            return kn_fail(KN_ERR_SHAPE, "meshgrid: tensor %d has %d dimensions, more than 1", i, tensors[i]->ndim);
        shape[i] = kn_numel(tensors[i]);
    }
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    const kn_status status = grids(tensors, count, xy, shape, made);
    if (status == KN_OK)
        return kn_scope_return_all(depth, made, count, results);
    kn_scope_end(depth);
    return status;
}

static kn_tensor *cartesian(kn_tensor *const *tensors, int count)
{
    kn_tensor *grid[KN_MAX_DIMS];

    if (kn_meshgrid(tensors, count, false, grid) != KN_OK)
        return kn_error_make_sticky();
    for (int i = 0; i < count; i++)
        grid[i] = kn_ravel(grid[i]);
    return count == 1 ? grid[0] : kn_stack(grid, count, 1);
}

kn_tensor *kn_cartesian_prod(kn_tensor *const *tensors, int count)
{
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, cartesian(tensors, count));
}

/* --- diagonals ---------------------------------------------------------------------------------------------------- */

kn_diag_embed_params kn_diag_embed_params_init(void) { return (kn_diag_embed_params){KN_DIAG_EMBED_DEFAULTS}; }

kn_tensor *kn_diag_embed_with(kn_tensor *x, const kn_diag_embed_params *params)
{
    const kn_diag_embed_params p = params ? *params : kn_diag_embed_params_init();
    kn_diagonal_backward_args args = {.offset = p.offset};

    if (!kn_check_argument("diag_embed", "x", x))
        return NULL;
    if (x->ndim == 0 || x->ndim == KN_MAX_DIMS)
        return kn_fail_null(KN_ERR_SHAPE, "diag_embed: takes 1 to %d dimensions, not %d", KN_MAX_DIMS - 1, x->ndim);
    if (kn_dim_from_front(&args.dim1, p.dim1, x->ndim + 1) != KN_OK ||
        kn_dim_from_front(&args.dim2, p.dim2, x->ndim + 1) != KN_OK)
        return failed("diag_embed");
    if (args.dim1 == args.dim2)
        return kn_fail_null(KN_ERR_ARGUMENT, "diag_embed: dim1 and dim2 are both %d", args.dim1);
    const int64_t last = x->shape[x->ndim - 1], farthest = INT64_MAX - last;
    if (p.offset < -farthest || p.offset > farthest)
        return kn_fail_null(KN_ERR_ARGUMENT, "diag_embed: offset %lld is too far", (long long)p.offset);
    const int64_t size = last + (p.offset < 0 ? -p.offset : p.offset);
    args.shape.count = x->ndim + 1;
    for (int d = 0, own = 0; d <= x->ndim; d++)
        args.shape.values[d] = d == args.dim1 || d == args.dim2 ? size : x->shape[own++];
    return kn_invoke(&kn_diagonal_backward_op, &args, x);
}

kn_tensor *kn_diag(kn_tensor *x, int64_t diagonal)
{
    if (!kn_check_argument("diag", "x", x))
        return NULL;
    if (x->ndim == 1)
        return kn_diag_embed(x, .offset = diagonal);
    return x->ndim == 2 ? kn_diagonal(x, .offset = diagonal)
                        : kn_fail_null(KN_ERR_SHAPE, "diag: takes a vector or a matrix, not %d dimensions", x->ndim);
}

kn_tensor *kn_diagflat(kn_tensor *x, int64_t offset) { return kn_diag_embed(kn_ravel(x), .offset = offset); }
