/* dist/distributed.c - a module whose gradients are averaged over the ranks of a group. */
#include <koine/distributed.h>
#include <string.h>

#include "base/hash.h"
#include "dist/distributed.h"

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

static kn_status compare_layouts(kn_group *group, kn_module *module)
{
    kn_hash hash = kn_hash_text("layout");
    int64_t number;
    KN_TRY(kn_module_each(module, add_to_hash, &hash));
    memcpy(&number, &hash.high, sizeof number);
    return kn_group_compare(group, number, "names, shapes or dtypes of the module's tensors");
}

static kn_status compare_values(kn_group *group, kn_parameter_list list, const char *what)
{
    int64_t number = 0;
    KN_TRY(kn_fingerprint(list.tensors, list.count, &number));
    return kn_group_compare(group, number, what);
}

static kn_status broadcast_list(kn_group *group, kn_parameter_list list, int root)
{
    return kn_group_broadcast_list(group, list.tensors, list.count, root);
}

/* --- the module --------------------------------------------------------------------------------------------------- */

kn_status kn_distributed_prepare(kn_distributed *self, kn_module *wrapped)
{
    if (self->params.check_every > 0 && !self->joins && ++self->passes % self->params.check_every == 0)
        KN_TRY(compare_values(self->group, kn_module_parameters(wrapped), "the parameters"));
    return self->params.broadcast_buffers
               ? broadcast_list(self->group, kn_module_buffers(wrapped), self->joins ? self->last_active : 0)
               : KN_OK;
}

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_distributed *self = module->self;
    const kn_signature signature = kn_module_signature(module->wrapped);
    if (module->training && kn_grad_enabled() && kn_reducer_syncs(self->reducer)) {
        int active;
        if (self->joins)
            KN_TRY(kn_distributed_announce(self, true, &active));
        KN_TRY(kn_distributed_prepare(self, module->wrapped));
    }
    return kn_forward_list(module->wrapped, inputs, signature.inputs, outputs, signature.outputs, KN_ACTIVATION_NONE);
}

static kn_signature signature_of(const kn_module *module) { return kn_module_signature(module->wrapped); }

static void describe(kn_module *module, kn_text *text)
{
    const kn_distributed *self = module->self;
    kn_text_format(text, "rank %d of %d over %s", kn_group_rank(self->group), kn_group_size(self->group),
                   kn_group_backend(self->group));
}

static void destroy(void *user)
{
    kn_distributed *self = user;
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

static kn_status check_params(const kn_distributed_params *params, const kn_group *group)
{
    if (params->compress != KN_DTYPE_DEFAULT && params->compress != KN_F16 && params->compress != KN_BF16)
        return kn_fail(KN_ERR_DTYPE, "compress is %s; it may be float16 or bfloat16", kn_dtype_name(params->compress));
    if (params->check_every < 0)
        return kn_fail(KN_ERR_ARGUMENT, "check_every is %d; it may not be negative", params->check_every);
    if (params->parts < 0 || params->parts % kn_group_size(group) != 0)
        return kn_fail(KN_ERR_ARGUMENT, "parts is %d; it must be a multiple of the number of ranks, %d", params->parts,
                       kn_group_size(group));
    return params->parts && params->compress
               ? kn_fail(KN_ERR_ARGUMENT, "parts cannot be used with compress: the sums so far would be rounded")
               : KN_OK;
}

static kn_status connect(kn_distributed *self, kn_module *module)
{
    kn_device *device = NULL;
    KN_TRY(kn_module_each(module, check_device, &device));
    KN_TRY(compare_layouts(self->group, module));
    const kn_parameter_list parameters = kn_module_parameters(module);
    KN_TRY(broadcast_list(self->group, parameters, 0));
    KN_TRY(broadcast_list(self->group, kn_module_buffers(module), 0));
    return kn_reducer_new(&self->reducer, parameters.tensors, parameters.count, self->group, &self->params);
}

static kn_module *wrap(kn_module *module, kn_distributed *self)
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
    kn_distributed self = {.group = group, .params = *params};
    kn_status status = !module || !group ? kn_fail_argument_null("distributed", module ? "group" : "module") : KN_OK;
    if (status == KN_OK)
        status = check_params(params, group);
    if (status == KN_OK)
        status = connect(&self, module);
    if (status != KN_OK && module && group)
        kn_error_prefix("distributed");
    kn_module *wrapper = status == KN_OK ? wrap(module, &self) : NULL;
    if (wrapper)
        return wrapper;
    kn_error_make_sticky();
    kn_reducer_free(self.reducer);
    kn_module_discard(&module, 0, 1);
    return NULL;
}

/* --- without averaging, and comparing ----------------------------------------------------------------------------- */

static kn_distributed *find(kn_module *module) { return module && module->destroy == destroy ? module->self : NULL; }

kn_distributed *kn_distributed_of(const char *function, kn_module *module)
{
    kn_distributed *self = find(module);
    if (!self && !module)
        kn_fail_argument_null(function, "module");
    else if (!self)
        kn_fail(KN_ERR_ARGUMENT, "%s: the module was not made by kn_nn_distributed", function);
    return self;
}

kn_group *kn_distributed_group(const kn_module *module)
{
    return module && module->destroy == destroy ? ((const kn_distributed *)module->self)->group : NULL;
}

kn_no_sync_guard kn_distributed_enter_no_sync(kn_module *module)
{
    kn_distributed *self = find(module);
    return (kn_no_sync_guard){module, self ? kn_reducer_set_sync(self->reducer, false) : false};
}

void kn_distributed_leave_no_sync(kn_no_sync_guard *guard)
{
    kn_distributed *self = guard ? find(guard->module) : NULL;
    if (self)
        kn_reducer_set_sync(self->reducer, guard->before);
}

kn_status kn_distributed_check(kn_module *module)
{
    const kn_distributed *self = kn_distributed_of("distributed_check", module);
    if (!self)
        return kn_error_status();
    KN_TRY(compare_values(self->group, kn_module_parameters(module), "the parameters"));
    return compare_values(self->group, kn_module_buffers(module), "the buffers");
}
