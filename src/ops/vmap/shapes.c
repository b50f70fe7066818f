/* ops/vmap/shapes.c - rules of operators that change shapes or move elements. */
#include <koine/embedding.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/dispatch/operators.h"
#include "ops/vmap/rules.h"
#include "tensor/strides.h"

/* --- shapes and orders -------------------------------------------------------------------------------------------- */

static kn_ints after(int64_t first, const kn_ints *rest, int64_t added)
{
    kn_ints all = {.count = 1, .values = {first}};
    for (int i = 0; i < rest->count && all.count < KN_MAX_DIMS; i++)
        all.values[all.count++] = rest->values[i] + (rest->values[i] < 0 ? 0 : added);
    return all;
}

kn_status kn_vmap_reshape(kn_vmap_call *call)
{
    const kn_shape_args *args = call->params;
    if (args->shape.count == KN_MAX_DIMS)
        return KN_VMAP_DECLINE;
    kn_ints shape = after(call->size, &args->shape, 0);
    int64_t known = 1;
    int open = -1;
    for (int i = 1; i < shape.count; i++)
        if (shape.values[i] == -1)
            open = i;
        else
            known *= shape.values[i];
    if (open > 0 && known > 0) /* which must not follow from the whole batch */
        shape.values[open] = kn_numel(call->inputs[0]) / call->size / known;
    call->outputs[0] = kn_reshape(call->inputs[0], shape.count, shape.values);
    return kn_status_of(call->outputs[0]);
}

kn_status kn_vmap_expand_rule(kn_vmap_call *call)
{
    const kn_shape_args *args = call->params;
    if (args->shape.count == KN_MAX_DIMS || args->shape.count < kn_vmap_sample_dims(call, 0))
        return KN_VMAP_DECLINE;
    const kn_ints shape = after(call->size, &args->shape, 0);
    kn_tensor *x = kn_vmap_aligned(call, 0, args->shape.count);
    call->outputs[0] = x ? kn_expand(x, shape.count, shape.values) : NULL;
    return kn_status_of(call->outputs[0]);
}

/* Offset and strides count within a sample. */
kn_status kn_vmap_as_strided(kn_vmap_call *call)
{
    const kn_as_strided_args *args = call->params;
    if (args->shape.count == KN_MAX_DIMS || args->strides.count != args->shape.count)
        return KN_VMAP_DECLINE;
    kn_tensor *x = kn_contiguous(call->inputs[0]);
    if (!x)
        return kn_error_status();
    const int64_t extent = kn_strides_extent(args->shape.count, args->shape.values, args->strides.values);
    if (args->offset < 0 || extent < 0 || extent > kn_numel(x) / call->size - args->offset)
        return KN_VMAP_DECLINE; /* it would reach into another sample */
    kn_as_strided_args whole = {.shape = after(call->size, &args->shape, 0), .offset = x->offset + args->offset};
    whole.strides = after(kn_numel(x) / call->size, &args->strides, 0);
    return kn_op_invoke_to(call->op, &x, 1, &whole, call->outputs, 1);
}

kn_status kn_vmap_permute(kn_vmap_call *call)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    kn_ints *dims = kn_vmap_field(call, &params, "dims");
    if (dims->count != kn_vmap_sample_dims(call, 0))
        return KN_VMAP_DECLINE;
    *dims = after(0, dims, 1);
    return kn_vmap_apply(call, call->inputs, params.bytes);
}

kn_status kn_vmap_t(kn_vmap_call *call)
{
    const int dims = kn_vmap_sample_dims(call, 0);
    if (dims > 2)
        return KN_VMAP_DECLINE;
    call->outputs[0] = dims == 2 ? kn_transpose(call->inputs[0], 1, 2) : kn_scope_adopt(kn_retain(call->inputs[0]));
    return kn_status_of(call->outputs[0]);
}

kn_status kn_vmap_roll(kn_vmap_call *call)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    kn_ints *dims = kn_vmap_field(call, &params, "dims");
    for (int i = 0; i < dims->count; i++)
        dims->values[i] += dims->values[i] < 0 ? 0 : 1;
    return dims->count == 0 ? KN_VMAP_DECLINE : kn_vmap_apply(call, call->inputs, params.bytes);
}

/* By amax and amin, with the gradient of max and min: equal ones share it. */
kn_status kn_vmap_whole_extreme(kn_vmap_call *call)
{
    const bool is_max = strcmp(call->op->name, "max") == 0;
    kn_tensor *rows = kn_reshape(call->inputs[0], 2, (int64_t[]){call->size, -1});
    call->outputs[0] = rows ? (is_max ? kn_amax : kn_amin)(rows, (int[]){1}, 1, false) : NULL;
    return kn_status_of(call->outputs[0]);
}

/* --- by index ----------------------------------------------------------------------------------------------------- */

