/* autograd/call.c - for an op's functions, about their call: its outputs, what it saves, checks of its inputs. */
#include <string.h>

#include "autograd/op.h"
#include "autograd/tape.h"
#include "tensor/tensor.h"

kn_status kn_call_output(kn_call *call, kn_dtype dtype, int ndim, const int64_t *shape)
{
    if (call->num_outputs == KN_OP_MAX_OUTPUTS)
        return kn_fail(KN_ERR_INTERNAL, "more than %d outputs", KN_OP_MAX_OUTPUTS);
    KN_TRY(kn_tensor_check_shape(ndim, shape, dtype));
    int i = call->num_outputs++;
    call->spec[i].dtype = dtype;
    call->spec[i].ndim = ndim;
    if (ndim > 0)
        memcpy(call->spec[i].shape, shape, (size_t)ndim * sizeof *shape);
    return KN_OK;
}

void kn_call_arrange(const kn_call *call, kn_tensor *output)
{
    kn_tensor_arrange(output, call->inputs, call->num_inputs);
}

kn_status kn_call_save(kn_call *call, kn_tensor *tensor)
{
    if (call->num_saved == KN_OP_MAX_SAVED)
        return kn_fail(KN_ERR_INTERNAL, "more than %d tensors saved", KN_OP_MAX_SAVED);
    call->saved[call->num_saved++] = kn_retain(tensor);
    return KN_OK;
}

bool kn_call_needs(const kn_call *call, int index)
{
    const kn_tensor *input = call->inputs[index];
    return call->op->in_place && index == 0 ? kn_change_wants_record(input) : kn_autograd_wants(input);
}

kn_status kn_call_save_for(kn_call *call, int index, kn_tensor *tensor)
{
    return kn_call_save(call, kn_call_needs(call, index) ? tensor : NULL);
}

static kn_status check_dtype(const kn_call *call, int index, bool accepted, const char *wanted)
{
    const char *name = call->op->inputs[index] ? call->op->inputs[index] : "the input";
    return accepted ? KN_OK
                    : kn_fail(KN_ERR_DTYPE, "%s is %s; it must be %s", name + strspn(name, "?*"),
                              kn_dtype_name(call->inputs[index]->dtype), wanted);
}

kn_status kn_call_check_floating(const kn_call *call, int index)
{
    const kn_dtype dtype = call->inputs[index]->dtype;
    return check_dtype(call, index, dtype == KN_F32 || dtype == KN_F64,
                       call->op->widens_halves ? "floating" : "float32 or float64");
}

kn_status kn_call_check_floating_or_half(const kn_call *call, int index)
{
    return check_dtype(call, index, kn_dtype_is_floating(call->inputs[index]->dtype), "floating");
}

kn_status kn_call_check_same_dtype(const kn_call *call, int first, int last)
{
    const kn_tensor *seen = NULL;
    for (int i = first; i <= last && i < call->num_inputs; i++) {
        const kn_tensor *input = call->inputs[i];
        if (!input)
            continue;
        if (seen && seen->dtype != input->dtype)
            return kn_fail(KN_ERR_DTYPE, "inputs of dtype %s and %s: convert one with kn_to_dtype(tensor, dtype)",
                           kn_dtype_name(seen->dtype), kn_dtype_name(input->dtype));
        seen = input;
    }
    return KN_OK;
}
