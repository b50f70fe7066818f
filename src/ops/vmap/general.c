/* ops/vmap/general.c - what the rules have in common, and the rules of many operators. */
#include <koine/shape.h>
#include <string.h>

#include "ops/vmap/rules.h"

/* --- for rules ---------------------------------------------------------------------------------------------------- */

int kn_vmap_sample_dims(const kn_vmap_call *call, int i)
{
    return call->inputs[i] ? call->inputs[i]->ndim - call->is_batched[i] : 0;
}

bool kn_vmap_any_batched(const kn_vmap_call *call, int first)
{
    for (int i = first; i < call->num_inputs; i++)
        if (call->is_batched[i])
            return true;
    return false;
}

kn_tensor *kn_vmap_repeat(kn_tensor *x, int64_t size)
{
    int64_t shape[KN_MAX_DIMS];
    kn_tensor *one = kn_unsqueeze(x, 0);
    if (!one)
        return NULL;
    memcpy(shape, one->shape, sizeof shape);
    shape[0] = size;
    return kn_expand(one, one->ndim, shape);
}

kn_tensor *kn_vmap_batch(const kn_vmap_call *call, int i)
{
    return call->is_batched[i] ? call->inputs[i] : kn_vmap_repeat(call->inputs[i], call->size);
}

kn_tensor *kn_vmap_aligned(const kn_vmap_call *call, int i, int dims)
{
    kn_tensor *x = call->inputs[i];
    for (int missing = call->is_batched[i] ? dims - kn_vmap_sample_dims(call, i) : 0; x && missing > 0; missing--)
        x = kn_unsqueeze(x, 1);
    return x;
}

kn_status kn_vmap_apply(kn_vmap_call *call, kn_tensor *const *inputs, const void *params)
{
    return kn_op_invoke_to(call->op, inputs, call->num_inputs, params, call->outputs, call->num_outputs);
}

void kn_vmap_copy_params(kn_vmap_params *copy, const kn_vmap_call *call)
{
    if (call->params)
        memcpy(copy->bytes, call->params, kn_op_params_of(call->op)->size);
}

void *kn_vmap_field(const kn_vmap_call *call, kn_vmap_params *params, const char *name)
{
    const kn_op_params *known = kn_op_params_of(call->op);
    for (int i = 0; i < known->count; i++)
        if (strcmp(known->rows[i].name, name) == 0)
            return params->bytes + known->rows[i].offset;
    return NULL;
}

kn_tensor *kn_vmap_merged(kn_tensor *x) { return x ? kn_flatten(x, 0, 1) : NULL; }

kn_tensor *kn_vmap_unmerged(kn_tensor *x, int64_t batch_size)
{
    return x ? kn_unflatten(x, 0, 2, (int64_t[]){batch_size, x->shape[0] / batch_size}) : NULL;
}

kn_tensor *kn_vmap_as_channels(kn_tensor *x)
{
    kn_tensor *turned = x ? kn_transpose(x, 0, 1) : NULL;
    return turned ? kn_flatten(turned, 1, 2) : NULL;
}

kn_tensor *kn_vmap_from_channels(kn_tensor *x, int64_t batch_size)
{
    kn_tensor *parts = x ? kn_unflatten(x, 1, 2, (int64_t[]){batch_size, x->shape[1] / batch_size}) : NULL;
    return parts ? kn_transpose(parts, 0, 1) : NULL;
}

/* --- pointwise ---------------------------------------------------------------------------------------------------- */

/* A sample without dimensions, among other dtypes, counts less for the dtype of the result than a batch of them. */
static bool dtype_may_change(const kn_vmap_call *call)
{
    bool is_scalar = false, differs = false;
    for (int i = 0; i < call->num_inputs; i++) {
        is_scalar |= call->is_batched[i] && call->inputs[i]->ndim == 1;
        differs |= call->inputs[i] && call->inputs[i]->dtype != call->inputs[0]->dtype;
    }
    return is_scalar && differs;
}

static int most_dims(const kn_vmap_call *call)
{
    int dims = 0;
    for (int i = 0; i < call->num_inputs; i++)
        if (kn_vmap_sample_dims(call, i) > dims)
            dims = kn_vmap_sample_dims(call, i);
    return dims;
}

kn_status kn_vmap_pointwise(kn_vmap_call *call)
{
    kn_tensor *aligned[KN_OP_MAX_INPUTS];
    const int dims = most_dims(call);
    if (dtype_may_change(call))
        return KN_VMAP_DECLINE;
    for (int i = 0; i < call->num_inputs; i++)
        if (!(aligned[i] = kn_vmap_aligned(call, i, dims)) && call->inputs[i])
            return kn_error_status();
    return kn_vmap_apply(call, aligned, call->params);
}

/* --- whole batches ------------------------------------------------------------------------------------------------ */

/* All inputs from `first` on as batches of equally many dimensions. */
static kn_status batches(const kn_vmap_call *call, int first, kn_tensor **inputs)
{
    for (int i = first; i < call->num_inputs; i++) {
        inputs[i] = NULL;
        if (!call->inputs[i])
            continue;
        if (kn_vmap_sample_dims(call, i) != kn_vmap_sample_dims(call, 0))
            return KN_VMAP_DECLINE;
        if (!(inputs[i] = kn_vmap_batch(call, i)))
            return kn_error_status();
    }
    return KN_OK;
}

