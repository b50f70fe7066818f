/* optim/fused.c - the optimizer step: bucket by bucket, so that a launch's parameters share their flat states. Steps
 * that may be skipped on the device are counted there. */
#include <koine/autograd.h>

#include "base/error.h"
#include "base/memory.h"
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

/* The parameters of a bucket that have a gradient. */
static kn_status step_bucket(kn_optim *optim, int b, kn_optim_batch *batch)
{
    const kn_optim_bucket *bucket = &optim->buckets[b];
    const kn_optim_group *group = &optim->groups[bucket->group];
    batch->hyper = group->hyper;
    batch->group = bucket->group;
    batch->num_states = group->num_states;
    batch->has_master = kn_optim_has_master(optim, bucket->dtype);
    for (int i = group->first; i < group->first + group->count; i++) {
        const kn_optim_place *place = &optim->places[i];
        const kn_optim_slot given = {.parameter = optim->parameters[i],
                                     .gradient = kn_grad(optim->parameters[i]),
                                     .index = i,
                                     .start = place->starts[0],
                                     .step = optim->device_steps,
                                     .step_at = i};
        if (place->bucket != b || !given.gradient || !kn_optim_owns(optim, i))
            continue;
        kn_optim_course course = optim->courses[i];
        if (course.step++ == 0 && optim->algorithm->start)
            optim->algorithm->start(group->hyper, course.carried);
        KN_TRY(kn_optim_add(batch, &given, bucket->states, &course));
        if (optim->shard)
            KN_TRY(optim->shard->stepped(optim, batch->given[0].index));
    }
    return kn_optim_flush(batch, KN_OK);
}

static kn_status check_all(const kn_optim *optim)
{
    for (int i = 0; i < optim->count; i++) {
        if (kn_device_is_host(optim->parameters[i]->storage->device))
            return kn_fail(KN_ERR_DEVICE,
                           "%s: parameter %d is on the host; move the module to a device with kn_module_to",
                           optim->algorithm->name, i);
        KN_TRY(check_gradient(optim, i));
    }
    return KN_OK;
}

static kn_status step_all(kn_optim *optim, kn_optim_batch *batch)
{
    KN_TRY(kn_optim_lay_out(optim));
    if (optim->shard)
        KN_TRY(optim->shard->begin(optim));
    if (batch->found_inf || optim->device_steps)
        KN_TRY(kn_optim_count_on_device(optim, batch->found_inf));
    for (int b = 0; b < optim->num_buckets; b++)
        KN_TRY(step_bucket(optim, b, batch));
    return KN_OK;
}

kn_status kn_optim_step_scaled(kn_optim *optim, const kn_tensor *grad_scale, const kn_tensor *found_inf)
{
    KN_TRY(check_all(optim));
    kn_optim_batch batch = {.algorithm = optim->algorithm,
                            .optim = optim,
                            .grad_scale = grad_scale,
                            .found_inf = found_inf,
                            .work = {.is_f64 = optim->parameters[0]->dtype == KN_F64}};
    const kn_span span = kn_optim_begin(optim->algorithm->step, optim->parameters[0]);
    const kn_status status = kn_optim_end(&batch, step_all(optim, &batch), span);
    return optim->shard ? optim->shard->finish(optim, status) : status;
}

kn_status kn_optim_step(kn_optim *optim)
{
    if (optim == NULL)
        return kn_fail_argument_null("optim_step", "optim");
    if (optim->algorithm->whole)
        return kn_fail(KN_ERR_STATE, "%s: it evaluates the loss itself: step it with kn_optim_step_closure",
                       optim->algorithm->name);
    return kn_optim_step_scaled(optim, NULL, NULL);
}

kn_tensor *kn_optim_call_closure(const kn_optim *optim, kn_optim_closure closure, void *user)
{
    const bool before = kn_set_grad_enabled(true);
    kn_tensor *loss = closure(user);
    kn_set_grad_enabled(before);
    if (loss || kn_error_status() != KN_OK)
        return loss;
    return kn_fail_null(KN_ERR_STATE, "%s: the closure returned NULL without an error", optim->algorithm->name);
}

kn_tensor *kn_optim_step_closure(kn_optim *optim, kn_optim_closure closure, void *user)
{
    if (!optim || !closure) {
        kn_fail_argument_null("optim_step_closure", optim ? "closure" : "optim");
        return kn_error_make_sticky();
    }
    if (optim->algorithm->whole)
        return optim->algorithm->whole->step(optim, closure, user);
    kn_tensor *loss = kn_optim_call_closure(optim, closure, user);
    if (!loss || kn_optim_step(optim) == KN_OK)
        return loss;
    return kn_error_make_sticky();
}

/* --- steps counted on the device ---------------------------------------------------------------------------------- */

static kn_status start_counting(kn_optim *optim)
{
    const int64_t count = optim->count;
    float *steps = kn_calloc((size_t)count, sizeof *steps);
    kn_status status = steps ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; steps && i < count; i++)
        steps[i] = (float)optim->courses[i].step;
    if (status == KN_OK)
        status = kn_tensor_new(&optim->device_steps, KN_F32, 1, &count, optim->parameters[0]->storage->device);
    if (status == KN_OK)
        status = kn_write(optim->device_steps, steps, (size_t)count * sizeof *steps);
    kn_free(steps);
    return status;
}

/* Counts for the parameters first .. end - 1. */
static kn_status count_run(const kn_optim *optim, const kn_tensor *found_inf, int first, int end)
{
    if (first == end)
        return KN_OK;
    return kn_run(kn_tensor_stream(optim->device_steps), .source = "optim/scaler.cl", .options = "-DT=float",
                  .kernel = "count_steps", .dims = 1, .global = {(size_t)(end - first)},
                  KN_ARGS(kn_arg_tensor(optim->device_steps),
                          kn_arg_tensor(found_inf ? found_inf : optim->device_steps), kn_arg_i64(first),
                          kn_arg_i64(end), kn_arg_i32(found_inf != NULL)));
}

kn_status kn_optim_count_on_device(kn_optim *optim, const kn_tensor *found_inf)
{
    if (!optim->device_steps)
        KN_TRY(start_counting(optim));
    for (int i = 0; i < optim->count;) { /* in runs of parameters that are stepped */
        int end = i;
        while (end < optim->count && kn_grad(optim->parameters[end]) && kn_optim_owns(optim, end))
            end++;
        KN_TRY(count_run(optim, found_inf, i, end));
        i = end + 1;
    }
    return KN_OK;
}

kn_status kn_optim_fetch_steps(kn_optim *optim)
{
    if (!optim->device_steps)
        return KN_OK;
    float *steps = kn_calloc((size_t)optim->count, sizeof *steps);
    kn_status status = steps ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = kn_read(optim->device_steps, steps, (size_t)optim->count * sizeof *steps);
    for (int i = 0; status == KN_OK && i < optim->count; i++)
        optim->courses[i].step = (int64_t)steps[i];
    kn_free(steps);
    return status;
}
