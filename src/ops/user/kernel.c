/* ops/user/kernel.c - user-defined kernels on tensors: checks, then an ordinary launch. See koine/kernel.h. */
#include <koine/autograd.h>
#include <koine/kernel.h>
#include <stdint.h>
#include <string.h>

#include "autograd/op.h"
#include "autograd/view.h"
#include "base/error.h"
#include "base/memory.h"
#include "rt/program/user_source.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

struct kn_user_kernel {
    kn_user_source source; /* its name is the kernel's, and outlives it: records and profiles use it */
    char *options;
};

/* --- making ------------------------------------------------------------------------------------------------------- */

/* Line numbers start at the user's first line. */
static kn_status register_source(kn_user_source *registered, const char *source, const char *name)
{
    kn_text out = {0};
    kn_text_format(&out, "#line 1 \"%s\"\n", name);
    kn_text_append(&out, source);
    kn_text_append(&out, "\n");
    char *text = kn_text_finish(&out);
    if (!text)
        return KN_ERR_MEMORY;
    kn_status status = kn_user_source_add(registered, name, text, true);
    kn_free(text);
    return status;
}

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name && strspn(name, letters) == strlen(name) && strlen(name) < 60;
}

/* Adds the option that makes the kernel's parameters queryable, to check arguments. */
static char *with_parameter_info(const char *options)
{
    kn_text text = {0};
    kn_text_format(&text, "-cl-kernel-arg-info%s%s", options && *options ? " " : "", options ? options : "");
    return kn_text_finish(&text);
}

static kn_status check_names(const char *source, const char *name)
{
    if (!source || !name)
        return kn_fail_argument_null("kn_kernel_new", source ? "name" : "source");
    if (!is_name(name))
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_kernel_new: `%.80s` is not a kernel name: letters, digits and _, at most 59", name);
    return KN_OK;
}

kn_user_kernel *kn_kernel_new(const char *source, const char *name, const char *options)
{
    kn_user_kernel *kernel = check_names(source, name) == KN_OK ? kn_calloc(1, sizeof *kernel) : NULL;
    if (!kernel)
        return NULL;
    kernel->options = with_parameter_info(options);
    if (kernel->options && register_source(&kernel->source, source, name) == KN_OK)
        return kernel;
    kn_kernel_free(kernel);
    return NULL;
}

