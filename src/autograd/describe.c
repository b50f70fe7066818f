/* autograd/describe.c - koine/operators.h: what one operator takes and gives, from its descriptor. */
#include <string.h>

#include "autograd/op.h"

static int count_names(const char *const *names, int most)
{
    int count = 0;
    while (count < most && names[count])
        count++;
    return count;
}

kn_op_info kn_op_describe(const kn_op *op)
{
    if (!op)
        return (kn_op_info){.name = NULL};
    const int outputs = count_names(op->outputs, KN_OP_MAX_OUTPUTS);
    const kn_op_params *params = kn_op_params_of(op);
    return (kn_op_info){.name = op->name,
                        .num_inputs = count_names(op->inputs, KN_OP_MAX_INPUTS),
                        .num_outputs = outputs > 0 ? outputs : 1,
                        .num_params = params->count,
                        .params_size = params->size,
                        .is_differentiable = op->backward != NULL || kn_op_is_composition(op),
                        .is_twice_differentiable = op->backward_recorded != NULL || kn_op_is_composition(op),
                        .is_view = op->is_view,
                        .in_place = op->in_place};
}

kn_op_input kn_op_input_at(const kn_op *op, int index)
{
    if (index < 0 || index >= kn_op_describe(op).num_inputs)
        return (kn_op_input){.name = NULL};
    const char *name = op->inputs[index];
    const unsigned first = op->dtypes[0] ? op->dtypes[0] : KN_DTYPES_ALL;
    return (kn_op_input){.name = name[0] == '?' || name[0] == '*' ? name + 1 : name,
                         .is_optional = name[0] == '?',
                         .is_list = name[0] == '*',
                         .dtypes = op->dtypes[index] ? op->dtypes[index] : first};
}

const char *kn_op_output_at(const kn_op *op, int index)
{
    if (index < 0 || index >= kn_op_describe(op).num_outputs)
        return NULL;
    return op->outputs[index] ? op->outputs[index] : "result";
}

const kn_op_param *kn_op_param_at(const kn_op *op, int index)
{
    return op && index >= 0 && index < kn_op_params_of(op)->count ? &kn_op_params_of(op)->rows[index] : NULL;
}

void kn_op_params_init(const kn_op *op, void *params)
{
    if (op && params && kn_op_params_of(op)->size > 0)
        memcpy(params, kn_op_params_of(op)->defaults, kn_op_params_of(op)->size);
}
