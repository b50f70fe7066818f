/* ops/vmap/layers.c - rules of normalisations, other layers and losses. */
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/dispatch/operators.h"
#include "ops/vmap/rules.h"

/* --- normalisations ----------------------------------------------------------------------------------------------- */

/* Each sample's own factor or addend, [B, sizes...], for x [B, ...]: its dimensions from `first` on, as many as it
 * has; NULL with an error. */
static kn_tensor *for_dims(const kn_vmap_call *call, int i, int first, int ndim)
{
    kn_tensor *x = call->inputs[i];
    int64_t shape[KN_MAX_DIMS];
    const int own = kn_vmap_sample_dims(call, i);
    for (int d = 0; d < ndim; d++)
        shape[d] = d >= first && d < first + own ? x->shape[d - first + call->is_batched[i]] : 1;
    shape[0] = call->is_batched[i] ? call->size : 1;
    return kn_reshape(x, ndim, shape);
}

/* y scaled by input 1 and shifted by input 2, where they are given. */
static kn_tensor *scale_and_shift(const kn_vmap_call *call, kn_tensor *y, int first)
{
    for (int i = 1; y && i < 3 && i < call->num_inputs; i++) {
        kn_tensor *x = call->inputs[i] ? for_dims(call, i, first, y->ndim) : NULL;
        if (call->inputs[i])
            y = !x ? NULL : i == 1 ? kn_mul(y, x) : kn_add(y, x);
    }
    return y;
}

/* By `rule` without scale and shift, which follow, for dimensions from `first` on. */
static kn_status normalize_then_scale(kn_vmap_call *call, kn_vmap_rule rule, int first)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS];
    bool is_batched[KN_OP_MAX_INPUTS];
    kn_vmap_call plain = *call;
    for (int i = 0; i < call->num_inputs; i++) {
        const bool is_left_out = i == 1 || i == 2;
        inputs[i] = is_left_out ? NULL : call->inputs[i];
        is_batched[i] = !is_left_out && call->is_batched[i];
    }
    plain.inputs = inputs;
    plain.is_batched = is_batched;
    KN_TRY(rule(&plain));
    return kn_status_of(call->outputs[0] = scale_and_shift(call, call->outputs[0], first));
}

static kn_status as_given(kn_vmap_call *call) { return kn_vmap_apply(call, call->inputs, call->params); }

kn_status kn_vmap_row_norm(kn_vmap_call *call)
{
    if (!kn_vmap_any_batched(call, 1))
        return as_given(call);
    if (!call->is_batched[0])
        return KN_VMAP_DECLINE;
    return normalize_then_scale(call, as_given, call->inputs[0]->ndim - kn_vmap_sample_dims(call, 1));
}

/* x [B, N, C, ...]; scale and shift are of the channels. */
static kn_status images_then_scale(kn_vmap_call *call)
{
    return normalize_then_scale(call, kn_vmap_layer_of_images, 2);
}

kn_status kn_vmap_group_norm(kn_vmap_call *call)
{
    return kn_vmap_any_batched(call, 1) ? images_then_scale(call) : kn_vmap_layer_of_images(call);
}

/* The statistics of each sample's batch: B * C channels, [N, B * C, ...]. */
static kn_status norm_of_batches(kn_vmap_call *call)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS] = {kn_vmap_as_channels(call->inputs[0])};
    for (int i = 3; i < call->num_inputs; i++)
        if (call->inputs[i]) /* running estimates, which all samples would change */
            return KN_VMAP_DECLINE;
    if (!inputs[0])
        return kn_error_status();
    for (int i = 1; i < 3 && i < call->num_inputs; i++)
        if (call->inputs[i] && !(inputs[i] = kn_vmap_merged(kn_vmap_batch(call, i))))
            return kn_error_status();
    KN_TRY(kn_vmap_apply(call, inputs, call->params));
    return kn_status_of(call->outputs[0] = kn_vmap_from_channels(call->outputs[0], call->size));
}