/* 0 .. size - 1 along dimension 0 of `dims`, to count samples with. */
static kn_tensor *numbers(const kn_vmap_call *call, const kn_tensor *like, int dims)
{
    int64_t shape[KN_MAX_DIMS] = {call->size};
    kn_tensor *all = kn_arange(0, (double)call->size, 1, .dtype = KN_I64, .device = like->storage->device);
    for (int d = 1; d < dims; d++)
        shape[d] = 1;
    return all ? kn_reshape(all, dims, shape) : NULL;
}

static bool are_first(const kn_ints *dims)
{
    for (int i = 0; i < dims->count; i++)
        if (dims->values[i] != i)
            return false;
    return true;
}

static bool are_neighbours(const kn_ints *dims)
{
    for (int i = 1; i < dims->count; i++)
        if (dims->values[i] != dims->values[i - 1] + 1)
            return false;
    return true;
}

static int most_index_dims(const kn_vmap_call *call)
{
    int most = 0;
    for (int i = 1; i < call->num_inputs; i++)
        most = kn_vmap_sample_dims(call, i) > most ? kn_vmap_sample_dims(call, i) : most;
    return most;
}

/* Every sample by its own indices, of x's first dimensions: an index more, the sample's number. */
static kn_status index_by_own(kn_vmap_call *call, kn_ints *dims, const kn_vmap_params *params)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS];
    const int most = most_index_dims(call);
    if (!are_first(dims) || call->num_inputs + 1 > KN_OP_MAX_INPUTS)
        return KN_VMAP_DECLINE;
    for (int i = 1; i < call->num_inputs; i++)
        if (!(inputs[i + 1] = kn_vmap_aligned(call, i, most)))
            return kn_error_status();
    if (!call->is_batched[0]) { /* all from the same */
        inputs[1] = call->inputs[0];
        return kn_vmap_apply(call, inputs + 1, params->bytes);
    }
    inputs[0] = call->inputs[0];
    inputs[1] = numbers(call, inputs[0], most + 1);
    if (!inputs[1])
        return kn_error_status();
    *dims = after(0, dims, 1);
    return kn_op_invoke_to(call->op, inputs, call->num_inputs + 1, params->bytes, call->outputs, call->num_outputs);
}

/* By indices that all samples share. Those along dimensions that are no neighbours put theirs before all others. */
static kn_status index_by_shared(kn_vmap_call *call, kn_ints *dims, const kn_vmap_params *params)
{
    const bool are_apart = !are_neighbours(dims);
    for (int i = 0; i < dims->count; i++)
        dims->values[i]++;
    KN_TRY(kn_vmap_apply(call, call->inputs, params->bytes));
    if (are_apart)
        call->outputs[0] = kn_movedim(call->outputs[0], most_index_dims(call), 0);
    return kn_status_of(call->outputs[0]);
}

/* A mask, which takes several dimensions, only alone and if all samples share it: each has as many results. */
static bool has_unfit_mask(const kn_vmap_call *call)
{
    for (int i = 1; i < call->num_inputs; i++)
        if (call->inputs[i]->dtype == KN_BOOL && (call->is_batched[i] || call->num_inputs > 2))
            return true;
    return false;
}

kn_status kn_vmap_index(kn_vmap_call *call)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    kn_ints *dims = kn_vmap_field(call, &params, "dims");
    if (has_unfit_mask(call))
        return KN_VMAP_DECLINE;
    if (dims->count == 0)
        for (; dims->count < call->num_inputs - 1; dims->count++)
            dims->values[dims->count] = dims->count;
    return (kn_vmap_any_batched(call, 1) ? index_by_own : index_by_shared)(call, dims, &params);
}

/* indices plus those of the samples' first rows in a table of all; -1, an error, for those outside their sample's V. */
static kn_tensor *places_of(const kn_vmap_call *call, kn_tensor *indices, kn_tensor *table, int64_t rows)
{
    kn_tensor *first = numbers(call, table, indices->ndim);
    kn_tensor *places = kn_add(indices, kn_mul_scalar_with(first, kn_scalar_int(rows)));
    kn_tensor *outside =
        kn_logical_or(kn_lt_scalar_with(indices, kn_scalar_int(0)), kn_ge_scalar_with(indices, kn_scalar_int(rows)));
    return kn_masked_fill_with(places, outside, kn_scalar_int(-1));
}

/* Of tables of their own: as one, in which those of sample i begin at row i * V. */
static kn_status rows_of_own(kn_vmap_call *call, const kn_embedding_params *args)
{
    kn_tensor *table = kn_vmap_merged(call->inputs[0]), *indices = kn_vmap_batch(call, 1);
    if (args->padding_idx != KN_NO_PADDING_IDX || args->max_norm != 0 || args->scale_grad_by_freq)
        return KN_VMAP_DECLINE;
    kn_tensor *places = table && indices ? places_of(call, indices, table, call->inputs[0]->shape[1]) : NULL;
    return places ? kn_vmap_apply(call, (kn_tensor *[]){table, places}, call->params) : kn_error_status();
}

kn_status kn_vmap_embedding(kn_vmap_call *call)
{
    return call->is_batched[0] ? rows_of_own(call, call->params) : kn_vmap_apply(call, call->inputs, call->params);
}
