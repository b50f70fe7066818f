/* optim/launch.c - groups of parameters, those of an optimizer or of the caller's lists, with one launch each. */
#include <stdio.h>

#include "base/error.h"
#include "optim/optim.h"

#define FEW_SLOTS 8
#define CPU_ELEMENTS_PER_ITEM 4096 /* at least; a few work-items per core and slot */
#define GROUP_SIZE 256             /* work-group size on other devices; a work-item updates four elements */

/* How many parameters fit into a launch. */
static int num_slots(const kn_optim_group *group)
{
    return group->flat && !kn_device_limits(group->device)->is_cpu ? KN_OPTIM_SLOTS : FEW_SLOTS;
}

/* Unused slots get the first slot's buffers and length 0. */
static int slot_arguments(const kn_optim_group *group, kn_arg *args)
{
    int n = 0;
    for (int i = 0; i < num_slots(group); i++) {
        const kn_optim_slot *slot = &group->slots[i < group->count ? i : 0];
        args[n++] = kn_arg_tensor(slot->parameter);
        args[n++] = kn_arg_tensor(slot->gradient);
        args[n++] = kn_arg_i64(i < group->count ? kn_numel(slot->parameter) : 0);
        if (group->flat)
            args[n++] = kn_arg_i64(slot->start);
        for (int s = 0; !group->flat && s < group->num_states; s++)
            args[n++] = kn_arg_tensor(slot->states[s]);
        if (slot->step)
            args[n++] = kn_arg_tensor(slot->step);
    }
    return n;
}

static kn_launch_params work_on_cpu(const kn_optim_group *group)
{
    int64_t longest = 0;
    for (int i = 0; i < group->count; i++) {
        int64_t elements = kn_numel(group->slots[i].parameter);
        longest = elements > longest ? elements : longest;
    }
    size_t items = kn_work_items(kn_device_limits(group->device), longest, CPU_ELEMENTS_PER_ITEM);
    return (kn_launch_params){.dims = 2, .global = {items, (size_t)group->count}};
}

/* On other devices the work-groups of all slots are numbered consecutively. */
static kn_launch_params work_in_line(const kn_optim_group *group, kn_slot_ends *ends)
{
    const kn_limits *limits = kn_device_limits(group->device);
    size_t local = GROUP_SIZE;
    int64_t groups = 0;
    while (local > limits->max_work_group_size)
        local /= 2;
    for (int i = 0; i < KN_OPTIM_SLOTS; i++) {
        const int64_t elements = i < group->count ? kn_numel(group->slots[i].parameter) : 0;
        groups += (elements + 4 * (int64_t)local - 1) / (4 * (int64_t)local);
        ends->end[i] = (uint32_t)groups;
    }
    return (kn_launch_params){.dims = 1, .global = {(size_t)groups * local}, .local = {local}};
}

/* Whether vectors of four elements are aligned in all slots; flat states start at multiples of 16. */
static bool are_aligned(const kn_optim_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const kn_optim_slot *slot = &group->slots[i];
        int64_t offsets = slot->parameter->offset | slot->gradient->offset;
        for (int s = 0; !group->flat && s < group->num_states; s++)
            offsets |= slot->states[s]->offset;
        if (offsets % 4 != 0)
            return false;
    }
    return true;
}

/* The step's scalars: their values now, or in a graph a variable that each replay of an optimizer's step updates. */
static kn_status scalar_arguments(const kn_optim_group *group, kn_arg *args, int *count)
{
    double scalars[KN_OPTIM_MAX_SCALARS];
    const size_t size = kn_dtype_size(group->dtype);
    const void *variable = NULL;
    *count = group->algorithm->scalars(group->hyper, group->step, scalars);
    if (group->optim && kn_stream_is_capturing(group->stream) && !(variable = kn_optim_record(group)))
        return kn_capture_fail(group->stream, kn_error_status());
    for (int i = 0; i < *count; i++)
        args[i] = variable ? kn_arg_variable(variable, (size_t)i * size, size) : kn_arg_real(group->dtype, scalars[i]);
    return KN_OK;
}