kn_status kn_vmap_batch_norm(kn_vmap_call *call)
{
    const kn_batch_norm_args *args = call->params;
    if (!call->is_batched[0] || call->num_outputs > 1)
        return KN_VMAP_DECLINE;
    if (args->training || call->num_inputs < 5 || !call->inputs[3])
        return norm_of_batches(call);
    if (!kn_vmap_any_batched(call, 1))
        return kn_vmap_layer_of_images(call);
    return kn_vmap_any_batched(call, 3) || args->activation != KN_ACTIVATION_NONE ? KN_VMAP_DECLINE
                                                                                  : images_then_scale(call);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

/* The weight is for dimension 1. */
kn_status kn_vmap_prelu(kn_vmap_call *call)
{
    if (call->is_batched[1])
        return KN_VMAP_DECLINE;
    if (kn_numel(call->inputs[1]) == 1)
        return kn_vmap_pointwise(call);
    return kn_vmap_sample_dims(call, 0) > 1 ? kn_vmap_layer_of_images(call) : KN_VMAP_DECLINE;
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

/* The operator's losses of all elements, [B, ...]. */
static kn_status unreduced(kn_vmap_call *call, kn_tensor *const *inputs)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    *(kn_reduction *)kn_vmap_field(call, &params, "reduction") = KN_REDUCTION_NONE;
    return kn_vmap_apply(call, inputs, params.bytes);
}

static kn_reduction reduction_of(const kn_vmap_call *call)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    return *(kn_reduction *)kn_vmap_field(call, &params, "reduction");
}

/* Over all dimensions but the first. */
static kn_tensor *reduced(kn_tensor *losses, kn_reduction reduction)
{
    int dims[KN_MAX_DIMS];
    for (int d = 1; d < losses->ndim; d++)
        dims[d - 1] = d;
    if (reduction == KN_REDUCTION_NONE || losses->ndim == 1)
        return losses;
    return (reduction == KN_REDUCTION_SUM ? kn_sum_dims : kn_mean_dims)(losses, dims, losses->ndim - 1, false);
}

kn_status kn_vmap_element_loss(kn_vmap_call *call)
{
    kn_tensor *inputs[KN_OP_MAX_INPUTS] = {NULL};
    const kn_reduction reduction = reduction_of(call);
    const int dims = kn_vmap_sample_dims(call, 0);
    if (reduction == KN_REDUCTION_BATCHMEAN)
        return KN_VMAP_DECLINE;
    for (int i = 2; i < call->num_inputs; i++) /* weights: those of a mean divide it in some operators */
        if (call->inputs[i])
            return KN_VMAP_DECLINE;
    for (int i = 0; i < 2; i++) {
        if (kn_vmap_sample_dims(call, i) != dims || !(inputs[i] = kn_vmap_batch(call, i)))
            return KN_VMAP_DECLINE;
    }
    KN_TRY(unreduced(call, inputs));
    return kn_status_of(call->outputs[0] = reduced(call->outputs[0], reduction));
}

/* The mean of those that are not ignored. */
static kn_tensor *mean_of_counted(kn_vmap_call *call, kn_tensor *losses, kn_tensor *target)
{
    kn_vmap_params params;
    kn_vmap_copy_params(&params, call);
    const int64_t ignored = *(int64_t *)kn_vmap_field(call, &params, "ignore_index");
    if (kn_dtype_is_floating(target->dtype))
        return reduced(losses, KN_REDUCTION_MEAN);
    kn_tensor *counted = kn_ne_scalar_with(target, kn_scalar_int(ignored));
    counted = counted ? kn_to_dtype(counted, losses->dtype) : NULL;
    kn_tensor *share = counted ? reduced(counted, KN_REDUCTION_MEAN) : NULL;
    kn_tensor *mean = reduced(losses, KN_REDUCTION_MEAN);
    return share && mean ? kn_div(mean, share) : NULL;
}

/* input [B, N, C, ...] or [B, C]; target [B, N, ...], [B] or of probabilities, like input. */
kn_status kn_vmap_class_loss(kn_vmap_call *call)
{
    const kn_reduction reduction = reduction_of(call);
    kn_tensor *input = kn_vmap_batch(call, 0), *target = kn_vmap_batch(call, 1), *inputs[3] = {input, target, NULL};
    if (!input || !target || (call->num_inputs > 2 && call->inputs[2]))
        return KN_VMAP_DECLINE;
    const bool merges = input->ndim > 2;
    if (merges && (!(inputs[0] = kn_vmap_merged(input)) || !(inputs[1] = kn_vmap_merged(target))))
        return kn_error_status();
    KN_TRY(unreduced(call, inputs));
    kn_tensor *losses = merges ? kn_vmap_unmerged(call->outputs[0], call->size) : call->outputs[0];
    if (!losses)
        return kn_error_status();
    call->outputs[0] =
        reduction == KN_REDUCTION_MEAN ? mean_of_counted(call, losses, target) : reduced(losses, reduction);
    return kn_status_of(call->outputs[0]);
}
