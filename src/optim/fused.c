/* optim/fused.c - the optimizer step: parameters are gathered into groups, with one launch per group. */
#include <stdio.h>

#include <koine/autograd.h>

#include "base/error.h"
#include "optim/optim.h"
#include "rt/trace/spans.h"

#define CPU_SLOTS 8
#define CPU_ELEMENTS_PER_ITEM 4096 /* at least; a few work-items per core and slot */
#define GROUP_SIZE 256             /* work-group size on other devices; a work-item updates four elements */

static int slots_on(const kn_device *device) { return kn_device_limits(device)->is_cpu ? CPU_SLOTS : KN_OPTIM_SLOTS; }

/* Unused slots get the first slot's buffers and length 0. */
static int slot_arguments(const kn_optim_group *group, kn_arg *args)
{
    int n = 0;
    for (int i = 0; i < slots_on(group->bucket->device); i++) {
        int slot = i < group->count ? i : 0;
        args[n++] = kn_arg_tensor(group->slots[slot].parameter);
        args[n++] = kn_arg_tensor(group->slots[slot].gradient);
        args[n++] = kn_arg_i64(i < group->count ? kn_numel(group->slots[slot].parameter) : 0);
        args[n++] = kn_arg_i64(group->slots[slot].start);
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
    size_t items = kn_work_items(kn_device_limits(group->bucket->device), longest, CPU_ELEMENTS_PER_ITEM);
    return (kn_launch_params){.dims = 2, .global = {items, (size_t)group->count}};
}

/* On other devices the work-groups of all slots are numbered consecutively. */
static kn_launch_params work_in_line(const kn_optim_group *group, kn_slot_ends *ends)
{
    const kn_limits *limits = kn_device_limits(group->bucket->device);
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

/* Whether vectors of four elements are aligned in all slots; states start at multiples of 16. */
static bool are_aligned(const kn_optim_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (group->slots[i].parameter->offset % 4 != 0 || group->slots[i].gradient->offset % 4 != 0)
            return false;
    return true;
}

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
    const kn_dtype dtype = group->bucket->dtype;
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
    const bool is_cpu = kn_device_limits(group->bucket->device)->is_cpu;
    kn_arg args[4 * KN_OPTIM_SLOTS + 2 + KN_OPTIM_MAX_STATES + KN_OPTIM_MAX_SCALARS];
    kn_slot_ends ends;
    kn_launch_params params = is_cpu ? work_on_cpu(group) : work_in_line(group, &ends);
    int n = slot_arguments(group, args), scalars;
    if (!is_cpu) {
        args[n++] = kn_arg_struct(&ends, sizeof ends);
        args[n++] = kn_arg_i32(are_aligned(group));
    }
    for (int s = 0; s < optim->num_states; s++)
        args[n++] = kn_arg_tensor(group->bucket->states[s]);
    KN_TRY(scalar_arguments(optim, group, indices, args + n, &scalars));
    char options[128];
    snprintf(options, sizeof options, "%s%s", kn_dtype_options(group->bucket->dtype),
             optim->algorithm->flags(optim->hyper));

    params.source = optim->algorithm->source;
    params.options = options;
    params.kernel = optim->algorithm->kernel;
    params.operation = optim->algorithm->name;
    params.args = args;
    params.num_args = n + scalars;
    return kn_launch(group->stream, &params);
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
    kn_optim_group group = {.bucket = &optim->buckets[bucket],
                            .stream = kn_stream_current(optim->buckets[bucket].device)};
    if (group.stream == NULL)
        return kn_error_status();
    int indices[KN_OPTIM_SLOTS];
    kn_status status = KN_OK;
    for (int i = 0; i < optim->count && status == KN_OK; i++) {
        if (optim->places[i].bucket != bucket || kn_grad(optim->parameters[i]) == NULL)
            continue;
        /* A launch has one bias correction, so its parameters must be at the same step. */
        if (group.count == slots_on(group.bucket->device) || (group.count > 0 && optim->steps[i] + 1 != group.step))
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
