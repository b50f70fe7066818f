/* optim/lists.c - a step on the caller's tensors, with the same launches as kn_optim_step. */
#include <koine/autograd.h>
#include <stdio.h>

#include "base/error.h"
#include "optim/optim.h"
#include "rt/trace/spans.h"
#include "tensor/liveness.h"

/* --- checks ------------------------------------------------------------------------------------------------------- */

static kn_status check_like(const char *function, const char *list, int index, const kn_tensor *tensor,
                            const kn_tensor *parameter)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    KN_TRY(kn_check_tensor(function, list, tensor));
    if (kn_same_shape(tensor, parameter) && tensor->dtype == parameter->dtype &&
        tensor->storage->device == parameter->storage->device)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: %s[%d] is %s, but the parameter is %s", function, list, index,
                   kn_tensor_describe(a, sizeof a, tensor), kn_tensor_describe(b, sizeof b, parameter));
}

static kn_status check_changed(const char *function, const char *list, int index, const kn_tensor *tensor)
{
    if (kn_tensor_check_no_overlap(tensor) != KN_OK) {
        kn_error_prefix("%s: %s[%d]", function, list, index);
        return kn_error_status();
    }
    return kn_is_leaf(tensor) || !kn_grad_enabled()
               ? KN_OK
               : kn_fail(
                     KN_ERR_STATE,
                     "%s: %s[%d] is the result of recorded operations, and the step is not recorded: call it inside "
                     "KN_NO_GRAD",
                     function, list, index);
}

/* `index`: the place in the list `name`, or -1 for a single tensor. */
static kn_status check_number(const char *function, const char *name, int index, const kn_tensor *number,
                              const kn_tensor *parameter)
{
    char text[KN_DESCRIBE], at[16] = "";
    KN_TRY(kn_check_tensor(function, name, number));
    if (number->dtype == KN_F32 && kn_numel(number) == 1 && number->storage->device == parameter->storage->device)
        return KN_OK;
    if (index >= 0)
        snprintf(at, sizeof at, "[%d]", index);
    return kn_fail(KN_ERR_ARGUMENT, "%s: %s%s is %s: it must be one float32 element on %s", function, name, at,
                   kn_tensor_describe(text, sizeof text, number), kn_device_string(parameter->storage->device));
}

static kn_status check_parameter(const char *function, int index, const kn_tensor *parameter)
{
    char text[KN_DESCRIBE];
    KN_TRY(kn_check_tensor(function, "parameters", parameter));
    if (parameter->dtype != KN_F32 && parameter->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "%s: parameters[%d] is %s; it must be float32 or float64", function, index,
                       kn_tensor_describe(text, sizeof text, parameter));
    if (kn_device_is_host(parameter->storage->device))
        return kn_fail(KN_ERR_DEVICE,
                       "%s: parameters[%d] is on the host, which runs no operations: move it to a device with "
                       "kn_to(tensor, device)",
                       function, index);
    return check_changed(function, "parameters", index, parameter);
}

