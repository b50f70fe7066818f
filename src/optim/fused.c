/* optim/fused.c - the optimizer step: parameters are gathered into groups, with one launch per group. */
#include <stdio.h>

#include <koine/autograd.h>

#include "base/error.h"
#include "optim/optim.h"
#include "rt/trace/spans.h"

void kn_optim_write_scalars(void *memory, kn_dtype dtype, const double *scalars, int count)
{
    for (int i = 0; i < count; i++) {
        if (dtype == KN_F64)
            ((double *)memory)[i] = scalars[i];
        else
            ((float *)memory)[i] = (float)scalars[i];
    }
}

/* The step's scalars: their values now, or in a graph a variable that each replay updates. */
static kn_status scalar_arguments(kn_optim *optim, const kn_optim_group *group, const int *indices, kn_arg *args,
                                  int *count)
{
    double scalars[KN_OPTIM_MAX_SCALARS];
    const kn_dtype dtype = group->dtype;
    const size_t size = kn_dtype_size(dtype);
    *count = optim->algorithm->scalars(optim->hyper, group->step, scalars);
    const void *variable = NULL;
    if (kn_stream_is_capturing(group->stream) && !(variable = kn_optim_record(optim, group, indices)))
        return kn_capture_fail(group->stream, kn_error_status());
    for (int i = 0; i < *count; i++)
        args[i] = variable ? kn_arg_variable(variable, (size_t)i * size, size) : kn_arg_real(dtype, scalars[i]);
    return KN_OK;
}

static kn_status launch(kn_optim *optim, const kn_optim_group *group, const int *indices)
{
    kn_arg scalars[KN_OPTIM_MAX_SCALARS];
    int count;
    KN_TRY(scalar_arguments(optim, group, indices, scalars, &count));
    return kn_optim_launch(group, scalars, count);
}

/* --- the step -------------------------------------------------------------------------------------------------- */

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

/* Launches the group and empties it. Kernels need contiguous memory: the slot of a non-contiguous parameter holds a
 * copy, which is copied back. */
static kn_status flush(kn_optim *optim, kn_optim_group *group, const int *indices)
{
    kn_status status = group->count > 0 ? launch(optim, group, indices) : KN_OK;
    const bool is_recorded = kn_stream_is_capturing(group->stream); /* then each replay counts the step */
    for (int i = 0; i < group->count; i++) {
        kn_tensor *parameter = optim->parameters[indices[i]];
        if (status == KN_OK && group->slots[i].parameter != parameter)
            status = kn_tensor_copy(parameter, group->slots[i].parameter);
        if (status == KN_OK) {
            optim->steps[indices[i]] += !is_recorded;
            kn_tensor_bump_version(parameter);
        }
        kn_release(group->slots[i].parameter);
        kn_release(group->slots[i].gradient);
    }
    group->count = 0;
    return status;
}

static kn_status add(kn_optim *optim, kn_optim_group *group, int *indices, int index)
{
    kn_tensor *parameter = NULL, *gradient = NULL;
    kn_status status = kn_tensor_contiguous(&parameter, optim->parameters[index]);
    if (status == KN_OK)
        status = kn_tensor_contiguous(&gradient, kn_grad(optim->parameters[index]));
    if (status != KN_OK) {
        kn_release(parameter);
        return status;
    }
    int slot = group->count++;
    group->slots[slot].parameter = parameter;
    group->slots[slot].gradient = gradient;
    group->slots[slot].start = optim->places[index].start;
    indices[slot] = index;
    return KN_OK;
}

static kn_status step_bucket(kn_optim *optim, int bucket)
{
    const kn_optim_bucket *own = &optim->buckets[bucket];
    kn_optim_group group = {.algorithm = optim->algorithm,
                            .hyper = optim->hyper,
                            .device = own->device,
                            .dtype = own->dtype,
                            .stream = kn_stream_current(own->device),
                            .num_states = optim->num_states,
                            .flat = own->states};
    if (group.stream == NULL)
        return kn_error_status();
    int indices[KN_OPTIM_SLOTS];
    kn_status status = KN_OK;
    for (int i = 0; i < optim->count && status == KN_OK; i++) {
        if (optim->places[i].bucket != bucket || kn_grad(optim->parameters[i]) == NULL)
            continue;
        /* A launch has one bias correction, so its parameters must be at the same step. */
        if (group.count == kn_optim_slots(group.device, true) || (group.count > 0 && optim->steps[i] + 1 != group.step))
            status = flush(optim, &group, indices);
        group.step = optim->steps[i] + 1;
        if (status == KN_OK)
            status = add(optim, &group, indices, i);
    }
    kn_status last = status == KN_OK ? flush(optim, &group, indices) : KN_OK;
    for (int i = 0; i < group.count; i++) { /* left over after a failure */
        kn_release(group.slots[i].parameter);
        kn_release(group.slots[i].gradient);
    }
    return status == KN_OK ? last : status;
}

/* Reads parameters, gradients and states; writes parameters and states. */
static kn_work work_of_step(const kn_optim *optim)
{
    kn_work work = {.is_f64 = optim->parameters[0]->dtype == KN_F64};
    for (int i = 0; i < optim->count; i++) {
        const kn_tensor *parameter = optim->parameters[i];
        if (kn_grad(parameter) == NULL)
            continue;
        double elements = (double)kn_numel(parameter);
        work.flops += elements * optim->algorithm->flops(optim->hyper);
        work.bytes += elements * (double)kn_tensor_element_size(parameter) * (3 + 2 * optim->num_states);
    }
    return work;
}

/* As PyTorch's profiler names it: "Optimizer.step#Adam.step". */
static kn_span begin_span(const kn_optim *optim)
{
    char name[96];
    if (!kn_is_watched())
        return KN_NO_SPAN;
    snprintf(name, sizeof name, "Optimizer.step#%s.step", optim->algorithm->name);
    return kn_span_begin(
        &(kn_span_info){.kind = KN_SPAN_OP, .name = name, .device = optim->parameters[0]->storage->device});
}

static kn_status step_all(kn_optim *optim)
{
    KN_TRY(kn_optim_lay_out(optim));
    for (int b = 0; b < optim->num_buckets; b++)
        KN_TRY(step_bucket(optim, b));
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
    kn_span span = begin_span(optim);
    kn_status status = step_all(optim);
    if (kn_span_is_open(span)) {
        kn_work work = work_of_step(optim);
        kn_span_end(span, &work);
    }
    return status;
}
