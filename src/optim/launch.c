/* optim/launch.c - batches of parameters, those of an optimizer or of the caller's lists, with one launch each. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "loops/work_size.h"
#include "optim/optim.h"

#define FEW_SLOTS 8
#define GROUP_SIZE 256 /* work-group size on other devices; a work-item updates four elements */

/* How many parameters fit into a launch. */
static int num_slots(const kn_optim_batch *batch)
{
    const bool has_few = !batch->flat || (batch->optim && batch->optim->device_steps);
    return has_few || kn_device_limits(batch->device)->is_cpu ? FEW_SLOTS : KN_OPTIM_SLOTS;
}

/* Unused slots get the first slot's buffers and length 0. */
static int slot_arguments(const kn_optim_batch *batch, kn_arg *args)
{
    int n = 0;
    for (int i = 0; i < num_slots(batch); i++) {
        const kn_optim_slot *slot = &batch->slots[i < batch->count ? i : 0];
        args[n++] = kn_arg_tensor(slot->parameter);
        args[n++] = kn_arg_tensor(slot->gradient);
        args[n++] = kn_arg_i64(i < batch->count ? kn_numel(slot->parameter) : 0);
        if (batch->flat)
            args[n++] = kn_arg_i64(slot->start);
        for (int s = 0; !batch->flat && s < batch->num_states; s++)
            args[n++] = kn_arg_tensor(slot->states[s]);
        if (slot->step)
            args[n++] = kn_arg_buffer(slot->step->storage->buffer,
                                      (slot->step->offset + slot->step_at) * (int64_t)sizeof(float));
    }
    return n;
}

static kn_launch_params work_on_cpu(const kn_optim_batch *batch, kn_slot_ends *ends)
{
    int64_t longest = 0;
    for (int i = 0; i < batch->count; i++) {
        int64_t elements = kn_numel(batch->slots[i].parameter);
        longest = elements > longest ? elements : longest;
    }
    size_t items = kn_streaming_items(kn_device_limits(batch->device), longest);
    for (int i = 0; i < KN_OPTIM_SLOTS; i++)
        ends->end[i] = (uint32_t)items * (uint32_t)(i + 1);
    return (kn_launch_params){.dims = 2, .global = {items, (size_t)batch->count}};
}

/* On other devices the work-groups of all slots are numbered consecutively. */
static kn_launch_params work_in_line(const kn_optim_batch *batch, kn_slot_ends *ends)
{
    const kn_limits *limits = kn_device_limits(batch->device);
    size_t local = GROUP_SIZE;
    int64_t groups = 0;
    while (local > limits->max_work_group_size)
        local /= 2;
    for (int i = 0; i < KN_OPTIM_SLOTS; i++) {
        const int64_t elements = i < batch->count ? kn_numel(batch->slots[i].parameter) : 0;
        groups += (elements + 4 * (int64_t)local - 1) / (4 * (int64_t)local);
        ends->end[i] = (uint32_t)groups;
    }
    return (kn_launch_params){.dims = 1, .global = {(size_t)groups * local}, .local = {local}};
}

/* Whether vectors of four elements are aligned in all slots; flat states start at multiples of 16. */
static bool are_aligned(const kn_optim_batch *batch)
{
    for (int i = 0; i < batch->count; i++) {
        const kn_optim_slot *slot = &batch->slots[i];
        int64_t offsets = slot->parameter->offset | slot->gradient->offset;
        for (int s = 0; !batch->flat && s < batch->num_states; s++)
            offsets |= slot->states[s]->offset;
        if (offsets % 4 != 0)
            return false;
    }
    return true;
}

/* The step's scalars: their values now, or in a graph a variable that each replay of an optimizer's step updates. With
 * steps counted on the device, the kernel computes them from a slot's own. */
kn_status kn_optim_scalar_arguments(kn_optim_batch *batch, kn_arg *args, int *count)
{
    double scalars[KN_OPTIM_MAX_SCALARS];
    const size_t size = kn_dtype_size(kn_compute_type(batch->dtype));
    const void *variable = NULL;
    const bool has_own = batch->slots[0].step && batch->algorithm->counts_on_device;
    kn_optim_course course = batch->course;
    course.step = has_own ? 0 : course.step;
    *count = batch->algorithm->scalars(batch->hyper, &course, scalars);
    if (batch->optim && kn_stream_is_capturing(batch->stream) && !(variable = kn_optim_record(batch)))
        return kn_capture_fail(batch->stream, kn_error_status());
    for (int i = 0; i < *count; i++)
        args[i] = variable ? kn_arg_variable(variable, (size_t)i * size, size) : kn_arg_real(batch->dtype, scalars[i]);
    course.step = batch->course.step;
    batch->course = course;
    return KN_OK;
}

