/* dist/data_parallel.c - applies a module on several devices in parallel, each to a part of the batch. */
#include <string.h>

#include "dist/replicate.h"

typedef struct data_parallel {
    kn_device *devices[KN_MAX_DEVICES];
    int num_devices;
    kn_device *output_device;
    int dim;
} data_parallel;

/* --- forward ---------------------------------------------------------------------------------------------------- */

/* Sizes differ by at most one, larger ones first; at least one part, even if empty. Returns the number of parts. */
static int part_sizes(int64_t size, int num_devices, int64_t *sizes)
{
    int parts = size < num_devices ? (int)(size > 0 ? size : 1) : num_devices;
    for (int i = 0; i < parts; i++)
        sizes[i] = size / parts + (i < size % parts);
    return parts;
}

/* A call: how it is split, and the replicas' inputs and outputs. */
typedef struct parallel_call {
    const data_parallel *self;
    int num_inputs, num_outputs;
    int parts;
    int64_t size; /* total size along the dimension; -1: not known yet */
    int64_t sizes[KN_MAX_DEVICES];
    kn_tensor **inputs;  /* [part * num_inputs + i] */
    kn_tensor **outputs; /* [part * num_outputs + o] */
} parallel_call;

/* All inputs are split alike, so they must have the same size along the dimension. */
static kn_status check_input(parallel_call *call, int i, const kn_tensor *x)
{
    const data_parallel *self = call->self;
    kn_device *device = kn_device_of(x);
    if (device != self->devices[0] && !kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE,
                       "DataParallel: the input is on %s; it is scattered from the first of the devices, "
                       "%s, or from the host",
                       kn_device_string(device), kn_device_string(self->devices[0]));
    int dim = self->dim;
    KN_TRY(kn_check_dim("DataParallel", x, &dim));
    if (call->size < 0)
        call->size = kn_size(x, dim);
    if (kn_size(x, dim) == call->size)
        return KN_OK;
    return kn_fail(
        KN_ERR_SHAPE,
        "DataParallel: the inputs are split along dimension %d, where input %d has size %lld, those before it "
        "%lld",
        self->dim, i, (long long)kn_size(x, dim), (long long)call->size);
}

static kn_status check_inputs(parallel_call *call, kn_tensor *const *inputs)
{
    for (int i = 0; i < call->num_inputs; i++)
        if (inputs[i] != NULL)
            KN_TRY(check_input(call, i, inputs[i]));
    call->parts = part_sizes(call->size, call->self->num_devices, call->sizes);
    return KN_OK;
}

/* An omitted input is omitted in all replicas. */
static kn_status scatter_inputs(parallel_call *call, kn_tensor *const *inputs)
{
    for (int i = 0; i < call->num_inputs; i++) {
        kn_tensor *pieces[KN_MAX_DEVICES] = {NULL};
        if (inputs[i] != NULL)
            KN_TRY(kn_comm_scatter(inputs[i], call->self->devices, call->parts, call->sizes, call->self->dim, pieces));
        for (int part = 0; part < call->parts; part++)
            call->inputs[part * call->num_inputs + i] = pieces[part];
    }
    return KN_OK;
}

/* Tensors and modules that forward creates are created on the replica's device. */
static kn_status run_replicas(const parallel_call *call, kn_module *const *replicas)
{
    kn_device *before = kn_device_current();
    kn_status status = before ? KN_OK : kn_error_status();
    for (int part = 0; part < call->parts && status == KN_OK; part++) {
        kn_device_set_current(call->self->devices[part]);
        status = kn_forward_list(replicas[part], call->inputs + part * call->num_inputs, call->num_inputs,
                                 call->outputs + part * call->num_outputs, call->num_outputs, KN_ACTIVATION_NONE);
    }
    if (before)
        kn_device_set_current(before);
    return status;
}

static kn_status gather_outputs(const parallel_call *call, kn_tensor **outputs)
{
    const data_parallel *self = call->self;
    for (int o = 0; o < call->num_outputs; o++) {
        kn_tensor *pieces[KN_MAX_DEVICES];
        for (int part = 0; part < call->parts; part++)
            pieces[part] = call->outputs[part * call->num_outputs + o];
        outputs[o] = call->parts == 1 ? kn_to(pieces[0], self->output_device)
                                      : kn_comm_gather(pieces, call->parts, self->dim, self->output_device);
        if (!outputs[o])
            return kn_error_status();
    }
    return KN_OK;
}

/* Does not wait: copies, replicas and outputs are enqueued, and the devices work in parallel. */
static kn_status run(parallel_call *call, kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_module *replicas[KN_MAX_DEVICES] = {module};
    KN_TRY(kn_replicate("DataParallel", module, call->self->devices, call->parts, 1, replicas));
    kn_status status = scatter_inputs(call, inputs);
    if (status == KN_OK)
        status = run_replicas(call, replicas);
    for (int i = 1; i < call->parts; i++)
        kn_module_free(replicas[i]); /* the tape holds the tensors that the backward pass needs */
    return status == KN_OK ? gather_outputs(call, outputs) : status;
}

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const kn_signature signature = kn_module_signature(module->wrapped);
    parallel_call call = {
        .self = module->self, .num_inputs = signature.inputs, .num_outputs = signature.outputs, .size = -1};
    KN_TRY(check_inputs(&call, inputs));
    call.inputs = kn_calloc((size_t)(call.parts * (call.num_inputs + call.num_outputs)), sizeof *call.inputs);
    if (!call.inputs)
        return KN_ERR_MEMORY;
    call.outputs = call.inputs + call.parts * call.num_inputs;
    kn_status status = run(&call, module->wrapped, inputs, outputs);
    kn_free(call.inputs);
    return status;
}

static kn_signature signature_of(const kn_module *module) { return kn_module_signature(module->wrapped); }

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
                       "DataParallel: the output device is not a device returned by kn_device_open or kn_device_at");
    return KN_OK;
}

kn_module *kn_nn_data_parallel_with(kn_module *module, const kn_data_parallel_params *params)
{
    data_parallel self;
    if (!module) {
        kn_fail_argument_null("DataParallel", "module");
        return kn_error_make_sticky();
    }
    bool settled = settle(&self, params) == KN_OK;
    static const kn_module_kind kind = {
        .forward_many = forward, .signature_of = signature_of, .describe = describe, .is_layer = true};
    kn_module *wrapper = settled ? kn_layer_new_kind("DataParallel", &kind, &self, sizeof self) : NULL;
    if (!wrapper) {
        kn_error_make_sticky();
        kn_module_discard(&module, 0, 1);
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
        return kn_fail_argument_null("data_parallel_inner", "module"), kn_error_make_sticky();
    return kn_module_unwrapped(module);
}

kn_module *kn_data_parallel_unwrap(kn_module *module)
{
    if (!module)
        return kn_fail_argument_null("data_parallel_unwrap", "module"), kn_error_make_sticky();
    if (!module->wrapped)
        return module;
    if (module->owners > 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "data_parallel_unwrap: the wrapper belongs to another module");
    kn_module *inner = kn_module_release_child(module);
    kn_module_free(module);
    return inner;
}
