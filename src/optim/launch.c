/* optim/launch.c - one launch for a group of parameters, those of an optimizer or of the caller's lists. */
#include <stdio.h>

#include "optim/optim.h"

#define FEW_SLOTS 8
#define CPU_ELEMENTS_PER_ITEM 4096 /* at least; a few work-items per core and slot */
#define GROUP_SIZE 256             /* work-group size on other devices; a work-item updates four elements */

int kn_optim_slots(const kn_device *device, bool is_flat)
{
    return is_flat && !kn_device_limits(device)->is_cpu ? KN_OPTIM_SLOTS : FEW_SLOTS;
}

/* Unused slots get the first slot's buffers and length 0. */
static int slot_arguments(const kn_optim_group *group, kn_arg *args)
{
    int n = 0;
    for (int i = 0; i < kn_optim_slots(group->device, group->flat != NULL); i++) {
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

kn_status kn_optim_launch(const kn_optim_group *group, const kn_arg *scalars, int num_scalars)
{
    const bool is_cpu = kn_device_limits(group->device)->is_cpu;
    const bool is_scaled = group->grad_scale || group->found_inf;
    kn_arg args[KN_OPTIM_SLOTS * (4 + KN_OPTIM_MAX_STATES) + 5 + KN_OPTIM_MAX_STATES + KN_OPTIM_MAX_SCALARS];
    kn_slot_ends ends;
    kn_launch_params params = is_cpu ? work_on_cpu(group) : work_in_line(group, &ends);
    int n = slot_arguments(group, args);
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
    for (int i = 0; i < num_scalars; i++)
        args[n++] = scalars[i];
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
