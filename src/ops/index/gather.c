/* ops/index/gather.c - index_select, gather, take, take_along_dim. */
#include <koine/index.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/index/index.h"
#include "ops/shape/broadcast.h"

/* --- operators ---------------------------------------------------------------------------------------------------- */

#define GATHER_OP(op_name, enter_, params_, index_)                                                                    \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x", index_}, .dtypes = {KN_DTYPES_ALL, KN_DTYPES_INDICES}, .params = params_,     \
        .enter = enter_, KN_INDEX_GATHER_FIELDS                                                                        \
    }

static kn_status index_select_enter(kn_entry *entry)
{
    const int dim = ((const kn_dim_args *)entry->params)->dim;
    if (entry->inputs[0]->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "a 0-dimensional tensor has no rows");
    return kn_index_map_select(kn_entry_record(entry, sizeof(kn_index_map)), entry->inputs[0], dim, entry->inputs[1]);
}

static kn_status gather_enter(kn_entry *entry)
{
    const int dim = ((const kn_dim_args *)entry->params)->dim;
    return kn_index_map_gather(kn_entry_record(entry, sizeof(kn_index_map)), entry->inputs[0], dim, entry->inputs[1]);
}

static kn_status take_enter(kn_entry *entry)
{
    return kn_index_map_flat(kn_entry_record(entry, sizeof(kn_index_map)), entry->inputs[0], entry->inputs[1]);
}

const kn_op kn_index_select_op =
    GATHER_OP("index_select", index_select_enter, KN_PARAMS(kn_dim_args, kn_dim_rows), "index");
const kn_op kn_gather_op = GATHER_OP("gather", gather_enter, KN_PARAMS(kn_dim_args, kn_dim_rows), "index");
const kn_op kn_take_op = GATHER_OP("take", take_enter, KN_NO_PARAMS, "index");

/* --- public functions --------------------------------------------------------------------------------------------- */

kn_tensor *kn_index_select(kn_tensor *x, int dim, kn_tensor *index)
{
    return kn_invoke(&kn_index_select_op, &(kn_dim_args){dim}, x, index);
}

kn_tensor *kn_gather(kn_tensor *x, int dim, kn_tensor *index)
{
    return kn_invoke(&kn_gather_op, &(kn_dim_args){dim}, x, index);
}

kn_tensor *kn_take(kn_tensor *x, kn_tensor *index) { return kn_invoke(&kn_take_op, NULL, x, index); }

/* Both are expanded to the joint shape of their other dimensions. */
static kn_tensor *take_along(kn_tensor *x, kn_tensor *index, int dim)
{
    int64_t shape[KN_MAX_DIMS], own[KN_MAX_DIMS];
    int ndim, from_front;

    if (x->ndim != index->ndim)
        return kn_fail_null(KN_ERR_SHAPE, "take_along_dim: x has %d dimensions, but the index %d", x->ndim,
                            index->ndim);
    if (kn_dim_from_front(&from_front, dim, x->ndim) != KN_OK)
        return kn_error_prefix("take_along_dim"), kn_error_make_sticky();
    if (x->ndim == 0)
        return kn_gather(x, 0, index);
    kn_tensor *row = kn_narrow(x, from_front, 0, x->shape[from_front] > 0 ? 1 : 0);
    kn_tensor *place = kn_narrow(index, from_front, 0, index->shape[from_front] > 0 ? 1 : 0);
    if (!row || !place)
        return NULL;
    if (kn_broadcast_shapes(&ndim, shape, row, place) != KN_OK)
        return kn_error_prefix("take_along_dim"), kn_error_make_sticky();
    memcpy(own, shape, sizeof own);
    shape[from_front] = x->shape[from_front];
    own[from_front] = index->shape[from_front];
    return kn_gather(kn_expand(x, ndim, shape), from_front, kn_expand(index, ndim, own));
}

kn_tensor *kn_take_along_dim(kn_tensor *x, kn_tensor *index, int dim)
{
    if (!kn_check_argument("take_along_dim", "x", x) || !kn_check_argument("take_along_dim", "index", index))
        return NULL;
    const int depth = kn_scope_begin();
    return depth == 0 ? NULL : kn_scope_return(depth, take_along(x, index, dim));
}
