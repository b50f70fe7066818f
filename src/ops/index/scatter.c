/* ops/index/scatter.c - scatter, scatter_add, index_add, index_copy, index_fill, put: each also in place. */
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>

#include "base/text.h"
#include "ops/dispatch/promote.h"
#include "ops/index/index.h"

/* --- entering ----------------------------------------------------------------------------------------------------- */

static kn_index_map *record_of(kn_entry *entry, kn_index_mode mode)
{
    kn_index_map *map = kn_entry_record(entry, sizeof *map);
    map->mode = mode;
    return map;
}

/* Replaces a source that was left out by a number. */
static kn_status give_value(kn_entry *entry, kn_scalar value)
{
    const kn_tensor *x = entry->inputs[0];

    if (!value.is_whole && !kn_dtype_is_floating(x->dtype))
        return kn_fail(KN_ERR_DTYPE, "x is %s, which does not hold the real number %g", kn_dtype_name(x->dtype),
                       value.real);
    entry->inputs[2] = kn_full_with(0, NULL, value, &(kn_tensor_options){.dtype = x->dtype, .device = kn_device_of(x)});
    return entry->inputs[2] ? KN_OK : kn_error_status();
}

static kn_status scatter_enter(kn_entry *entry)
{
    const kn_scatter_args *args = entry->params;

    if (!entry->inputs[2])
        KN_TRY(give_value(entry, args->value));
    else if (entry->inputs[2]->ndim == 0 && entry->inputs[1]->ndim > 0)
        return kn_fail(KN_ERR_SHAPE,
                       "the source is 0-dimensional, but the index has %d dimensions; give a number as "
                       "`value`",
                       entry->inputs[1]->ndim);
    return kn_index_map_gather(record_of(entry, KN_INDEX_SET), entry->inputs[0], args->dim, entry->inputs[1]);
}

static kn_status scatter_add_enter(kn_entry *entry)
{
    const int dim = ((const kn_dim_args *)entry->params)->dim;
    return kn_index_map_gather(record_of(entry, KN_INDEX_ADD), entry->inputs[0], dim, entry->inputs[1]);
}

/* The source's shape is that of the selection, except that of one row it may lack the dimension. */
static kn_status check_selection(const kn_index_map *map, const kn_tensor *source)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    bool fits = source->ndim == map->ndim;

    for (int d = 0; d < map->ndim && fits; d++)
        fits = source->shape[d] == map->shape[d];
    return fits ? KN_OK
                : kn_fail(KN_ERR_SHAPE, "the source is %s, but the index selects %s",
                          kn_tensor_describe(a, sizeof a, source), kn_format_shape(b, sizeof b, map->ndim, map->shape));
}

static kn_status index_copy_enter(kn_entry *entry)
{
    kn_index_map *map = record_of(entry, KN_INDEX_SET);
    KN_TRY(kn_index_map_select(map, entry->inputs[0], ((const kn_dim_args *)entry->params)->dim, entry->inputs[1]));
    return check_selection(map, entry->inputs[2]);
}

static kn_status index_add_enter(kn_entry *entry)
{
    const kn_index_add_args *args = entry->params;
    kn_index_map *map = record_of(entry, KN_INDEX_ADD);

    KN_TRY(kn_index_map_select(map, entry->inputs[0], args->dim, entry->inputs[1]));
    KN_TRY(kn_index_check_source(entry->inputs[0], entry->inputs[2]));
    KN_TRY(check_selection(map, entry->inputs[2]));
    if (args->alpha == 1)
        return KN_OK;
    const bool is_whole = args->alpha == nearbyint(args->alpha);
    if (entry->inputs[0]->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "alpha must be 1 for bool, not %g", args->alpha);
    if (!is_whole && !kn_dtype_is_floating(entry->inputs[0]->dtype))
        return kn_fail(KN_ERR_DTYPE, "alpha must be whole for %s, not %g", kn_dtype_name(entry->inputs[0]->dtype),
                       args->alpha);
    entry->inputs[2] = kn_mul_scalar_with(entry->inputs[2],
                                          is_whole ? kn_scalar_int((int64_t)args->alpha) : kn_scalar_real(args->alpha));
    return entry->inputs[2] ? KN_OK : kn_error_status();
}

static kn_status index_fill_enter(kn_entry *entry)
{
    const kn_scatter_args *args = entry->params;
    kn_index_map *map = record_of(entry, KN_INDEX_SET);

    KN_TRY(kn_index_map_select(map, entry->inputs[0], args->dim, entry->inputs[1]));
    map->wraps = true;
    if (!entry->inputs[2])
        return give_value(entry, args->value);
    return entry->inputs[2]->ndim == 0
               ? KN_OK
               : kn_fail(KN_ERR_SHAPE, "the value must be 0-dimensional, but it has %d dimensions",
                         entry->inputs[2]->ndim);
}

