/* dist/distributed.c - a module whose gradients are averaged over the ranks of a group. */
#include <koine/distributed.h>
#include <string.h>

#include "base/hash.h"
#include "dist/reducer.h"
#include "nn/module.h"

typedef struct distributed {
    kn_group *group;
    kn_reducer *reducer;
    bool broadcasts_buffers;
} distributed;

/* --- the same module on all ranks --------------------------------------------------------------------------------- */

static kn_status add_to_hash(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    kn_hash *hash = user;
    char text[KN_DESCRIBE];
    (void)is_buffer;
    kn_tensor_describe(text, sizeof text, tensor);
    char *device = strstr(text, " on "); /* may differ from rank to rank */
    if (device)
        *device = '\0';
    *hash = kn_hash_combine(*hash, kn_hash_combine(kn_hash_text(name), kn_hash_text(text)));
    return KN_OK;
}

static kn_status add_values_to_hash(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    kn_hash *hash = user;
    (void)name, (void)is_buffer;
    const size_t bytes = (size_t)kn_numel(tensor) * kn_dtype_size(tensor->dtype);
    void *values = kn_malloc(bytes);
    kn_status status = values ? kn_read(tensor, values, bytes) : KN_ERR_MEMORY;
    if (status == KN_OK)
        *hash = kn_hash_combine(*hash, kn_hash_bytes(values, bytes));
    kn_free(values);
    return status;
}

/* Compares a hash over the module's tensors with the other ranks': KN_ERR_STATE for the first that differs. */
static kn_status compare(kn_group *group, kn_module *module,
                         kn_status (*add)(const char *name, kn_tensor *tensor, bool is_buffer, void *user),
                         const char *what)
{
    kn_hash hash = kn_hash_text(what);
    KN_TRY(kn_module_each(module, add, &hash));
    const int size = kn_group_size(group);
    KN_SCOPE;
    kn_tensor *mine = kn_empty(KN_SHAPE(1), .dtype = KN_I64, .device = kn_device_host());
    kn_tensor **all = kn_calloc((size_t)size, sizeof *all);
    if (!mine || !all) {
        kn_free(all);
        return KN_ERR_MEMORY;
    }
    memcpy(kn_data(mine), &hash.high, sizeof hash.high);
    for (int r = 0; r < size; r++)
        all[r] = kn_empty(KN_SHAPE(1), .dtype = KN_I64, .device = kn_device_host());
    kn_status status = kn_group_all_gather(group, all, mine);
    for (int r = 1; r < size && status == KN_OK; r++)
        if (*(int64_t *)kn_data(all[r]) != *(int64_t *)kn_data(all[0]))
            status = kn_fail(KN_ERR_STATE, "%s of rank %d (%s) differ from those of rank 0", what, r,
                             kn_group_host(group, r));
    kn_free(all);
    return status;
}

/* Rank 0's values on all ranks, in few messages. */
static kn_status broadcast(kn_group *group, kn_tensor *const *tensors, int count)
{
    kn_packing layout;
    kn_status status = kn_packing_make(&layout, tensors, count, 0);
    for (int b = 0; b < layout.num_buffers && status == KN_OK; b++) {
        kn_tensor *packed = NULL;
        kn_tensor **parts = kn_calloc((size_t)count, sizeof *parts);
        status = parts ? kn_packing_pack(&layout, b, tensors, kn_device_of(tensors[0]), &packed) : KN_ERR_MEMORY;
        if (status == KN_OK)
            status = kn_group_broadcast(group, packed, 0);
        if (status == KN_OK)
            status = kn_packing_unpack(&layout, b, packed, tensors, parts);
        for (int t = 0; t < count && status == KN_OK; t++)
            if (parts[t] && parts[t]->storage != tensors[t]->storage)
                status = kn_tensor_copy(tensors[t], parts[t]);
        for (int t = 0; parts && t < count; t++)
            kn_release(parts[t]);
        kn_free(parts);
        kn_release(packed);
    }
    kn_packing_free(&layout);
    return status;
}

static kn_status broadcast_list(kn_group *group, kn_parameter_list list)
{
    KN_NO_GRAD;
    return list.count > 0 ? broadcast(group, list.tensors, list.count) : KN_OK;
}

/* --- the module --------------------------------------------------------------------------------------------------- */

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const distributed *self = module->self;
    const kn_signature signature = kn_module_signature(module->wrapped);
    if (module->training && self->broadcasts_buffers && kn_grad_enabled() && kn_reducer_syncs(self->reducer))
        KN_TRY(broadcast_list(self->group, kn_module_buffers(module->wrapped)));
    return kn_forward_list(module->wrapped, inputs, signature.inputs, outputs, signature.outputs, KN_ACTIVATION_NONE);
}

