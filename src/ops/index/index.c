/* ops/index/index.c - x[a, :, b] and x[a, :, b] = values: index, index_put. */
#include <koine/autograd.h>
#include <koine/index.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/index/index.h"

static const kn_op_param rows[] = {KN_PARAM(kn_index_args, dims), KN_PARAM(kn_index_args, accumulate)};

/* --- operators ---------------------------------------------------------------------------------------------------- */

static kn_status index_enter(kn_entry *entry)
{
    const kn_index_args *args = entry->params;
    kn_tensor *key = NULL;

    KN_TRY(kn_index_join(kn_entry_record(entry, sizeof(kn_index_map)), &key, entry->inputs[0], entry->inputs + 1,
                         entry->num_inputs - 1, &args->dims));
    entry->inputs[1] = key;
    entry->num_inputs = 2;
    return KN_OK;
}

static kn_status index_put_enter(kn_entry *entry)
{
    const kn_index_args *args = entry->params;
    kn_index_map *map = kn_entry_record(entry, sizeof *map);
    kn_tensor *key = NULL, *values = entry->inputs[1];

    map->mode = args->accumulate ? KN_INDEX_ADD : KN_INDEX_SET;
    KN_TRY(kn_index_check_source(entry->inputs[0], values));
    KN_TRY(kn_index_join(map, &key, entry->inputs[0], entry->inputs + 2, entry->num_inputs - 2, &args->dims));
    entry->inputs[1] = key;
    entry->inputs[2] = kn_expand(values, map->ndim, map->shape);
    entry->num_inputs = 3;
    return entry->inputs[2] ? KN_OK : kn_error_status();
}

#define KN_INDEX_LISTS KN_DTYPES_INDICES | 1u << KN_BOOL
const kn_op kn_index_op = {.name = "index",
                           .inputs = {"x", "*indices"},
                           .dtypes = {KN_DTYPES_ALL, KN_INDEX_LISTS},
                           .params = KN_PARAMS(kn_index_args, rows, .accumulate = false),
                           .composes = true,
                           .enter = index_enter,
                           KN_INDEX_GATHER_FIELDS};

#define INDEX_PUT_OP(op_name, in_place_)                                                                               \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x", "values", "*indices"},                                                        \
        .dtypes = {KN_DTYPES_ALL, KN_DTYPES_ALL, KN_INDEX_LISTS},                                                      \
        .params = KN_PARAMS(kn_index_args, rows, .accumulate = false), .composes = true, .enter = index_put_enter,     \
        KN_INDEX_SCATTER_FIELDS(in_place_)                                                                             \
    }
const kn_op kn_index_put_op = INDEX_PUT_OP("index_put", false);
const kn_op kn_index_put__op = INDEX_PUT_OP("index_put_", true);

/* --- public functions --------------------------------------------------------------------------------------------- */

/* The inputs of an operator: `before`, then the indices that are not NULL, whose dimensions are the parameter `dims`.
 * Before a mask that is NULL nothing shifts: a mask takes as many dimensions as it has. */
static bool gather_inputs(kn_tensor *inputs[KN_MAX_DIMS + 2], int *num_inputs, kn_ints *dims, const char *function,
                          kn_tensor *const *indices, int count)
{
    int dim = 0;

    dims->count = 0;
    if (!indices)
        return kn_fail_argument_null(function, "indices"), kn_error_make_sticky(), false;
    if (count > KN_MAX_DIMS)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: there are %d indices, more than %d", function, count, KN_MAX_DIMS),
               false;
    for (int i = 0; i < count; i++) {
        if (indices[i]) {
            dims->values[dims->count++] = dim;
            inputs[(*num_inputs)++] = indices[i];
        }
        dim += indices[i] && indices[i]->dtype == KN_BOOL ? indices[i]->ndim : 1;
    }
    return true;
}

kn_tensor *kn_index(kn_tensor *x, kn_tensor *const *indices, int count)
{
    kn_tensor *inputs[KN_MAX_DIMS + 2] = {x};
    kn_index_args args = {.accumulate = false};
    int num_inputs = 1;

    if (!kn_check_argument("index", "x", x) || !gather_inputs(inputs, &num_inputs, &args.dims, "index", indices, count))
        return NULL;
    return args.dims.count == 0 ? kn_clone(x) : kn_op_invoke(&kn_index_op, inputs, num_inputs, &args);
}

static kn_tensor *put(const kn_op *op, kn_tensor *x, kn_tensor *const *indices, int count, kn_tensor *values,
                      const kn_put_params *params)
{
    kn_tensor *inputs[KN_MAX_DIMS + 2] = {x, values};
    kn_index_args args = {.accumulate = params && params->accumulate};
    int num_inputs = 2;

    return gather_inputs(inputs, &num_inputs, &args.dims, op->name, indices, count)
               ? kn_op_invoke(op, inputs, num_inputs, &args)
               : NULL;
}

kn_tensor *kn_index_put_with(kn_tensor *x, kn_tensor *const *indices, int count, kn_tensor *values,
                             const kn_put_params *params)
{
    return put(&kn_index_put_op, x, indices, count, values, params);
}

kn_tensor *kn_index_put_with_(kn_tensor *x, kn_tensor *const *indices, int count, kn_tensor *values,
                              const kn_put_params *params)
{
    return put(&kn_index_put__op, x, indices, count, values, params);
}
