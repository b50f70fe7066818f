/* dist/data_parallel.c - a module applied on several devices at once, each to a part of the batch. */
#include <string.h>

#include "dist/replicate.h"

typedef struct data_parallel {
    kn_device *devices[KN_MAX_DEVICES];
    int num_devices;
    kn_device *output_device;
    int dim;
} data_parallel;

/* --- forward ---------------------------------------------------------------------------------------------------- */

static kn_status check_input(const data_parallel *self, const kn_tensor *x, int *dim)
{
    kn_device *device = kn_device_of(x);
    if (device != self->devices[0] && !kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE,
                       "DataParallel: the input is on %s; it is scattered from the first of the devices, "
                       "%s, or from the host",
                       kn_device_string(device), kn_device_string(self->devices[0]));
    *dim = self->dim;
    return kn_check_dim("DataParallel", x, dim);
}

/* Sizes differ by one at most, the larger ones first; one part at least, however empty. Returns how many. */
static int part_sizes(int64_t size, int num_devices, int64_t *sizes)
{
    int parts = size < num_devices ? (int)(size > 0 ? size : 1) : num_devices;
    for (int i = 0; i < parts; i++)
        sizes[i] = size / parts + (i < size % parts);
    return parts;
}

/* Modules and tensors that are made inside forward are made on the replica's device. */
static kn_status run_replicas(const data_parallel *self, kn_module *const *replicas, kn_tensor *const *inputs,
                              int count, kn_tensor **outputs)
{
    kn_device *before = kn_device_current();
    kn_status status = before ? KN_OK : kn_error_status();
    for (int i = 0; i < count && status == KN_OK; i++) {
        kn_device_set_current(self->devices[i]);
        outputs[i] = kn_forward(replicas[i], inputs[i]);
        if (!outputs[i])
            status = kn_error_status();
    }
    if (before)
        kn_device_set_current(before);
    return status;
}

/* Nothing here waits: copies, replicas and outputs are enqueued, and the devices work side by side. */
static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    const data_parallel *self = module->self;
    int dim;
    if (check_input(self, x, &dim) != KN_OK)
        return kn_stick();
    int64_t sizes[KN_MAX_DEVICES];
    int parts = part_sizes(kn_size(x, dim), self->num_devices, sizes);
    kn_tensor *inputs[KN_MAX_DEVICES], *outputs[KN_MAX_DEVICES];
    kn_module *replicas[KN_MAX_DEVICES] = {module->wrapped};
    if (kn_replicate("DataParallel", module->wrapped, self->devices, parts, 1, replicas) != KN_OK)
        return kn_stick();
    kn_status status = kn_comm_scatter(x, self->devices, parts, sizes, dim, inputs);
    if (status == KN_OK)
        status = run_replicas(self, replicas, inputs, parts, outputs);
    for (int i = 1; i < parts; i++)
        kn_module_free(replicas[i]); /* the record keeps the tensors that the backward pass needs */
    if (status != KN_OK)
        return kn_stick();
    if (parts == 1)
        return kn_to(outputs[0], self->output_device);
    return kn_comm_gather(outputs, parts, self->dim, self->output_device);
}

static void describe(kn_module *module, kn_text *text)
{
    const data_parallel *self = module->self;
    for (int i = 0; i < self->num_devices; i++)
        kn_text_format(text, "%s%s", i > 0 ? ", " : "devices=", kn_device_string(self->devices[i]));
}

/* --- making ----------------------------------------------------------------------------------------------------- */

kn_data_parallel_params kn_data_parallel_params_init(void)
{
    return (kn_data_parallel_params){KN_DATA_PARALLEL_DEFAULTS};
}

static kn_status settle(data_parallel *self, const kn_data_parallel_params *params)
{
    params = params ? params : &(kn_data_parallel_params){KN_DATA_PARALLEL_DEFAULTS};
    *self = (data_parallel){.dim = params->dim};
    if (!params->devices && params->num_devices == 0) {
        int count = kn_try_all_gpus(self->devices, KN_MAX_DEVICES);
        if (count == 0)
            return kn_error_status();
        self->num_devices = count < KN_MAX_DEVICES ? count : KN_MAX_DEVICES;
    } else {
        KN_TRY(kn_check_device_list("DataParallel", params->devices, params->num_devices, false));
        self->num_devices = params->num_devices;
        memcpy(self->devices, params->devices, (size_t)params->num_devices * sizeof *params->devices);
    }
    self->output_device = params->output_device ? params->output_device : self->devices[0];
    if (!kn_device_is_known(self->output_device))
        return kn_fail(KN_ERR_DEVICE,
                       "DataParallel: the output device is no device that kn_device_open or kn_device_at gave");
    return KN_OK;
}

kn_module *kn_nn_data_parallel_with(kn_module *module, const kn_data_parallel_params *params)
{
    data_parallel self;
    if (!module) {
        kn_fail_argument_null("DataParallel", "module");
        return kn_stick();
    }
    bool settled = settle(&self, params) == KN_OK;
    kn_module *wrapper = settled ? kn_layer_new("DataParallel", forward, describe, &self, sizeof self) : NULL;
    if (!wrapper) {
        kn_stick();
        if (!module->owned)
            kn_module_free(module); /* taken over also on failure */
        return NULL;
    }
    const data_parallel *kept = wrapper->self;
    wrapper->devices = kept->devices;
    wrapper->num_devices = kept->num_devices;
    wrapper->wrapped = kn_module_register_module(wrapper, "module", module);
    return wrapper->wrapped ? wrapper : kn_layer_failed(wrapper);
}

/* --- without the wrapper ---------------------------------------------------------------------------------------- */

kn_module *kn_data_parallel_inner(kn_module *module)
{
    if (!module)
        return kn_fail_argument_null("data_parallel_inner", "module"), kn_stick();
    return kn_module_unwrapped(module);
}

kn_module *kn_data_parallel_unwrap(kn_module *module)
{
    if (!module)
        return kn_fail_argument_null("data_parallel_unwrap", "module"), kn_stick();
    if (!module->wrapped)
        return module;
    if (module->owned)
        return kn_fail_null(KN_ERR_ARGUMENT, "data_parallel_unwrap: the wrapper belongs to another module");
    kn_module *inner = kn_module_release_child(module);
    kn_module_free(module);
    return inner;
}
