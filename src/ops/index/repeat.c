/* ops/index/repeat.c - repeat_interleave: each slice several times. */
#include <koine/index.h>
#include <koine/join.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/promote.h"
#include "ops/index/index.h"

/* Each slice is a dimension of size 1 that is expanded and joined with its own. */
static kn_tensor *repeat_all(kn_tensor *x, int64_t repeats, int dim)
{
    int64_t outer, inner, shape[KN_MAX_DIMS];
    int d;

    if (kn_dim_from_front(&d, dim, x->ndim) != KN_OK)
        return kn_error_prefix("repeat_interleave"), kn_error_make_sticky();
    if (repeats < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "repeat_interleave: repeats must be 0 or more, not %lld",
                            (long long)repeats);
    x = x->ndim == 0 ? kn_ravel(x) : x;
    outer = kn_shape_numel(d + 1, x->shape);
    inner = kn_shape_numel(x->ndim - d - 1, x->shape + d + 1);
    memcpy(shape, x->shape, sizeof shape);
    shape[d] *= repeats;
    const int64_t one[] = {outer, 1, inner}, wide[] = {outer, repeats, inner};
    kn_tensor *result = kn_reshape(kn_expand(kn_reshape(x, 3, one), 3, wide), x->ndim, shape);
    return result && result->storage == x->storage ? kn_clone(result) : result;
}

kn_tensor *kn_repeat_interleave(kn_tensor *x, int64_t repeats, int dim)
{
    if (!kn_check_argument("repeat_interleave", "x", x))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, repeat_all(x, repeats, dim));
}

enum { TOTAL, LEAST };

/* The total and the least of the repeats, whose running sums are `ends`: read at once, because a wait for the device
 * takes longer than what it waits for. */
static kn_status read_bounds(int64_t bounds[2], kn_tensor *repeats, kn_tensor *ends)
{
    const int64_t size = kn_numel(ends);
    kn_tensor *least = kn_to_dtype(kn_ravel(kn_min(repeats)), KN_I64);
    kn_tensor *both = kn_cat(KN_TENSORS(kn_narrow(ends, 0, size - 1, 1), least), 0);
    return both ? kn_read(both, bounds, 2 * sizeof *bounds) : kn_error_status();
}

/* The index of each slice, as often as it is repeated; `ends`: the running sums of the repeats. */
static kn_tensor *list_repeats(kn_tensor *ends, int64_t total)
{
    const kn_tensor_options options = {.dtype = KN_I64, .device = kn_device_of(ends)};
    kn_tensor *repeated = kn_empty_with(1, &total, &options);
    const kn_work_size work = kn_work_for(kn_tensor_limits(ends), total);
    if (!repeated || total == 0)
        return repeated;
    return kn_run(kn_tensor_stream(ends), .source = "index/keys.cl", .options = "-DINDEX=long",
                  .kernel = "index_repeats", .operation = "repeat_interleave", .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(ends), kn_arg_tensor(repeated), kn_arg_i64(kn_numel(ends)), kn_arg_i64(total),
                          kn_arg_fault())) == KN_OK
               ? repeated
               : kn_error_make_sticky();
}

static kn_tensor *repeat_each(kn_tensor *x, kn_tensor *repeats, int dim)
{
    char text[KN_DESCRIBE];
    int64_t bounds[2];
    int d;

    if (kn_dim_from_front(&d, dim, x->ndim) != KN_OK || kn_index_check_dtype(repeats) != KN_OK)
        return kn_error_prefix("repeat_interleave"), kn_error_make_sticky();
    const int64_t size = x->ndim > 0 ? x->shape[d] : 1;
    if (repeats->ndim > 1 || (kn_numel(repeats) != size && kn_numel(repeats) != 1))
        return kn_fail_null(KN_ERR_SHAPE, "repeat_interleave: repeats must be a vector of %lld, not %s",
                            (long long)size, kn_tensor_describe(text, sizeof text, repeats));
    x = x->ndim == 0 ? kn_ravel(x) : x;
    if (size == 0)
        return kn_clone(x);
    repeats = kn_expand(kn_ravel(repeats), 1, &size);
    kn_tensor *ends = kn_cumsum(repeats, 0);
    if (read_bounds(bounds, repeats, ends) != KN_OK)
        return kn_error_make_sticky();
    if (bounds[LEAST] < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "repeat_interleave: repeats must be 0 or more, not %lld",
                            (long long)bounds[LEAST]);
    return kn_index_select(x, d, list_repeats(ends, bounds[TOTAL]));
}

kn_tensor *kn_repeat_interleave_each(kn_tensor *x, kn_tensor *repeats, int dim)
{
    if (!kn_check_argument("repeat_interleave", "x", x) || !kn_check_argument("repeat_interleave", "repeats", repeats))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, repeat_each(x, repeats, dim));
}
