/* autograd/function.c - applying and differentiating user-defined functions: see koine/function.h. */
#include <string.h>

#include "autograd/function_context.h"
#include "autograd/work.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/liveness.h"
#include "tensor/scope.h"

/* --- calling the program's callbacks ------------------------------------------------------------------------------ */

typedef struct program_call {
    int adopter;
    bool recording;
} program_call;

static program_call enter_program(bool recording)
{
    return (program_call){kn_scope_enter_user_code(), kn_set_grad_enabled(recording)};
}

/* Returns `status`, with an error message even if the callback left none. */
static kn_status leave_program(program_call call, const char *callback, kn_status status)
{
    kn_set_grad_enabled(call.recording);
    kn_scope_leave_user_code(call.adopter);
    if (status != KN_OK && kn_error_status() == KN_OK)
        return kn_fail(status, "its %s failed with %s and no message", callback, kn_status_name(status));
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status complete_gradients(const kn_function_context *context, const kn_grad_call *grad, kn_tensor **gradients)
{
    for (int i = 0; i < grad->num_outputs; i++) {
        const kn_input_spec *output = &context->output[i];
        const kn_tensor_options options = {.dtype = output->dtype, .device = output->device};
        gradients[i] = grad->grad_outputs[i];
        if (gradients[i] || context->leaves_gradients_out)
            continue;
        gradients[i] = kn_zeros_with(output->ndim, output->shape, &options);
        if (!gradients[i])
            return kn_error_status();
    }
    return KN_OK;
}

static kn_status check_gradient(const kn_input_spec *input, int index, const kn_tensor *gradient)
{
    char given[KN_DESCRIBE], wanted[KN_DESCRIBE];
    KN_TRY(kn_tensor_check_live(gradient, "a gradient"));
    bool fits = gradient->ndim == input->ndim && gradient->storage->device == input->device;
    for (int d = 0; fits && d < input->ndim; d++)
        fits = gradient->shape[d] == input->shape[d];
    if (fits && gradient->dtype == input->dtype)
        return KN_OK;
    kn_format_shape(wanted, sizeof wanted, input->ndim, input->shape);
    return kn_fail(fits ? KN_ERR_DTYPE : KN_ERR_SHAPE,
                   "its backward returned the gradient %s for input %d, which is %s %s on %s",
                   kn_tensor_describe(given, sizeof given, gradient), index, kn_dtype_name(input->dtype), wanted,
                   kn_device_string(input->device));
}

static kn_status call_backward(kn_function_context *context, kn_grad_call *grad, kn_tensor **gradients)
{
    KN_TRY(complete_gradients(context, grad, gradients));
    const bool stuck = kn_error_is_sticky();
    context->grad = grad;
    program_call call = enter_program(grad->node != NULL);
    kn_status status = context->function.backward(context, gradients, grad->grad_inputs);
    status = leave_program(call, "backward", status);
    context->grad = NULL;
    for (int i = 0; i < grad->num_inputs && status == KN_OK; i++) {
        if (!grad->needs[i])
            continue;
        if (grad->grad_inputs[i])
            status = check_gradient(&grad->input[i], i, grad->grad_inputs[i]);
        else if (!stuck && kn_error_is_sticky()) /* an expression failed and backward did not check */
            status = kn_error_status();
    }
    /* the engine prefixes other errors with the function's name */
    if (status != KN_OK && !stuck && kn_error_is_sticky())
        kn_error_prefix_sticky("backward of %s", context->function.name);
    return status;
}

static kn_status run_backward(kn_grad_call *grad)
{
    kn_function_context *context = *(kn_function_context *const *)grad->params;
    kn_tensor **gradients = kn_calloc((size_t)grad->num_outputs, sizeof *gradients);
    kn_status status = gradients ? call_backward(context, grad, gradients) : KN_ERR_MEMORY;
    kn_free(gradients);
    return status;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status check_inputs(kn_tensor *const *inputs, int num_inputs)
{
    for (int i = 0; i < num_inputs; i++)
        KN_TRY(kn_tensor_check_live_input(inputs[i], i));
    return KN_OK;
}

/* Sum of the versions of all recorded inputs: changes with every change in place. */
static unsigned sum_versions(const kn_function_context *context, kn_tensor *const *inputs)
{
    unsigned sum = 0;
    for (int i = 0; i < context->num_inputs; i++)
        if (context->needs[i])
            sum += atomic_load(&inputs[i]->storage->version);
    return sum;
}

static kn_status call_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    unsigned versions = sum_versions(context, inputs);
    program_call call = enter_program(false);
    kn_status status = context->function.forward(context, inputs, outputs);
    KN_TRY(leave_program(call, "forward", status));
    for (int i = 0; i < context->num_outputs; i++) {
        if (!outputs[i])
            return kn_error_is_sticky() ? kn_error_status()
                                        : kn_fail(KN_ERR_STATE, "its forward did not set output %d", i);
        KN_TRY(kn_tensor_check_live(outputs[i], "an output"));
    }
    if (sum_versions(context, inputs) != versions)
        return kn_fail(KN_ERR_STATE, "its forward changed a recorded input in place: kn_clone it first");
    return KN_OK;
}

/* Does the output share memory or autograd state with another tensor? */
static bool is_shared(const kn_function_context *context, kn_tensor *const *inputs, kn_tensor *const *outputs,
                      int index)
{
    const kn_tensor *output = outputs[index];
    bool shared = kn_autograd_wants(output);
    for (int i = 0; i < context->num_inputs; i++)
        shared = shared || inputs[i]->storage == output->storage;
    for (int i = 0; i < index; i++)
        shared = shared || outputs[i]->storage == output->storage;
    return shared;
}

/* Turns forward's outputs into owned references to unshared tensors; none on failure. */
static kn_status own_outputs(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    for (int i = 0; i < context->num_outputs; i++) {
        kn_tensor *output = outputs[i], *copy = NULL;
        kn_status status = KN_OK;
        if (is_shared(context, inputs, outputs, i))
            status = kn_tensor_cast(&copy, output, output->dtype, output->storage->device);
        if (status != KN_OK) {
            while (i-- > 0)
                kn_release(outputs[i]);
            return status;
        }
        outputs[i] = copy ? copy : kn_retain(output);
        context->output[i].dtype = output->dtype;
        context->output[i].ndim = output->ndim;
        memcpy(context->output[i].shape, output->shape, sizeof output->shape);
        context->output[i].device = output->storage->device;
    }
    return KN_OK;
}

static kn_status record(kn_function_context *context, kn_tensor *const *inputs, kn_tensor *const *outputs)
{
    size_t count = (size_t)context->num_outputs;
    kn_tensor **results = kn_calloc(count, sizeof *results);
    if (!results)
        return KN_ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        results[i] = context->no_gradient[i] ? NULL : outputs[i];
    kn_status status = kn_tape_add(&(kn_record){.op = &context->op,
                                                .params = &context,
                                                .inputs = inputs,
                                                .num_inputs = context->num_inputs,
                                                .outputs = results,
                                                .num_outputs = context->num_outputs,
                                                .saved = context->saved,
                                                .num_saved = context->num_saved,
                                                .reusable = context->num_saved == 0});
    kn_free(results);
    return status;
}

static int source_of(const kn_function_context *context, kn_tensor *const *inputs, kn_tensor *const *outputs,
                     const kn_tensor *saved)
{
    for (int i = 0; i < context->num_inputs; i++)
        if (inputs[i] == saved)
            return i;
    for (int i = 0; i < context->num_outputs; i++)
        if (outputs[i] == saved && !context->no_gradient[i])
            return context->num_inputs + i;
    return -1;
}

/* Which inputs and outputs were saved. */
static kn_status find_sources(kn_function_context *context, kn_tensor *const *inputs, kn_tensor *const *outputs)
{
    if (!context->recorded || !context->function.twice_differentiable || context->num_saved == 0)
        return KN_OK;
    context->sources = kn_calloc((size_t)context->num_saved, sizeof *context->sources);
    for (int i = 0; context->sources && i < context->num_saved; i++)
        context->sources[i] = source_of(context, inputs, outputs, context->saved[i]);
    return context->sources ? KN_OK : KN_ERR_MEMORY;
}

/* Leaves owned references in `outputs`, or nothing. */
static kn_status apply_in_scope(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    for (int i = 0; i < context->num_inputs && context->function.backward && kn_grad_enabled(); i++)
        context->recorded |= context->needs[i] = kn_autograd_wants(inputs[i]);
    KN_TRY(call_forward(context, inputs, outputs));
    KN_TRY(find_sources(context, inputs, outputs));
    KN_TRY(own_outputs(context, inputs, outputs));
    kn_status status = context->recorded ? record(context, inputs, outputs) : KN_OK;
    for (int i = 0; i < context->num_outputs && status != KN_OK; i++)
        kn_release(outputs[i]);
    kn_function_context_drop_saved(context);
    return status;
}

/* Outputs that nobody takes are released. */
static kn_status hand_out(kn_tensor **outputs, int num_outputs)
{
    kn_status status = KN_OK;
    for (int i = 0; i < num_outputs; i++) {
        outputs[i] = kn_scope_adopt(outputs[i]);
        if (!outputs[i])
            status = kn_error_status();
    }
    return status;
}

/* --- applying ----------------------------------------------------------------------------------------------------- */

static kn_status apply(const kn_function *function, kn_tensor *const *inputs, int num_inputs, const void *params,
                       kn_tensor **outputs, int num_outputs)
{
    kn_function_context *context = kn_function_context_new(function, num_inputs, params, num_outputs, run_backward);
    if (!context)
        return KN_ERR_MEMORY;
    kn_span span = kn_is_watched() ? kn_inputs_span_begin(context->function.name, inputs, num_inputs) : KN_NO_SPAN;
    int scope = kn_scope_begin_internal();
    kn_status status = scope ? check_inputs(inputs, num_inputs) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = apply_in_scope(context, inputs, outputs);
    kn_scope_end(scope);
    kn_span_end(span, NULL);
    kn_function_context_release(context);
    return status == KN_OK ? hand_out(outputs, num_outputs) : status;
}

static kn_status check_arguments(const kn_function *function, kn_tensor *const *inputs, int num_inputs,
                                 kn_tensor *const *outputs, int num_outputs)
{
    if (!function->forward)
        return kn_fail(KN_ERR_ARGUMENT, "the function has no forward");
    if (num_inputs < 0 || num_outputs < 0 || (num_inputs > 0 && !inputs) || (num_outputs > 0 && !outputs))
        return kn_fail(KN_ERR_ARGUMENT, "invalid arguments: %d inputs and %d outputs, or an array is NULL", num_inputs,
                       num_outputs);
    for (int i = 0; i < num_inputs; i++)
        if (!inputs[i])
            return kn_error_is_sticky() ? kn_error_status() : kn_fail(KN_ERR_ARGUMENT, "input %d is NULL", i);
    return KN_OK;
}

kn_status kn_function_apply_many(const kn_function *given, kn_tensor *const *inputs, int num_inputs, const void *params,
                                 kn_tensor **outputs, int num_outputs)
{
    for (int i = 0; i < num_outputs && outputs; i++)
        outputs[i] = NULL;
    if (!given) {
        kn_status status = kn_fail_argument_null("kn_function_apply", "function");
        kn_error_make_sticky();
        return status;
    }
    kn_function function = *given;
    function.name = function.name ? function.name : "function";
    const bool stuck = kn_error_is_sticky();
    kn_status status = check_arguments(&function, inputs, num_inputs, outputs, num_outputs);
    if (status == KN_OK)
        status = apply(&function, inputs, num_inputs, params, outputs, num_outputs);
    else if (function.destroy)
        function.destroy((void *)(uintptr_t)params);
    if (status == KN_OK)
        return KN_OK;
    for (int i = 0; i < num_outputs && outputs; i++)
        outputs[i] = NULL;
    if (!stuck)
        kn_error_prefix_sticky("%s", function.name);
    kn_error_make_sticky();
    return status;
}

kn_tensor *kn_function_apply(const kn_function *function, kn_tensor *const *inputs, int num_inputs, const void *params)
{
    kn_tensor *output = NULL;
    return kn_function_apply_many(function, inputs, num_inputs, params, &output, 1) == KN_OK ? output : NULL;
}