void kn_kernel_free(kn_user_kernel *kernel)
{
    if (!kernel)
        return;
    kn_free(kernel->options);
    kn_free(kernel);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static bool is_tensor(const kn_kernel_arg *arg)
{
    return arg->kind == KN_KERNEL_INPUT || arg->kind == KN_KERNEL_OUTPUT;
}

static kn_status check_tensor(const kn_kernel_arg *arg, int index, kn_device *device)
{
    const kn_tensor *tensor = arg->tensor;
    KN_TRY(kn_check_tensor("kn_kernel_run", "tensor", tensor));
    if (kn_device_is_host(kn_device_of(tensor)))
        return kn_fail(
            KN_ERR_DEVICE,
            "argument %d is on the host, which runs no kernels: move it to a device with kn_to(tensor, device)", index);
    if (kn_device_of(tensor) != device)
        return kn_fail(KN_ERR_DEVICE, "the tensors are on two devices, %s and %s: move one with kn_to(tensor, device)",
                       kn_device_string(device), kn_device_string(kn_device_of(tensor)));
    if (arg->kind == KN_KERNEL_OUTPUT && kn_change_wants_record(tensor) && kn_grad_enabled())
        return kn_fail(KN_ERR_STATE,
                       "argument %d is an output that requires gradients, which do not flow through "
                       "kernels: run it inside KN_NO_GRAD, or on kn_detach(tensor)",
                       index);
    return KN_OK;
}

static kn_status check_tensors(const kn_kernel_run_params *launch, kn_device **device)
{
    *device = NULL;
    for (int i = 0; i < launch->num_args; i++) {
        if (!is_tensor(&launch->args[i]))
            continue;
        if (!*device && launch->args[i].tensor)
            *device = kn_device_of(launch->args[i].tensor);
        KN_TRY(check_tensor(&launch->args[i], i, *device));
    }
    return *device ? KN_OK : kn_fail(KN_ERR_ARGUMENT, "no argument is a tensor, so the device is unknown");
}

static const char *describe(const kn_kernel_arg *arg)
{
    return is_tensor(arg) ? "a tensor" : arg->kind == KN_KERNEL_LOCAL ? "local memory" : "a number";
}

/* Drivers accept a number as a memory object without checking, and crash. */
static kn_status check_kinds(const kn_kernel_run_params *launch, const kn_parameters *parameters)
{
    static const char *const kinds[] = {
        [KN_PARAMETER_MEMORY] = "memory", [KN_PARAMETER_LOCAL] = "local memory", [KN_PARAMETER_VALUE] = "a number"};
    for (int i = 0, p = 0; i < launch->num_args; p += is_tensor(&launch->args[i]) ? 2 : 1, i++) {
        const kn_kernel_arg *arg = &launch->args[i];
        const kn_parameter_kind wanted = is_tensor(arg)                 ? KN_PARAMETER_MEMORY
                                         : arg->kind == KN_KERNEL_LOCAL ? KN_PARAMETER_LOCAL
                                                                        : KN_PARAMETER_VALUE;
        if (parameters->kinds[p] != wanted && parameters->kinds[p] != KN_PARAMETER_UNKNOWN)
            return kn_fail(KN_ERR_ARGUMENT, "argument %d is %s, but parameter %d of the kernel is %s", i, describe(arg),
                           p, kinds[parameters->kinds[p]]);
        if (is_tensor(arg) && parameters->kinds[p + 1] != KN_PARAMETER_VALUE &&
            parameters->kinds[p + 1] != KN_PARAMETER_UNKNOWN)
            return kn_fail(KN_ERR_ARGUMENT,
                           "argument %d is a tensor, which takes two parameters (KN_IN, KN_OUT), but parameter %d of "
                           "the kernel is %s",
                           i, p + 1, kinds[parameters->kinds[p + 1]]);
    }
    return KN_OK;
}

static kn_status check_parameters(const kn_user_kernel *kernel, const kn_kernel_run_params *launch, kn_device *device,
                                  kn_parameter_kind *kinds)
{
    kn_parameters parameters = {.room = 2 * launch->num_args, .kinds = kinds};
    int tensors = 0;
    KN_TRY(kn_user_source_build(device, kernel->source.path, kernel->options, kernel->source.name, &parameters));
    for (int i = 0; i < launch->num_args; i++)
        tensors += is_tensor(&launch->args[i]);
    if (parameters.count == launch->num_args + tensors)
        return check_kinds(launch, &parameters);
    return kn_fail(KN_ERR_ARGUMENT,
                   "the kernel has %d parameters; %d tensors, which are two each (KN_IN, KN_OUT), and "
                   "%d other arguments make %d",
                   parameters.count, tensors, launch->num_args - tensors, launch->num_args + tensors);
}

enum { TENSOR_BYTES = 16 }; /* of a tensor's two parameters */

static kn_status check_sizes(const kn_kernel_run_params *launch, int dims, const kn_limits *limits)
{
    size_t group = 1, local_memory = 0, bytes = 0;
    for (int d = 0; d < dims; d++) {
        const size_t size = launch->local[d] ? launch->local[d] : 1;
        if (size > limits->max_work_group_size / group)
            return kn_fail(KN_ERR_ARGUMENT, "a work-group of %zu * %zu work-items: the device takes at most %zu", group,
                           size, limits->max_work_group_size);
        if (launch->global[d] > SIZE_MAX - size) /* it is rounded up */
            return kn_fail(KN_ERR_ARGUMENT, "%zu work-items in dimension %d", launch->global[d], d);
        group *= size;
    }
    for (int i = 0; i < launch->num_args; i++) {
        const kn_kernel_arg *arg = &launch->args[i];
        bytes += is_tensor(arg) ? TENSOR_BYTES : arg->kind == KN_KERNEL_NUMBER ? arg->size : 0;
        if (is_tensor(arg))
            continue;
        if (arg->size == 0)
            return kn_fail(KN_ERR_ARGUMENT, "argument %d has no bytes", i);
        if (arg->kind == KN_KERNEL_NUMBER && !arg->pointer && arg->size > sizeof arg->value)
            return kn_fail(KN_ERR_ARGUMENT, "argument %d, a struct of %zu bytes, is NULL", i, arg->size);
        if (arg->kind != KN_KERNEL_LOCAL)
            continue;
        if (arg->size > limits->local_memory - local_memory)
            return kn_fail(KN_ERR_ARGUMENT, "%zu + %zu bytes of local memory: the device has %zu per work-group",
                           local_memory, arg->size, limits->local_memory);
        local_memory += arg->size;
    }
    if (limits->argument_bytes > 0 && bytes > limits->argument_bytes)
        return kn_fail(KN_ERR_ARGUMENT,
                       "%d arguments of %zu bytes, %d for each tensor: the device takes at most %zu bytes",
                       launch->num_args, bytes, TENSOR_BYTES, limits->argument_bytes);
    return KN_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static int count_dims(const kn_kernel_run_params *launch)
{
    int dims = 1;
    while (dims < 3 && launch->global[dims] > 0)
        dims++;
    return launch->dims > 0 ? launch->dims : dims;
}

static kn_arg argument(const kn_kernel_arg *arg)
{
    if (is_tensor(arg))
        return kn_arg_tensor(arg->tensor);
    if (arg->kind == KN_KERNEL_LOCAL)
        return kn_arg_local(arg->size);
    kn_arg number = kn_arg_i64(arg->value.i64);
    number.size = arg->size;
    number.pointer = arg->pointer;
    if (!arg->pointer)
        memcpy(&number.value, &arg->value, sizeof number.value);
    return number;
}

static kn_status run(const kn_user_kernel *kernel, const kn_kernel_run_params *launch, kn_arg *args,
                     kn_parameter_kind *kinds)
{
    kn_device *device;
    const int dims = count_dims(launch);
    KN_TRY(check_tensors(launch, &device));
    KN_TRY(check_sizes(launch, dims, kn_device_limits(device)));
    KN_TRY(check_parameters(kernel, launch, device, kinds));
    kn_stream *stream = kn_stream_current(device);
    if (!stream)
        return kn_error_status();
    for (int i = 0; i < launch->num_args; i++) {
        args[i] = argument(&launch->args[i]);
        if (launch->args[i].kind == KN_KERNEL_OUTPUT)
            kn_tensor_bump_version(launch->args[i].tensor);
    }
    return kn_run(stream, .source = kernel->source.path, .options = kernel->options, .kernel = kernel->source.name,
                  .operation = kernel->source.name, .dims = dims,
                  .global = {launch->global[0], launch->global[1], launch->global[2]},
                  .local = {launch->local[0], launch->local[1], launch->local[2]}, .args = args,
                  .num_args = launch->num_args);
}

/* With memory for the arguments: on the stack, if they are few. */
static kn_status run_in_memory(const kn_user_kernel *kernel, const kn_kernel_run_params *launch)
{
    enum { FEW = 32 };
    kn_arg few[FEW], *args = few;
    kn_parameter_kind few_kinds[2 * FEW], *kinds = few_kinds;
    const size_t count = (size_t)launch->num_args;
    if (launch->num_args < 0 || count_dims(launch) > 3 || (count > 0 && !launch->args))
        return kn_fail(KN_ERR_ARGUMENT, "%d arguments in %d dimensions%s", launch->num_args, count_dims(launch),
                       count_dims(launch) > 3 ? ": at most 3"
                       : launch->num_args > 0 ? ", but `args` is NULL"
                                              : "");
    if (count > FEW) {
        args = kn_malloc(count * sizeof *args);
        kinds = kn_malloc(2 * count * sizeof *kinds);
    }
    kn_status status = args && kinds ? run(kernel, launch, args, kinds) : KN_ERR_MEMORY;
    if (args != few)
        kn_free(args);
    if (kinds != few_kinds)
        kn_free(kinds);
    return status;
}

kn_kernel_run_params kn_kernel_run_params_init(void) { return (kn_kernel_run_params){KN_KERNEL_RUN_DEFAULTS}; }

kn_status kn_kernel_run_with(const kn_user_kernel *kernel, const kn_kernel_run_params *launch)
{
    launch = launch ? launch : &(kn_kernel_run_params){KN_KERNEL_RUN_DEFAULTS};
    if (!kernel)
        return kn_fail_argument_null("kn_kernel_run", "kernel");
    if (kn_op_is_dry_run())
        return KN_OK;
    kn_status status = run_in_memory(kernel, launch);
    if (status != KN_OK)
        kn_error_prefix("%s", kernel->source.name);
    return status;
}
