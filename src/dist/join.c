/* dist/join.c - ranks with fewer batches than others: torch.distributed.algorithms.Join. Before each pass every rank
 * tells whether it has a batch; one that has none answers the others' collectives with zeros. */

#include "dist/distributed.h"

kn_join_params kn_join_params_init(void) { return (kn_join_params){KN_JOIN_DEFAULTS}; }

/* A flag for each rank. */
static kn_status gather_flags(kn_group *group, bool has_batch, kn_tensor *flags)
{
    int32_t *values = kn_data(flags);
    if (!values)
        return kn_error_status();
    for (int r = 0; r < kn_group_size(group); r++)
        values[r] = has_batch && r == kn_group_rank(group);
    return kn_group_all_reduce(group, flags);
}

static kn_status take_flags(kn_distributed *self, const int32_t *flags, int *active)
{
    const int size = kn_group_size(self->group);
    int first_without = -1;
    *active = 0;
    for (int r = 0; r < size; r++) {
        *active += flags[r];
        if (flags[r])
            self->last_active = r;
        else if (first_without < 0)
            first_without = r;
    }
    if (self->join.throw_on_early_termination && *active > 0 && *active < size) {
        self->joins = false;
        return kn_fail(KN_ERR_STATE, "rank %d (%s) has no more batches, but others have", first_without,
                       kn_group_host(self->group, first_without));
    }
    kn_reducer_set_divisor(self->reducer, self->join.divide_by_initial_world_size || *active == 0 ? size : *active);
    return KN_OK;
}

kn_status kn_distributed_announce(kn_distributed *self, bool has_batch, int *active)
{
    KN_SCOPE;
    kn_tensor *flags = kn_empty(KN_SHAPE(kn_group_size(self->group)), .dtype = KN_I32, .device = kn_device_host());
    if (!flags)
        return kn_error_status();
    KN_TRY(gather_flags(self->group, has_batch, flags));
    return take_flags(self, kn_data(flags), active);
}

kn_status kn_distributed_join_begin_with(kn_module *module, const kn_join_params *params)
{
    const kn_join_params defaults = kn_join_params_init();
    kn_distributed *self = kn_distributed_of("distributed_join_begin", module);
    if (!self)
        return kn_error_status();
    if (self->joins)
        return kn_fail(KN_ERR_STATE, "distributed_join_begin: it has been called without distributed_join_end");
    if (self->params.parts)
        return kn_fail(KN_ERR_STATE, "distributed_join_begin: with parts every rank has the same number of batches");
    self->joins = true;
    self->join = params ? *params : defaults;
    self->last_active = kn_group_size(self->group) - 1;
    return KN_OK;
}

/* One pass of the others. */
static kn_status answer(kn_distributed *self, kn_module *wrapped)
{
    KN_TRY(kn_distributed_prepare(self, wrapped));
    if (self->join.optim)
        kn_optim_zero_grad(self->join.optim);
    KN_TRY(kn_reducer_answer(self->reducer));
    return self->join.optim ? kn_optim_step(self->join.optim) : KN_OK;
}

static kn_status answer_all(kn_distributed *self, kn_module *wrapped)
{
    int active = 0;
    KN_TRY(kn_distributed_announce(self, false, &active));
    while (active > 0) {
        KN_TRY(answer(self, wrapped));
        KN_TRY(kn_distributed_announce(self, false, &active));
    }
    const kn_parameter_list parameters = kn_module_parameters(wrapped), buffers = kn_module_buffers(wrapped);
    KN_TRY(kn_group_broadcast_list(self->group, parameters.tensors, parameters.count, self->last_active));
    return kn_group_broadcast_list(self->group, buffers.tensors, buffers.count, self->last_active);
}

kn_status kn_distributed_join_end(kn_module *module)
{
    kn_distributed *self = kn_distributed_of("distributed_join_end", module);
    if (!self)
        return kn_error_status();
    if (!self->joins)
        return kn_fail(KN_ERR_STATE, "distributed_join_end: there is no distributed_join_begin, or it has failed");
    kn_status status = answer_all(self, module->wrapped);
    if (status != KN_OK)
        kn_error_prefix("distributed_join_end");
    self->joins = false;
    kn_reducer_set_divisor(self->reducer, kn_group_size(self->group));
    return status;
}