static void append(char *options, size_t size, const char *more)
{
    const size_t length = strlen(options);
    snprintf(options + length, size - length, "%s", more);
}

static void build_options(const kn_optim_batch *batch, char *options, size_t size)
{
    snprintf(options, size, "%s", kn_dtype_options(kn_compute_type(batch->dtype)));
    for (int i = 0; batch->algorithm->hyper[i].name; i++)
        if (batch->algorithm->hyper[i].define && batch->hyper[i] != 0)
            append(options, size, batch->algorithm->hyper[i].define);
    if (batch->dtype == KN_F16 || batch->dtype == KN_BF16)
        append(options, size, batch->dtype == KN_F16 ? " -DKN_HALF" : " -DKN_BFLOAT");
    append(options, size, batch->has_master ? " -DKN_MASTER" : "");
    append(options, size, batch->slots[0].step ? " -DKN_STEPS" : "");
    append(options, size, batch->options ? batch->options : "");
    append(options, size, batch->grad_scale || batch->found_inf ? " -DSCALED" : "");
}

/* The two sums of each slot that the step needs: by a launch like the step's, whose arguments have room for the sums at
 * `place`. `totals` is released by the caller. */
static kn_status measure(const kn_optim_batch *batch, kn_launch_params params, const kn_slot_ends *ends, kn_arg *place,
                         kn_tensor **totals)
{
    kn_tensor *parts = NULL;
    const kn_dtype dtype = kn_compute_type(batch->dtype);
    const int64_t length = 2 * (int64_t)ends->end[batch->count - 1], sums = 2 * (int64_t)batch->count;
    const size_t local = params.dims == 1 ? params.local[0] : 1; /* as the step's; on CPU devices one work-item */
    KN_TRY(kn_tensor_new(totals, dtype, 1, &sums, batch->device));
    KN_TRY(kn_tensor_new(&parts, dtype, 1, &length, batch->device));
    *place = kn_arg_tensor(parts);
    params.kernel = batch->algorithm->measure;
    kn_status status = kn_launch(batch->stream, &params);
    if (status == KN_OK)
        status = kn_run(batch->stream, .source = params.source, .options = params.options, .kernel = "measure_totals",
                        .operation = params.operation, .dims = 1, .global = {(size_t)sums * local}, .local = {local},
                        KN_ARGS(kn_arg_tensor(parts), kn_arg_tensor(*totals), kn_arg_struct(ends, sizeof *ends)));
    kn_release(parts);
    *place = kn_arg_tensor(*totals);
    return status;
}