static kn_status put_enter(kn_entry *entry)
{
    const kn_put_params *args = entry->params;
    kn_index_map *map = record_of(entry, args->accumulate ? KN_INDEX_ADD : KN_INDEX_SET);
    const kn_tensor *index = entry->inputs[1];

    KN_TRY(kn_index_map_flat(map, entry->inputs[0], index));
    if (kn_numel(entry->inputs[2]) != kn_numel(index))
        return kn_fail(KN_ERR_SHAPE, "the source has %lld elements, but the index %lld",
                       (long long)kn_numel(entry->inputs[2]), (long long)kn_numel(index));
    entry->inputs[2] = kn_reshape(entry->inputs[2], index->ndim, index->shape);
    return entry->inputs[2] ? KN_OK : kn_error_status();
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

/* A function of three tensors and its form in place. */
#define SCATTER_OP(op_name, enter_, params_, in_place_, source_)                                                       \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x", "index", source_},                                                            \
        .dtypes = {KN_DTYPES_ALL, KN_DTYPES_INDICES, KN_DTYPES_ALL}, .params = params_, .composes = true,              \
        .enter = enter_, KN_INDEX_SCATTER_FIELDS(in_place_)                                                            \
    }
#define SCATTER_OPS(name, enter, source, ...)                                                                          \
    const kn_op kn_##name##_op = SCATTER_OP(#name, enter, KN_PARAMS(__VA_ARGS__), false, source);                      \
    const kn_op kn_##name##__op = SCATTER_OP(#name "_", enter, KN_PARAMS(__VA_ARGS__), true, source);

static const kn_op_param scatter_rows[] = {KN_PARAM(kn_scatter_args, dim), KN_PARAM(kn_scatter_args, value)};
static const kn_op_param index_add_rows[] = {KN_PARAM(kn_index_add_args, dim), KN_PARAM(kn_index_add_args, alpha)};
static const kn_op_param put_rows[] = {KN_PARAM(kn_put_params, accumulate)};

SCATTER_OPS(scatter, scatter_enter, "?src", kn_scatter_args, scatter_rows, 0)
SCATTER_OPS(scatter_add, scatter_add_enter, "src", kn_dim_args, kn_dim_rows, 0)
SCATTER_OPS(index_add, index_add_enter, "source", kn_index_add_args, index_add_rows, .alpha = 1)
SCATTER_OPS(index_copy, index_copy_enter, "source", kn_dim_args, kn_dim_rows, 0)
SCATTER_OPS(index_fill, index_fill_enter, "?value", kn_scatter_args, scatter_rows, 0)
SCATTER_OPS(put, put_enter, "source", kn_put_params, put_rows, 0)

/* --- public functions --------------------------------------------------------------------------------------------- */

kn_index_add_params kn_index_add_params_init(void) { return (kn_index_add_params){KN_INDEX_ADD_DEFAULTS}; }
kn_put_params kn_put_params_init(void) { return (kn_put_params){KN_PUT_DEFAULTS}; }

#define SCATTER_FUNCTIONS(suffix)                                                                                      \
    kn_tensor *kn_scatter##suffix(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src)                             \
    {                                                                                                                  \
        if (!kn_check_argument("scatter" #suffix, "src", src))                                                         \
            return NULL;                                                                                               \
        return kn_invoke(&kn_scatter##suffix##_op, &(kn_scatter_args){.dim = dim}, x, index, src);                     \
    }                                                                                                                  \
    kn_tensor *kn_scatter_value_with##suffix(kn_tensor *x, int dim, kn_tensor *index, kn_scalar value)                 \
    {                                                                                                                  \
        return kn_invoke(&kn_scatter##suffix##_op, (&(kn_scatter_args){dim, value}), x, index);                        \
    }                                                                                                                  \
    kn_tensor *kn_scatter_add##suffix(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src)                         \
    {                                                                                                                  \
        return kn_invoke(&kn_scatter_add##suffix##_op, &(kn_dim_args){dim}, x, index, src);                            \
    }                                                                                                                  \
    kn_tensor *kn_index_add_with##suffix(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source,                   \
                                         const kn_index_add_params *params)                                            \
    {                                                                                                                  \
        return kn_invoke(&kn_index_add##suffix##_op, (&(kn_index_add_args){dim, params ? params->alpha : 1}), x,       \
                         index, source);                                                                               \
    }                                                                                                                  \
    kn_tensor *kn_index_copy##suffix(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source)                       \
    {                                                                                                                  \
        return kn_invoke(&kn_index_copy##suffix##_op, &(kn_dim_args){dim}, x, index, source);                          \
    }                                                                                                                  \
    kn_tensor *kn_index_fill_with##suffix(kn_tensor *x, int dim, kn_tensor *index, kn_scalar value)                    \
    {                                                                                                                  \
        return kn_invoke(&kn_index_fill##suffix##_op, (&(kn_scatter_args){dim, value}), x, index);                     \
    }                                                                                                                  \
    kn_tensor *kn_put_with##suffix(kn_tensor *x, kn_tensor *index, kn_tensor *source, const kn_put_params *params)     \
    {                                                                                                                  \
        return kn_invoke(&kn_put##suffix##_op, params, x, index, source);                                              \
    }

SCATTER_FUNCTIONS()
SCATTER_FUNCTIONS(_)
