/* optim/fused.c - the optimizer step: bucket by bucket, so that a launch's parameters share their flat states. */
#include <koine/autograd.h>

#include "base/error.h"
#include "optim/optim.h"

static kn_status check_gradient(const kn_optim *optim, int index)
{
    const kn_tensor *parameter = optim->parameters[index], *gradient = kn_grad(parameter);
    if (gradient == NULL || (kn_same_shape(parameter, gradient) && parameter->dtype == gradient->dtype &&
                             parameter->storage->device == gradient->storage->device))
        return KN_OK;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    return kn_fail(KN_ERR_ARGUMENT, "%s: parameter %d is %s but its gradient is %s", optim->algorithm->name, index,
                   kn_tensor_describe(a, sizeof a, parameter), kn_tensor_describe(b, sizeof b, gradient));
}

static kn_status add_all(kn_optim *optim, kn_optim_group *group)
{
    KN_TRY(kn_optim_lay_out(optim));
    for (int b = 0; b < optim->num_buckets; b++)
        for (int i = 0; i < optim->count; i++) {
            const kn_optim_slot given = {.parameter = optim->parameters[i],
                                         .gradient = kn_grad(optim->parameters[i]),
                                         .index = i,
                                         .start = optim->places[i].start};
            if (optim->places[i].bucket == b && given.gradient)
                KN_TRY(kn_optim_add(group, &given, optim->buckets[b].states, optim->steps[i] + 1));
        }
    return KN_OK;
}

kn_status kn_optim_step(kn_optim *optim)
{
    if (optim == NULL)
        return kn_fail_argument_null("optim_step", "optim");
    for (int i = 0; i < optim->count; i++) {
        if (kn_device_is_host(optim->parameters[i]->storage->device))
            return kn_fail(KN_ERR_DEVICE,
                           "%s: parameter %d is on the host; move the module to a device with kn_module_to",
                           optim->algorithm->name, i);
        KN_TRY(check_gradient(optim, i));
    }
    kn_optim_group group = {.algorithm = optim->algorithm,
                            .hyper = optim->hyper,
                            .num_states = optim->num_states,
                            .optim = optim,
                            .work = {.is_f64 = optim->parameters[0]->dtype == KN_F64}};
    const kn_span span = kn_optim_begin(optim->algorithm->step, optim->parameters[0]);
    return kn_optim_end(&group, add_all(optim, &group), span);
}