static kn_status check_lists(const kn_optim_lists *lists)
{
    if (lists->count < 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d parameters", lists->function, lists->count);
    if (lists->count > 0 && (!lists->parameters || !lists->gradients))
        return kn_fail_argument_null(lists->function, lists->parameters ? "gradients" : "parameters");
    for (int s = 0; s < lists->num_states && lists->count > 0; s++)
        if (!lists->states[s])
            return kn_fail_argument_null(lists->function, lists->names[s]);
    if (lists->has_steps && lists->count > 0 && !lists->steps)
        return kn_fail_argument_null(lists->function, "state_steps");
    return KN_OK;
}

static kn_status check_all(const kn_optim_lists *lists)
{
    KN_TRY(check_lists(lists));
    for (int i = 0; i < lists->count; i++) {
        const kn_tensor *parameter = lists->parameters[i];
        KN_TRY(check_parameter(lists->function, i, parameter));
        KN_TRY(check_like(lists->function, "gradients", i, lists->gradients[i], parameter));
        for (int s = 0; s < lists->num_states; s++) {
            KN_TRY(check_like(lists->function, lists->names[s], i, lists->states[s][i], parameter));
            KN_TRY(check_changed(lists->function, lists->names[s], i, lists->states[s][i]));
        }
        if (lists->has_steps)
            KN_TRY(check_number(lists->function, "state_steps", i, lists->steps[i], parameter));
        if (lists->grad_scale)
            KN_TRY(check_number(lists->function, "grad_scale", -1, lists->grad_scale, parameter));
        if (lists->grad_scale)
            KN_TRY(check_changed(lists->function, "gradients", i, lists->gradients[i]));
        if (lists->found_inf)
            KN_TRY(check_number(lists->function, "found_inf", -1, lists->found_inf, parameter));
    }
    return KN_OK;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static void release_slot(kn_optim_slot *slot)
{
    kn_release(slot->parameter);
    kn_release(slot->gradient);
    for (int s = 0; s < KN_OPTIM_MAX_STATES; s++)
        kn_release(slot->states[s]);
    *slot = (kn_optim_slot){.parameter = NULL};
}

static kn_status write_back(kn_tensor *tensor, const kn_tensor *changed)
{
    kn_tensor_bump_version(tensor);
    return tensor == changed ? KN_OK : kn_tensor_copy(tensor, changed);
}

/* Launches the group, whose slots are those of the parameters from `first` on, and empties it. Slots of tensors that
 * are not contiguous hold copies. */
static kn_status flush(const kn_optim_lists *lists, kn_optim_group *group, int first)
{
    double values[KN_OPTIM_MAX_SCALARS];
    kn_arg scalars[KN_OPTIM_MAX_SCALARS];
    const int count = lists->algorithm->scalars(lists->hyper, lists->step, values);
    for (int i = 0; i < count; i++)
        scalars[i] = kn_arg_real(group->dtype, values[i]);
    kn_status status = group->count > 0 ? kn_optim_launch(group, scalars, count) : KN_OK;
    for (int i = 0; i < group->count; i++) {
        if (status == KN_OK)
            status = write_back(lists->parameters[first + i], group->slots[i].parameter);
        if (status == KN_OK && lists->grad_scale)
            status = write_back(lists->gradients[first + i], group->slots[i].gradient);
        for (int s = 0; s < lists->num_states && status == KN_OK; s++)
            status = write_back(lists->states[s][first + i], group->slots[i].states[s]);
        release_slot(&group->slots[i]);
    }
    group->count = 0;
    return status;
}

static kn_status add(const kn_optim_lists *lists, kn_optim_group *group, int index)
{
    kn_optim_slot *slot = &group->slots[group->count];
    *slot = (kn_optim_slot){.step = lists->has_steps ? lists->steps[index] : NULL};
    kn_status status = kn_tensor_contiguous(&slot->parameter, lists->parameters[index]);
    if (status == KN_OK)
        status = kn_tensor_contiguous(&slot->gradient, lists->gradients[index]);
    for (int s = 0; s < lists->num_states && status == KN_OK; s++) {
        status = lists->clears_states ? kn_tensor_fill(lists->states[s][index], 0) : KN_OK;
        if (status == KN_OK)
            status = kn_tensor_contiguous(&slot->states[s], lists->states[s][index]);
    }
    if (status == KN_OK)
        group->count++;
    else
        release_slot(slot);
    return status;
}

static bool belongs(const kn_optim_group *group, const kn_tensor *parameter)
{
    return group->count == 0 || (group->count < kn_optim_slots(group->device, false) &&
                                 group->dtype == parameter->dtype && group->device == parameter->storage->device);
}

static kn_status step_all(const kn_optim_lists *lists)
{
    kn_optim_group group = {.algorithm = lists->algorithm,
                            .hyper = lists->hyper,
                            .options = lists->options,
                            .grad_scale = lists->grad_scale,
                            .found_inf = lists->found_inf,
                            .num_states = lists->num_states};
    kn_status status = KN_OK;
    for (int i = 0; i < lists->count && status == KN_OK; i++) {
        const kn_tensor *parameter = lists->parameters[i];
        if (!belongs(&group, parameter))
            status = flush(lists, &group, i - group.count);
        group.device = parameter->storage->device;
        group.dtype = parameter->dtype;
        group.stream = kn_tensor_stream(parameter);
        if (status == KN_OK)
            status = group.stream ? add(lists, &group, i) : kn_error_status();
        if (status == KN_OK && i == lists->count - 1)
            status = flush(lists, &group, lists->count - group.count);
    }
    for (int i = 0; i < group.count; i++) /* left over after a failure */
        release_slot(&group.slots[i]);
    return status;
}

/* Reads parameters, gradients and states; writes parameters and states. */
static kn_work work_of(const kn_optim_lists *lists)
{
    kn_work work = {.is_f64 = lists->parameters[0]->dtype == KN_F64};
    for (int i = 0; i < lists->count; i++) {
        const double elements = (double)kn_numel(lists->parameters[i]);
        work.flops += elements * lists->algorithm->flops(lists->hyper);
        work.bytes += elements * (double)kn_tensor_element_size(lists->parameters[i]) * (3 + 2 * lists->num_states);
    }
    return work;
}

kn_status kn_optim_step_lists(const kn_optim_lists *lists)
{
    KN_TRY(check_all(lists));
    if (lists->count == 0)
        return KN_OK;
    kn_span span = kn_is_watched() ? kn_span_begin(&(kn_span_info){.kind = KN_SPAN_OP,
                                                                   .name = lists->function,
                                                                   .device = lists->parameters[0]->storage->device})
                                   : KN_NO_SPAN;
    const kn_status status = step_all(lists);
    if (kn_span_is_open(span)) {
        const kn_work work = work_of(lists);
        kn_span_end(span, &work);
    }
    return status;
}