static kn_signature signature_of(const kn_module *module) { return kn_module_signature(module->wrapped); }

static void describe(kn_module *module, kn_text *text)
{
    const distributed *self = module->self;
    kn_text_format(text, "rank %d of %d over %s", kn_group_rank(self->group), kn_group_size(self->group),
                   kn_group_backend(self->group));
}

static void destroy(void *user)
{
    distributed *self = user;
    kn_reducer_free(self->reducer);
}

kn_distributed_params kn_distributed_params_init(void) { return (kn_distributed_params){KN_DISTRIBUTED_DEFAULTS}; }

static kn_status check_device(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    kn_device **device = user;
    (void)is_buffer;
    if (!*device)
        *device = kn_device_of(tensor);
    return kn_device_of(tensor) == *device && !kn_device_is_host(*device)
               ? KN_OK
               : kn_fail(KN_ERR_DEVICE,
                         "\"%s\" is on %s; all parameters and buffers must be on one device: move them "
                         "with kn_module_to",
                         name, kn_device_string(kn_device_of(tensor)));
}

static kn_status connect(distributed *self, kn_module *module, const kn_distributed_params *params)
{
    kn_device *device = NULL;
    KN_TRY(kn_module_each(module, check_device, &device));
    KN_TRY(compare(self->group, module, add_to_hash, "names, shapes or dtypes of the module's tensors"));
    const kn_parameter_list parameters = kn_module_parameters(module);
    KN_TRY(broadcast_list(self->group, parameters));
    KN_TRY(broadcast_list(self->group, kn_module_buffers(module)));
    return kn_reducer_new(&self->reducer, parameters.tensors, parameters.count, self->group, params);
}

static kn_module *wrap(kn_module *module, distributed *self)
{
    static const kn_module_kind kind = {
        .forward_many = forward, .signature_of = signature_of, .describe = describe, .is_layer = true};
    kn_module *wrapper = kn_layer_new_kind("DistributedDataParallel", &kind, self, sizeof *self);
    if (!wrapper)
        return NULL;
    wrapper->destroy = destroy;
    wrapper->wrapped = kn_module_register_module(wrapper, "module", module);
    return wrapper->wrapped ? wrapper : kn_layer_failed(wrapper);
}

kn_module *kn_nn_distributed_with(kn_module *module, kn_group *group, const kn_distributed_params *params)
{
    const kn_distributed_params defaults = kn_distributed_params_init();
    params = params ? params : &defaults;
    distributed self = {.group = group, .broadcasts_buffers = params->broadcast_buffers};
    kn_status status = !module || !group ? kn_fail_argument_null("distributed", module ? "group" : "module") : KN_OK;
    if (status == KN_OK && (status = connect(&self, module, params)) != KN_OK)
        kn_error_prefix("distributed");
    kn_module *wrapper = status == KN_OK ? wrap(module, &self) : NULL;
    if (wrapper)
        return wrapper;
    kn_error_make_sticky();
    kn_reducer_free(self.reducer);
    if (module && !module->owned)
        kn_module_free(module); /* ownership passes on failure too */
    return NULL;
}

/* --- without averaging, and comparing ----------------------------------------------------------------------------- */

static distributed *distributed_of(kn_module *module)
{
    return module && module->destroy == destroy ? module->self : NULL;
}

kn_group *kn_distributed_group(const kn_module *module)
{
    return module && module->destroy == destroy ? ((const distributed *)module->self)->group : NULL;
}

kn_no_sync_guard kn_distributed_enter_no_sync(kn_module *module)
{
    distributed *self = distributed_of(module);
    return (kn_no_sync_guard){module, self ? kn_reducer_set_sync(self->reducer, false) : false};
}

void kn_distributed_leave_no_sync(kn_no_sync_guard *guard)
{
    distributed *self = guard ? distributed_of(guard->module) : NULL;
    if (self)
        kn_reducer_set_sync(self->reducer, guard->before);
}

kn_status kn_distributed_check(kn_module *module)
{
    distributed *self = distributed_of(module);
    if (!self)
        return module ? kn_fail(KN_ERR_ARGUMENT, "distributed_check: the module was not made by kn_nn_distributed")
                      : kn_fail_argument_null("distributed_check", "module");
    return compare(self->group, module, add_values_to_hash, "the values");
}
