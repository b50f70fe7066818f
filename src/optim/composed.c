/* optim/composed.c - steps that are computed with operators, parameter after parameter. What changes from step to step
 * is read from the device, so that graphs can record them. */
#include <koine/autograd.h>
#include <koine/shape.h>

#include "base/error.h"
#include "optim/optim.h"
#include "tensor/scope.h"

#define PUBLISHED 5 /* arguments of the kernel */

/* The step's scalars as a tensor; the caller releases it. */
static kn_status publish(kn_optim_batch *batch, kn_tensor **scalars)
{
    kn_arg args[2 + KN_OPTIM_MAX_SCALARS];
    int count;
    KN_TRY(kn_optim_scalar_arguments(batch, args + 2, &count));
    const int64_t length = count;
    KN_TRY(kn_tensor_new(scalars, kn_compute_type(batch->dtype), 1, &length, batch->device));
    args[0] = kn_arg_tensor(*scalars);
    args[1] = kn_arg_i32(count);
    for (int i = count; i < PUBLISHED; i++)
        args[2 + i] = kn_arg_real(batch->dtype, 0);
    return kn_run(batch->stream, .source = "optim/publish.cl",
                  .options = kn_dtype_options(kn_compute_type(batch->dtype)), .kernel = "publish",
                  .operation = batch->algorithm->name, .dims = 1, .global = {1}, .args = args,
                  .num_args = 2 + PUBLISHED);
}

kn_tensor *kn_optim_composed_scalar(const kn_optim_composed *it, int index) { return kn_select(it->scalars, 0, index); }

/* Views of the states, and what to compute with: the master weights, or the parameter in the dtype to compute in. */
static kn_status gather(const kn_optim_batch *batch, int index, const kn_optim_slot *slot, kn_optim_composed *it)
{
    kn_tensor *view;
    for (int s = 0; s < batch->num_states + batch->has_master; s++) {
        if (!kn_optim_has_state(batch->optim, index, s))
            continue;
        KN_TRY(kn_optim_state_view(batch->optim, index, s, &view));
        if (!kn_scope_adopt(view))
            return kn_error_status();
        if (s < batch->num_states)
            it->states[s] = view;
        else
            it->parameter = view;
    }
    if (!it->parameter)
        it->parameter = kn_to_dtype(slot->parameter, kn_compute_type(batch->dtype));
    it->gradient = kn_to_dtype(slot->gradient, kn_compute_type(batch->dtype));
    return it->parameter && it->gradient ? KN_OK : kn_error_status();
}

static kn_status step_slot(const kn_optim_batch *batch, int index, const kn_optim_slot *slot, kn_tensor *scalars)
{
    kn_optim_composed it = {.hyper = batch->hyper, .stream = batch->stream, .dtype = batch->dtype, .scalars = scalars};
    KN_TRY(gather(batch, index, slot, &it));
    KN_TRY(batch->algorithm->compose(&it));
    return it.parameter->storage == slot->parameter->storage ? KN_OK : kn_tensor_copy(slot->parameter, it.parameter);
}

kn_status kn_optim_compose(kn_optim_batch *batch)
{
    kn_tensor *scalars = NULL;
    kn_status status = publish(batch, &scalars);
    KN_NO_GRAD;
    for (int i = 0; i < batch->count && status == KN_OK; i++) {
        const int depth = kn_numel(batch->slots[i].parameter) > 0 ? kn_scope_begin_internal() : 0;
        if (depth > 0)
            status = step_slot(batch, batch->given[i].index, &batch->slots[i], scalars);
        else if (kn_numel(batch->slots[i].parameter) > 0)
            status = kn_error_status();
        kn_scope_end(depth);
    }
    kn_release(scalars);
    return status;
}