kn_status kn_vmap_leading(kn_vmap_call *call)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS];
    KN_TRY(batches(call, 0, inputs));
    return kn_vmap_apply(call, inputs, call->params);
}

/* --- along dimensions --------------------------------------------------------------------------------------------- */

static int64_t shifted(int64_t dim) { return dim < 0 ? dim : dim + 1; }

/* The dimensions among the parameters, counted with that of the batch. False: none are given. */
static bool shift_dims(const kn_vmap_call *call, kn_vmap_params *params)
{
    static const char *const names[] = {"dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "dimension"};
    const kn_op_params *known = kn_op_params_of(call->op);
    for (int i = 0; i < known->count; i++)
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            void *at = params->bytes + known->rows[i].offset;
            if (strcmp(known->rows[i].name, names[n]) != 0)
                continue;
            if (known->rows[i].kind == KN_PARAM_INT)
                *(int *)at = (int)shifted(*(int *)at);
            else if (known->rows[i].kind == KN_PARAM_INT64)
                *(int64_t *)at = shifted(*(int64_t *)at);
            else if (((kn_ints *)at)->count == 0)
                return false;
            for (int d = 0; known->rows[i].kind == KN_PARAM_INTS && d < ((kn_ints *)at)->count; d++)
                ((kn_ints *)at)->values[d] = shifted(((kn_ints *)at)->values[d]);
        }
    return true;
}

/* A list may have more inputs than other operators. */
static kn_status along(kn_vmap_call *call, const kn_vmap_params *params)
{
    kn_tensor *few[KN_OP_MAX_INPUTS], **inputs = few;
    if (call->num_inputs > KN_OP_MAX_INPUTS)
        inputs = call->inputs; /* which a call for each sample would need: only where all are batches */
    for (int i = 0; inputs == call->inputs && i < call->num_inputs; i++)
        if (!call->is_batched[i])
            return KN_VMAP_DECLINE;
    KN_TRY(batches(call, 0, inputs));
    return kn_vmap_apply(call, inputs, params->bytes);
}

kn_status kn_vmap_along(kn_vmap_call *call)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    const bool adds = strcmp(call->op->name, "stack") == 0 || strcmp(call->op->name, "unsqueeze") == 0;
    if ((kn_vmap_sample_dims(call, 0) == 0 && !adds) || !shift_dims(call, &params))
        return KN_VMAP_DECLINE;
    return along(call, &params);
}

kn_status kn_vmap_reduced(kn_vmap_call *call)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    const int dims = kn_vmap_sample_dims(call, 0);
    if (dims == 0)
        return KN_VMAP_DECLINE;
    if (!shift_dims(call, &params)) {
        kn_ints *all = kn_vmap_field(call, &params, "dims");
        for (all->count = 0; all->count < dims; all->count++)
            all->values[all->count] = all->count + 1;
    }
    return along(call, &params);
}

/* Inputs: x, the index, and others of x's dimensions. */
kn_status kn_vmap_indexed(kn_vmap_call *call)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS];
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    if (call->is_batched[1] || kn_vmap_sample_dims(call, 0) == 0 || !shift_dims(call, &params))
        return KN_VMAP_DECLINE;
    inputs[0] = kn_vmap_batch(call, 0);
    inputs[1] = call->inputs[1];
    if (!inputs[0])
        return kn_error_status();
    KN_TRY(batches(call, 2, inputs));
    return kn_vmap_apply(call, inputs, params.bytes);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

/* Has a sample a dimension N? Operators of 1, 2 or 3 dimensions, which their names tell, take [C, ...] as well. */
static bool has_batch(const kn_vmap_call *call)
{
    const char *name = call->op->name, *d = strstr(name, "1d") ? strstr(name, "1d") : strstr(name, "2d");
    d = d ? d : strstr(name, "3d");
    return !d || kn_vmap_sample_dims(call, 0) == d[0] - '0' + 2;
}

/* The first `images` inputs are images; the others are the same for all samples. */
static kn_status of_images(kn_vmap_call *call, int images)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS];
    const bool merges = has_batch(call);
    for (int i = 0; i < call->num_inputs; i++) {
        inputs[i] = call->inputs[i];
        if (i >= images && call->is_batched[i])
            return KN_VMAP_DECLINE;
        if (i >= images || !inputs[i])
            continue;
        inputs[i] = kn_vmap_batch(call, i);
        if (merges)
            inputs[i] = kn_vmap_merged(inputs[i]);
        if (!inputs[i])
            return kn_error_status();
    }
    KN_TRY(kn_vmap_apply(call, inputs, call->params));
    for (int i = 0; merges && i < call->num_outputs; i++)
        if (call->outputs[i] && call->outputs[i] != KN_SKIP_OUTPUT &&
            !(call->outputs[i] = kn_vmap_unmerged(call->outputs[i], call->size)))
            return kn_error_status();
    return KN_OK;
}

kn_status kn_vmap_images(kn_vmap_call *call) { return of_images(call, call->num_inputs); }
kn_status kn_vmap_layer_of_images(kn_vmap_call *call) { return of_images(call, 1); }
