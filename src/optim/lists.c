/* optim/lists.c - a step on the caller's tensors, with the same launches as kn_optim_step. */
#include <koine/autograd.h>
#include <stdio.h>

#include "base/error.h"
#include "optim/optim.h"
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

static kn_status check_lists(const kn_optim_lists *lists, int num_states)
{
    if (lists->count < 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d parameters", lists->function, lists->count);
    if (lists->count > 0 && (!lists->parameters || !lists->gradients))
        return kn_fail_argument_null(lists->function, lists->parameters ? "gradients" : "parameters");
    for (int s = 0; s < num_states && lists->count > 0; s++)
        if (!lists->states[s])
            return kn_fail_argument_null(lists->function, lists->names[s]);
    if (lists->has_steps && lists->count > 0 && !lists->steps)
        return kn_fail_argument_null(lists->function, "state_steps");
    return KN_OK;
}

static kn_status check_all(const kn_optim_lists *lists, int num_states)
{
    KN_TRY(check_lists(lists, num_states));
    for (int i = 0; i < lists->count; i++) {
        const kn_tensor *parameter = lists->parameters[i];
        KN_TRY(check_parameter(lists->function, i, parameter));
        KN_TRY(check_like(lists->function, "gradients", i, lists->gradients[i], parameter));
        for (int s = 0; s < num_states; s++) {
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

/* --- the step ----------------------------------------------------------------------------------------------------- */

static kn_status add_all(const kn_optim_lists *lists, kn_optim_batch *batch)
{
    const kn_optim_course course = {.step = lists->step};
    for (int i = 0; i < lists->count; i++) {
        kn_optim_slot given = {.parameter = lists->parameters[i],
                               .gradient = lists->gradients[i],
                               .index = i,
                               .step = lists->has_steps ? lists->steps[i] : NULL};
        for (int s = 0; s < batch->num_states; s++) {
            given.states[s] = lists->states[s][i];
            if (lists->clears_states)
                KN_TRY(kn_tensor_fill(given.states[s], 0));
        }
        KN_TRY(kn_optim_add(batch, &given, NULL, &course));
    }
    return KN_OK;
}

kn_status kn_optim_step_lists(const kn_optim_lists *lists, const kn_optim_algorithm *algorithm,
                              const kn_optim_hyper *rows, const void *params)
{
    kn_optim_algorithm with_rows = *algorithm;
    double hyper[KN_OPTIM_MAX_HYPER];
    int in_use[KN_OPTIM_OWN_STATES];

    with_rows.hyper = rows;
    kn_optim_take_hyper(&with_rows, params, hyper);
    KN_TRY(kn_optim_check_hyper(&with_rows, hyper));
    kn_optim_batch batch = {.algorithm = &with_rows,
                            .hyper = hyper,
                            .options = " -DOWN_STATES",
                            .num_states = kn_optim_states_in_use(&with_rows, hyper, in_use),
                            .grad_scale = lists->grad_scale,
                            .found_inf = lists->found_inf};
    KN_TRY(check_all(lists, batch.num_states));
    if (lists->count == 0)
        return KN_OK;
    batch.work.is_f64 = lists->parameters[0]->dtype == KN_F64;
    const kn_span span = kn_optim_begin(lists->function, lists->parameters[0]);
    return kn_optim_end(&batch, add_all(lists, &batch), span);
}