static kn_status launch(kn_optim_batch *batch)
{
    const bool is_cpu = kn_device_limits(batch->device)->is_cpu;
    kn_arg args[KN_OPTIM_SLOTS * (4 + KN_OPTIM_OWN_STATES) + 6 + KN_OPTIM_MAX_STATES + KN_OPTIM_MAX_SCALARS];
    kn_slot_ends ends;
    kn_launch_params params = is_cpu ? work_on_cpu(batch, &ends) : work_in_line(batch, &ends);
    int n = slot_arguments(batch, args), num_scalars;
    if (!is_cpu) {
        args[n++] = kn_arg_struct(&ends, sizeof ends);
        args[n++] = kn_arg_i32(are_aligned(batch));
    }
    for (int s = 0; batch->flat && s < batch->num_states + batch->has_master; s++)
        args[n++] = kn_arg_tensor(batch->flat[s]);
    if (batch->grad_scale || batch->found_inf) { /* a missing tensor may be any buffer: the kernel does not read it */
        args[n++] = kn_arg_tensor(batch->grad_scale ? batch->grad_scale : batch->found_inf);
        args[n++] = kn_arg_tensor(batch->found_inf ? batch->found_inf : batch->grad_scale);
        args[n++] = kn_arg_i32((batch->grad_scale != NULL) | (batch->found_inf != NULL) << 1);
    }
    kn_arg *sums = &args[n];
    n += batch->algorithm->measure != NULL;
    KN_TRY(kn_optim_scalar_arguments(batch, args + n, &num_scalars));
    n += num_scalars;
    char options[200];
    build_options(batch, options, sizeof options);

    params.source = batch->algorithm->source;
    params.options = options;
    params.kernel = batch->algorithm->kernel;
    params.operation = batch->algorithm->name;
    params.args = args;
    params.num_args = n;
    kn_tensor *totals = NULL;
    kn_status status = KN_OK;
    if (batch->algorithm->measure && params.global[0] > 0)
        status = measure(batch, params, &ends, sums, &totals);
    if (status == KN_OK)
        status = kn_launch(batch->stream, &params);
    kn_release(totals);
    return status;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static kn_status write_back(kn_tensor *tensor, const kn_tensor *changed)
{
    kn_tensor_bump_version(tensor);
    return tensor == changed ? KN_OK : kn_tensor_copy(tensor, changed);
}

/* Kernels need contiguous memory: the slots of tensors that are not contiguous hold copies. */
static kn_status write_slot_back(const kn_optim_batch *batch, const kn_optim_slot *given, const kn_optim_slot *slot)
{
    KN_TRY(write_back(given->parameter, slot->parameter));
    if (batch->grad_scale)
        KN_TRY(write_back(given->gradient, slot->gradient));
    for (int s = 0; s < batch->num_states && !batch->flat; s++)
        KN_TRY(write_back(given->states[s], slot->states[s]));
    if (batch->optim && !kn_stream_is_capturing(batch->stream)) /* else each replay counts */
        batch->optim->courses[given->index] = batch->course;
    return KN_OK;
}

/* Unless there was a failure, launches what was added; empties the batch. */
kn_status kn_optim_flush(kn_optim_batch *batch, kn_status status)
{
    if (status == KN_OK && batch->count > 0)
        status = batch->algorithm->compose ? kn_optim_compose(batch) : launch(batch);
    for (int i = 0; i < batch->count; i++) {
        kn_optim_slot *slot = &batch->slots[i];
        if (status == KN_OK)
            status = write_slot_back(batch, &batch->given[i], slot);
        kn_release(slot->parameter);
        kn_release(slot->gradient);
        for (int s = 0; s < KN_OPTIM_OWN_STATES; s++)
            kn_release(slot->states[s]);
    }
    batch->count = 0;
    return status;
}

kn_span kn_optim_begin(const char *name, const kn_tensor *parameter)
{
    return kn_is_watched()
               ? kn_span_begin(&(kn_span_info){.kind = KN_SPAN_OP, .name = name, .device = parameter->storage->device})
               : KN_NO_SPAN;
}

/* A launch has one set of scalars, so its parameters must be at the same step. */
static bool fits(const kn_optim_batch *batch, const kn_tensor *parameter, const kn_optim_course *course)
{
    bool same = batch->count < num_slots(batch) && batch->dtype == parameter->dtype &&
                batch->device == parameter->storage->device && batch->course.step == course->step;
    for (int i = 0; i < KN_OPTIM_MAX_CARRIED && same; i++)
        same = batch->course.carried[i] == course->carried[i];
    return same;
}

/* Reads parameter, gradient and states; writes parameter and states. */
static void count_work(kn_optim_batch *batch, const kn_tensor *parameter)
{
    const double elements = (double)kn_numel(parameter);
    double flops = batch->algorithm->flops;
    for (int i = 0; batch->algorithm->hyper[i].name; i++)
        flops += batch->hyper[i] != 0 ? batch->algorithm->hyper[i].flops : 0;
    batch->work.flops += elements * flops;
    batch->work.bytes += elements * (3 * (double)kn_tensor_element_size(parameter) +
                                     2 * batch->num_states * (double)kn_dtype_size(kn_compute_type(parameter->dtype)));
}

kn_status kn_optim_add(kn_optim_batch *batch, const kn_optim_slot *given, kn_tensor *const *flat,
                       const kn_optim_course *course)
{
    const kn_tensor *parameter = given->parameter;
    if (batch->count > 0 && (batch->flat != flat || !fits(batch, parameter, course)))
        KN_TRY(kn_optim_flush(batch, KN_OK));
    if (batch->count == 0)
        batch->course = *course;
    batch->device = parameter->storage->device;
    batch->dtype = parameter->dtype;
    batch->stream = kn_tensor_stream(parameter);
    batch->flat = flat;
    if (!batch->stream)
        return kn_error_status();
    if (kn_is_watched())
        count_work(batch, parameter);
    kn_optim_slot *slot = &batch->slots[batch->count];
    batch->given[batch->count++] = *given;
    *slot = (kn_optim_slot){.start = given->start, .step = given->step, .step_at = given->step_at};
    KN_TRY(kn_tensor_contiguous(&slot->parameter, given->parameter));
    KN_TRY(kn_tensor_contiguous(&slot->gradient, given->gradient));
    for (int s = 0; s < batch->num_states && !flat; s++)
        KN_TRY(kn_tensor_contiguous(&slot->states[s], given->states[s]));
    return KN_OK;
}

kn_status kn_optim_end(kn_optim_batch *batch, kn_status status, kn_span span)
{
    status = kn_optim_flush(batch, status);
    if (kn_span_is_open(span))
        kn_span_end(span, &batch->work);
    return status;
}
