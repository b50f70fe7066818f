/* autograd/function_context.c - applications of user-defined functions: creation, release, and what callbacks call. */
#include "autograd/function_context.h"

#include <string.h>

#include "autograd/work.h"
#include "base/memory.h"
#include "tensor/liveness.h"

/* --- contexts ----------------------------------------------------------------------------------------------------- */

void kn_function_context_drop_saved(kn_function_context *context)
{
    for (int i = 0; i < context->num_saved; i++)
        kn_release(context->saved[i]);
    kn_free(context->saved);
    context->saved = NULL;
    context->num_saved = context->capacity = 0;
}

void kn_function_context_release(kn_function_context *context)
{
    if (atomic_fetch_sub(&context->references, 1) > 1)
        return;
    kn_function_context_drop_saved(context);
    kn_free(context->sources);
    if (context->function.destroy)
        context->function.destroy(context->params);
    if (context->function.params_size > 0)
        kn_free(context->params);
    kn_free(context);
}

static void keep_context(void *params) { atomic_fetch_add(&(*(kn_function_context **)params)->references, 1); }
static void drop_context(void *params) { kn_function_context_release(*(kn_function_context **)params); }

static kn_function_context *allocate_context(const kn_function *function, int num_inputs, int num_outputs,
                                             kn_status (*backward)(kn_grad_call *))
{
    size_t inputs = (size_t)num_inputs, outputs = (size_t)num_outputs, name = strlen(function->name) + 1;
    size_t specs = outputs * sizeof(kn_input_spec);
    kn_function_context *context = kn_calloc(1, sizeof *context + specs + (inputs + outputs) * sizeof(bool) + name);
    if (!context)
        return NULL;
    char *behind = (char *)(context + 1);
    context->output = (kn_input_spec *)behind;
    context->needs = (bool *)(behind + specs);
    context->no_gradient = context->needs + inputs;
    context->function = *function;
    context->function.name = memcpy(context->no_gradient + outputs, function->name, name);
    context->num_inputs = num_inputs;
    context->num_outputs = num_outputs;
    context->op = (kn_op){.name = context->function.name,
                          .record_size = sizeof(kn_function_context *),
                          .record_keep = keep_context,
                          .record_drop = drop_context,
                          .backward = backward,
                          .backward_recorded = function->twice_differentiable ? backward : NULL,
                          .backward_work = kn_grad_work_memory_bound};
    atomic_init(&context->references, 1);
    return context;
}

kn_function_context *kn_function_context_new(const kn_function *function, int num_inputs, const void *params,
                                             int num_outputs, kn_status (*backward)(kn_grad_call *call))
{
    void *given = (void *)(uintptr_t)params, *copy = given;
    kn_function_context *context = allocate_context(function, num_inputs, num_outputs, backward);
    if (context && params && function->params_size > 0 && (copy = kn_malloc(function->params_size)))
        memcpy(copy, params, function->params_size);
    if (context && (copy || !params)) {
        context->params = copy;
        return context;
    }
    if (function->destroy)
        function->destroy(given);
    kn_free(context);
    return NULL;
}

/* --- for callbacks ------------------------------------------------------------------------------------------------ */

void *kn_function_params(kn_function_context *context) { return context ? context->params : NULL; }
int kn_function_num_inputs(const kn_function_context *context) { return context ? context->num_inputs : 0; }
int kn_function_num_outputs(const kn_function_context *context) { return context ? context->num_outputs : 0; }

bool kn_function_needs_grad(const kn_function_context *context, int index)
{
    return context && index >= 0 && index < context->num_inputs && context->needs[index];
}

kn_status kn_function_save(kn_function_context *context, kn_tensor *tensor)
{
    if (!context)
        return kn_fail_argument_null("kn_function_save", "context");
    KN_TRY(kn_check_tensor("kn_function_save", "tensor", tensor));
    if (context->grad)
        return kn_fail(KN_ERR_STATE, "kn_function_save: only forward may save tensors, not backward");
    if (!context->recorded)
        return KN_OK;
    KN_TRY(KN_GROW(context->saved, context->num_saved, context->capacity));
    context->saved[context->num_saved++] = kn_retain(tensor);
    return KN_OK;
}

kn_status kn_function_mark_non_differentiable(kn_function_context *context, int index)
{
    if (!context)
        return kn_fail_argument_null("kn_function_mark_non_differentiable", "context");
    if (index < 0 || index >= context->num_outputs)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_function_mark_non_differentiable: there is no output %d; the function has %d", index,
                       context->num_outputs);
    context->no_gradient[index] = true;
    return KN_OK;
}

void kn_function_set_materialize_grads(kn_function_context *context, bool materialize)
{
    if (context)
        context->leaves_gradients_out = !materialize;
}

int kn_function_num_saved(const kn_function_context *context)
{
    return !context ? 0 : context->grad ? context->grad->num_saved : context->num_saved;
}

/* With its history, where the pass is recorded. */
static kn_tensor *saved_for_backward(const kn_function_context *context, int index)
{
    const int source = context->sources ? context->sources[index] : -1;
    if (source < 0)
        return context->grad->saved[index];
    return source < context->num_inputs ? kn_grad_saved_input(context->grad, index, source)
                                        : kn_grad_saved_output(context->grad, index, source - context->num_inputs);
}

kn_tensor *kn_function_saved(const kn_function_context *context, int index)
{
    if (index >= 0 && index < kn_function_num_saved(context))
        return context->grad ? saved_for_backward(context, index) : context->saved[index];
    return kn_fail_null(KN_ERR_ARGUMENT, "kn_function_saved: there is no saved tensor %d; %d were saved", index,
                        kn_function_num_saved(context));
}