static kn_status launch(const kn_optim_group *group)
{
    const bool is_cpu = kn_device_limits(group->device)->is_cpu;
    const bool is_scaled = group->grad_scale || group->found_inf;
    kn_arg args[KN_OPTIM_SLOTS * (4 + KN_OPTIM_MAX_STATES) + 5 + KN_OPTIM_MAX_STATES + KN_OPTIM_MAX_SCALARS];
    kn_slot_ends ends;
    kn_launch_params params = is_cpu ? work_on_cpu(group) : work_in_line(group, &ends);
    int n = slot_arguments(group, args), num_scalars;
    if (!is_cpu) {
        args[n++] = kn_arg_struct(&ends, sizeof ends);
        args[n++] = kn_arg_i32(are_aligned(group));
    }
    for (int s = 0; group->flat && s < group->num_states; s++)
        args[n++] = kn_arg_tensor(group->flat[s]);
    if (is_scaled) { /* a missing tensor may be any buffer: the kernel does not read it */
        args[n++] = kn_arg_tensor(group->grad_scale ? group->grad_scale : group->found_inf);
        args[n++] = kn_arg_tensor(group->found_inf ? group->found_inf : group->grad_scale);
        args[n++] = kn_arg_i32((group->grad_scale != NULL) | (group->found_inf != NULL) << 1);
    }
    KN_TRY(scalar_arguments(group, args + n, &num_scalars));
    n += num_scalars;
    char options[160];
    snprintf(options, sizeof options, "%s%s%s%s", kn_dtype_options(group->dtype), group->algorithm->flags(group->hyper),
             group->options ? group->options : "", is_scaled ? " -DSCALED" : "");

    params.source = group->algorithm->source;
    params.options = options;
    params.kernel = group->algorithm->kernel;
    params.operation = group->algorithm->name;
    params.args = args;
    params.num_args = n;
    return kn_launch(group->stream, &params);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static kn_status write_back(kn_tensor *tensor, const kn_tensor *changed)
{
    kn_tensor_bump_version(tensor);
    return tensor == changed ? KN_OK : kn_tensor_copy(tensor, changed);
}

/* Kernels need contiguous memory: the slots of tensors that are not contiguous hold copies. */
static kn_status write_slot_back(const kn_optim_group *group, const kn_optim_slot *given, const kn_optim_slot *slot)
{
    KN_TRY(write_back(given->parameter, slot->parameter));
    if (group->grad_scale)
        KN_TRY(write_back(given->gradient, slot->gradient));
    for (int s = 0; s < group->num_states && !group->flat; s++)
        KN_TRY(write_back(given->states[s], slot->states[s]));
    if (group->optim)
        group->optim->steps[given->index] += !kn_stream_is_capturing(group->stream); /* then each replay counts it */
    return KN_OK;
}

/* Launches the group unless there was a failure, and empties it. */
static kn_status flush(kn_optim_group *group, kn_status status)
{
    if (status == KN_OK && group->count > 0)
        status = launch(group);
    for (int i = 0; i < group->count; i++) {
        kn_optim_slot *slot = &group->slots[i];
        if (status == KN_OK)
            status = write_slot_back(group, &group->given[i], slot);
        kn_release(slot->parameter);
        kn_release(slot->gradient);
        for (int s = 0; s < KN_OPTIM_MAX_STATES; s++)
            kn_release(slot->states[s]);
    }
    group->count = 0;
    return status;
}

kn_span kn_optim_begin(const char *name, const kn_tensor *parameter)
{
    return kn_is_watched()
               ? kn_span_begin(&(kn_span_info){.kind = KN_SPAN_OP, .name = name, .device = parameter->storage->device})
               : KN_NO_SPAN;
}

/* A launch has one bias correction, so its parameters must be at the same step. */
static bool fits(const kn_optim_group *group, const kn_tensor *parameter, int64_t step)
{
    return group->count < num_slots(group) && group->dtype == parameter->dtype &&
           group->device == parameter->storage->device && group->step == step;
}

/* Reads parameter, gradient and states; writes parameter and states. */
static void count_work(kn_optim_group *group, const kn_tensor *parameter)
{
    const double elements = (double)kn_numel(parameter);
    group->work.flops += elements * group->algorithm->flops(group->hyper);
    group->work.bytes += elements * (double)kn_tensor_element_size(parameter) * (3 + 2 * group->num_states);
}

kn_status kn_optim_add(kn_optim_group *group, const kn_optim_slot *given, kn_tensor *const *flat, int64_t step)
{
    const kn_tensor *parameter = given->parameter;
    if (group->count > 0 && !fits(group, parameter, step))
        KN_TRY(flush(group, KN_OK));
    group->device = parameter->storage->device;
    group->dtype = parameter->dtype;
    group->stream = kn_tensor_stream(parameter);
    group->flat = flat;
    group->step = step;
    if (!group->stream)
        return kn_error_status();
    if (kn_is_watched())
        count_work(group, parameter);
    kn_optim_slot *slot = &group->slots[group->count];
    group->given[group->count++] = *given;
    *slot = (kn_optim_slot){.start = given->start, .step = given->step};
    KN_TRY(kn_tensor_contiguous(&slot->parameter, given->parameter));
    KN_TRY(kn_tensor_contiguous(&slot->gradient, given->gradient));
    for (int s = 0; s < group->num_states && !flat; s++)
        KN_TRY(kn_tensor_contiguous(&slot->states[s], given->states[s]));
    return KN_OK;
}

kn_status kn_optim_end(kn_optim_group *group, kn_status status, kn_span span)
{
    status = flush(group, status);
    if (kn_span_is_open(span))
        kn_span_end(span, &group->work);
    return status;
}
